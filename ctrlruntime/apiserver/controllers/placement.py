"""Which nodes a pod may run on: its node selector, its required node affinity, taints and tolerations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ctrlruntime.apiserver.controllers.objects import condition, labels_of, metadata
from ctrlruntime.apiserver.interfaces import Document

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def is_chosen(spec: Document, node: Document) -> bool:
    """Tell whether a pod's node selector and required node affinity pick a node."""
    if not (spec.get("nodeSelector") or {}).items() <= labels_of(node).items():
        return False
    needed = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    return needed is None or any(_is_met(term, node) for term in needed.get("nodeSelectorTerms") or ())


def tolerates(spec: Document, node: Document, effects: Iterable[str] = ("NoSchedule", "NoExecute")) -> bool:
    """Tell whether a pod tolerates a node's taints of these effects."""
    given, considered = spec.get("tolerations") or (), set(effects)
    taints = [taint for taint in (node.get("spec") or {}).get("taints") or () if taint.get("effect") in considered]
    if not _is_unready(node):  # the taint of a node that has just registered is about to go
        taints = [taint for taint in taints if taint.get("key") != "node.kubernetes.io/not-ready"]
    return all(any(_covers(toleration, taint) for toleration in given) for taint in taints)


def _is_unready(node: Document) -> bool:
    """Tell whether somebody says that the node is not ready; one nobody speaks for is served by the simulation."""
    ready = condition(node, "Ready")
    return ready is not None and ready.get("status") != "True"


def why_not(spec: Document, nodes: Sequence[Document]) -> str:
    """Return what a scheduler says about a pod that fits on none of the nodes."""
    mismatched = sum(1 for node in nodes if not is_chosen(spec, node))
    tainted = sum(1 for node in nodes if is_chosen(spec, node) and not tolerates(spec, node))
    closed = len(nodes) - mismatched - tainted
    parts = [
        f"{count} node(s) {text}"
        for count, text in (
            (mismatched, "didn't match Pod's node affinity/selector"),
            (tainted, "had untolerated taint(s)"),
            (closed, "were unschedulable"),
        )
        if count
    ]
    return f"0/{len(nodes)} nodes are available: {', '.join(parts) or 'no nodes available to schedule pods'}."


def _covers(toleration: Document, taint: Document) -> bool:
    if toleration.get("effect") not in {None, "", taint.get("effect")}:
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator", "Equal") == "Exists":
        return key in {"", taint.get("key")}
    return key == taint.get("key") and toleration.get("value", "") == taint.get("value", "")


def _is_met(term: Document, node: Document) -> bool:
    fields = {"metadata.name": str(metadata(node)["name"])}
    expressions, matches = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not matches:
        return False
    return all(_holds(e, labels_of(node)) for e in expressions) and all(_holds(e, fields) for e in matches)


def _holds(requirement: Document, labels: Mapping[str, Any]) -> bool:
    value, values = labels.get(requirement.get("key", "")), requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            if value is None or not str(value).isdigit() or not values:
                return False
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
        case _:
            return False
