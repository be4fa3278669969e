"""What may still change of a Pod that waits behind scheduling gates: where it runs, and only more narrowly (pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import invalid_value
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import without

_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def gated_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    """Yield what an update may not do to the nodes of a gated Pod."""
    selector: Document = spec.get("nodeSelector") or {}
    if not (before.get("nodeSelector") or {}).items() <= selector.items():
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid_value("spec.nodeSelector", internal("{}s", spec.get("nodeSelector")), text)
    terms, earlier = _terms(spec), _terms(before)
    if earlier and len(terms) != len(earlier):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid_value(_TERMS, internal("[]core.NodeSelectorTerm", terms or None), text)
        return
    for index, (term, then) in enumerate(zip(terms, earlier, strict=False)):
        if not _has_only_more(term, then):
            text = "only additions are allowed (no mutations or deletions)"
            yield invalid_value(f"{_TERMS}[{index}]", internal("core.NodeSelectorTerm", term), text)


def ungated(spec: Document, before: Document) -> Document:
    """Return a spec with the selector and the nodes of before."""
    nodes = (before.get("affinity") or {}).get("nodeAffinity")
    affinity = without(spec.get("affinity") or {}, ("nodeAffinity",))
    if nodes is not None:
        affinity["nodeAffinity"] = nodes
    found = without(spec, ("affinity", "nodeSelector"))
    if affinity or "affinity" in before:
        found["affinity"] = affinity
    if "nodeSelector" in before:
        found["nodeSelector"] = before["nodeSelector"]
    return found


def _terms(spec: Document) -> list[Document]:
    nodes = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return (nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []


def _has_only_more(term: Document, before: Document) -> bool:
    held = {name: before.get(name) or [] for name in ("matchExpressions", "matchFields")}
    given = {name: term.get(name) or [] for name in held}
    if not any(held.values()):
        return not any(given.values())
    return all(given[name][: len(held[name])] == held[name] for name in held)


__all__ = ["gated_causes", "ungated"]
