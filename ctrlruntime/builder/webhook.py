"""The webhook builder: `new_webhook_managed_by(mgr).for_(Game).with_defaulter(GameDefaulter()).with_validator(GameValidator()).complete()`.

It makes handlers of what users write for their kind, and registers them on the manager's webhook server under kubebuilder's paths and names,
together with the facts from which development mode and the manifests register them in a cluster.
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
    """What webhooks need of the manager they are built for."""

    @property
    def scheme(self) -> Scheme: ...

    @property
    def webhook_server(self) -> WebhookServer: ...


class RuleOptions(TypedDict, total=False):
    """What may be said of a webhook; see `WebhookRule`. `path`: where it is served."""

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
    """Kinds it reads from the cache; reviews wait until they are there."""


def new_webhook_managed_by(manager: WebhookManager) -> WebhookBuilder[Object]:
    """Return a builder for the webhooks of one kind. Raises: ConfigError without a manager."""
    if not hasattr(manager, "scheme"):
        raise ConfigError(
            f"cannot build webhooks: a manager is needed, got {manager!r}. Pass the result of ctrl.new_manager"
        )
    return WebhookBuilder(manager, None)


class WebhookBuilder(Generic[T]):
    """Collects the webhooks of one kind; each method returns the builder. See `new_webhook_managed_by`."""

    def __init__(self, manager: WebhookManager, kind: type[T] | None) -> None:
        self._manager = manager
        self._kind = kind
        self._handlers: list[tuple[bool, HandlerFunction, RuleOptions]] = []
        self._conversion: Conversion[Any] | None = None
        self._recover_panic = True
        self._log_constructor: LogFields | None = None
        self._is_complete = False

    def for_(self, kind: type[K]) -> WebhookBuilder[K]:
        """Say whose webhooks these are. Raises: ConfigError for a second call or what is not a kind."""
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
        """Let `defaulter.default(obj)` fill in objects at create and update.

        `remove_unknown_fields`: remove the fields that the class of the kind does not declare; by default they stay. The defaulter does not
        see them. Fields of a `dict` and of an `Unstructured` stay.

        Raises: ConfigError for a second one, an option there is none of, or a method that does not fit.
        """
        handler = defaulting(self._root("with_defaulter"), defaulter, remove_unknown_fields=remove_unknown_fields)
        self._add(True, handler, {"operations": ("CREATE", "UPDATE"), **options})
        return self

    def with_validator(
        self, validator: Validator[T], *, validate_deleting: bool = False, **options: Unpack[RuleOptions]
    ) -> Self:
        """Let `validator` refuse objects: `validate_create(obj)`, `validate_update(old, new)`, `validate_delete(obj)`, as far as it has them.

        Without `operations` it is asked about those it has methods for.

        `validate_deleting`: ask it also about an update of an object that is being deleted which changes nothing but metadata. By default such
        an update passes: if the validator refused it, the finalizers could not be removed, and the object would stay for ever.

        Raises: ConfigError as `with_defaulter`.
        """
        handler = validating(self._root("with_validator"), validator, validate_deleting=validate_deleting)
        self._add(False, handler, {"operations": operations_of(validator), **options})
        return self

    def with_conversion(self, conversion: Conversion[Any]) -> Self:
        """Convert between the versions of the kind, at `/convert`. Raises: ConfigError for the conversion of another kind, or a second one."""
        kind = self._root("with_conversion")
        if kind not in conversion.kinds:
            raise ConfigError(f"with_conversion({conversion!r}): {kind.__name__} is not one of its versions")
        if self._conversion is not None:
            raise ConfigError(f"{kind.__name__} has a conversion already")
        self._conversion = conversion
        return self

    def with_recover_panic(self, recover: bool) -> Self:
        """Say whether an unexpected exception is answered with 500 in the review (default) or let through to the HTTP server."""
        self._recover_panic = recover
        return self

    def with_log_constructor(self, log_constructor: LogFields) -> Self:
        """Replace the fields bound to the log lines of a request."""
        self._log_constructor = log_constructor
        return self

    def complete(self) -> None:
        """Register everything on the manager's webhook server. A path that is taken is skipped, with a warning in the log.

        Raises: ConfigError for a custom path that no API server could call, a rule no API server takes or a builder without webhooks;
        NotRegisteredError for a kind the scheme does not know.
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
