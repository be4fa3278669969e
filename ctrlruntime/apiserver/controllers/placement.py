"""Which nodes a pod may run on: its node selector, its required node affinity, taints and tolerations, its requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from ctrlruntime.apiserver.controllers.objects import FINISHED, condition, labels_of, metadata
from ctrlruntime.apiserver.interfaces import Change
from ctrlruntime.apiserver.registry.pod_amounts import requests_of
from ctrlruntime.quantities import parse
from ctrlruntime.schema.trees import Document

_CLOSED: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_NONE: Final = Decimal(0)
_NOTHING: Final[tuple[str, Mapping[str, Decimal]]] = ("", {})
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def is_chosen(spec: Document, node: Document) -> bool:
    """Tell whether a pod's node selector and required node affinity pick a node."""
    if not (spec.get("nodeSelector") or {}).items() <= labels_of(node).items():
        return False
    needed = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    return needed is None or any(_is_met(term, node) for term in needed.get("nodeSelectorTerms") or ())


def tolerates(spec: Document, node: Document, effects: Iterable[str] = ("NoSchedule", "NoExecute")) -> bool:
    """Tell whether a pod tolerates a node's taints of these effects."""
    considered = set(effects)
    taints = [taint for taint in (node.get("spec") or {}).get("taints") or () if taint.get("effect") in considered]
    if not _is_unready(node):  # the taint of a node that has just registered is about to go
        taints = [taint for taint in taints if taint.get("key") != "node.kubernetes.io/not-ready"]
    return all(_covered(spec, taint) for taint in taints)


def _covered(spec: Document, taint: Document) -> bool:
    return any(_covers(toleration, taint) for toleration in spec.get("tolerations") or ())


def _is_unready(node: Document) -> bool:
    """Tell whether somebody says that the node is not ready; one nobody speaks for is served by the simulation."""
    ready = condition(node, "Ready")
    return ready is not None and ready.get("status") != "True"


def obstacles(spec: Document, node: Document, lacking: Sequence[str] = ()) -> Sequence[str]:
    """Return why a pod cannot run on a node: what the first of the scheduler's filters says that refuses it, in their order."""
    if (node.get("spec") or {}).get("unschedulable") and not _covered(spec, _CLOSED):
        return ["node(s) were unschedulable"]
    if not tolerates(spec, node):
        return ["node(s) had untolerated taint(s)"]
    if not is_chosen(spec, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    return [f"Insufficient {name}" for name in lacking]


def summary(found: Iterable[Sequence[str]]) -> str:
    """Return what a scheduler says about a pod: `found` are the obstacles on each node (FitError in the scheduler's framework/types.go)."""
    nodes = list(found)
    counts = Counter(reason for reasons in nodes for reason in reasons)
    parts = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{len(nodes)} nodes are available: {', '.join(parts)}."


class Load:
    """What the pods of each node ask for, kept by the changes of pods."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[str, Mapping[str, Decimal]]] = {}
        self._totals: dict[str, dict[str, Decimal]] = {}

    def observe(self, change: Change) -> bool:
        """Take in the change of a pod; tell whether a node has got more room."""
        pod = change.object
        is_there = change.type != "DELETED" and (pod.get("status") or {}).get("phase") not in FINISHED
        return self.place(pod, str(pod["spec"].get("nodeName", "")) if is_there else "")

    def place(self, pod: Document, node: str) -> bool:
        """Count a pod on a node, or nowhere; tell whether it was counted with something else before."""
        uid = str(metadata(pod)["uid"])
        before, after = self._pods.get(uid, _NOTHING), (node, _asked(pod["spec"])) if node else _NOTHING
        if before == after:
            return False
        for (place, asked), sign in ((before, -1), (after, 1)):
            total = self._totals.setdefault(place, {})
            for name, amount in asked.items():
                total[name] = total.get(name, _NONE) + sign * amount
        self._pods[uid] = after
        if not after[1]:
            del self._pods[uid]
        return bool(before[1])

    def lacking(self, spec: Document, node: Document) -> list[str]:
        """Return the resources of which a node has too little left for a pod (NodeResourcesFit)."""
        asked = _asked(spec)
        if not asked:
            return []
        given: Document = (node.get("status") or {}).get("allocatable") or {}
        used = self._totals.get(str(metadata(node)["name"]), {})
        return [name for name, amount in asked.items() if amount > _amount(given.get(name, 0)) - used.get(name, _NONE)]


def _asked(spec: Document) -> Mapping[str, Decimal]:
    amounts = {name: _amount(text) for name, text in requests_of(spec).items()}
    return {name: amount for name, amount in amounts.items() if amount}


def _amount(text: Any) -> Decimal:
    try:
        return parse(text)
    except ValueError:
        return _NONE


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
