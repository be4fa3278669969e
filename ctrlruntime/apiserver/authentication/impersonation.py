"""Impersonation: requests as another user, with the Impersonate-* headers.

Kubernetes 1.36 has two ways to permit it. The older: the verb `impersonate` on the user, each group, the uid and each
extra. The narrower: a verb for the kind of user (`impersonate:user-info`, `…:serviceaccount`, `…:arbitrary-node`) and one
for what is then done (`impersonate-on:user-info:list`). The narrower is asked first; the way that last succeeded for a
requester goes before it, and the refusal of the first way asked is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from urllib.parse import unquote

from ctrlruntime.apiserver.authentication.well_known import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    account_groups,
    account_of,
)
from ctrlruntime.apiserver.authorization import MASTERS, RBAC, AuthorizationAttributes, User, refusal
from ctrlruntime.errors import BadRequest, Forbidden
from ctrlruntime.field_errors import shown

Ask: TypeAlias = Callable[[User, AuthorizationAttributes], tuple[bool, str]]
_PREFIX: Final = "impersonate-"
_EXTRA: Final = "impersonate-extra-"
_GROUP: Final = "authentication.k8s.io"
_NODE: Final = "system:node:"
_LEGACY: Final = "impersonate"
_REMEMBERED: Final = 1_000


def is_impersonating(names: Iterable[str]) -> bool:
    """Tell whether any of a request's header names asks for impersonation."""
    for name in names:  # noqa: SIM110 - a loop, and the first letter first: every request pays for this
        if name[:1] in "Ii" and name[:12].lower() == _PREFIX:
            return True
    return False


def wanted_user(headers: Iterable[tuple[str, str]]) -> User | None:
    """Return whom the headers name, as they name it; None when no name and nothing else is given.

    Raises: BadRequest for groups, uid or extra without a user.
    """
    name, uid = "", ""
    groups: list[str] = []
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers:
        match header.lower():
            case "impersonate-user":
                name = name or value
            case "impersonate-uid":
                uid = uid or value
            case "impersonate-group":
                groups.append(value)
            case lower if lower.startswith(_EXTRA):
                key = unquote(lower[len(_EXTRA) :])
                extra[key] = (*extra.get(key, ()), value)
            case _:
                pass
    user = User(name, tuple(groups), uid, dict(sorted(extra.items())))
    if not name and (uid or groups or extra):
        raise BadRequest(f"requested {_printed(user)} without impersonating a user name")
    return user if name else None


class Impersonation:
    """Turns a requester into whom it asks to be, where that is permitted. `rbac` None permits everything."""

    def __init__(self, rbac: RBAC | None) -> None:
        self._rbac = rbac
        self._last: dict[str, str] = {}

    def assume(self, requester: User, wanted: User, attributes: AuthorizationAttributes) -> User:
        """Return the user of the request. Raises: Forbidden; `attributes` are those of the request."""
        refused: Forbidden | None = None
        for way in self._ways(requester, wanted):
            problem = self._problem(requester, way, attributes)
            if problem is None:
                self._remember(requester, way)
                return _complete(wanted, way.adds)
            refused = refused or problem
        assert refused is not None
        raise refused

    def _ways(self, requester: User, wanted: User) -> list[_Way]:
        ways = list(_ways(wanted))
        last = self._last.get(requester.name)
        return sorted(ways, key=lambda way: way.name != last)

    def _problem(self, requester: User, way: _Way, attributes: AuthorizationAttributes) -> Forbidden | None:
        rbac = self._rbac
        if rbac is None:
            return None
        asked = [*way.checks]
        if way.name != _LEGACY:
            asked.insert(0, replace(attributes, verb=f"impersonate-on:{way.name}:{attributes.verb}"))
        for one in asked:
            allowed, reason = rbac.allowed(requester, one)
            if not allowed:
                return refusal(requester, one, reason)
        if way.name != _LEGACY and MASTERS in way.groups:
            one = AuthorizationAttributes(
                f"impersonate:{way.name}", group=_GROUP, version="v1", resource="groups", name=MASTERS
            )
            return refusal(requester, one, "impersonating the system:masters group is not allowed")
        return None

    def _remember(self, requester: User, way: _Way) -> None:
        if len(self._last) >= _REMEMBERED:
            self._last.clear()
        self._last[requester.name] = way.name


@dataclass(frozen=True, slots=True)
class _Way:
    """One way of permitting an impersonation: its name, what must be allowed, and the groups it adds."""

    name: str
    checks: tuple[AuthorizationAttributes, ...]
    groups: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()


def _ways(wanted: User) -> Iterator[_Way]:
    is_plain = not (wanted.groups or wanted.uid or wanted.extra)
    account = account_of(wanted.name)
    if wanted.name.startswith(_NODE):
        if is_plain:
            node = _on("impersonate:arbitrary-node", "nodes", wanted.name[len(_NODE) :])
            yield _Way("arbitrary-node", (node,), adds=("system:nodes",))
    elif account is not None:
        if is_plain:
            yield _Way(
                "serviceaccount", (_on("impersonate:serviceaccount", "serviceaccounts", account[1], account[0]),)
            )
    else:
        checks = tuple(_parts(wanted, "impersonate:user-info", _GROUP, None))
        yield _Way("user-info", checks, wanted.groups)
    yield _Way(_LEGACY, tuple(_parts(wanted, _LEGACY, "", account)))


def _parts(wanted: User, verb: str, group: str, account: tuple[str, str] | None) -> Iterator[AuthorizationAttributes]:
    """Yield what must be allowed for each part of the wanted user, in the order in which upstream asks."""
    if account is not None:
        yield AuthorizationAttributes(verb, group, "v1", "serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield AuthorizationAttributes(verb, group, "v1", "users", name=wanted.name)
    if wanted.uid:
        yield AuthorizationAttributes(verb, _GROUP, "v1", "uids", name=wanted.uid)
    for one in wanted.groups:
        yield AuthorizationAttributes(verb, group, "v1", "groups", name=one)
    for key, values in wanted.extra.items():
        for value in values:
            yield AuthorizationAttributes(verb, _GROUP, "v1", "userextras", subresource=key, name=value)


def _on(verb: str, resource: str, name: str, namespace: str = "") -> AuthorizationAttributes:
    return AuthorizationAttributes(verb, _GROUP, "v1", resource, namespace=namespace, name=name)


def _complete(wanted: User, adds: tuple[str, ...]) -> User:
    """Return the wanted user with the groups that its name brings."""
    groups = (*wanted.groups, *adds)
    account = account_of(wanted.name)
    if account is not None and not groups:
        groups = account_groups(account[0])
    if wanted.name == ANONYMOUS.name:
        groups = groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return replace(wanted, groups=groups)


def _printed(user: User) -> str:
    """Return the user as Go prints the value."""
    groups = "[]string{" + ", ".join(shown(one) for one in user.groups) + "}" if user.groups else "[]string(nil)"
    extra = "map[string][]string(nil)"
    if user.extra:
        listed = (
            f"{shown(key)}:[]string{{{', '.join(shown(value) for value in values)}}}"
            for key, values in user.extra.items()
        )
        extra = f"map[string][]string{{{', '.join(listed)}}}"
    return f"&user.DefaultInfo{{Name:{shown(user.name)}, UID:{shown(user.uid)}, Groups:{groups}, Extra:{extra}}}"
