"""The authorizer of admission rules: `authorizer.group('apps').resource('deployments').check('get').allowed()`.

To evaluate such a rule, bind `authorizer` to an `Authorizer`, which calls the function that it is created with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from ctrlruntime.cel import types
from ctrlruntime.cel.functions import Declared
from ctrlruntime.cel.types import Type

AUTHORIZER: Type = types.opaque("kubernetes.authorization.Authorizer")
RESOURCE_CHECK: Type = types.opaque("kubernetes.authorization.ResourceCheck")


@dataclass(frozen=True, slots=True)
class Request:
    """An authorization request for a path or a resource. `user` is empty for the caller, or the name of a service account."""

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a check."""

    cel_name: ClassVar[str] = "kubernetes.authorization.Decision"
    allowed: bool
    reason: str = ""
    error: str = ""


Decide: TypeAlias = Callable[[Request], Decision]


@dataclass(frozen=True, slots=True)
class Authorizer:
    """Builds requests, and gets their decisions."""

    cel_name: ClassVar[str] = AUTHORIZER.name
    decide: Decide
    request: Request = Request()


@dataclass(frozen=True, slots=True)
class _PathCheck(Authorizer):
    cel_name: ClassVar[str] = "kubernetes.authorization.PathCheck"


@dataclass(frozen=True, slots=True)
class _GroupCheck(Authorizer):
    cel_name: ClassVar[str] = "kubernetes.authorization.GroupCheck"


@dataclass(frozen=True, slots=True)
class ResourceCheck(Authorizer):
    """A request for a resource, such as the value of `authorizer.requestResource`."""

    cel_name: ClassVar[str] = RESOURCE_CHECK.name


def declared() -> Iterator[Declared]:
    """Yield the functions of authorizers."""
    base, path, group = AUTHORIZER.name, _PathCheck.cel_name, _GroupCheck.cel_name
    resource, decision = RESOURCE_CHECK.name, Decision.cel_name
    yield Declared("path", f"{base}.(string) -> {path}", lambda a, p: _PathCheck(a.decide, replace(a.request, path=p)))
    yield Declared("serviceAccount", f"{base}.(string, string) -> {base}", _service_account)
    yield Declared(
        "group", f"{base}.(string) -> {group}", lambda a, g: _GroupCheck(a.decide, replace(a.request, group=g))
    )
    yield Declared("resource", f"{group}.(string) -> {resource}",
                   lambda a, r: ResourceCheck(a.decide, replace(a.request, resource=r)))  # fmt: skip
    for part in ("subresource", "namespace", "name"):
        yield Declared(part, f"{resource}.(string) -> {resource}", _narrowed(part))
    for part in ("fieldSelector", "labelSelector"):
        yield Declared(part, f"{resource}.(string) -> {resource}", lambda a, _selector: a)
    for kind in (path, resource):
        yield Declared(
            "check", f"{kind}.(string) -> {decision}", lambda a, verb: a.decide(replace(a.request, verb=verb))
        )
    yield Declared("allowed", f"{decision}.() -> bool", lambda d: d.allowed)
    yield Declared("reason", f"{decision}.() -> string", lambda d: d.reason)
    yield Declared("error", f"{decision}.() -> string", lambda d: d.error)
    yield Declared("errored", f"{decision}.() -> bool", lambda d: bool(d.error))


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    user = f"system:serviceaccount:{namespace}:{name}"
    return Authorizer(authorizer.decide, replace(authorizer.request, user=user))


def _narrowed(part: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def narrow(check: ResourceCheck, value: str) -> ResourceCheck:
        changes: dict[str, Any] = {part: value}
        return ResourceCheck(check.decide, replace(check.request, **changes))

    return narrow
