"""OpenTelemetry spans: from the event, over the reconcile, to the API call."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys

import pytest
from feed import Feed
from servers import LONGEST_WAIT

from ctrlruntime.client.observers import CallObservers
from ctrlruntime.controller.controller import Controller
from ctrlruntime.controller.options import ControllerOptions
from ctrlruntime.errors import ConfigError, Conflict
from ctrlruntime.explain.calls import call_observer
from ctrlruntime.journal import Journal, Trigger
from ctrlruntime.reconcile import Request
from ctrlruntime.testing.eventually import eventually
from ctrlruntime.tracing import Tracing
from ctrlruntime.workqueue import ItemExponentialFailureRateLimiter

sdk = pytest.importorskip(
    "opentelemetry.sdk.trace", reason="spans are read with opentelemetry-sdk; install the extra dev"
)
export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

from opentelemetry import trace  # noqa: E402 - the SDK is asked for first
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402

A = Request("ns", "a")


@pytest.fixture
def exporter():
    return export.InMemorySpanExporter()


@pytest.fixture
def provider(exporter):
    provider = sdk.TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider
    provider.shutdown()


@contextlib.asynccontextmanager
async def running(reconcile, *triggers, tracing):
    journal = Journal()
    controller = Controller(
        "web",
        reconcile,
        options=ControllerOptions(rate_limiter=ItemExponentialFailureRateLimiter(60.0)),
        journal=journal,
        tracing=tracing,
    )
    controller.watch(Feed(A, *triggers))
    task = asyncio.create_task(controller.start())
    try:
        await eventually(lambda: journal.history("web", A).runs, timeout=LONGEST_WAIT, interval=0.001)
        yield
    finally:
        await controller.stop(0)
        await task


def trigger(event, version, before=""):
    return Trigger(event, "Web", "ns", "a", version, "", before, 1000.0)


async def test_events_the_reconcile_and_its_calls_are_linked(provider, exporter):
    tracing = Tracing(provider)
    observers = CallObservers()
    observers.add_observer(call_observer(Journal(), tracing))

    async def reconcile(request):
        observers.record("get", "", "pods", "", "ns", "a")(None)
        with provider.get_tracer("user").start_as_current_span("mine"):
            observers.record("update", "apps", "deployments", "status", "ns", "web")(Conflict("changed meanwhile"))

    async with running(reconcile, trigger("create", "1"), trigger("update", "2", "1"), tracing=tracing):
        pass

    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert set(spans) == {
        "event create Web",
        "event update Web",
        "reconcile web",
        "get pods",
        "mine",
        "update deployments.apps/status",
    }
    reconciled = spans["reconcile web"]
    assert reconciled.parent is None
    assert [link.context.span_id for link in reconciled.links] == [
        spans["event create Web"].context.span_id,
        spans["event update Web"].context.span_id,
    ]
    assert reconciled.attributes["ctrlruntime.request"] == "ns/a"
    assert reconciled.attributes["ctrlruntime.controller"] == "web"
    assert reconciled.status.status_code is trace.StatusCode.OK
    update = spans["event update Web"]
    assert update.start_time == 1000 * 10**9
    assert update.end_time <= reconciled.end_time
    assert update.attributes["k8s.resource_version.before"] == "1"
    assert spans["get pods"].parent.span_id == reconciled.context.span_id
    assert spans["mine"].parent.span_id == reconciled.context.span_id
    failed = spans["update deployments.apps/status"]
    assert failed.parent.span_id == spans["mine"].context.span_id
    assert failed.kind is trace.SpanKind.CLIENT
    assert failed.status.status_code is trace.StatusCode.ERROR
    assert [event.name for event in failed.events] == ["exception"]


async def test_a_failed_reconcile_is_a_failed_span(provider, exporter):
    async def reconcile(request):
        raise ValueError("no")

    async with running(reconcile, trigger("create", "1"), tracing=Tracing(provider)):
        pass

    (span,) = [span for span in exporter.get_finished_spans() if span.name == "reconcile web"]
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.status.description == "ValueError: no"


async def test_a_cancelled_reconcile_ends_its_span(provider, exporter):
    entered = asyncio.Event()

    async def reconcile(request):
        entered.set()
        await asyncio.sleep(3600)

    controller = Controller("web", reconcile, tracing=Tracing(provider))
    controller.watch(Feed(A, None))
    task = asyncio.create_task(controller.start())
    await asyncio.wait_for(entered.wait(), LONGEST_WAIT)
    await controller.stop(0)
    await task

    assert [span.name for span in exporter.get_finished_spans()] == ["reconcile web"]


async def test_a_plain_reconcile_carries_its_span_into_its_thread(provider, exporter):
    def reconcile(request):
        with provider.get_tracer("user").start_as_current_span("mine"):
            pass

    async with running(reconcile, trigger("create", "1"), tracing=Tracing(provider)):
        pass

    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert spans["mine"].parent.span_id == spans["reconcile web"].context.span_id


async def test_without_a_provider_nothing_is_recorded():
    done = []

    async def reconcile(request):
        done.append(request)

    async with running(reconcile, trigger("create", "1"), tracing=Tracing()):
        pass

    assert done == [A]


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    with pytest.raises(ConfigError, match=r"pip install 'ctrlruntime\[otel\]'"):
        Tracing()


def test_an_operator_without_tracing_does_not_load_opentelemetry():
    code = "import sys, ctrlruntime as ctrl, ctrlruntime.manager.manager; sys.exit('opentelemetry' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
