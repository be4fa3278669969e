"""The webhook builder: `new_webhook_managed_by(mgr).for_(Game).with_defaulter(GameDefaulter()).with_validator(GameValidator()).complete()`.

It registers handlers on the manager's webhook server, with kubebuilder's paths and names. Development mode and the manifests use the
registered rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypedDict, TypeVar, cast

from typing_extensions import Unpack

from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.errors import ConfigError
from ctrlruntime.log import get_logger
from ctrlruntime.scheme import Scheme
from ctrlruntime.webhook.admission import Admission, HandlerFunction, LogFields
from ctrlruntime.webhook.conversion import Conversion
from ctrlruntime.webhook.registration import (
    FailurePolicy,
    MatchCondition,
    MatchPolicy,
    ReinvocationPolicy,
    SideEffects,
    WebhookRule,
    default_path,
    default_rule,
)
from ctrlruntime.webhook.request import Operation
from ctrlruntime.webhook.typed import Defaulter, Validator, defaulting, operations_of, validating

if TYPE_CHECKING:
    from ctrlruntime.webhook.server import WebhookServer

__all__ = ["RuleOptions", "WebhookBuilder", "WebhookManager", "new_webhook_managed_by"]

_PATH: Final = re.compile(r"(/[a-zA-Z0-9-_]+)+|/")
_log = get_logger("webhook")

T = TypeVar("T", bound=Object)
K = TypeVar("K", bound=Object)


class WebhookManager(Protocol):
    """The part of the manager that webhooks use."""

    @property
    def scheme(self) -> Scheme: ...

    @property
    def webhook_server(self) -> WebhookServer: ...


class RuleOptions(TypedDict, total=False):
    """Options of a webhook; see `WebhookRule`. `path`: its path on the server."""

    path: str
    name: str
    operations: Sequence[Operation]
    failure_policy: FailurePolicy
    match_policy: MatchPolicy
    side_effects: SideEffects
    timeout_seconds: int
    admission_review_versions: Sequence[str]
    reinvocation_policy: ReinvocationPolicy
    namespace_selector: Mapping[str, Any]
    object_selector: Mapping[str, Any]
    match_conditions: Sequence[MatchCondition]
    cached_kinds: Sequence[type[Object]]
    """Kinds that it reads from the cache; reviews wait until they have synced."""


def new_webhook_managed_by(manager: WebhookManager) -> WebhookBuilder[Object]:
    """Return a builder for the webhooks of one kind.

    Raises: ConfigError without a manager.
    """
    if not hasattr(manager, "scheme"):
        raise ConfigError(
            f"cannot build webhooks: a manager is needed, got {manager!r}. Pass the result of ctrl.new_manager"
        )
    return WebhookBuilder(manager, None)


class WebhookBuilder(Generic[T]):
    """Collects the webhooks of one kind.

    Each method returns the builder. See `new_webhook_managed_by`.
    """

    def __init__(self, manager: WebhookManager, kind: type[T] | None) -> None:
        self._manager = manager
        self._kind = kind
        self._handlers: list[tuple[bool, HandlerFunction, RuleOptions]] = []
        self._conversion: Conversion[Any] | None = None
        self._recover_panic = True
        self._log_constructor: LogFields | None = None
        self._is_complete = False

    def for_(self, kind: type[K]) -> WebhookBuilder[K]:
        """Set the kind of the webhooks.

        Raises: ConfigError for a second call, or if it is not a kind.
        """
        given = cast("object", kind)
        if not isinstance(given, type) or not issubclass(given, Object):
            raise ConfigError(f"for_() takes the class of a kind, got {given!r}")
        if self._kind is not None:
            raise ConfigError(
                f"for_({kind.__name__}): this builder is for {self._kind.__name__}. Create another with new_webhook_managed_by"
            )
        return WebhookBuilder(self._manager, kind)

    def with_defaulter(
        self, defaulter: Defaulter[T], *, remove_unknown_fields: bool = False, **options: Unpack[RuleOptions]
    ) -> Self:
        """Set defaults with `defaulter.default(obj)` at create and update.

        remove_unknown_fields: remove fields that the class does not define; the defaulter does not see them. By default they stay. Content
        of a `dict` and of an `Unstructured` stays.

        Raises: ConfigError for a second defaulter, an unknown option, or a method with the wrong signature.
        """
        handler = defaulting(self._root("with_defaulter"), defaulter, remove_unknown_fields=remove_unknown_fields)
        self._add(True, handler, {"operations": ("CREATE", "UPDATE"), **options})
        return self

    def with_validator(
        self, validator: Validator[T], *, validate_deleting: bool = False, **options: Unpack[RuleOptions]
    ) -> Self:
        """Validate objects with `validate_create(obj)`, `validate_update(old, new)` and `validate_delete(obj)`, as far as defined.

        Without `operations` the API server calls it for the operations of its methods.

        validate_deleting: also validate an update that changes only metadata of an object that is being deleted. By default such an update
        is allowed. Otherwise its finalizers could not be removed if the validator rejected it, and the object would never be deleted.

        Raises: ConfigError as `with_defaulter`.
        """
        handler = validating(self._root("with_validator"), validator, validate_deleting=validate_deleting)
        self._add(False, handler, {"operations": operations_of(validator), **options})
        return self

    def with_conversion(self, conversion: Conversion[Any]) -> Self:
        """Convert between the versions of the kind, at `/convert`.

        Raises: ConfigError for the conversion of another kind, or a second one.
        """
        kind = self._root("with_conversion")
        if kind not in conversion.kinds:
            raise ConfigError(f"with_conversion({conversion!r}): {kind.__name__} is not one of its versions")
        if self._conversion is not None:
            raise ConfigError(f"{kind.__name__} has a conversion already")
        self._conversion = conversion
        return self

    def with_recover_panic(self, recover: bool) -> Self:
        """Set whether an unexpected exception is a response with 500 (default), or raised in the HTTP server."""
        self._recover_panic = recover
        return self

    def with_log_constructor(self, log_constructor: LogFields) -> Self:
        """Replace the fields of the log lines of a request."""
        self._log_constructor = log_constructor
        return self

    def complete(self) -> None:
        """Register all webhooks on the manager's webhook server.

        A path in use is skipped, with a warning in the log.

        Raises: ConfigError for an invalid custom path, an invalid rule or a builder without webhooks; NotRegisteredError for a kind that
        the scheme does not have.
        """
        kind = self._root("complete")
        if self._is_complete:
            raise ConfigError(
                "cannot register: this builder has registered its webhooks. Create another with new_webhook_managed_by"
            )
        if not self._handlers and self._conversion is None:
            raise ConfigError(
                f"cannot build webhooks of {kind.__name__}: none is set. Call with_defaulter, with_validator or with_conversion"
            )
        self._manager.scheme.info_for(kind)
        rules = [(path, self._admission(handler, options), rule) for path, rule, handler, options in self._rules(kind)]
        server = self._manager.webhook_server
        for path, admission, rule in rules:
            if server.serves(path):
                _log.warning(
                    "webhook skipped: path is already registered",
                    path=path,
                    kind=kind.__name__,
                    hint="give it another path",
                )
                continue
            server.register(path, admission, webhook=rule, target=kind)
        if self._conversion is not None:
            self._manager.webhook_server.register_conversion(self._conversion)
        self._is_complete = True

    def _rules(self, kind: type[T]) -> list[tuple[str, WebhookRule, HandlerFunction, RuleOptions]]:
        found: list[tuple[str, WebhookRule, HandlerFunction, RuleOptions]] = []
        for mutating, handler, options in self._handlers:
            said = {name: value for name, value in options.items() if name not in {"path", "cached_kinds"}}
            rule = default_rule(kind, mutating=mutating, **said)
            path = options.get("path", "")
            if path and not _PATH.fullmatch(path):
                raise ConfigError(
                    f"cannot serve a webhook of {kind.__name__} at {path!r}: this is not a path. Give '/' or segments of letters, digits, "
                    "'-' and '_', as in '/validate-games'"
                )
            found.append((path or default_path(kind, mutating=mutating), rule, handler, options))
        return found

    def _admission(self, handler: HandlerFunction, options: RuleOptions) -> Admission:
        return Admission(
            handler,
            cached_kinds=options.get("cached_kinds", ()),
            recover_panic=self._recover_panic,
            log_constructor=self._log_constructor,
        )

    def _add(self, mutating: bool, handler: HandlerFunction, options: RuleOptions) -> None:
        if unknown := set(options) - set(RuleOptions.__annotations__):
            known = ", ".join(RuleOptions.__annotations__)
            raise ConfigError(f"unknown webhook option {', '.join(sorted(unknown))}; the options are {known}")
        if any(one is mutating for one, *_ in self._handlers):
            raise ConfigError(f"a {'defaulter' if mutating else 'validator'} is set; a kind has one of each")
        self._handlers.append((mutating, handler, options))

    def _root(self, method: str) -> type[T]:
        if self._kind is None:
            raise ConfigError(f"{method}() needs a kind. Call for_(YourKind) first")
        kind_of(self._kind)
        return self._kind
