"""The resources and verbs of the built-in API groups, to find typing errors in rules.

RBAC accepts every name, and a rule with a wrong one grants nothing. The names are those that the recorded server serves and those in its
default roles. Rules with a wildcard, a group that is not built in, or URLs are not checked.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from ctrlruntime.data import open_data
from ctrlruntime.markers import RBACRule
from ctrlruntime.spelling import nearest

__all__ = ["UnknownName", "unknown_names"]

_DATA: Final = "kubernetes-1.36"
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_SPECIAL_VERBS: Final = frozenset({"approve", "attest", "bind", "escalate", "impersonate", "proxy", "sign", "use"})
_VIRTUAL: Final = frozenset({"finalizers"})
"""Subresources of every resource that exist for RBAC only."""
_UNSERVED: Final[Mapping[str, Sequence[str]]] = {
    "": ("groups", "users"),
    "authentication.k8s.io": ("uids", "userextras"),
}
"""Resources for the verb impersonate, which are neither served nor in a default role."""
_SIMILAR: Final = 0.8


class UnknownName(NamedTuple):
    """A verb or resource that no built-in API group has."""

    text: str
    is_typo: bool
    """There is a similar name, or one place it must be in. Otherwise it can be of another version of Kubernetes."""


class _Names(NamedTuple):
    resources: dict[str, set[str]]
    """{resource: its subresources}"""
    other: dict[str, str]
    """{kind in lower case, singular or short name: resource}"""


def unknown_names(rule: RBACRule) -> Iterator[UnknownName]:
    """Yield the verbs and resources of a rule that its API groups do not have, if all of these are built in."""
    known = _known()
    groups = ["" if group == "core" else group for group in rule.groups]
    if not groups or not all(group in known for group in groups):
        return
    for verb in rule.verbs:
        if not _is_verb(verb):
            yield UnknownName(f"Kubernetes has no verb {verb!r}{_verb_for(verb)}", is_typo=True)
    # The resource of these verbs is a name that the user chooses.
    if any("-" in verb or ":" in verb for verb in rule.verbs):
        return
    for resource in rule.resources:
        if found := _unknown_resource(resource, groups, known):
            yield found


def _is_verb(verb: str) -> bool:
    return verb in _VERBS or verb in _SPECIAL_VERBS or "*" in verb or "-" in verb or ":" in verb


def _verb_for(verb: str) -> str:
    near = nearest(verb, [*_VERBS, *_SPECIAL_VERBS], similar=_SIMILAR)
    return f"; did you mean {near!r}?" if near else f". Use {', '.join(_VERBS[:-1])} or {_VERBS[-1]}"


def _unknown_resource(text: str, groups: Sequence[str], known: Mapping[str, _Names]) -> UnknownName | None:
    resource, _, below = text.partition("/")
    if "*" in resource:
        return None
    subresources = [known[group].resources[resource] for group in groups if resource in known[group].resources]
    if subresources:
        return _unknown_subresource(resource, below, set().union(*subresources))
    named = " or ".join("the core group" if not group else f"the group {group}" for group in groups)
    what = f"Kubernetes 1.36 has no resource {resource!r} in {named}"
    names = [name for group in groups for name in known[group].resources]
    others = {word: name for group in groups for word, name in known[group].other.items()}
    if near := others.get(resource.lower()) or nearest(resource, names, similar=_SIMILAR):
        return UnknownName(f"{what}; did you mean {near!r}?", is_typo=True)
    if homes := [group for group, its in known.items() if resource in its.resources]:
        choices = " or ".join(f'groups="{group}"' for group in sorted(homes))
        return UnknownName(f"{what}; did you mean {choices}?", is_typo=True)
    return UnknownName(f"{what}. Check the name, unless your cluster serves it", is_typo=False)


def _unknown_subresource(resource: str, below: str, known: Iterable[str]) -> UnknownName | None:
    if not below or "*" in below or below in {*known, *_VIRTUAL}:
        return None
    near = nearest(below, {*known, *_VIRTUAL}, similar=_SIMILAR)
    if near is None:
        return None  # an authorizer other than the API server can have it, as the kubelet does
    what = f"Kubernetes 1.36 has no subresource '{resource}/{below}'"
    return UnknownName(f"{what}; did you mean '{resource}/{near}'?", is_typo=True)


@cache
def _known() -> dict[str, _Names]:
    """Return the names of each built-in API group."""
    found: dict[str, _Names] = {}
    discovery = _recorded("discovery")["aggregated"]
    for group in (*discovery["/api"]["items"], *discovery["/apis"]["items"]):
        names = found.setdefault(group["metadata"].get("name", ""), _Names({}, {}))
        for resource in (each for version in group["versions"] for each in version["resources"]):
            plural = resource["resource"]
            below = {each["subresource"] for each in resource.get("subresources", ())}
            names.resources.setdefault(plural, set()).update(below)
            words = [
                resource["singularResource"],
                resource["responseKind"]["kind"].lower(),
                *resource.get("shortNames", ()),
            ]
            names.other.update(dict.fromkeys(words, plural))
    for group, resources in (*_of_default_roles(), *_UNSERVED.items()):
        if group in found:
            for text in resources:
                plural, _, subresource = text.partition("/")
                found[group].resources.setdefault(plural, set()).update({subresource} - {""})
    return found


def _of_default_roles() -> Iterator[tuple[str, Sequence[str]]]:
    recorded = _recorded("rbac-bootstrap")
    for role in (*recorded["clusterroles"], *recorded["roles"]):
        for rule in role.get("rules") or ():
            for group in rule.get("apiGroups", ()):
                yield group, rule.get("resources", ())


def _recorded(name: str) -> Any:
    return json.loads(gzip.decompress(open_data(f"{_DATA}/{name}.json.gz")))
