"""Aggregated ClusterRoles: their rules are those of the roles that their selectors match."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import is_deleting, metadata
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import from_label_selector

_GROUP: Final = "rbac.authorization.k8s.io"
_ROLES: Final = "clusterroles"
_MANAGER: Final = "clusterrole-aggregation-controller"


class RoleAggregation:
    """Writes the rules of every ClusterRole with an aggregationRule."""

    name = "clusterrole-aggregation"

    def __init__(self) -> None:
        self._collecting: set[str] = set()

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [keys_of(api.watch(_GROUP, _ROLES), self._concerned)]

    def _concerned(self, change: Change) -> Iterable[Key]:
        name = str(metadata(change.object)["name"])
        if change.object.get("aggregationRule") and change.type != "DELETED":
            self._collecting.add(name)
        else:
            self._collecting.discard(name)
        return [(one,) for one in sorted(self._collecting)]

    async def reconcile(self, api: API, key: Key) -> float | None:
        role = api.get(_GROUP, _ROLES, "", key[0])
        if role is None or not role.get("aggregationRule") or is_deleting(role):
            return None
        rules = _collected(role, api.list(_GROUP, _ROLES))
        if rules != (role.get("rules") or []):
            await api.apply(_GROUP, _ROLES, "", key[0], {"rules": rules}, manager=_MANAGER)
        return None


def _collected(role: Document, others: Sequence[Document]) -> list[Any]:
    """Return the rules of all that the selectors match, each once, in the order of selectors and names."""
    rules: list[Any] = []
    for tree in role["aggregationRule"].get("clusterRoleSelectors") or ():
        selector = from_label_selector(tree)
        for other in others:
            meta = metadata(other)
            if meta["name"] == metadata(role)["name"] or not selector.matches(meta.get("labels")):
                continue
            for rule in other.get("rules") or ():
                if rule not in rules:
                    rules.append(rule)
    return rules
