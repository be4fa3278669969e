"""The six tests, with the names that the scorecard's own image uses.

Names and requirements are upstream's, with two differences. Upstream finds the descriptors of an example by kind; here group and version
must match, too. Upstream reports a status only if it has no descriptor at all; here each key of an example's status requires one, as
upstream's documentation says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.examples import Example
from ctrlruntime.olm.finding import Level
from ctrlruntime.olm.scorecard.specimen import Schema, Specimen
from ctrlruntime.olm.trees import mapping

__all__ = ["CHECKS", "Note", "Run"]

Note: TypeAlias = tuple[Literal["log", "error", "suggestion"], str]
"""A message of a test. A test with an error has failed."""

Run: TypeAlias = Callable[[Bundle], Iterator[Note]]
Part: TypeAlias = Literal["spec", "status"]

_OPEN: Final = "x-kubernetes-preserve-unknown-fields"


def _spec(bundle: Bundle) -> Iterator[Note]:
    specimen = Specimen(bundle)
    yield _loaded(specimen)
    for example in specimen.examples:
        if example.part("spec") is None:
            # Upstream does not fail it: there are kinds that hold data, and wish for nothing.
            yield "suggestion", f"{example} has no spec. Add one for the desired state, unless the kind only holds data"


def _bundle_validation(bundle: Bundle) -> Iterator[Note]:
    from ctrlruntime.olm.validation import validate

    findings = validate(bundle)
    yield "log", f"{len(bundle.objects)} objects checked"
    for finding in findings:
        yield "error" if finding.level is Level.ERROR else "suggestion", f"{finding.code}: {finding}"


def _have_validation(bundle: Bundle) -> Iterator[Note]:
    specimen = Specimen(bundle)
    yield _loaded(specimen)
    for example in specimen.examples:
        schema = specimen.schema(example)
        if schema is None:
            yield (
                "error",
                f"{example}: no CRD in the bundle has {example.gvk.kind} in {example.gvk.api_version}. Add the CRD, or remove the example",
            )
            continue
        for part in ("spec", "status"):
            for key in _unknown(schema, example, part):
                yield (
                    "error",
                    f"{example}: {part}.{key} is not in the schema of {example.gvk.api_version}, so it is dropped. Correct or remove it",
                )


def _unknown(schema: Schema, example: Example, part: Part) -> Iterator[str]:
    """Yield the keys of a part that the schema does not have. One that keeps unknown fields has them all."""
    if schema.get(_OPEN):
        return
    known = mapping(_properties(schema).get(part))
    if known.get(_OPEN) or known.get("additionalProperties"):
        return
    yield from (key for key in sorted(example.part(part) or {}) if key not in _properties(known))


def _have_resources(bundle: Bundle) -> Iterator[Note]:
    csv = Specimen(bundle).csv
    yield "log", f"ClusterServiceVersion {csv.metadata.name}"
    for owned in csv.spec.customresourcedefinitions.owned:
        if not owned.resources:
            yield "error", f"{owned.name} {owned.version} has no resources. List the kinds that its controller creates"


def _spec_descriptors(bundle: Bundle) -> Iterator[Note]:
    return _descriptors(bundle, "spec")


def _status_descriptors(bundle: Bundle) -> Iterator[Note]:
    return _descriptors(bundle, "status")


def _descriptors(bundle: Bundle, part: Part) -> Iterator[Note]:
    specimen = Specimen(bundle)
    yield _loaded(specimen)
    for example in specimen.examples:
        described = specimen.description(example)
        if described is None:
            yield (
                "error",
                f"{example}: {example.gvk.kind} in {example.gvk.api_version} is not in spec.customresourcedefinitions.owned. Add it there",
            )
            continue
        entries = described.spec_descriptors if part == "spec" else described.status_descriptors
        paths = {entry.path for entry in entries}
        shown = example.part(part) or {}
        for key in sorted(shown.keys() - paths):
            yield "error", f"{example}: {part}.{key} has no descriptor in {described.name} {described.version}"
        others = _properties(mapping(_properties(specimen.schema(example) or {}).get(part)))
        for key in sorted(others.keys() - shown.keys() - paths):
            yield "suggestion", f"{described.name} {described.version}: {part}.{key} has no descriptor"


def _properties(schema: Schema) -> Mapping[str, Any]:
    return mapping(schema.get("properties"))


def _loaded(specimen: Specimen) -> Note:
    count = len(specimen.examples)
    return "log", f"ClusterServiceVersion {specimen.csv.metadata.name}, {count} example{'' if count == 1 else 's'}"


CHECKS: Final[Mapping[str, Run]] = {
    "basic-check-spec": _spec,
    "olm-bundle-validation": _bundle_validation,
    "olm-crds-have-validation": _have_validation,
    "olm-crds-have-resources": _have_resources,
    "olm-spec-descriptors": _spec_descriptors,
    "olm-status-descriptors": _status_descriptors,
}
