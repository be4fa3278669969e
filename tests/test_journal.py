from __future__ import annotations

import pytest

from ctrlruntime.journal import Call, History, Journal, Run, WatchAge


def run(number, **more):
    return Run(id=str(number), started=float(number), seconds=0.1, outcome="success", **more)


def test_a_key_keeps_its_last_facts_only():
    journal = Journal(facts=3)
    for number in range(5):
        journal.ran("c", "a", run(number))
        journal.called(
            "c", "a", Call(started=float(number), seconds=0.01, verb="get", what="Pod default/a", run=str(number))
        )

    history = journal.history("c", "a")
    assert [r.id for r in history.runs] == ["2", "3", "4"]
    assert [c.run for c in history.calls] == ["2", "3", "4"]


def test_the_key_touched_longest_ago_is_forgotten():
    journal = Journal(keys=2)
    journal.ran("c", "a", run(1))
    journal.ran("c", "b", run(1))
    journal.ran("c", "a", run(2))
    journal.ran("c", "new", run(1))

    assert journal.keys("c") == ["a", "new"]
    assert journal.history("c", "b") == History()


def test_controllers_have_facts_of_their_own():
    journal = Journal()
    journal.ran("one", "a", run(1))

    assert journal.history("two", "a").runs == ()
    assert journal.keys("two") == []


def test_the_next_wake_up_is_the_last_runs():
    journal = Journal()
    assert journal.history("c", "a").wakes_at is None
    journal.ran("c", "a", run(1, wakes_at=50.0))
    assert journal.history("c", "a").wakes_at == 50.0
    journal.ran("c", "a", run(2))
    assert journal.history("c", "a").wakes_at is None


def test_a_queued_key_waits_from_its_first_add_until_a_run_that_began_later():
    now = 10.0
    journal = Journal(clock=lambda: now)
    journal.queued("c", "a")
    now = 12.0
    journal.queued("c", "a")

    assert journal.history("c", "a").waiting_since == 10.0
    journal.ran("c", "a", run(9))
    assert journal.history("c", "a").waiting_since == 10.0
    journal.ran("c", "a", run(11))
    assert journal.history("c", "a").waiting_since is None
    assert journal.now() == 12.0


def test_watches_show_their_last_sign_of_life_and_their_trouble():
    now = 10.0
    journal = Journal(clock=lambda: now)
    journal.watch_alive("Pod")
    now = 20.0
    journal.watch_troubled("Pod", "forbidden")
    journal.watch_troubled("Cup", "not served", cluster="edge")

    assert journal.watches() == [
        WatchAge(kind="Pod", cluster="", alive_at=10.0, trouble="forbidden"),
        WatchAge(kind="Cup", cluster="edge", alive_at=0.0, trouble="not served"),
    ]
    journal.watch_alive("Pod")
    assert journal.watches()[0] == WatchAge(kind="Pod", cluster="", alive_at=20.0)


def test_an_empty_journal_is_refused():
    with pytest.raises(ValueError, match="1 or more"):
        Journal(keys=0)
