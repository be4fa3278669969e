"""Examples: the samples of a project, which consoles show, in the annotation `alm-examples`."""

from __future__ import annotations

import json
from typing import Final

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.olm.csv.objects import Objects, gvk_of
from ctrlruntime.olm.trees import mapping, maps

__all__ = ["ANNOTATION", "examples"]

ANNOTATION: Final = "alm-examples"


def examples(objects: Objects) -> str:
    """Remove the objects of the CRDs' kinds, and return them as JSON; empty without any.

    They have no namespace: a console creates them in the current namespace.
    """
    kinds = set(_defined(objects))
    found = [each for each in objects.documents if gvk_of(each) in kinds]
    objects.take(found)
    for each in found:
        each["metadata"].pop("namespace", None)
    return json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) if found else ""


def _defined(objects: Objects) -> list[GroupVersionKind]:
    specs = [mapping(each.get("spec")) for each in objects.definitions]
    return [
        GroupVersionKind(str(spec.get("group")), str(version.get("name")), str(mapping(spec.get("names")).get("kind")))
        for spec in specs
        for version in maps(spec.get("versions"))
    ]
