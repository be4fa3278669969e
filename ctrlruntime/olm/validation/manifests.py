"""The objects of a bundle: OLM installs their kinds, each is unique, kube-apiserver accepts it, and the CRDs are those that are owned.

The ClusterServiceVersion has its own checks in other modules; this one checks its apiVersion and its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.olm.api import CRDDescription
from ctrlruntime.olm.bundle import MANIFESTS, SUPPORTED, Bundle, BundleObject
from ctrlruntime.olm.finding import Finding
from ctrlruntime.olm.trees import mapping, maps
from ctrlruntime.olm.validation.subject import Problem, Subject, about

__all__ = ["definitions", "objects", "owned_definitions", "refused"]

_CSV: Final = "ClusterServiceVersion"
_CRD: Final = "CustomResourceDefinition"
_CSV_VERSION: Final = "operators.coreos.com/v1alpha1"
_CRD_VERSION: Final = "apiextensions.k8s.io/v1"
_DROPPED: Final = "so kube-apiserver drops it. Correct or remove it"


def objects(subject: Subject) -> Iterator[Finding]:
    yield from _csvs(subject.bundle)
    seen: dict[tuple[str, ...], BundleObject] = {}
    for each in subject.bundle.objects:
        gvk = each.gvk
        if not gvk.version or not gvk.kind:
            text = f"has no {'kind' if gvk.version else 'apiVersion'}. Set apiVersion and kind"
            yield about("object-no-kind", each, text)
            continue
        yield from _versions(each)
        if gvk.kind not in SUPPORTED:
            text = f"OLM does not install the kind {gvk.kind}. Create the object in the operator, or remove it from the bundle"
            yield about("object-kind", each, text, "kind")
        if gvk.kind == _CRD:
            continue
        identity = (gvk.group, gvk.kind, str(each.metadata.get("namespace") or ""), each.name)
        if each.name and gvk.kind != _CSV and seen.setdefault(identity, each) is not each:
            yield about("object-twice", each, f"is already in {seen[identity].file}. Keep one of them")
            continue
        for code, path, text in _problems(each):
            yield about(code, each, text, path)


def _csvs(bundle: Bundle) -> Iterator[Finding]:
    found = [each for each in bundle.objects if each.gvk.kind == _CSV]
    if len(found) > 1:
        files = ", ".join(each.file for each in found)
        text = f"the bundle has {len(found)} ClusterServiceVersions ({files}). Keep one of them"
        yield about("csv-several", None, text)
    if found or not (bundle.folder / MANIFESTS).is_dir():
        return
    # A file that cannot be read, or an object without a kind, may be it.
    if not any(each.file.startswith(MANIFESTS) for each in bundle.unreadable) and all(
        each.gvk.kind for each in bundle.objects
    ):
        yield about("csv-missing", MANIFESTS, "has no ClusterServiceVersion. Create one with `ctrl bundle`")


def _versions(each: BundleObject) -> Iterator[Finding]:
    kind, given = each.gvk.kind, each.gvk.api_version
    if kind == _CSV and given != _CSV_VERSION:
        yield about("csv-api-version", each, f"OLM does not read {given}. Write {_CSV_VERSION}", "apiVersion")
    if kind == _CRD and given != _CRD_VERSION:
        text = f"Kubernetes 1.22 and later do not accept {given}. Write the CRD in {_CRD_VERSION}"
        yield about("crd-api-version", each, text, "apiVersion")


def _problems(each: BundleObject) -> Iterator[Problem]:
    from ctrlruntime.apiserver.registry import Registry
    from ctrlruntime.apiserver.storage import Store
    from ctrlruntime.project.checking import UNKNOWN_FIELD

    kind = each.gvk.kind
    # The kinds of the newest Kubernetes; another validator checks removed versions.
    is_built_in = Registry(Store()).find_kind(*each.gvk) is not None
    # Of other kinds, only the metadata is checked: its rules are those of a ConfigMap's.
    stand_in = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": each.document.get("metadata")}
    for path, text in _judged(each.document if is_built_in else stand_in):
        if kind == _CSV and path in {"", "metadata.name"}:
            continue  # the checks of the ClusterServiceVersion report it
        if not is_built_in or path.startswith("metadata"):
            yield "object-metadata", path or "metadata", text
        elif text == UNKNOWN_FIELD:
            yield "object-unknown-field", path, f"{kind} has no such field, {_DROPPED}"
        else:
            yield "object-not-valid", path, text


def _judged(document: Any) -> Iterator[tuple[str, str]]:
    """Yield path and text of each problem that kube-apiserver would report for one object of a built-in kind."""
    from ctrlruntime.project.checking import check_documents  # it brings the embedded API server

    yield from ((problem.path, problem.text) for problem in check_documents([("", document)]).problems)


def refused(document: Any) -> Iterator[tuple[str, str]]:
    """Yield path and text of each problem for which kube-apiserver would reject an object. Dropped fields are left out."""
    from ctrlruntime.project.checking import UNKNOWN_FIELD

    yield from ((path, text) for path, text in _judged(document) if text != UNKNOWN_FIELD)


def definitions(subject: Subject) -> Iterator[Finding]:
    """Yield the problems that kube-apiserver would report for CRDs."""
    from ctrlruntime.project.checking import UNKNOWN_FIELD

    for each in subject.bundle.definitions:
        for path, text in _judged(each.document) if each.gvk.api_version == _CRD_VERSION else ():
            if text == UNKNOWN_FIELD:
                yield about("crd-unknown-field", each, f"is not a field of a CRD, {_DROPPED}", path)
            else:
                yield about("crd-not-valid", each, text, path)


def owned_definitions(subject: Subject) -> Iterator[Finding]:
    """Yield the differences between the CRDs and those that the ClusterServiceVersion owns."""
    by_kind: dict[GroupVersionKind, BundleObject] = {}
    for each in subject.bundle.definitions:
        kinds = list(_kinds(each))
        taken = next((by_kind[kind] for kind in kinds if kind in by_kind), None)
        if taken is not None:
            yield about("crd-twice", each, f"has the same kind and version as {taken.file}. Keep one of them")
        for kind in kinds:
            by_kind.setdefault(kind, each)
    if subject.csv is None:
        return
    owned = subject.csv.spec.customresourcedefinitions.owned
    for index, description in enumerate(owned):
        for code, path, text in _owned(description, by_kind):
            where = f"spec.customresourcedefinitions.owned[{index}]{path}"
            yield about(code, subject.bundle.csv, text, where)
    # If one version is owned, the others need no entry.
    names = {(each.name.partition(".")[2], each.kind) for each in owned}
    reported: set[str] = set()
    for kind, each in by_kind.items():
        if (kind.group, kind.kind) not in names and each.file not in reported:
            reported.add(each.file)
            text = f"{kind.kind} is not in spec.customresourcedefinitions.owned. Add it there, or remove the file"
            yield about("crd-not-owned", each, text)


def _owned(owned: CRDDescription, by_kind: dict[GroupVersionKind, BundleObject]) -> Iterator[Problem]:
    _, dot, group = owned.name.partition(".")
    if not dot:
        return  # a check of the ClusterServiceVersion
    definition = by_kind.get(GroupVersionKind(group, owned.version, owned.kind))
    if definition is None:
        text = f"no CRD in the bundle has {owned.kind} of {group}/{owned.version}. Add the CRD, or remove this entry"
        yield "owned-crd-missing", "", text
    elif definition.name != owned.name:
        yield "owned-crd-name", ".name", f"{owned.name} is not the name of the CRD. Write {definition.name}"
    elif owned.version not in {
        str(each.get("name")) for each in maps(definition.spec.get("versions")) if each.get("served")
    }:
        text = f"{definition.file} does not serve {owned.version}, but OLM waits for it. Serve it, or remove this entry"
        yield "owned-crd-not-served", ".version", text


def _kinds(each: BundleObject) -> Iterator[GroupVersionKind]:
    kind = str(mapping(each.spec.get("names")).get("kind") or "")
    for version in maps(each.spec.get("versions")):
        yield GroupVersionKind(str(each.spec.get("group") or ""), str(version.get("name")), kind)
