"""The CRDs of a bundle: kube-apiserver accepts them, and the ClusterServiceVersion owns them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.olm.api import CRDDescription
from ctrlruntime.olm.bundle import BundleObject
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.manifests import problems
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["CONTENT", "VALIDATOR"]

_VERSION: Final = "apiextensions.k8s.io/v1"

_error = partial(Check, level=Level.ERROR, type="BundleNotValid")
_INVALID: Final = _error(code="crd-not-valid", type="ValidationFailed", summary="kube-apiserver would reject a CRD")
_UNKNOWN: Final = Check(
    code="crd-unknown-field",
    level=Level.WARNING,
    type="ValidationFailed",
    summary="a CRD has an unknown field, which kube-apiserver drops",
)
_MISSING: Final = _error(code="owned-crd-missing", summary="an owned kind has no CRD in the bundle")
_NOT_OWNED: Final = _error(code="crd-not-owned", summary="a CRD of the bundle is not owned by the operator")
_TWICE: Final = _error(code="crd-twice", summary="two CRDs of the bundle have the same kind and version")
_NAME: Final = _error(code="owned-crd-name", summary="the name of an owned kind is not the name of its CRD")
_NOT_SERVED: Final = _error(code="owned-crd-not-served", summary="the CRD of an owned version does not serve it")


def _run(subject: Subject) -> Iterator[Finding]:
    from ctrlruntime.project.checking import UNKNOWN_FIELD  # it brings the embedded API server

    for each in subject.bundle.definitions:
        if each.gvk.api_version != _VERSION:
            continue
        for problem in problems(each.document):
            if problem.text == UNKNOWN_FIELD:
                yield about(
                    _UNKNOWN,
                    each,
                    "is not a field of a CRD, so kube-apiserver drops it. Correct or remove it",
                    problem.path,
                )
            else:
                yield about(_INVALID, each, problem.text, problem.path)


def _content(subject: Subject) -> Iterator[Finding]:
    by_kind: dict[GroupVersionKind, BundleObject] = {}
    for each in subject.bundle.definitions:
        taken = next((by_kind[kind] for kind in _kinds(each) if kind in by_kind), None)
        if taken is not None:
            yield about(_TWICE, each, f"has the same kind and version as {taken.file}. Keep one of them")
        for kind in _kinds(each):
            by_kind.setdefault(kind, each)
    csv = subject.csv
    if csv is None:
        return
    owned = csv.spec.customresourcedefinitions.owned
    for index, description in enumerate(owned):
        path = f"spec.customresourcedefinitions.owned[{index}]"
        yield from _owned(subject.csv_object, description, path, by_kind)
    yield from _strangers(owned, by_kind)


def _owned(
    found: BundleObject | None, owned: CRDDescription, path: str, by_kind: dict[GroupVersionKind, BundleObject]
) -> Iterator[Finding]:
    _, dot, group = owned.name.partition(".")
    if not dot:
        return  # a check of the ClusterServiceVersion
    definition = by_kind.get(GroupVersionKind(group, owned.version, owned.kind))
    if definition is None:
        text = f"no CRD in the bundle has {owned.kind} of {group}/{owned.version}. Add the CRD, or remove this entry"
        yield about(_MISSING, found, text, path)
    elif definition.name != owned.name:
        yield about(_NAME, found, f"{owned.name} is not the name of the CRD. Write {definition.name}", f"{path}.name")
    elif owned.version not in _served(definition):
        text = f"{definition.file} does not serve {owned.version}, but OLM waits for it. Serve it, or remove this entry"
        yield about(_NOT_SERVED, found, text, f"{path}.version")


def _strangers(owned: list[CRDDescription], by_kind: dict[GroupVersionKind, BundleObject]) -> Iterator[Finding]:
    """Yield the CRDs of which no version is owned. If one version is owned, the others need no entry."""
    names = {(each.name.partition(".")[2], each.kind) for each in owned}
    told: set[str] = set()
    for kind, each in by_kind.items():
        if (kind.group, kind.kind) not in names and each.file not in told:
            told.add(each.file)
            text = f"{kind.kind} is not in spec.customresourcedefinitions.owned. Add it there, or remove the file"
            yield about(_NOT_OWNED, each, text)


def _versions(each: BundleObject) -> Iterator[dict[str, Any]]:
    versions: Any = each.spec.get("versions")
    yield from (one for one in (versions if isinstance(versions, list) else ()) if isinstance(one, dict))


def _served(each: BundleObject) -> set[str]:
    return {str(version.get("name")) for version in _versions(each) if version.get("served")}


def _kinds(each: BundleObject) -> Iterator[GroupVersionKind]:
    names: Any = each.spec.get("names")
    kind = names.get("kind") if isinstance(names, dict) else None
    for version in _versions(each):
        yield GroupVersionKind(str(each.spec.get("group") or ""), str(version.get("name")), str(kind or ""))


VALIDATOR: Final = Validator(name="definitions", summary="CRDs", checks=(_INVALID, _UNKNOWN), run=_run)
CONTENT: Final = Validator(
    name="owned-definitions",
    summary="Owned kinds and their CRDs",
    checks=(_MISSING, _NOT_OWNED, _TWICE, _NAME, _NOT_SERVED),
    run=_content,
)
