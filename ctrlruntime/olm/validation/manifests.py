"""The objects of a bundle: OLM installs their kinds, each object is unique, and kube-apiserver accepts it.

CRDs and the ClusterServiceVersion have their own checks in other modules; this one checks their apiVersion and their number.
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
    code="csv-api-version",
    type="CSVFileNotValid",
    summary=f"the apiVersion of the ClusterServiceVersion is not {_CSV_VERSION}",
)
_CRD_API: Final = _error(
    code="crd-api-version", type="FieldTypeNotSupported", summary=f"the apiVersion of a CRD is not {_CRD_VERSION}"
)
_INCOMPLETE: Final = _error(code="object-no-kind", type="ParseError", summary="an object lacks apiVersion or kind")
_KIND: Final = _error(
    code="object-kind", type="FieldTypeNotSupported", summary="an object is of a kind that OLM does not install"
)
_METADATA: Final = _error(
    code="object-metadata", type="ValidationFailed", summary="the metadata of an object is not valid"
)
_INVALID: Final = _error(
    code="object-not-valid", type="ValidationFailed", summary="kube-apiserver would reject an object"
)
_UNKNOWN: Final = Check(
    code="object-unknown-field",
    level=Level.WARNING,
    type="ValidationFailed",
    summary="an object has an unknown field, which kube-apiserver drops",
)
_TWICE: Final = _error(code="object-twice", summary="an object is in the bundle twice")


def _run(subject: Subject) -> Iterator[Finding]:
    yield from _csvs(subject)
    seen: dict[tuple[str, ...], BundleObject] = {}
    for each in subject.bundle.objects:
        if not each.gvk.version or not each.gvk.kind:
            yield about(
                _INCOMPLETE, each, f"has no {'kind' if each.gvk.version else 'apiVersion'}. Set apiVersion and kind"
            )
            continue
        yield from _versions(each)
        if each.gvk.kind not in SUPPORTED:
            text = f"OLM does not install the kind {each.gvk.kind}. Create the object in the operator, or remove it from the bundle"
            yield about(_KIND, each, text, "kind")
        if each.gvk.kind == _CRD:
            continue
        identity = (each.gvk.group, each.gvk.kind, str(each.metadata.get("namespace") or ""), each.name)
        if each.name and each.gvk.kind != _CSV and seen.setdefault(identity, each) is not each:
            yield about(_TWICE, each, f"is already in {seen[identity].file}. Keep one of them")
            continue
        yield from _said(each)


def _csvs(subject: Subject) -> Iterator[Finding]:
    bundle = subject.bundle
    found = [each for each in bundle.objects if each.gvk.kind == _CSV]
    if len(found) > 1:
        files = ", ".join(each.file for each in found)
        yield about(_CSVS, None, f"the bundle has {len(found)} ClusterServiceVersions ({files}). Keep one of them")
    if found or not (bundle.folder / MANIFESTS).is_dir():
        return
    # A file that cannot be read, or an object without a kind, may be it.
    if not any(each.file.startswith(MANIFESTS) for each in bundle.unreadable) and all(
        each.gvk.kind for each in bundle.objects
    ):
        yield Finding(check=_NO_CSV, text="has no ClusterServiceVersion. Create one with `ctrl bundle`", file=MANIFESTS)


def _versions(each: BundleObject) -> Iterator[Finding]:
    kind, given = each.gvk.kind, each.gvk.api_version
    if kind == _CSV and given != _CSV_VERSION:
        yield about(_CSV_API, each, f"OLM does not read {given}. Write {_CSV_VERSION}", "apiVersion")
    if kind == _CRD and given != _CRD_VERSION:
        text = f"Kubernetes 1.22 and later do not accept {given}. Write the CRD in {_CRD_VERSION}"
        yield about(_CRD_API, each, text, "apiVersion")


def _said(each: BundleObject) -> Iterator[Finding]:
    from ctrlruntime.project.checking import UNKNOWN_FIELD

    known = _is_built_in(each)
    document = each.document if known else _stand_in(each)
    for problem in problems(document):
        if each.gvk.kind == _CSV and problem.path in {"", "metadata.name"}:
            continue  # the checks of the ClusterServiceVersion report it
        if not known or problem.path.startswith("metadata"):
            yield about(_METADATA, each, problem.text, problem.path or "metadata")
        elif problem.text == UNKNOWN_FIELD:
            text = f"{each.gvk.kind} has no such field, so kube-apiserver drops it. Correct or remove it"
            yield about(_UNKNOWN, each, text, problem.path)
        else:
            yield about(_INVALID, each, problem.text, problem.path)


def problems(document: Any) -> list[Problem]:
    """Return the problems that kube-apiserver would report for one object of a built-in kind."""
    from ctrlruntime.project.checking import check  # it brings the embedded API server

    return check([("", dump(document))]).problems


def refused(document: Any) -> Iterator[tuple[str, str]]:
    """Yield path and text of each problem for which kube-apiserver would reject an object. Dropped fields are left out."""
    from ctrlruntime.project.checking import UNKNOWN_FIELD

    for problem in problems(document):
        if problem.text != UNKNOWN_FIELD:
            yield problem.path, problem.text


def _is_built_in(each: BundleObject) -> bool:
    """Tell whether the newest Kubernetes has the kind. Another validator checks removed versions."""
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
