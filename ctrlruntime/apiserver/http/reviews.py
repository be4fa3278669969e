"""Reviews: who am I, may I, may they, whose token is this. They are answered and never stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from aiohttp import web

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.authentication import Authenticator, TokenRefused
from ctrlruntime.apiserver.authorization import RBAC, AuthorizationAttributes, User, user_info
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.posted import Posted, post
from ctrlruntime.apiserver.registry import Registry, Resource, WriteOptions
from ctrlruntime.errors import BadRequest, StatusCause
from ctrlruntime.schema.trees import Document, encode
from ctrlruntime.selector import label_key_problems, label_value_problems, parse_fields, parse_labels

REVIEWS: Final = frozenset(
    {
        "selfsubjectreviews",
        "tokenreviews",
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
    }
)
_EVERYTHING: Final = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_ATTRIBUTES: Final = "spec.resourceAttributes"
_PATH: Final = "spec.nonResourceAttributes"


class Reviews:
    """Handlers of the review kinds."""

    def __init__(
        self,
        registry: Registry,
        rbac: RBAC,
        authenticator: Authenticator,
        *,
        allows_all: bool,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._rbac = rbac
        self._authenticator = authenticator
        self._allows_all = allows_all
        self._now = now

    async def handle(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        """Answer a review. Raises: BadRequest, Invalid."""
        return await post(self._registry, call, resource, target, _Review(self, resource))

    def check(self, resource: Resource, document: Document) -> None:
        """Raises: BadRequest, Invalid of a review that asks for nothing."""
        spec: Document = document.get("spec") or {}
        match resource.plural:
            case "selfsubjectreviews":
                return
            case "selfsubjectrulesreviews":
                if not spec.get("namespace"):
                    raise BadRequest("no namespace on request")
            case "tokenreviews":
                if not spec.get("token"):
                    raise BadRequest("token is required for TokenReview in authentication")
            case _:
                is_self = resource.plural == "selfsubjectaccessreviews"
                causes = [*_spec_causes(spec, is_self=is_self), *_place_causes(resource, document)]
                if causes:
                    # Upstream makes this failure without saying the kind.
                    raise failures.invalid("", resource.group, "", causes)

    def result(self, call: Call, resource: Resource, document: Document) -> Document:
        """Return the review with its status."""
        spec: Document = document.get("spec") or {}
        head = {"kind": resource.kind, "apiVersion": resource.api_version}
        match resource.plural:
            case "selfsubjectreviews":
                metadata = {"creationTimestamp": timestamp(self._now())}
                return {**head, "metadata": metadata, "status": {"userInfo": user_info(call.user)}}
            case "selfsubjectrulesreviews":
                return {**head, "metadata": {}, "spec": {}, "status": self._rules(call.user, spec)}
            case "tokenreviews":
                return {**document, "status": self._token(spec)}
            case _:
                return {**document, "status": self._access(call, resource, spec)}

    # Whose token is this

    def _token(self, spec: Document) -> Document:
        try:
            user, audiences = self._authenticator.review(spec["token"], spec.get("audiences") or ())
        except TokenRefused as error:
            return {"user": {}, "error": str(error)}
        return {"authenticated": True, "user": user_info(user), "audiences": audiences}

    # May they

    def _access(self, call: Call, resource: Resource, spec: Document) -> Document:
        user = call.user if resource.plural == "selfsubjectaccessreviews" else _subject(spec)
        status: Document = {"allowed": True}
        if not self._allows_all:
            allowed, reason = self._rbac.allowed(user, _attributes(spec))
            status = {"allowed": allowed, **({"reason": reason} if reason else {})}
        problem = _selector_problem(spec.get("resourceAttributes") or {})
        if problem:
            status["evaluationError"] = problem
        return status

    # What may I

    def _rules(self, user: User, spec: Document) -> Document:
        namespace: str = spec["namespace"]
        problem, rules = "", list[Any](_EVERYTHING)
        if not self._allows_all:
            held = self._rbac.holdings(user, namespace)
            problem, rules = held.problem, list(held.rules)
        status: Document = {
            "resourceRules": [_resource_rule(rule) for rule in rules if rule.get("resources")],
            "nonResourceRules": [
                {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
                for rule in rules
                if rule.get("nonResourceURLs")
            ],
            "incomplete": False,
        }
        if problem:
            status["evaluationError"] = problem
        return status


class _Review(Posted):
    """One kind of reviews, as it is posted."""

    def __init__(self, reviews: Reviews, kind: Resource) -> None:
        self.kind = kind
        self._reviews = reviews

    def check(self, call: Call, target: ResourcePath, body: Document, options: WriteOptions) -> None:
        self._reviews.check(self.kind, body)

    def act(self, call: Call, target: ResourcePath, body: Document, options: WriteOptions) -> Document | None:
        return self._reviews.result(call, self.kind, body)


def _subject(spec: Document) -> User:
    extra = {key.lower(): tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)


def _spec_causes(spec: Document, *, is_self: bool) -> Iterator[StatusCause]:
    asked: Document | None = spec.get("resourceAttributes")
    path: Document | None = spec.get("nonResourceAttributes")
    if asked is not None and path is not None:
        text = "cannot be specified in combination with resourceAttributes"
        yield field_errors.invalid_value(_PATH, _go_path(path), text)
    elif asked is None and path is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield StatusCause("FieldValueInvalid", f"Invalid value: null: {text}", _ATTRIBUTES)
    for name, needs_label_names in (("fieldSelector", False), ("labelSelector", True)):
        selector: Document | None = (asked or {}).get(name)
        if selector is not None:
            yield from _selector_causes(f"{_ATTRIBUTES}.{name}", selector, needs_label_names=needs_label_names)
    if not is_self and not spec.get("user") and not spec.get("groups"):
        yield field_errors.invalid_value("spec.user", "", "at least one of user or group must be specified")


def _selector_causes(where: str, selector: Document, *, needs_label_names: bool) -> Iterator[StatusCause]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements") or ()
    if raw and requirements:
        text = "may not specified at the same time as requirements"
        yield field_errors.invalid_value(f"{where}.rawSelector", raw, text)
    if not raw and not requirements:
        text = f"when {where} is specified, requirements or rawSelector is required"
        yield field_errors.required(f"{where}.requirements", text)
    for index, requirement in enumerate(requirements):
        place = f"{where}.requirements[{index}]"
        key, values = requirement.get("key", ""), requirement.get("values") or ()
        if not key and not needs_label_names:
            yield field_errors.required(f"{place}.key", "must be specified")
        operator = requirement.get("operator")
        if operator in {"In", "NotIn"} and not values:
            yield field_errors.required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        if operator in {"Exists", "DoesNotExist"} and values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield field_errors.forbidden_field(f"{place}.values", text)
        if needs_label_names:
            for problem in label_key_problems(key):
                yield field_errors.invalid_value(f"{place}.key", key, problem)
            for number, value in enumerate(values):
                for problem in label_value_problems(value):
                    yield field_errors.invalid_value(f"{place}.values[{number}]", value, problem)


def _place_causes(resource: Resource, document: Document) -> Iterator[StatusCause]:
    """Yield what is wrong with the metadata, which may say nothing, or for a local review only the namespace."""
    metadata: Document = document["metadata"]
    is_local = resource.namespaced
    if any(
        value for key, value in metadata.items() if key != "managedFields" and not (is_local and key == "namespace")
    ):
        text = "must be empty except for namespace" if is_local else "must be empty"
        yield StatusCause("FieldValueInvalid", f"Invalid value: {encode(metadata).decode()}: {text}", "metadata")
    if not is_local:
        return
    spec: Document = document.get("spec") or {}
    asked: Document | None = spec.get("resourceAttributes")
    path: Document | None = spec.get("nonResourceAttributes")
    if asked is not None and asked.get("namespace", "") != metadata["namespace"]:
        text = "must match metadata.namespace"
        yield field_errors.invalid_value(f"{_ATTRIBUTES}.namespace", asked.get("namespace", ""), text)
    if path is not None:
        yield field_errors.invalid_value(_PATH, _go_path(path), "disallowed on this kind of request")


def _go_path(path: Document) -> Document:
    """Return the attributes of a path by the names of their Go fields, as upstream's message has them."""
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


_LONGEST_SELECTOR = 65536
"""Characters of a selector in a review: as many as a request's line may have. A body of 3 MiB would keep the parser busy for seconds."""


def _selector_problem(asked: Document) -> str:
    """Return what an access review says of a selector it cannot use: it decides as if there were none."""
    problems: list[str] = []
    for name, operators in (
        ("fieldSelector", {"In", "NotIn"}),
        ("labelSelector", {"In", "NotIn", "Exists", "DoesNotExist"}),
    ):
        selector: Document = asked.get(name) or {}
        is_broken = any(one.get("operator") not in operators for one in selector.get("requirements") or ())
        raw = selector.get("rawSelector", "")
        try:
            is_broken = is_broken or len(raw) > _LONGEST_SELECTOR
            if not is_broken:
                (parse_fields if name == "fieldSelector" else parse_labels)(raw)
        except ValueError:
            is_broken = True
        if is_broken:
            problems.append(f"{_ATTRIBUTES}.{name} ignored due to parse error")
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""


def _attributes(spec: Document) -> AuthorizationAttributes:
    path: Document | None = spec.get("nonResourceAttributes")
    if path is not None:
        return AuthorizationAttributes(verb=path.get("verb", ""), path=path.get("path", ""))
    asked: Document = spec.get("resourceAttributes") or {}
    return AuthorizationAttributes(
        verb=asked.get("verb", ""),
        group=asked.get("group", ""),
        version=asked.get("version", ""),
        resource=asked.get("resource", ""),
        subresource=asked.get("subresource", ""),
        namespace=asked.get("namespace", ""),
        name=asked.get("name", ""),
        is_resource=True,
    )


def _resource_rule(rule: Any) -> Document:
    found: Document = {"verbs": rule["verbs"], "apiGroups": rule.get("apiGroups") or [], "resources": rule["resources"]}
    if rule.get("resourceNames"):
        found["resourceNames"] = rule["resourceNames"]
    return found
