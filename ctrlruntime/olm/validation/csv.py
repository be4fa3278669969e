"""The ClusterServiceVersion: names, versions, install modes, annotations, and the fields that catalogs show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.release import SKIP_RANGE
from ctrlruntime.olm.semver import parse, parse_range
from ctrlruntime.olm.validation.subject import Problem, Subject, of_csv

__all__ = ["run"]

_LONGEST: Final = 63
"""The maximum characters of a name, which OLM uses as a label value."""
_CASED: Final = ("olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces", "olm.providedAPIs", SKIP_RANGE)
_BY_LOWER: Final = {name.lower(): name for name in _CASED}
_LISTS: Final = (
    "operators.operatorframework.io/internal-objects",
    "operators.openshift.io/infrastructure-features",
    "operators.openshift.io/valid-subscription",
)
_INITIALIZATION: Final = "operatorframework.io/initialization-resource"


_WANTED: Final = {
    "version": ("csv-no-version", "OLM treats it as 0.0.0. Set it with `ctrl bundle --version`"),
    "description": ("csv-no-description", "catalogs show it. Describe what the operator does"),
    "keywords": ("csv-no-keywords", "users find the operator by keywords. Add some"),
    "maintainers": ("csv-no-maintainers", "users need a contact. Add a name and an email address"),
    "provider": ("csv-no-provider", "catalogs show the provider. Set its name"),
    "minKubeVersion": (
        "csv-no-min-kube-version",
        "without it, OLM installs on every Kubernetes version. Set it with `ctrl generate kustomize-manifests --min-kube-version`",
    ),
}


@of_csv
def run(csv: ClusterServiceVersion, subject: Subject) -> Iterator[Problem]:
    yield from (*_names(csv), *_versions(csv), *_modes(csv), *_annotations(csv))
    written = subject.bundle.csv.spec if subject.bundle.csv else {}
    for name, (code, why) in _WANTED.items():
        if not written.get(name):
            yield code, f"spec.{name}", f"is missing: {why}"


def _names(csv: ClusterServiceVersion) -> Iterator[Problem]:
    from ctrlruntime.schema.values import subdomain_problems

    name, replaces = csv.metadata.name, csv.spec.replaces
    for code, path, value, is_required in (
        ("csv-name", "metadata.name", name, True),
        ("csv-replaces", "spec.replaces", replaces, False),
    ):
        if (value or is_required) and (subdomain_problems(value) or len(value) > _LONGEST):
            advice = f"Use lower-case letters, digits, dots and dashes, at most {_LONGEST} characters"
            yield code, path, f"{value!r} is not a valid name. {advice}"
    if replaces and replaces == name:
        text = f"{replaces} is this version. Set the previous version, or remove the field"
        yield "csv-replaces-itself", "spec.replaces", text


def _versions(csv: ClusterServiceVersion) -> Iterator[Problem]:
    for code, path, value, example in (
        ("csv-version", "spec.version", csv.spec.version, "1.2.3"),
        ("csv-min-kube-version", "spec.minKubeVersion", csv.spec.min_kube_version, "1.30.0"),
    ):
        if value and parse(value) is None:
            advice = f"Write three numbers with dots and without v, such as {example}"
            yield code, path, f"{value!r} is not a semantic version. {advice}"
    skipped = csv.metadata.annotations.get(SKIP_RANGE)
    if skipped is not None and parse_range(skipped) is None:
        text = f"{skipped!r} is not a range of versions. Write it like >=1.0.0 <1.2.0"
        yield "csv-skip-range", f"metadata.annotations.{SKIP_RANGE}", text


def _modes(csv: ClusterServiceVersion) -> Iterator[Problem]:
    modes, path = csv.spec.install_modes, "spec.installModes"
    if not modes:
        text = "is missing, so OLM cannot install the operator. Add at least one mode, such as AllNamespaces"
        yield "csv-no-install-modes", path, text
        return
    types = [mode.type for mode in modes]
    for name in sorted({name for name in types if types.count(name) > 1}):
        yield "csv-install-mode-twice", path, f"{name} is listed {types.count(name)} times. Keep one"
    if not any(mode.supported for mode in modes):
        text = "no mode is supported, so OLM cannot install the operator. Set `supported: true` in one"
        yield "csv-install-mode-none", path, text


def _annotations(csv: ClusterServiceVersion) -> Iterator[Problem]:
    annotations, path = csv.metadata.annotations, "metadata.annotations"
    if not annotations:
        text = "are missing, but catalogs read capabilities and examples from them. Add them"
        yield "csv-no-annotations", path, text
        return
    for name in annotations:
        right = _BY_LOWER.get(name.lower(), name)
        if right != name:
            yield "csv-annotation-case", f"{path}.{name}", f"is not read by OLM. Write {right}"
    if "olm.properties" in annotations:
        text = "catalogs read the properties from metadata/properties.yaml. Move them there"
        yield "csv-olm-properties", f"{path}.olm.properties", text
    if not annotations.get("capabilities"):
        text = "is missing, but catalogs show it. Set a level, such as Basic Install"
        yield "csv-no-capabilities", f"{path}.capabilities", text
    for name, kind, word in (*((name, list, "list") for name in _LISTS), (_INITIALIZATION, dict, "object")):
        if name in annotations and not isinstance(_json(annotations[name]), kind):
            text = f"is not a JSON {word}, so consoles do not show it. Correct it"
            yield "csv-annotation-json", f"{path}.{name}", text


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
