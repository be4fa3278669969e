"""The CEL expressions of webhook configurations and admission policies: checked when these are written, evaluated for a request.

CEL is loaded by the first expression, so a server without expressions does without it. An expression that asks the `authorizer` gets its
answers from a function (`May`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from ctrlruntime.cel import Program, Type

_AUTHORIZER, _OF_REQUEST = "authorizer", "authorizer.requestResource"
_DECLARED: Final = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "any": "google.protobuf.Any",
}

May: TypeAlias = Callable[[Mapping[str, str]], tuple[bool, str]]
"""Decides a question (`verb`, `path`, `group`, `resource`, `subresource`, `namespace`, `name`; `user` when it is not the caller).

Returned are the decision and its reason."""


class ExpressionError(Exception):
    """An expression that has no value for a request; the text is CEL's."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression can name besides the request and its objects."""

    has_params: bool = False
    """`params`, the parameters of a policy."""
    composed: tuple[tuple[str, str], ...] | None = None
    """Names and expressions of `variables`; each can use those before it. None: without `variables`."""
    has_authorizer: bool = True
    mutates: bool = False
    """The literals of mutations, `Object{}` and `JSONPatch{}`."""

    def before(self, name: str) -> Scope:
        """Return the scope of the expression of a variable."""
        names = [each for each, _ in self.composed or ()]
        return replace(self, composed=(self.composed or ())[: names.index(name)])


REQUEST: Final = Scope()


def is_identifier(name: str) -> bool:
    """Tell whether expressions can use the name for a variable."""
    from ctrlruntime.cel.escaping import escape

    return bool(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)) and not (escape(name) or "").startswith(f"__{name}")


def problem(expression: str, scope: Scope = REQUEST, results: Sequence[str] = ("bool",)) -> str:
    """Return what is wrong with an expression, as kube-apiserver says it; empty when nothing is.

    `results` are the types that its value may have; none: any.
    """
    from ctrlruntime.cel import CompileError

    try:
        kind = declared(_compiled(expression, scope).result_type)
    except CompileError as error:
        return f"compilation failed: {error}"
    if not results or kind in results:
        return ""
    wanted = results[0] if len(results) == 1 else f"one of [{' '.join(results)}]"
    return f"must evaluate to {wanted} but got {kind}"


def evaluate(expression: str, bindings: Mapping[str, Any], may: May, scope: Scope = REQUEST) -> Any:
    """Return the value of an expression; `may` answers what it asks the authorizer. Raises: ExpressionError.

    `bindings` are `object`, `oldObject`, `request`, `namespaceObject`, and by the scope `params` and `variables` (a `Variables`).
    """
    from ctrlruntime.cel import EvaluationError

    program = _compiled(expression, scope)
    if not program.used_variables.isdisjoint((_AUTHORIZER, _OF_REQUEST)):
        bindings = {**bindings, **_authorizers(bindings["request"], may)}
    try:
        return program.evaluate(**bindings)
    except EvaluationError as error:
        raise ExpressionError(str(error)) from None
    except (AttributeError, TypeError):
        if "namespaceObject" not in program.used_variables:
            raise
        # Its timestamps are declared as such, and are texts (plugin/cel/object.go).
        raise ExpressionError("no such overload") from None


def holds(expression: str, bindings: Mapping[str, Any], may: May, scope: Scope = REQUEST) -> bool:
    """Tell whether an expression is true of a request. Raises: ExpressionError."""
    value = evaluate(expression, bindings, may, scope)
    if not isinstance(value, bool):
        raise ExpressionError(f"expected bool, got {type(value).__name__}")
    return value


def all_hold(expressions: Iterable[str], bindings: Mapping[str, Any], may: May, scope: Scope = REQUEST) -> bool:
    """Tell whether all expressions are true of a request: false counts before an error. Raises: ExpressionError with every problem."""
    problems: list[str] = []
    for expression in expressions:
        try:
            if not holds(expression, bindings, may, scope):
                return False
        except ExpressionError as error:
            problems.append(f"expression '{expression}' resulted in error: {error}")
    if problems:
        raise ExpressionError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return True


class Variables(dict[str, Any]):
    """The values of the variables of a policy for one request, each computed when it is first used."""

    def __init__(self, scope: Scope, bindings: Mapping[str, Any], may: May) -> None:
        super().__init__()
        self._scope, self._may = scope, may
        self._bindings = {**bindings, "variables": self}
        self._expressions = dict(scope.composed or ())

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __missing__(self, name: str) -> Any:
        from ctrlruntime.cel import EvaluationError

        try:
            value = evaluate(self._expressions[name], self._bindings, self._may, self._scope.before(name))
        except ExpressionError as error:
            raise EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from None
        self[name] = value
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


@lru_cache(maxsize=1024)
def _compiled(expression: str, scope: Scope) -> Program:
    from ctrlruntime.cel import compile as compile_expression

    return compile_expression(expression, variables=_names(scope), mutates=scope.mutates)


@lru_cache(maxsize=256)
def _names(scope: Scope) -> Mapping[str, Type]:
    """The names of a scope with their types."""
    from ctrlruntime.cel.types import DYN, object_of

    names = dict(_request_names())
    if not scope.has_authorizer:
        del names[_AUTHORIZER], names[_OF_REQUEST]
    if scope.has_params:
        names["params"] = DYN
    if scope.composed is not None:
        fields = {name: _type_of_variable(expression, scope.before(name)) for name, expression in scope.composed}
        names["variables"] = object_of("kubernetes.variables", fields)
    return names


def _type_of_variable(expression: str, scope: Scope) -> Type:
    from ctrlruntime.cel import CompileError
    from ctrlruntime.cel.types import DYN

    try:
        return _kept(_compiled(expression, scope).result_type)
    except CompileError:
        return DYN


def _kept(found: Type) -> Type:
    """The type of a variable with this value: only lists and maps keep theirs (convertCelTypeToDeclType)."""
    from ctrlruntime.cel.types import DYN, list_of, map_of

    match found.kind:
        case "list":
            return list_of(_kept(found.parameters[0]))
        case "map":
            return map_of(_kept(found.parameters[0]), _kept(found.parameters[1]))
        case "object" | "opaque" | "type" | "parameter":
            return DYN
        case _:
            return found


def declared(found: Type) -> str:
    """The name of a type as cel-go declares it: not the one that messages of its checker show."""
    inner = ", ".join(declared(each) for each in found.parameters)
    name = found.name or found.kind
    head = _DECLARED.get(name, name)
    return f"{head}({inner})" if inner else head


@lru_cache(maxsize=1)
def _request_names() -> Mapping[str, Type]:
    from ctrlruntime.cel.library.authorization import AUTHORIZER, RESOURCE_CHECK
    from ctrlruntime.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, list_of, map_of, object_of

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
    texts = map_of(STRING, STRING)
    metadata = object_of(
        "kubernetes.NamespaceMetadata",
        {
            "name": STRING,
            "generateName": STRING,
            "namespace": STRING,
            "labels": texts,
            "annotations": texts,
            "UID": STRING,
            "creationTimestamp": TIMESTAMP,
            "deletionGracePeriodSeconds": INT,
            "deletionTimestamp": TIMESTAMP,
            "generation": INT,
            "resourceVersion": STRING,
            "finalizers": list_of(STRING),
        },
    )
    names = ("status", "type", "message", "reason")
    condition = object_of(
        "kubernetes.NamespaceCondition", {**dict.fromkeys(names, STRING), "lastTransitionTime": TIMESTAMP}
    )
    status = object_of("kubernetes.NamespaceStatus", {"conditions": list_of(condition), "phase": STRING})
    spec = object_of("kubernetes.NamespaceSpec", {"finalizers": list_of(STRING)})
    return {
        "object": DYN,
        "oldObject": DYN,
        "request": request,
        "namespaceObject": object_of("kubernetes.Namespace", {"metadata": metadata, "spec": spec, "status": status}),
        _AUTHORIZER: AUTHORIZER,
        _OF_REQUEST: RESOURCE_CHECK,
    }


__all__ = [
    "REQUEST",
    "ExpressionError",
    "May",
    "Scope",
    "Variables",
    "all_hold",
    "declared",
    "evaluate",
    "is_identifier",
    "problem",
]
