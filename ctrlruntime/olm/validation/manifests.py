"""The objects of a bundle: kinds OLM installs, each once, and what kube-apiserver would say to them.

The definitions and the ClusterServiceVersion have checks of their own, elsewhere; here they are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ctrlruntime.generate.text import dump
from ctrlruntime.olm.bundle import MANIFESTS, SUPPORTED, BundleObject
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.validator import Subject, Validator, about

if TYPE_CHECKING:
    from ctrlruntime.project.checking import Problem

__all__ = ["VALIDATOR", "problems", "refused"]

_CSV: Final = "ClusterServiceVersion"
_CRD: Final = "CustomResourceDefinition"
_CSV_VERSION: Final = "operators.coreos.com/v1alpha1"
_CRD_VERSION: Final = "apiextensions.k8s.io/v1"

_error = partial(Check, level=Level.ERROR, type="BundleNotValid")
_NO_CSV: Final = _error(code="csv-missing", summary="the bundle has no ClusterServiceVersion")
_CSVS: Final = _error(code="csv-several", summary="the bundle has more than one ClusterServiceVersion")
_CSV_API: Final = _error(
    code="csv-api-version", type="CSVFileNotValid", summary=f"the ClusterServiceVersion is not of {_CSV_VERSION}"
)
_CRD_API: Final = _error(
    code="crd-api-version", type="FieldTypeNotSupported", summary=f"a definition is not of {_CRD_VERSION}"
)
_INCOMPLETE: Final = _error(code="object-no-kind", type="ParseError", summary="an object lacks apiVersion or kind")
_KIND: Final = _error(
    code="object-kind", type="FieldTypeNotSupported", summary="an object is of a kind that OLM does not install"
)
_METADATA: Final = _error(
    code="object-metadata", type="ValidationFailed", summary="the metadata of an object is not valid"
)
_INVALID: Final = _error(
    code="object-not-valid", type="ValidationFailed", summary="kube-apiserver would refuse an object"
)
_UNKNOWN: Final = Check(
    code="object-unknown-field",
    level=Level.WARNING,
    type="ValidationFailed",
    summary="an object has a field that its kind does not have, and loses it",
)
_TWICE: Final = _error(code="object-twice", summary="an object is in the bundle twice")


def _run(subject: Subject) -> Iterator[Finding]:
    yield from _csvs(subject)
    seen: dict[tuple[str, ...], BundleObject] = {}
    for each in subject.bundle.objects:
        if not each.gvk.version or not each.gvk.kind:
            yield about(
                _INCOMPLETE, each, f"lacks {'kind' if each.gvk.version else 'apiVersion'}; every object has both"
            )
            continue
        yield from _versions(each)
        if each.gvk.kind not in SUPPORTED:
            text = f"{each.gvk.kind} is not a kind that OLM installs; let the operator make it, or take it out of the bundle"
            yield about(_KIND, each, text, "kind")
        if each.gvk.kind == _CRD:
            continue
        identity = (each.gvk.group, each.gvk.kind, str(each.metadata.get("namespace") or ""), each.name)
        if each.name and each.gvk.kind != _CSV and seen.setdefault(identity, each) is not each:
            yield about(_TWICE, each, f"is in {seen[identity].file} already; keep one of them")
            continue
        yield from _said(each)


def _csvs(subject: Subject) -> Iterator[Finding]:
    bundle = subject.bundle
    found = [each for each in bundle.objects if each.gvk.kind == _CSV]
    if len(found) > 1:
        files = ", ".join(each.file for each in found)
        yield about(
            _CSVS, None, f"{len(found)} ClusterServiceVersions are in the bundle ({files}); it holds one version"
        )
    if found or not (bundle.folder / MANIFESTS).is_dir():
        return
    # What cannot be read, or lacks its kind, may be the one.
    if not any(each.file.startswith(MANIFESTS) for each in bundle.unreadable) and all(
        each.gvk.kind for each in bundle.objects
    ):
        yield Finding(check=_NO_CSV, text="has no ClusterServiceVersion; `ctrl bundle` makes one", file=MANIFESTS)


def _versions(each: BundleObject) -> Iterator[Finding]:
    kind, given = each.gvk.kind, each.gvk.api_version
    if kind == _CSV and given != _CSV_VERSION:
        yield about(_CSV_API, each, f"{given} is not what OLM reads; write {_CSV_VERSION}", "apiVersion")
    if kind == _CRD and given != _CRD_VERSION:
        text = f"{given} is taken by no Kubernetes since 1.22; write the definition in {_CRD_VERSION}"
        yield about(_CRD_API, each, text, "apiVersion")


def _said(each: BundleObject) -> Iterator[Finding]:
    from ctrlruntime.project.checking import UNKNOWN_FIELD

    known = _is_built_in(each)
    document = each.document if known else _stand_in(each)
    for problem in problems(document):
        if each.gvk.kind == _CSV and problem.path in {"", "metadata.name"}:
            continue  # which the checks of the ClusterServiceVersion tell
        if not known or problem.path.startswith("metadata"):
            yield about(_METADATA, each, problem.text, problem.path or "metadata")
        elif problem.text == UNKNOWN_FIELD:
            text = f"{each.gvk.kind} has no such field; kube-apiserver drops it"
            yield about(_UNKNOWN, each, text, problem.path)
        else:
            yield about(_INVALID, each, problem.text, problem.path)


def problems(document: Any) -> list[Problem]:
    """Return what kube-apiserver would say to one object of a kind of Kubernetes."""
    from ctrlruntime.project.checking import check  # it brings the embedded API server

    return check([("", dump(document))]).problems


def refused(document: Any) -> Iterator[tuple[str, str]]:
    """Yield path and text of what kube-apiserver would refuse in an object. Fields that it drops are left out."""
    from ctrlruntime.project.checking import UNKNOWN_FIELD

    for problem in problems(document):
        if problem.text != UNKNOWN_FIELD:
            yield problem.path, problem.text


def _is_built_in(each: BundleObject) -> bool:
    """Tell whether the newest Kubernetes has the kind. Versions it has no more are another validator's."""
    from ctrlruntime.apiserver.registry import Registry
    from ctrlruntime.apiserver.storage import Store

    return Registry(Store()).find_kind(*each.gvk) is not None


def _stand_in(each: BundleObject) -> dict[str, Any]:
    """Return an object with the same metadata: custom kinds have the rules of ConfigMaps there."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": each.document.get("metadata")}


VALIDATOR: Final = Validator(
    name="manifests",
    summary="Kinds and objects",
    checks=(_NO_CSV, _CSVS, _CSV_API, _INCOMPLETE, _KIND, _CRD_API, _METADATA, _INVALID, _UNKNOWN, _TWICE),
    run=_run,
)
