from __future__ import annotations

import pytest

from ctrlruntime.journal import Call, Changes, History, Journal, Run, Trigger


def run(number, **more):
    return Run(id=str(number), started=float(number), seconds=0.1, outcome="success", **more)


def call(number):
    return Call(started=float(number), seconds=0.01, verb="get", what="pods default/a", run=str(number))


def trigger(name="a"):
    return Trigger("update", "Pod", "ns", name, "2", "", "1", 1000.0)


def test_a_key_keeps_its_last_facts_only():
    journal = Journal(facts=3, calls=2)
    for number in range(5):
        journal.ran("c", "a", run(number))
        journal.called("c", "a", call(number))

    history = journal.history("c", "a")
    assert [r.id for r in history.runs] == ["2", "3", "4"]
    assert [c.run for c in history.calls] == ["3", "4"]


def test_what_a_row_of_failures_began_with_is_not_forgotten():
    journal = Journal(facts=3)
    journal.ran("c", "a", run(1, triggers=(trigger(),)))
    for number in range(2, 9):
        journal.ran("c", "a", run(number, attempts=number - 1))

    assert [r.id for r in journal.history("c", "a").runs] == ["1", "7", "8"]
    journal.ran("c", "a", run(9))
    assert [r.id for r in journal.history("c", "a").runs] == ["7", "8", "9"]


def test_of_all_runs_together_only_the_latest_are_kept_and_the_last_of_each_key():
    journal = Journal(together=4)
    for number in range(3):
        journal.ran("c", "idle", run(number))
    for number in range(3, 7):
        journal.ran("c", "busy", run(number))

    assert [r.id for r in journal.history("c", "idle").runs] == ["2"]
    assert [r.id for r in journal.history("c", "busy").runs] == ["3", "4", "5", "6"]


def test_an_earlier_run_is_forgotten_with_its_age_and_not_with_that_of_its_successor():
    journal = Journal(together=4)
    journal.ran("c", "rare", run(0))
    for number in range(1, 4):
        journal.ran("c", "busy", run(number))
    journal.ran("c", "rare", run(4))  # the fifth of all

    assert [r.id for r in journal.history("c", "rare").runs] == ["4"]
    assert [r.id for r in journal.history("c", "busy").runs] == ["1", "2", "3"]


def test_of_all_calls_together_only_the_latest_are_kept():
    journal = Journal(together=3)
    for number in range(2):
        journal.called("c", "idle", call(number))
    for number in range(2, 4):
        journal.called("c", "busy", call(number))

    assert [c.run for c in journal.history("c", "idle").calls] == ["1"]
    assert [c.run for c in journal.history("c", "busy").calls] == ["2", "3"]


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


def test_the_latest_keys_come_first():
    journal = Journal(clock=lambda: 12.0)
    journal.ran("c", "a", run(1))
    journal.ran("d", "b", run(2))
    journal.ran("c", "a", run(3))

    seen = [(controller, key, [r.id for r in runs]) for controller, key, runs in journal.latest()]
    assert seen == [("c", "a", ["1", "3"]), ("d", "b", ["2"])]
    assert journal.now() == 12.0


def test_an_empty_journal_is_refused():
    with pytest.raises(ValueError, match="1 or more"):
        Journal(keys=0)


def test_a_trigger_reads_as_what_happened():
    assert str(trigger()) == "update Pod ns/a@1→2"
    assert str(Trigger("update", "Pod", "ns", "a", "2", "", "2")) == "resync Pod ns/a@2"
    assert str(Trigger("delete", "Node", "", "n", "7", "edge")) == "delete Node edge:n@7"
    assert str(Trigger("generic", "channel", "ns", "x", "")) == "generic channel ns/x"


def test_only_the_latest_changes_hold_their_bytes():
    changes = Changes(count=2, size=100)
    triggers = [trigger(name) for name in "abc"]
    for each in triggers:
        changes.hold(each, b"old", b"new")

    assert [each.old for each in triggers] == [None, b"old", b"old"]
    assert [each.new for each in triggers] == [None, b"new", b"new"]


def test_changes_hold_no_more_bytes_than_they_may():
    changes = Changes(size=100)
    small, large = trigger("small"), trigger("large")
    changes.hold(small, b"o" * 20, b"n" * 20)
    changes.hold(large, b"o" * 60, b"n" * 60)

    # One that alone is too large is not held either.
    assert (small.old, large.old) == (None, None)
    third = trigger("third")
    changes.hold(third, b"o" * 50, b"n" * 50)
    assert third.new == b"n" * 50


def test_keys_are_forgotten():
    journal = Journal(keys=2)
    for number, key in enumerate(("a", "b", "c")):
        journal.ran("web", key, run(number))
        journal.called("web", key, call(number))
    journal.forget(lambda key: key in {"a", "c"})

    assert journal.keys("web") == ["b"]
    assert (journal.history("web", "a").calls, journal.history("web", "c").runs) == ((), ())
    assert len(journal.history("web", "b").calls) == 1
