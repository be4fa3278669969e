"""Objects and permissions that can disturb the whole cluster."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.optional.rules import PlacedRule, csv_rules, role_rules
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["VALIDATOR"]

_NAME: Final = "object"


def _check(code: str, summary: str, level: Level = Level.ERROR) -> Check:
    return Check(code=code, level=level, type="ObjectFailedValidation", suite=_NAME, summary=summary)


_NONE_MAY_GO: Final = _check("pdb-max-unavailable-zero", "a PodDisruptionBudget allows no unavailable pod")
_ALL_STAY: Final = _check("pdb-min-available-all", "a PodDisruptionBudget requires all pods to be available")
_PRIORITY: Final = _check("priority-class-global-default", "a PriorityClass is the default of the whole cluster")
_BUDGETS: Final = _check("rbac-writes-pdbs", "the operator may write PodDisruptionBudgets", Level.WARNING)
_CONSTRAINTS: Final = _check(
    "rbac-modifies-default-sccs", "the operator may change the default SecurityContextConstraints of OpenShift"
)

# Those of OpenShift 4; for a cluster without one of them, the check does no harm.
_DEFAULT_SCCS: Final = frozenset(
    {
        "anyuid",
        "hostaccess",
        "hostmount-anyuid",
        "hostnetwork",
        "hostnetwork-v2",
        "node-exporter",
        "nonroot",
        "nonroot-v2",
        "privileged",
        "restricted",
        "restricted-v2",
    }
)


def _run(subject: Subject) -> Iterator[Finding]:
    yield from _disruption_budgets(subject)
    yield from _priority_classes(subject)
    for each in chain(csv_rules(subject), role_rules(subject)):
        yield from _rule(each)


def _disruption_budgets(subject: Subject) -> Iterator[Finding]:
    for each in subject.bundle.of_kind("policy", "PodDisruptionBudget"):
        if each.spec.get("maxUnavailable") in (0, "0", "0%"):
            text = "no node can be drained while its pods run. Allow at least 1"
            yield about(_NONE_MAY_GO, each, text, "spec.maxUnavailable")
        if each.spec.get("minAvailable") == "100%":
            text = "no node can be drained while its pods run. Set less than 100%"
            yield about(_ALL_STAY, each, text, "spec.minAvailable")


def _priority_classes(subject: Subject) -> Iterator[Finding]:
    for each in subject.bundle.of_kind("scheduling.k8s.io", "PriorityClass"):
        if each.document.get("globalDefault") is True:
            text = "pods of other operators would get this priority. Remove globalDefault"
            yield about(_PRIORITY, each, text, "globalDefault")


def _rule(each: PlacedRule) -> Iterator[Finding]:
    if each.covers("policy", "poddisruptionbudgets", ("create", "update", "patch")):
        text = "the operator can write PodDisruptionBudgets, which can block the draining of nodes. Allow at least 1 unavailable pod in each"
        yield about(_BUDGETS, each.found, text, each.path)
    if each.covers("security.openshift.io", "securitycontextconstraints", ("update", "patch", "delete")):
        # A rule without names is for each of them.
        named = _DEFAULT_SCCS.intersection(each.rule.resource_names) if each.rule.resource_names else _DEFAULT_SCCS
        if named:
            text = f"{', '.join(sorted(named))} belong to OpenShift. List in resourceNames only those that the operator creates"
            yield about(_CONSTRAINTS, each.found, text, each.path)


VALIDATOR: Final = Validator(
    name=_NAME,
    summary="no object and no permission of the bundle disturbs the cluster: disruption budgets, priorities, OpenShift's constraints",
    checks=(_NONE_MAY_GO, _ALL_STAY, _PRIORITY, _BUDGETS, _CONSTRAINTS),
    run=_run,
)
