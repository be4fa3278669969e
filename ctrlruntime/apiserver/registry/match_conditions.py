"""The CEL expressions of `matchConditions`: checked when a webhook configuration is written, evaluated when a webhook could be called.

CEL is loaded by the first expression, so a server without conditions does without it. An expression that asks the `authorizer` gets its
answers from the function that `holds` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ctrlruntime.cel import Program, Type

_AUTHORIZER, _OF_REQUEST = "authorizer", "authorizer.requestResource"

May: TypeAlias = Callable[[Mapping[str, str]], tuple[bool, str]]
"""Decides a question (`verb`, `path`, `group`, `resource`, `subresource`, `namespace`, `name`; `user` when it is not the caller).

Returned are the decision and its reason."""


class ConditionError(Exception):
    """An expression that has no value for a request; the text is CEL's."""


def problem(expression: str) -> str:
    """Return what is wrong with an expression, as kube-apiserver says it; empty when nothing is."""
    from ctrlruntime.cel import CompileError

    try:
        program = _compiled(expression)
    except CompileError as error:
        return f"compilation failed: {error}"
    kind = str(program.result_type)
    return "" if kind in {"bool", "dyn"} else f"must evaluate to bool but got {kind}"


def holds(expression: str, bindings: Mapping[str, Any], may: May) -> bool:
    """Tell whether an expression is true of a request; `may` answers what it asks the authorizer. Raises: ConditionError."""
    from ctrlruntime.cel import EvaluationError

    program = _compiled(expression)
    if not program.used_variables.isdisjoint((_AUTHORIZER, _OF_REQUEST)):
        bindings = {**bindings, **_authorizers(bindings["request"], may)}
    try:
        value = program.evaluate(**bindings)
    except EvaluationError as error:
        raise ConditionError(str(error)) from None
    if not isinstance(value, bool):
        raise ConditionError(f"expected bool, got {type(value).__name__}")
    return value


def _authorizers(request: Mapping[str, Any], may: May) -> Mapping[str, Any]:
    from ctrlruntime.cel.library.authorization import Authorizer, Decision, Request, ResourceCheck

    def decide(asked: Request) -> Decision:
        return Decision(*may(asdict(asked)))

    resource: Mapping[str, str] = request["resource"]
    about = Request(
        group=resource["group"],
        resource=resource["resource"],
        subresource=request.get("subResource") or "",
        namespace=request.get("namespace") or "",
        name=request.get("name") or "",
    )
    return {_AUTHORIZER: Authorizer(decide), _OF_REQUEST: ResourceCheck(decide, about)}


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Program:
    from ctrlruntime.cel import compile as compile_expression

    return compile_expression(expression, variables=_variables())


@lru_cache(maxsize=1)
def _variables() -> Mapping[str, Type]:
    from ctrlruntime.cel.library.authorization import AUTHORIZER, RESOURCE_CHECK
    from ctrlruntime.cel.types import BOOL, DYN, STRING, list_of, map_of, object_of

    kind = object_of("kubernetes.GroupVersionKind", {"group": STRING, "version": STRING, "kind": STRING})
    resource = object_of("kubernetes.GroupVersionResource", {"group": STRING, "version": STRING, "resource": STRING})
    user = object_of(
        "kubernetes.UserInfo",
        {"username": STRING, "uid": STRING, "groups": list_of(STRING), "extra": map_of(STRING, list_of(STRING))},
    )
    request = object_of(
        "kubernetes.AdmissionRequest",
        {
            "kind": kind,
            "resource": resource,
            "subResource": STRING,
            "requestKind": kind,
            "requestResource": resource,
            "requestSubResource": STRING,
            "name": STRING,
            "namespace": STRING,
            "operation": STRING,
            "userInfo": user,
            "dryRun": BOOL,
            "options": DYN,
        },
    )
    return {
        "object": DYN,
        "oldObject": DYN,
        "request": request,
        "namespaceObject": DYN,
        _AUTHORIZER: AUTHORIZER,
        _OF_REQUEST: RESOURCE_CHECK,
    }


__all__ = ["ConditionError", "May", "holds", "problem"]
