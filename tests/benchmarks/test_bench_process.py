"""How the benchmark runs a program: what both say, what is measured, and what becomes of one that does not keep to it."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks import startup
from benchmarks.peers.load import Reviews
from benchmarks.peers.process import Job, PeerFailed, run
from benchmarks.peers.programs import Program, find
from benchmarks.peers.workloads import free_port
from ctrlruntime.certificates import make_authority

OBEDIENT = """
import sys, time
print("ready", flush=True)
sys.stdin.readline()
end = time.process_time() + 0.2
while time.process_time() < end:
    pass
if sys.argv[1] == "latency":
    print("synced", flush=True)
print('{"objects": 7, "asked": "%s"}' % " ".join(sys.argv[1:]), flush=True)
sys.stdin.readline()
print("settled", flush=True)
sys.stdin.readline()
"""


def program(code: str) -> Program:
    return Program("test", "test 1", (sys.executable, "-c", code), frozenset({"synced", "latency"}))


def test_the_figures_are_what_the_program_said_and_what_was_seen_of_it():
    figures = run(program(OBEDIENT), Job(workload="synced", kubeconfig="K", objects=7, concurrency=3))

    assert figures["asked"] == "synced --kubeconfig K --objects 7 --concurrency 3"
    assert figures["objects"] == 7
    assert 0.15 < figures["cpu"] < 2
    assert figures["wall"] >= 0.15
    assert 1 < figures["settled"] < 500


def test_what_is_to_be_done_while_a_program_is_synced_is_done_once():
    calls = []

    run(program(OBEDIENT), Job(workload="latency"), lambda: calls.append(1))

    assert calls == [1]


def test_an_idle_program_is_left_alone_and_its_cpu_is_measured():
    figures = run(program(OBEDIENT), Job(workload="synced", linger=0.1))

    assert 0 <= figures["idle_cpu"] < 1


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('no server there')", "no server there"),
        ("print('hello', flush=True); input()", "said 'hello' where 'ready' was due"),
        ("print('ready', flush=True); input()", "ended with 0"),
    ],
)
def test_a_program_that_ends_or_says_something_else_has_failed(code, message):
    with pytest.raises(PeerFailed, match=message):
        run(program(code), Job(workload="synced"))


def test_a_program_that_takes_too_long_is_killed():
    with pytest.raises(PeerFailed, match="ended with -9"):
        run(program("import time; time.sleep(600)"), Job(workload="synced", limit=0.5))


def test_a_program_whose_toolchain_is_missing_is_left_out_with_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("benchmarks.peers.programs.CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path))

    found = find(["ctrlruntime", "go", "rust"])

    assert [one.name for one in found] == ["ctrlruntime"]
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(";")[0] for line in lines] == [
        "left out: go: go is not installed",
        "left out: rust: cargo is not installed",
    ]


def test_a_program_that_cannot_be_kept_is_left_out_with_one_line(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setattr("benchmarks.peers.programs.CACHE", tmp_path / "file" / "cache")

    assert find(["go"]) == []

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("left out: go: ")
    assert "cannot be written" in line


def test_what_is_started_ends_well_and_is_measured():
    assert set(startup.COMMANDS) == {"ctrlruntime", "floor"}

    figures = startup.measure("floor")

    assert set(figures) == {"import", "import_cpu"}
    assert 0 < figures["import_cpu"] < 10_000


def test_a_lost_review_is_the_failure_of_the_program(tmp_path):
    (tmp_path / "ca.crt").write_bytes(make_authority().pem)
    reviews = Reviews(free_port(), tmp_path / "ca.crt", rate=10, count=1)  # nobody listens there

    def measure(while_synced):
        while_synced()

    with pytest.raises(PeerFailed, match="a review was lost"):
        reviews.around(measure)


SHARED = {
    "synced",
    "synced-empty",
    "pods",
    "pods-empty",
    "metadata",
    "metadata-empty",
    "children",
    "applied",
    "latency",
    "events",
    "webhook",
}
WORKLOADS = {"ctrlruntime": SHARED | {"queue", "reads", "namespaces", "controllers", "owns", "load"}, "floor": SHARED}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ctrlruntime", pytest.param("floor", marks=pytest.mark.thorough)])
def test_a_python_program_does_its_workloads_on_the_embedded_server(name):
    from benchmarks.peers import table
    from benchmarks.peers.workloads import Bench, Sizes

    bench = Bench(
        programs=find([name]),
        sizes=Sizes(
            widgets=30,
            children=5,
            idle=20,
            updates=5,
            pods=5,
            keys=100,
            metadata=30,
            namespaces=3,
            controllers=2,
            rate=10,
            seconds=1,
        ),
        runs=1,
        only=frozenset(table.TITLES) - {"server", "startup", "idle", "reconciled"},
        backend="embedded",
    )

    bench.run()

    assert bench.failures == []
    assert {(row["workload"], row["program"]) for row in bench.rows} == {(each, name) for each in WORKLOADS[name]}
    assert 1200 < bench.facts["widget_bytes"] < 1400
    assert 9_000 < bench.facts["pod_bytes"] < 11_000
    assert 1_900 < bench.facts["metadata_bytes"] < 2_200
    json.dumps(bench.rows)
    if name == "ctrlruntime":  # it has each figure of the table
        found = table.values(bench.rows)
        shown = {(row["workload"], figure) for row in bench.rows for figure in table.FIGURES.get(row["workload"], ())}
        unmeasured = {key for key in shown if (*key, name) not in found}
        assert unmeasured <= {("queue", "operations_no_order")}
