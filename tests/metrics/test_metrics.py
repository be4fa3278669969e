from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from ctrlruntime.metrics import Histogram, Metrics, QueueState


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_a_controller_has_all_its_series_at_zero(registry):
    Metrics(registry).controller("memcached")

    def value(name, **labels):
        return registry.get_sample_value(f"controller_runtime_{name}", {"controller": "memcached", **labels})

    assert [value("reconcile_total", result=r) for r in ("success", "error", "requeue", "requeue_after")] == [0] * 4
    for name in (
        "reconcile_errors_total",
        "terminal_reconcile_errors_total",
        "reconcile_panics_total",
        "reconcile_timeouts_total",
        "max_concurrent_reconciles",
        "active_workers",
        "reconcile_time_seconds_count",
        "reconcile_time_seconds_sum",
    ):
        assert value(name) == 0, name


def test_reconciles_are_counted_and_timed(registry):
    numbers = Metrics(registry).controller("c")
    numbers.count("success")
    numbers.count("success")
    numbers.errors += 1
    numbers.observe(0.3)
    numbers.observe(100)

    def value(name, **labels):
        return registry.get_sample_value(f"controller_runtime_{name}", {"controller": "c", **labels})

    assert value("reconcile_total", result="success") == 2
    assert value("reconcile_errors_total") == 1
    assert value("reconcile_time_seconds_bucket", le="0.25") == 0
    assert value("reconcile_time_seconds_bucket", le="0.3") == 1
    assert value("reconcile_time_seconds_bucket", le="60") == 1
    assert value("reconcile_time_seconds_bucket", le="+Inf") == 2
    assert value("reconcile_time_seconds_sum") == 100.3
    assert len(numbers.time.bounds) == 40


def test_the_same_name_gives_the_same_counters():
    metrics = Metrics()

    assert metrics.controller("a") is metrics.controller("a")
    assert metrics.workqueue("a") is metrics.workqueue("a")
    assert metrics.leader("a") is metrics.leader("a")
    assert metrics.cache("a") is metrics.cache("a")
    assert metrics.cache("a") is not metrics.cache("a", cluster="edge")


def test_two_managers_share_nothing():
    first, second = Metrics(), Metrics()
    first.controller("only-here")

    assert b"only-here" in first.render()[0]
    assert b"only-here" not in second.render()[0]


def test_queue_gauges_are_read_from_its_state(registry):
    numbers = Metrics(registry).workqueue("c")
    state = QueueState({0: 3, -100: 5}, (1.5, 0.25))
    numbers.watch(lambda: state)
    numbers.adds, numbers.retries = 7, 2
    numbers.latency.observe(0.5)
    numbers.work.observe(2000.0)
    labels = {"name": "c", "controller": "c"}

    def value(name, **more):
        return registry.get_sample_value(f"workqueue_{name}", {**labels, **more})

    assert value("depth", priority="0") == 3
    assert value("depth", priority="-100") == 5
    assert value("adds_total") == 7
    assert value("retries_total") == 2
    assert value("unfinished_work_seconds") == 1.75
    assert value("longest_running_processor_seconds") == 1.5
    assert value("queue_duration_seconds_bucket", le="1") == 1
    assert value("queue_duration_seconds_bucket", le="1e-08") == 0
    assert value("work_duration_seconds_bucket", le="1000") == 0
    assert value("work_duration_seconds_count") == 1


def test_a_level_that_emptied_is_reported_as_zero(registry):
    numbers = Metrics(registry).workqueue("c")
    ready = {5: 1}
    numbers.watch(lambda: QueueState(ready, ()))
    labels = {"name": "c", "controller": "c", "priority": "5"}

    assert registry.get_sample_value("workqueue_depth", labels) == 1
    ready = {}
    assert registry.get_sample_value("workqueue_depth", labels) == 0


def test_priorities_beyond_the_limit_are_counted_together(registry):
    numbers = Metrics(registry).workqueue("c")
    ready = dict.fromkeys(range(30), 2)
    numbers.watch(lambda: QueueState(ready, ()))

    def depth(priority):
        labels = {"name": "c", "controller": "c", "priority": priority}
        return registry.get_sample_value("workqueue_depth", labels)

    assert depth("24") == 2
    assert depth("25") is None
    assert depth("exceeded_cardinality_limit") == 10
    ready = {}
    assert depth("24") == 0
    assert depth("exceeded_cardinality_limit") == 0


def test_requests_are_counted_by_code_method_and_host(registry):
    rest = Metrics(registry).rest
    rest.request("200", "GET", "a:6443")
    rest.request("200", "GET", "a:6443")
    rest.request("<error>", "PUT", "a:6443")

    def value(code, method):
        return registry.get_sample_value(
            "rest_client_requests_total", {"code": code, "method": method, "host": "a:6443"}
        )

    assert value("200", "GET") == 2
    assert value("<error>", "PUT") == 1


def test_leadership_is_a_gauge(registry):
    leader = Metrics(registry).leader("lock")

    assert registry.get_sample_value("leader_election_master_status", {"name": "lock"}) == 0
    leader.is_leader = True
    leader.slow_paths += 1
    assert registry.get_sample_value("leader_election_master_status", {"name": "lock"}) == 1
    assert registry.get_sample_value("leader_election_slowpath_total", {"name": "lock"}) == 1


def test_caches_show_size_age_and_restarts(registry):
    metrics = Metrics(registry)
    cache = metrics.cache("Deployment.apps")
    labels = {"kind": "Deployment.apps", "cluster": ""}

    def value(name):
        return registry.get_sample_value(f"ctrlruntime_cache_{name}", labels)

    assert value("objects") == 0
    assert value("last_activity_age_seconds") is None
    cache.objects, cache.size_bytes, cache.subscribers, cache.silence = 3, 4000, 2, lambda: 30.0
    cache.relists, cache.watch_restarts, cache.events_coalesced, cache.decode_errors = 1, {"stalled": 2}, 3, 4
    assert value("objects") == 3
    assert value("bytes") == 4000
    assert value("subscribers") == 2
    assert value("last_activity_age_seconds") == 30
    assert value("relists_total") == 1
    restarts = registry.get_sample_value("ctrlruntime_cache_watch_restarts_total", {**labels, "reason": "stalled"})
    assert restarts == 2
    assert value("events_coalesced_total") == 3
    assert value("decode_errors_total") == 4


def test_clients_show_waits_and_writes_that_led_nowhere(registry):
    client = Metrics(registry).client("east")
    client.read_waited("Pod", 0.5, live=False)
    client.read_waited("Pod", 5.0, live=True)
    client.wasted("web", "Service", "reverted")
    client.looped("web", "Service", "reverted")

    def value(name, **labels):
        return registry.get_sample_value(f"ctrlruntime_client_{name}", {"cluster": "east", **labels})

    assert value("read_waits_total", kind="Pod") == 2
    assert value("read_wait_seconds_total", kind="Pod") == 5.5
    assert value("read_fallbacks_total", kind="Pod") == 1
    write = {"controller": "web", "kind": "Service", "reason": "reverted"}
    assert value("redundant_writes_total", **write) == 1
    assert value("write_loops_total", **write) == 1


def test_waits_the_server_asked_for_are_added_up_by_host(registry):
    rest = Metrics(registry).rest
    rest.throttled(1.5, "a:443")
    rest.throttled(2.0, "a:443")

    assert registry.get_sample_value("ctrlruntime_rest_throttled_seconds_total", {"host": "a:443"}) == 3.5


def test_a_scrape_is_valid_prometheus_text():
    metrics = Metrics()
    metrics.controller("c")
    metrics.workqueue("c")
    body, content_type = metrics.render("text/plain")

    names = {family.name for family in text_string_to_metric_families(body.decode())}
    assert content_type.startswith("text/plain")
    assert {"controller_runtime_reconcile", "workqueue_adds", "python_info", "process_cpu_seconds"} <= names


OPENMETRICS = "application/openmetrics-text"
PLAIN = "text/plain"


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        (f"{OPENMETRICS}", OPENMETRICS),
        (f"{OPENMETRICS}; version=1.0.0", OPENMETRICS),
        (f'{OPENMETRICS}; version="1.0.0"', OPENMETRICS),
        (f'{OPENMETRICS}; charset="utf-8"; version="1.0.0";q=0.9, text/plain;q=0.1', OPENMETRICS),
        (f"{OPENMETRICS};version=0.0.1,text/plain;version=0.0.4", PLAIN),
        (f"{OPENMETRICS};version=abc", PLAIN),
        (f"{OPENMETRICS};version=1.0.0-rc1", PLAIN),
        (f"{OPENMETRICS};version=1..0", PLAIN),
        (f"{OPENMETRICS};version=", PLAIN),
        (f"{OPENMETRICS}; Version = x; version=1.0.0", PLAIN),
        (f"{OPENMETRICS};version=\u0661.0", PLAIN),
        ("text/plain;version=abc", PLAIN),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", PLAIN),
        (f"{OPENMETRICS};version=abc,{OPENMETRICS};version=1.0.0", OPENMETRICS),
        (f'{OPENMETRICS};version="1,0"', PLAIN),
    ],
)
def test_a_scrape_has_the_format_that_is_asked_for_and_plain_text_if_that_cannot_be_read(accept, wanted):
    body, content_type = Metrics().render(accept)

    assert content_type.startswith(wanted)
    assert body.endswith(b"# EOF\n") is (wanted == OPENMETRICS)


@given(st.text(st.sampled_from('v=;,."1 a-'), max_size=12), st.sampled_from([OPENMETRICS, PLAIN]))
def test_no_accept_header_fails_a_scrape(text, kind):
    metrics = Metrics(CollectorRegistry())
    for accept in (f"{kind};version={text}", f"{kind};{text}", f"{text},{kind}"):
        assert metrics.render(accept)[1].startswith((OPENMETRICS, PLAIN))


def test_the_registry_takes_metrics_of_the_users_own():
    metrics = Metrics()
    Counter("cups", "Cups", registry=metrics.registry).inc()

    assert b"cups_total 1.0" in metrics.render()[0]
    with pytest.raises(ValueError, match="Duplicated"):
        Counter("workqueue_adds", "mine", registry=metrics.registry)


def test_histogram_counts_by_upper_bound():
    histogram = Histogram((1.0, 2.5))
    for value in (0.5, 1.0, 2.0, 9.0):
        histogram.observe(value)

    assert histogram.buckets() == [("1", 2.0), ("2.5", 3.0), ("+Inf", 4.0)]
    assert (histogram.count, histogram.sum) == (4, 12.5)


def test_counting_does_not_import_prometheus_client():
    code = (
        "import sys; from ctrlruntime.metrics import Metrics; m = Metrics(); m.controller('c').observe(1.0);"
        "m.workqueue('c'); m.rest.request('200', 'GET', 'h'); assert 'prometheus_client' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True)
