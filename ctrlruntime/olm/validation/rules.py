"""The permissions of an operator: the rules of the ClusterServiceVersion's permissions, and of separate roles."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from ctrlruntime.api.rbac import PolicyRule
from ctrlruntime.errors import CtrlError
from ctrlruntime.olm.bundle import BundleObject
from ctrlruntime.olm.trees import listed
from ctrlruntime.olm.validation.subject import Subject

__all__ = ["PlacedRule", "csv_rules", "role_rules"]

_ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class PlacedRule:
    """A rule, its object, and its path."""

    found: BundleObject
    path: str
    rule: PolicyRule

    def covers(self, group: str, resource: str, verbs: Collection[str]) -> bool:
        """Tell whether it allows at least one of these verbs on a resource. `*` matches everything, as in the API server."""
        return (
            not {group, _ANY}.isdisjoint(self.rule.api_groups)
            and not {resource, _ANY}.isdisjoint(self.rule.resources)
            and not {*verbs, _ANY}.isdisjoint(self.rule.verbs)
        )


def csv_rules(subject: Subject) -> Iterator[PlacedRule]:
    """Yield the rules of the permissions and cluster permissions."""
    found = subject.bundle.csv
    if found is None or subject.csv is None or subject.csv.spec.install.spec is None:
        return
    strategy = subject.csv.spec.install.spec
    for name, permissions in (
        ("permissions", strategy.permissions),
        ("clusterPermissions", strategy.cluster_permissions),
    ):
        for index, permission in enumerate(permissions):
            for number, rule in enumerate(permission.rules):
                yield PlacedRule(found, f"spec.install.spec.{name}[{index}].rules[{number}]", rule)


def role_rules(subject: Subject) -> Iterator[PlacedRule]:
    """Yield the rules of the Roles and ClusterRoles of the bundle that can be read."""
    for found in subject.bundle.objects:
        if found.gvk.group != "rbac.authorization.k8s.io" or found.gvk.kind not in {"Role", "ClusterRole"}:
            continue
        for number, rule in enumerate(listed(found.document.get("rules"))):
            try:
                yield PlacedRule(found, f"rules[{number}]", PolicyRule.model_validate(rule))
            except (CtrlError, ValueError):  # the checks that always run report an invalid rule
                continue
