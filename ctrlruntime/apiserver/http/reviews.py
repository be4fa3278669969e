"""Reviews: who am I, may I, may they, whose token is this. They are answered and never stored."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.authentication import Authenticator
from ctrlruntime.apiserver.authorization import RBAC, Attributes, User
from ctrlruntime.apiserver.http.answers import document_answer
from ctrlruntime.apiserver.http.bodies import read_object
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.options import write_options
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.registry import Resource
from ctrlruntime.errors import BadRequest, StatusCause

REVIEWS = frozenset(
    {
        "selfsubjectreviews",
        "tokenreviews",
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
    }
)


class Reviews:
    """Handlers of the review kinds."""

    def __init__(self, rbac: RBAC, authenticator: Authenticator, *, allows_all: bool) -> None:
        self._rbac = rbac
        self._authenticator = authenticator
        self._allows_all = allows_all

    def handle(self, call: Call, resource: Resource) -> web.Response:
        options = write_options(call, "CreateOptions")
        document = resource.fit(read_object(call, resource, options), [])
        spec: Document = document.get("spec") or {}
        match resource.plural:
            case "selfsubjectreviews":
                status: Document = {"userInfo": _info(call.user)}
            case "tokenreviews":
                status = self._token(spec)
            case "selfsubjectaccessreviews":
                status = self._access(resource, call.user, spec)
            case "selfsubjectrulesreviews":
                status = self._rules(call.user, spec)
            case _:
                status = self._access(resource, self._subject(resource, spec), spec)
        return document_answer(call, {**document, "status": status}, 201)

    def _token(self, spec: Document) -> Document:
        token = spec.get("token")
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        user = self._authenticator.of_token(token)
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        status: Document = {"authenticated": True, "user": _info(user)}
        if spec.get("audiences"):
            status["audiences"] = spec["audiences"]
        return status

    @staticmethod
    def _subject(resource: Resource, spec: Document) -> User:
        groups: list[str] = spec.get("groups") or []
        if not spec.get("user") and not groups:
            text = "at least one of user or group must be specified"
            cause = failures.invalid_value("spec.user", "", text)
            raise failures.invalid(resource.kind, resource.group, "", [cause])
        extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
        return User(spec.get("user", ""), tuple(groups), spec.get("uid", ""), extra)

    def _access(self, resource: Resource, user: User, spec: Document) -> Document:
        asked = _attributes(resource, spec)
        if self._allows_all:
            return {"allowed": True}
        allowed, reason = self._rbac.allowed(user, asked)
        return {"allowed": allowed, **({"reason": reason} if reason else {})}

    def _rules(self, user: User, spec: Document) -> Document:
        every = [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]
        if self._allows_all:
            rules: list[Any] = every
        else:
            rules = list(self._rbac.rules(user, spec.get("namespace", "")))
        return {
            "resourceRules": [rule for rule in rules if rule.get("resources")],
            "nonResourceRules": [
                {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
                for rule in rules
                if rule.get("nonResourceURLs")
            ],
            "incomplete": False,
        }


def _attributes(resource: Resource, spec: Document) -> Attributes:
    asked: Document | None = spec.get("resourceAttributes")
    path: Document | None = spec.get("nonResourceAttributes")
    if (asked is None) == (path is None):
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        field = "spec.resourceAttributes"
        cause = StatusCause("FieldValueInvalid", f"Invalid value: null: {text}", field)
        raise failures.invalid(resource.kind, resource.group, "", [cause])
    if path is not None:
        return Attributes(verb=path.get("verb", ""), path=path.get("path", ""))
    assert asked is not None
    return Attributes(
        verb=asked.get("verb", ""),
        group=asked.get("group", ""),
        version=asked.get("version", ""),
        resource=asked.get("resource", ""),
        subresource=asked.get("subresource", ""),
        namespace=asked.get("namespace", ""),
        name=asked.get("name", ""),
    )


def _info(user: User) -> Document:
    info: Document = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
