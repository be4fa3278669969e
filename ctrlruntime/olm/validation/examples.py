"""The examples in a ClusterServiceVersion: one for each kind the operator provides, and of no other kind."""

from __future__ import annotations

from collections.abc import Iterator

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.examples import EXAMPLES, Example, examples_of
from ctrlruntime.olm.validation.subject import Problem, Subject, of_csv

__all__ = ["run"]

_ALM, _OLM = EXAMPLES


@of_csv
def run(csv: ClusterServiceVersion, subject: Subject) -> Iterator[Problem]:
    for index, owned in enumerate(csv.spec.customresourcedefinitions.owned):
        if "." not in owned.name:
            text = f"{owned.name!r} is not the name of a CRD. Write PLURAL.GROUP"
            yield "csv-crd-name", f"spec.customresourcedefinitions.owned[{index}].name", text
    if csv.metadata.annotations:  # another check reports that there are none
        for code, name, text in _problems(csv, subject.bundle):
            yield code, f"metadata.annotations.{name}", text


def _problems(csv: ClusterServiceVersion, bundle: Bundle) -> Iterator[Problem]:
    """Yield code, annotation and text."""
    annotations = csv.metadata.annotations
    if _ALM in annotations and _OLM in annotations:
        yield "csv-two-examples", _OLM, f"is not read if {_ALM} is set. Remove one of them"
    name = _ALM if _ALM in annotations else _OLM
    if name not in annotations:
        advice = "Add samples to config/samples, and run `ctrl bundle`"
        yield "csv-no-examples", _ALM, f"is missing, but consoles offer the examples to users. {advice}"
        return
    try:
        examples = examples_of(csv)
    except ConfigError as error:
        yield "csv-examples-not-json", name, f"cannot be read: {error}"
        return
    broken = [str(example) for example in examples if not example.gvk.version or not example.gvk.kind]
    if broken:
        yield "csv-examples-not-json", name, f"apiVersion or kind is missing in {', '.join(broken)}. Add it"
        return
    provided = _provided(csv)
    for example in examples:
        if example.gvk not in provided:
            text = f"{example} of {example.gvk.api_version} is not of a kind that the operator owns. Remove it"
            yield "csv-example-without-api", name, text
        else:
            yield from (("csv-example-not-valid", name, f"{example}: {text}") for text in _judged(example, bundle))
    for kind in sorted(provided - {example.gvk for example in examples}):
        text = f"{kind.kind} of {kind.api_version} has no example. Add one to config/samples"
        yield "csv-api-without-example", name, text


def _provided(csv: ClusterServiceVersion) -> set[GroupVersionKind]:
    kinds = {
        GroupVersionKind(each.name.partition(".")[2], each.version, each.kind)
        for each in csv.spec.customresourcedefinitions.owned
        if "." in each.name
    }
    return kinds | {
        GroupVersionKind(each.group, each.version, each.kind) for each in csv.spec.apiservicedefinitions.owned
    }


def _judged(example: Example, bundle: Bundle) -> Iterator[str]:
    """Yield the problems that kube-apiserver would report, if the CRD is in the bundle and valid."""
    from ctrlruntime.project.checking import check_documents  # it brings the embedded API server

    definitions = [("", each.document) for each in bundle.definitions]
    for problem in check_documents([*definitions, ("example", example.document)]).problems:
        if problem.file:
            yield f"{problem.path} {problem.text}".strip()
