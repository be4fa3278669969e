"""OpenTelemetry spans: from the event to the reconcile to the API call.

Needs the extra `otel`.

Controllers and the client's gate have a `Tracing` or None; with None nothing is imported. A reconcile is its own trace, because several
events may trigger it. Each trigger has a span from the event to the start of the reconcile, and the reconcile links to these spans. API
calls, and spans of user code, are its children.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

from ctrlruntime.errors import ConfigError
from ctrlruntime.journal import Trigger

if TYPE_CHECKING:
    from opentelemetry.trace import Link, Span, Tracer, TracerProvider

__all__ = [
    "ReconcileSpan",
    "Tracing",
]

SCOPE = "ctrlruntime"
"""The instrumentation scope of all spans."""


class Tracing:
    """Creates the spans.

    Args:
        provider: default is the global provider.

    Raises: ConfigError without opentelemetry-api.

    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        try:
            from opentelemetry import trace
        except ImportError as error:
            raise ConfigError("tracing needs OpenTelemetry: pip install 'ctrlruntime[otel]'") from error
        self._trace: Any = trace
        self._tracer: Tracer = trace.get_tracer(SCOPE, tracer_provider=provider)

    @contextlib.contextmanager
    def reconcile(
        self, controller: str, request: object, run: str, triggers: Sequence[object], attempts: int
    ) -> Generator[ReconcileSpan]:
        """Run a block inside the span of a reconcile.

        Call `end` of the yielded value with the outcome.
        """
        attributes: dict[str, str | int] = {
            "ctrlruntime.controller": controller,
            "ctrlruntime.request": str(request),
            "ctrlruntime.reconcile_id": run,
            "ctrlruntime.attempts": attempts,
        }
        span = self._tracer.start_span(
            f"reconcile {controller}", context=_no_parent(), links=self._events(triggers), attributes=attributes
        )
        try:
            with self._trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
                yield ReconcileSpan(span)
        finally:
            span.end()

    def call(self, verb: str, what: str, controller: str = "") -> Callable[[BaseException | None], None]:
        """Start the span of an API call as a child of the current span.

        Call the result with the error, or None, at its end.
        """
        from opentelemetry.trace import SpanKind

        attributes = {"k8s.verb": verb, "k8s.what": what, "ctrlruntime.controller": controller}
        span = self._tracer.start_span(f"{verb} {what.partition(' ')[0]}", kind=SpanKind.CLIENT, attributes=attributes)

        def ended(error: BaseException | None) -> None:
            _end(span, error)
            span.end()

        return ended

    def _events(self, triggers: Sequence[object]) -> list[Link]:
        from opentelemetry.trace import Link

        links: list[Link] = []
        for trigger in triggers:
            if not isinstance(trigger, Trigger):
                continue
            attributes = {
                "ctrlruntime.event": trigger.event,
                "ctrlruntime.source": trigger.source,
                "k8s.namespace.name": trigger.namespace,
                "k8s.object.name": trigger.name,
                "k8s.resource_version": trigger.resource_version,
                "k8s.resource_version.before": trigger.old_version,
            }
            seen = int(trigger.seen_at * 1e9) or None
            span = self._tracer.start_span(
                f"event {trigger.event} {trigger.source}", context=_no_parent(), start_time=seen, attributes=attributes
            )
            span.end()
            links.append(Link(span.get_span_context(), attributes))
        return links


class ReconcileSpan:
    """The span of a running reconcile."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    def end(self, error: BaseException | None) -> None:
        """Record the outcome of the reconcile."""
        _end(self._span, error)


def _end(span: Span, error: BaseException | None) -> None:
    from opentelemetry.trace import Status, StatusCode

    if error is None:
        span.set_status(Status(StatusCode.OK))
    else:
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))


def _no_parent() -> Any:
    from opentelemetry.context import Context

    return Context()
