"""The table of the benchmark: medians, ratios, memory an object, and the bars."""

from __future__ import annotations

import sys

import pytest

from benchmarks.peers import growth, table
from benchmarks.peers.__main__ import options, profile_of
from benchmarks.peers.bars import BARS, Bar
from benchmarks.peers.ctrlruntime.profiled import REST, STAGES, Sampler, stage_of
from ctrlruntime.workqueue import PriorityQueue


def rows(workload: str, program: str, **figures: list[float]) -> list[dict]:
    runs = range(len(next(iter(figures.values()))))
    common = {"workload": workload, "program": program, "count": 1000}
    return [{**common, "run": run, **{name: values[run] for name, values in figures.items()}} for run in runs]


def test_a_cell_is_the_median_with_least_and_most_and_ratios_divide_medians():
    found = table.values(
        rows("reconciled", "ctrlruntime", wall=[1.0, 5.0, 2.0]) + rows("reconciled", "go", wall=[4.0, 4.0, 5.0])
    )

    head, title, line = table.render(found)

    assert head.split() == ["ctrlruntime", "Go", "/Go"]
    assert title == "start to all reconciled once, 1,000 custom resources"
    assert line.split() == ["wall,", "s", "2.000", "(1.000-5.000)", "4.000", "(4.000-5.000)", "0.50"]


def test_memory_an_object_is_what_comes_on_top_of_the_same_program_without_objects():
    empty = [{"workload": "synced-empty", "program": "go", "run": 0, "count": 0, "settled": 30.0}]

    found = table.values(empty + rows("synced", "go", settled=[30.0 + 1.024 * 4]))

    assert found["synced", "kib", "go"] == [pytest.approx(4.0)]


def test_a_bar_without_its_peer_is_not_measured_and_never_held():
    found = table.values(rows("synced", "ctrlruntime", wall=[0.1], cpu=[0.1], settled=[50.0]))

    verdicts = {line.split("  ")[0] for line in table.judge(found) if "x Go" in line or "x Rust" in line}

    assert verdicts == {"not measured"}


@pytest.mark.parametrize(
    ("bar", "ours", "theirs", "verdict", "value"),
    [
        (Bar("synced", "wall", "<=", 0.6, "go"), 1.2, 2.0, "held", 0.6),
        (Bar("synced", "wall", "<=", 0.6, "go"), 1.3, 2.0, "missed", 0.65),
        (Bar("children", "rate", ">=", 1.0, "go"), 400.0, 200.0, "held", 2.0),
        (Bar("queue", "operations", ">=", 300_000), 200_000.0, None, "missed", 200_000.0),
        (Bar("synced", "wall", "<=", 0.6, "go"), None, 2.0, "not measured", None),
        (Bar("synced", "wall", "<=", 0.6, "go"), 1.0, None, "not measured", None),
    ],
)
def test_a_bar_compares_the_ratio_or_the_value_itself(bar, ours, theirs, verdict, value):
    assert bar.judge(ours, theirs) == (verdict, value)


def test_every_bar_names_a_figure_that_the_table_shows():
    for bar in BARS:
        assert bar.figure in table.FIGURES[bar.workload]
        assert not bar.peer or bar.peer in table.PEERS
        assert bar.program in (table.SERVERS if bar.workload in table.SECOND else table.PROGRAMS)


def test_every_workload_has_a_title_and_every_figure_a_unit():
    assert set(table.TITLES) == set(table.FIGURES)
    assert {figure for figures in table.FIGURES.values() for figure in figures} <= set(table.UNITS)


def test_growth_covers_every_workload_that_has_a_size():
    assert set(growth.FIGURES) == set(table.TITLES) - {"startup"}
    for workload, figures in growth.FIGURES.items():
        assert set(figures) <= set(table.FIGURES[workload])


def test_the_servers_stand_in_a_table_of_their_own_below_the_other():
    servers = rows("server", "embedded", creates=[2000.0]) + rows("server", "real", creates=[1000.0])

    first, second = (
        table.tables(table.values(rows("queue", "ctrlruntime", operations=[1.0]) + servers)),
        table.tables(table.values(servers)),
    )

    blank = first.index("")
    assert first[0].split() == ["ctrlruntime"]
    assert first[blank + 1 :] == second
    assert second[0].split() == ["embedded", "real", "/real"]
    assert second[2].split()[-3:] == ["2,000", "1,000", "2.00"]


def test_a_peer_alone_is_divided_by_nothing():
    head, _, line = table.render(table.values(rows("reconciled", "go", wall=[4.0])))

    assert head.split() == ["Go"]
    assert line.split() == ["wall,", "s", "4.000"]


def test_the_exponent_of_a_rate_is_that_of_what_one_costs():
    found = {
        part: table.values([{"workload": "reads", "program": "ctrlruntime", "count": size, "gets_cpu": rate}])
        for part, size, rate in zip(growth.PARTS, (10, 100, 1000), (1000, 100, 100), strict=True)
    }

    assert growth.row(found, "reads", "gets_cpu").split()[-2:] == ["1.00", "-0.00"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "0"], "'0' is not a number from 1 on"),
        (["--only", "synced,sunk"], "sunk: there are synced, "),
        (["--programs", "java"], "java: there are ctrlruntime, "),
        (["--growth", "--profile"], "not allowed with"),
        (["--output", "/dev/null/x.json"], "cannot be written to /dev/null/x.json"),
    ],
)
def test_a_bad_option_is_refused_with_one_line_before_anything_runs(monkeypatch, capsys, arguments, message):
    monkeypatch.setattr("sys.argv", ["scripts/bench", *arguments])

    with pytest.raises(SystemExit, match="2"):
        options()

    assert message in capsys.readouterr().err.splitlines()[-1]


def test_the_exponent_of_growth_is_one_where_the_cost_follows_the_size():
    assert growth.exponents([10, 100, 1000], [1, 10, 10]) == pytest.approx([1.0, 0.0])


def test_a_profile_counts_a_moment_for_the_innermost_stage():
    sampler = Sampler()

    sampler._look(0, sys._getframe())
    profile = sampler.stop()

    assert stage_of(PriorityQueue.add.__code__) == "the queue"
    assert set(profile["stages"]) == {*STAGES, REST}
    assert profile["samples"] == sum(profile["stages"].values()) == 1


def test_the_profiles_of_several_runs_are_added_up():
    one = {"stages": {"the queue": 3, "the reconciler": 1}, "itself": {"f": 4}, "within": {"g": 4, "f": 3}}
    row = {"workload": "reconciled", "count": 1000, "cpu": 0.1, "profile": one}

    lines = profile_of([row, row])

    assert lines[1] == "reconciled, 1,000 objects: CPU 0.100 s on average, 8 samples in all"
    assert lines[3].split() == ["75.0%", "75.00", "us", "the", "queue"]
    assert lines[-1].split() == ["75.0%", "f"]
