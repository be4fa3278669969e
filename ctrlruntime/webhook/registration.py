"""Rules of webhooks: one declaration for the server, development mode and generated manifests.

`WebhookRule` has the fields of kubebuilder's webhook marker. A `Registration` is an endpoint at a path of the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ctrlruntime.api.kind import KindInfo
from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.errors import ConfigError
from ctrlruntime.name_rules import LABEL
from ctrlruntime.selector import from_label_selector, label_key_problems
from ctrlruntime.webhook.endpoint import EndpointKind
from ctrlruntime.webhook.request import Operation

__all__ = ["MatchCondition", "Registration", "WebhookRule", "default_path", "default_rule"]

FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]
MatchPolicy: TypeAlias = Literal["Equivalent", "Exact"]
SideEffects: TypeAlias = Literal["None", "NoneOnDryRun"]
ReinvocationPolicy: TypeAlias = Literal["Never", "IfNeeded"]
RuleScope: TypeAlias = Literal["*", "Namespaced", "Cluster"]

_OPERATIONS = {"CREATE", "UPDATE", "DELETE", "CONNECT", "*"}
_CHOICES: Mapping[str, tuple[str | None, ...]] = {
    "failure_policy": ("Fail", "Ignore"),
    "match_policy": (None, "Equivalent", "Exact"),
    "side_effects": ("None", "NoneOnDryRun"),
    "reinvocation_policy": (None, "Never", "IfNeeded"),
    "scope": (None, "*", "Namespaced", "Cluster"),
}
_NAME = re.compile(rf"{LABEL}(\.{LABEL}){{2,}}")
_LONGEST_NAME = 253
_REVIEW = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_MOST_CONDITIONS = 64


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """A CEL expression that must be true for the webhook to be called."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRule:
    """The requests for which an admission webhook is called, and its options.

    None: the default of the API server.

    Raises: ConfigError for an invalid value.
    """

    mutating: bool
    name: str
    """At least three labels joined by dots: `mgame-v1.kb.io`."""

    groups: Sequence[str]
    """API groups; "" is the core group."""

    versions: Sequence[str]
    resources: Sequence[str]
    """Plural names, with `/status` and others for subresources."""

    operations: Sequence[Operation | Literal["*"]] = ("CREATE", "UPDATE")
    scope: RuleScope | None = None
    failure_policy: FailurePolicy = "Fail"
    match_policy: MatchPolicy | None = None
    side_effects: SideEffects = "None"
    timeout_seconds: int | None = None
    """Seconds the API server waits, 1 to 30 (None: 10)."""

    admission_review_versions: Sequence[str] = ("v1",)
    reinvocation_policy: ReinvocationPolicy | None = None
    namespace_selector: Mapping[str, Any] | None = None
    """A LabelSelector as a JSON document."""

    object_selector: Mapping[str, Any] | None = None
    match_conditions: Sequence[MatchCondition] = ()

    def __post_init__(self) -> None:
        for option, choices in _CHOICES.items():
            if getattr(self, option) not in choices:
                raise self._error(
                    f"{option} is {getattr(self, option)!r}; choose one of {', '.join(map(repr, choices))}"
                )
        for option in ("groups", "versions", "resources", "operations", "admission_review_versions"):
            value = getattr(self, option)
            if isinstance(value, str) or not value:
                raise self._error(f"{option} is {value!r}; give a list with at least one entry")
            object.__setattr__(self, option, tuple(value))
        object.__setattr__(self, "match_conditions", tuple(self.match_conditions))
        if unknown := set(self.operations) - _OPERATIONS:
            raise self._error(
                f"operation {', '.join(sorted(unknown))} does not exist; there are {', '.join(sorted(_OPERATIONS))}"
            )
        if not _NAME.fullmatch(self.name) or len(self.name) > _LONGEST_NAME:
            raise self._error(
                f"a name has at least three lower-case labels joined by dots, such as mgame-v1.kb.io, and at most {_LONGEST_NAME} characters"
            )
        if self.timeout_seconds is not None and not 1 <= self.timeout_seconds <= 30:
            raise self._error(
                f"timeout_seconds is {self.timeout_seconds}; the API server waits between 1 and 30 seconds"
            )
        if self.reinvocation_policy is not None and not self.mutating:
            raise self._error("reinvocation_policy is only for mutating webhooks")
        for problem in (*self._rule_problems(), *self._condition_problems(), *self._selector_problems()):
            raise self._error(problem)
        reviews = self.admission_review_versions
        if len(set(reviews)) < len(reviews) or not all(_REVIEW.fullmatch(version) for version in reviews):
            raise self._error(f"admission_review_versions are {reviews}; give versions such as v1, each once")
        if not set(self.admission_review_versions) & {"v1", "v1beta1"}:
            raise self._error(
                f"admission_review_versions are {self.admission_review_versions}; v1 and v1beta1 are supported"
            )

    def _rule_problems(self) -> Iterator[str]:
        """What kube-apiserver refuses of a rule (pkg/apis/admissionregistration/validation)."""
        for option in ("groups", "versions", "operations"):
            values: Sequence[str] = getattr(self, option)
            if "*" in values and len(values) > 1:
                yield f"{option} are {values}; give '*' alone"
        for option in ("versions", "resources"):
            if "" in getattr(self, option):
                yield f"{option} are {getattr(self, option)}; none may be empty"
        plain = {resource for resource in self.resources if "/" not in resource}
        if ("*/*" in self.resources and len(self.resources) > 1) or ("*" in plain and len(plain) > 1):
            yield f"resources are {self.resources}; give '*/*' alone, and '*' only with subresources"
        for place, resource in enumerate(self.resources):
            name, _, subresource = resource.partition("/")
            wider = {f"{name}/*", f"*/{subresource}"} & set(self.resources[:place]) if subresource else set[str]()
            if wider:
                yield f"resources are {self.resources}; {wider.pop()} has {resource} in it, leave one of them out"

    def _condition_problems(self) -> Iterator[str]:
        names = [condition.name for condition in self.match_conditions]
        if len(names) > _MOST_CONDITIONS:
            yield f"there are {len(names)} match_conditions, and may be {_MOST_CONDITIONS}"
        if len(set(names)) < len(names):
            yield f"match_conditions are named {', '.join(names)}; rename one of them"
        for condition in self.match_conditions:
            for problem in label_key_problems(condition.name):
                yield f"the match condition {condition.name!r} cannot have this name: {problem}"
            if not condition.expression.strip():
                yield f"the match condition {condition.name!r} has no expression; give one in CEL"

    def _selector_problems(self) -> Iterator[str]:
        for option in ("namespace_selector", "object_selector"):
            try:
                from_label_selector(getattr(self, option))
            except ValueError as error:
                yield f"{option}: {error}"

    def _error(self, problem: str) -> ConfigError:
        return ConfigError(f"webhook {self.name!r}: {problem}")

    def to_webhook(self, client_config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entry of a webhook configuration as a JSON document."""
        rule: dict[str, Any] = {
            "apiGroups": list(self.groups),
            "apiVersions": list(self.versions),
            "operations": list(self.operations),
            "resources": list(self.resources),
            "scope": self.scope,
        }
        entry: dict[str, Any] = {
            "name": self.name,
            "admissionReviewVersions": list(self.admission_review_versions),
            "clientConfig": dict(client_config),
            "failurePolicy": self.failure_policy,
            "matchPolicy": self.match_policy,
            "sideEffects": self.side_effects,
            "timeoutSeconds": self.timeout_seconds,
            "reinvocationPolicy": self.reinvocation_policy,
            "namespaceSelector": self.namespace_selector,
            "objectSelector": self.object_selector,
            "rules": [{name: value for name, value in rule.items() if value is not None}],
        }
        if self.match_conditions:
            entry["matchConditions"] = [
                {"name": one.name, "expression": one.expression} for one in self.match_conditions
            ]
        return {name: value for name, value in entry.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """An endpoint at a path of the webhook server.

    You register an admission webhook without a `rule` in the cluster yourself.
    """

    path: str
    kind: EndpointKind
    rule: WebhookRule | None = None
    target: KindInfo | None = None
    """The kind of a typed webhook."""

    converted: tuple[tuple[KindInfo, ...], ...] = ()
    """For the conversion endpoint: the versions of each kind, the hub first."""


def default_path(kind: type[Object], *, mutating: bool) -> str:
    """Return kubebuilder's path of a webhook.

    For example `/mutate-myapp-example-com-v1-game`; for the core group `/mutate--v1-pod`.
    """
    info = kind_of(kind)
    prefix = "mutate" if mutating else "validate"
    return f"/{prefix}-{info.group.replace('.', '-')}-{info.version}-{info.kind.lower()}"


def default_rule(kind: type[Object], *, mutating: bool, **options: Any) -> WebhookRule:
    """Return the rule for objects of a kind, with kubebuilder's name.

    `options` are fields of the rule.
    """
    info = kind_of(kind)
    fields: dict[str, Any] = {
        "mutating": mutating,
        "name": f"{'m' if mutating else 'v'}{info.kind.lower()}-{info.version}.kb.io",
        "groups": (info.group,),
        "versions": (info.version,),
        "resources": (info.plural,),
    }
    fields |= {name: value for name, value in options.items() if value is not None}
    return WebhookRule(**fields)
