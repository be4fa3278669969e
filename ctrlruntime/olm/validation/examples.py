"""The examples in a ClusterServiceVersion: one for each kind the operator provides, and of no other kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.text import dump
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.examples import EXAMPLES, Example, examples_of
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["VALIDATOR"]

_ALM, _OLM = EXAMPLES

_error = partial(Check, level=Level.ERROR, type="CSVFileNotValid")
_warning = partial(Check, level=Level.WARNING, type="CSVFileNotValid")
_NONE: Final = _warning(code="csv-no-examples", summary="the annotation with examples is missing")
_BOTH: Final = _warning(
    code="csv-two-examples", summary="both alm-examples and olm.examples are set; consoles read the first"
)
_PARSED: Final = _error(
    code="csv-examples-not-json", type="ParseError", summary="the examples are not a JSON list of objects"
)
_STRANGER: Final = _error(
    code="csv-example-without-api",
    type="OperationFailed",
    summary="an example is of a kind the operator does not provide",
)
_LACKING: Final = _warning(
    code="csv-api-without-example", type="OperationFailed", summary="a kind the operator provides has no example"
)
_INVALID: Final = _warning(
    code="csv-example-not-valid", type="OperationFailed", summary="kube-apiserver would reject an example"
)
_NAME: Final = _error(code="csv-crd-name", type="ParseError", summary="the name of an owned kind has no group")


def _run(subject: Subject) -> Iterator[Finding]:
    csv, found = subject.csv, subject.csv_object
    if csv is None or found is None:
        return
    for index, owned in enumerate(csv.spec.customresourcedefinitions.owned):
        if "." not in owned.name:
            text = f"{owned.name!r} is not the name of a CRD. Write PLURAL.GROUP"
            yield about(_NAME, found, text, f"spec.customresourcedefinitions.owned[{index}].name")
    annotations = csv.metadata.annotations
    if not annotations:
        return  # another check reports it
    for check, name, text in _problems(subject.bundle, csv, annotations):
        yield about(check, found, text, f"metadata.annotations.{name}")


def _problems(
    bundle: Bundle, csv: ClusterServiceVersion, annotations: Mapping[str, str]
) -> Iterator[tuple[Check, str, str]]:
    """Yield check, annotation and text."""
    if _ALM in annotations and _OLM in annotations:
        yield _BOTH, _OLM, f"is not read if {_ALM} is set. Remove one of them"
    name = _ALM if _ALM in annotations else _OLM
    if name not in annotations:
        yield (
            _NONE,
            _ALM,
            "is missing, but consoles offer the examples to users. Add samples to config/samples, and run `ctrl bundle`",
        )
        return
    try:
        examples = examples_of(csv)
    except ConfigError as error:
        yield _PARSED, name, f"cannot be read: {error}"
        return
    provided = _provided(csv)
    broken = [str(example) for example in examples if not example.gvk.version or not example.gvk.kind]
    if broken:
        yield _PARSED, name, f"apiVersion or kind is missing in {', '.join(broken)}. Add it"
        return
    for example in examples:
        if example.gvk not in provided:
            text = f"{example} of {example.gvk.api_version} is not of a kind that the operator owns. Remove it"
            yield _STRANGER, name, text
        else:
            yield from ((_INVALID, name, f"{example}: {text}") for text in _said(bundle, example))
    for kind in sorted(provided - {example.gvk for example in examples}):
        yield _LACKING, name, f"{kind.kind} of {kind.api_version} has no example. Add one to config/samples"


def _provided(csv: ClusterServiceVersion) -> set[GroupVersionKind]:
    owned = csv.spec.customresourcedefinitions.owned
    kinds = {
        GroupVersionKind(each.name.partition(".")[2], each.version, each.kind) for each in owned if "." in each.name
    }
    return kinds | {
        GroupVersionKind(each.group, each.version, each.kind) for each in csv.spec.apiservicedefinitions.owned
    }


def _said(bundle: Bundle, example: Example) -> Iterator[str]:
    """Yield the problems that kube-apiserver would report, if the CRD is in the bundle and valid."""
    from ctrlruntime.project.checking import check  # it brings the embedded API server

    definitions = [("", dump(each.document)) for each in bundle.definitions]
    for problem in check([*definitions, ("example", dump(example.document))]).problems:
        if problem.file:
            yield f"{problem.path} {problem.text}".strip()


VALIDATOR: Final = Validator(
    name="examples",
    summary="Examples of the provided kinds",
    checks=(_NONE, _BOTH, _PARSED, _STRANGER, _LACKING, _INVALID, _NAME),
    run=_run,
)
