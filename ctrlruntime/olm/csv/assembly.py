"""The assembly of a ClusterServiceVersion: its parts, and the objects that stay in separate files."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.options import Document, Warn, warn
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.csv.definitions import owned_definitions
from ctrlruntime.olm.csv.deployments import deployments, manager_of
from ctrlruntime.olm.csv.examples import ANNOTATION, examples
from ctrlruntime.olm.csv.images import related_images
from ctrlruntime.olm.csv.objects import Objects, namespace_of
from ctrlruntime.olm.csv.others import others
from ctrlruntime.olm.csv.permissions import Granted, granted
from ctrlruntime.olm.csv.profile import Certificates, profile, without_strangers
from ctrlruntime.olm.csv.webhooks import warn_of_refusals, webhooks
from ctrlruntime.olm.refusals import CONVERSION
from ctrlruntime.olm.release import is_release, name_for
from ctrlruntime.olm.trees import mapping, maps

__all__ = ["Assembled", "Sources", "assemble"]

_BUILDER: Final = "operators.operatorframework.io/builder"
_LAYOUT: Final = "operators.operatorframework.io/project_layout"
_LONGEST_NAME: Final = 63
_OF_LISTS: Final = ("apiservicedefinitions", "customresourcedefinitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of a ClusterServiceVersion."""

    package: str
    """The name of the package in catalogs: a DNS label."""

    version: str
    """A semantic version, without a leading v."""

    base: Document
    """The base, which the user edits. Its values are kept, unless they follow from the other sources."""

    objects: Sequence[Mapping[str, Any]]
    """All objects of the project as kustomize renders them, without the base: with their final names and namespaces."""

    kinds: Sequence[type[Object]] = ()
    """The project's kinds, with display names and descriptors."""

    owns: Mapping[GroupVersionKind, Sequence[GroupVersionKind]] = field(
        default_factory=dict[GroupVersionKind, Sequence[GroupVersionKind]]
    )
    """For each kind that a controller reconciles, the kinds it owns."""

    extra_service_accounts: Sequence[str] = ()
    """ServiceAccounts other than those of Deployments, whose permissions OLM grants too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The parts of a bundle's `manifests/`."""

    csv: Document
    others: Sequence[Document]
    """The objects that stay files, CRDs first, without namespaces."""


def assemble(sources: Sources, *, warn: Warn = warn) -> Assembled:
    """Return the ClusterServiceVersion and the separate files; the same sources give the same result.

    `warn` takes the text of each warning. Raises: GenerateError, in one line, for sources that cannot become a bundle.
    """
    base = copy.deepcopy(sources.base)
    objects = Objects(sources.objects)
    without_strangers(objects)
    home = next((namespace_of(each) for each in objects.deployments), "")
    spec = mapping(base.get("spec"))
    certificates = Certificates.of(objects)
    webhook_entries = _with_said(webhooks(objects, warn), maps(spec.get("webhookdefinitions")))
    warn_of_refusals(webhook_entries, warn)
    profile(objects, certificates, _serving(spec, webhook_entries))
    allowed = granted(objects, sources.extra_service_accounts, warn)
    running = deployments(objects)
    shown = examples(objects)
    said = mapping(spec.get("customresourcedefinitions"))
    owned = owned_definitions(objects, maps(said.get("owned")), sources.kinds, sources.owns, warn)
    made: Document = {
        **spec,
        "version": sources.version,
        "install": _install(running, allowed),
        "customresourcedefinitions": {**said, "owned": owned},
        "webhookdefinitions": webhook_entries,
        "relatedImages": related_images(running, maps(spec.get("relatedImages")), warn),
        "icon": [each for each in maps(spec.get("icon")) if each.get("base64data")],
    }
    _warn_of_modes(made, warn)
    csv = {
        "apiVersion": kind_of(ClusterServiceVersion).api_version,
        "kind": kind_of(ClusterServiceVersion).kind,
        "metadata": _metadata(sources, mapping(base.get("metadata")), running, shown),
        "spec": _without_empty(made),
    }
    return Assembled(csv=csv, others=others(objects, home, warn))


def _with_said(found: Sequence[Document], said: Sequence[Document]) -> list[Document]:
    """Return the webhooks of the objects, and those that only the base has."""
    known = {(each["type"], each["generateName"]) for each in found}
    kept = [each for each in said if (each.get("type"), each.get("generateName")) not in known]
    return sorted([*found, *kept], key=lambda each: (str(each.get("generateName")), str(each.get("type"))))


def _serving(spec: Document, webhook_entries: Sequence[Document]) -> set[str]:
    """Return the names of the Deployments that serve requests of the API server."""
    services = mapping(spec.get("apiservicedefinitions"))
    return {str(each.get("deploymentName")) for each in (*webhook_entries, *maps(services.get("owned")))}


def _install(running: Sequence[Document], allowed: Granted) -> Document:
    spec = {
        "deployments": list(running),
        "permissions": allowed.permissions,
        "clusterPermissions": allowed.cluster_permissions,
    }
    return {"strategy": "deployment", "spec": {word: value for word, value in spec.items() if value}}


def _metadata(sources: Sources, said: Document, running: Sequence[Document], shown: str) -> Document:
    annotations = dict(mapping(said.get("annotations")))
    annotations |= {
        ANNOTATION: shown or annotations.get(ANNOTATION) or "[]",
        _BUILDER: "ctrlruntime",  # without its version, with which a release would make every bundle stale
        _LAYOUT: annotations.get(_LAYOUT) or "python.ctrlruntime.dev/v1",
    }
    image = manager_of(running).get("image")
    if image and not annotations.get("containerImage"):
        annotations["containerImage"] = image
    return {**said, "name": _name(sources), "annotations": annotations}


def _name(sources: Sources) -> str:
    release = _release(sources.base)
    name = name_for(sources.package, sources.version, release)
    if release and (len(name) > _LONGEST_NAME or release != release.lower()):
        raise GenerateError(
            f"cannot name the ClusterServiceVersion {name}: a name must be lower case and have at most {_LONGEST_NAME} "
            f"characters. Change spec.release in the base"
        )
    return name


def _release(base: Document) -> str:
    release = mapping(base.get("spec")).get("release")
    if release in (None, ""):
        return ""
    if not is_release(release):
        raise GenerateError(
            f"spec.release {release!r} is not valid. In the base, use identifiers with dots between them, "
            f'such as "1" or "2.rc-1"'
        )
    return str(release)


def _without_empty(tree: Mapping[str, Any]) -> Document:
    """Remove empty values. Empty strings stay: users fill them, and checks report them."""
    pruned = {word: _without_empty(mapping(value)) if word in _OF_LISTS else value for word, value in tree.items()}
    return {word: value for word, value in pruned.items() if value not in (None, {}, [])}


def _warn_of_modes(spec: Mapping[str, Any], warn: Warn) -> None:
    """Warn of install modes that a conversion does not allow: CRDs belong to the whole cluster."""
    if not any(each.get("type") == CONVERSION for each in spec["webhookdefinitions"]):
        return
    supported = {str(each.get("type")) for each in maps(spec.get("installModes")) if each.get("supported")}
    if supported != {"AllNamespaces"}:
        warn(
            "OLM installs a conversion webhook only if AllNamespaces is the only supported install mode. Set spec.installModes in "
            "the base"
        )
