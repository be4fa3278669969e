"""The same answers for people: lines for a terminal, and one page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from ctrlruntime.explain import facts
from ctrlruntime.explain.html import SCRIPT, overview_page, refusal_page, why_page
from ctrlruntime.explain.text import ago, lines

NOW = 2000.0
EVIL = '<script>alert("1")</script>'


def trigger(text="update Pod ns/web@1→2", changed=None):
    return facts.Trigger(text=text, changed=changed)


def run(**more):
    usual = {
        "id": "r-1",
        "started": NOW - 10,
        "seconds": 0.25,
        "outcome": "success",
        "error": "",
        "attempts": 0,
        "priority": 0,
        "cause": "events",
        "triggers": [trigger(changed=["spec.size", "spec.on"])],
        "omitted": 0,
        "wakes_at": None,
        "calls": [facts.Call(verb="update", what="pods ns/web", started=NOW, seconds=0.004, outcome="Conflict")],
    }
    return facts.Run(**{**usual, **more})


def answer(*runs, **more):
    usual = {
        "controller": "web",
        "group": "",
        "kind": "Web",
        "request": "ns/a",
        "namespace": "ns",
        "name": "a",
        "cluster": "",
        "is_started": True,
        "cached_version": "7",
        "unseen": "",
        "unsynced": [],
        "loops": [],
        "running": None,
        "queued": None,
        "failures": 0,
        "next": "when something changes",
        "next_at": None,
        "runs": list(runs),
    }
    return facts.Answer(**{**usual, **more})


def watch(text="Web", trouble="", *, synced=False):
    return facts.Watch(
        kind=text, cluster=text, scope=text, state="waiting", is_synced=synced, objects=1, size_bytes=1, alive=None, watches=0, lists=0,
        version="", trouble=trouble, subscribers=0,
    )  # fmt: skip


def loop(text="Web", why="contested"):
    return facts.Loop(
        controller=text, cluster="", kind=text, object="ns/a", why=why, writes=3, fields=["spec.a", text], others=["kubectl", text]
    )  # fmt: skip


def why(*answers, led_to=(), watches=()):
    return facts.Why(
        now=NOW, kind="Web", namespace="ns", name="a", watches=list(watches), answers=list(answers), led_to=list(led_to)
    )


def test_lines_tell_what_why_and_when():
    told = lines(
        why(answer(run(), run(triggers=[], cause="retry", attempts=2, calls=[], started=NOW - 300), failures=3))
    )

    assert told == [
        "Web ns/a  (controller web; version 7 in the cache)",
        "  next             when something changes",
        "  failures         3 in a row",
        "  last run         success, 10.0 s ago, took 0.250 s  (reconcile r-1)",
        "    triggers       update Pod ns/web@1→2: spec.size, spec.on",
        "    API calls      update pods ns/web  4 ms  Conflict",
        "  before           success, 5 min ago, took 0.250 s  (reconcile r-1)",
        "    triggers       again after 2 failures",
    ]


def test_lines_tell_a_long_wait_and_a_priority_that_is_not_the_usual_one():
    slow = facts.Trigger(text="create Pod ns/web@1", seen_at=NOW - 40)
    told = lines(why(answer(run(triggers=[slow, trigger()], priority=-100, calls=[]))))

    assert told[2] == (
        "  last run         success, 10.0 s ago, 30.0 s after the first event, took 0.250 s, priority -100  (reconcile r-1)"
    )


def test_lines_of_a_running_one_name_the_line_it_waits_at():
    running = facts.Running(
        id="r-2",
        request="ns/a",
        seconds=3.0,
        stands_at="op.py:7 in reconcile",
        attempts=0,
        priority=0,
        triggers=[trigger(), trigger("delete Pod ns/b")],
        omitted=4,
        calls=[],
    )
    told = lines(why(answer(running=running, is_started=False, cached_version=None)))

    assert told[0] == "Web ns/a  (controller web, not started; not in the cache)"
    assert told[1:5] == [
        "  now              runs for 3.0 s, waits at op.py:7 in reconcile  (reconcile r-2)",
        "    triggers       update Pod ns/web@1→2",
        "                   delete Pod ns/b",
        "                   and 4 more events",
    ]
    assert told[-1] == "  last run         none that is remembered"


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("requeue_after", "the run before asked for it (requeue_after)"),
        ("unknown", "added by a source that gave no reason"),
    ],
)
def test_lines_say_why_a_run_without_events_came(cause, words):
    assert f"    triggers       {words}" in lines(why(answer(run(triggers=[], cause=cause))))


def test_lines_say_what_a_watched_object_led_to():
    led = facts.LedTo(
        controller="web", kind="Web", request="ns/a", started=NOW - 5, outcome="success", trigger=trigger(changed=[])
    )

    assert lines(why(led_to=[led])) == [
        "Web ns/a led to",
        "  Web ns/a: success 5.0 s ago, for update Pod ns/web@1→2: nothing but its version",
    ]


def test_lines_say_what_stands_in_the_way():
    told = lines(
        why(
            answer(
                unsynced=["source.Kind(Web)"],
                unseen="the cache does not show version 8 yet",
                loops=[loop(), loop(why="reverted")],
            ),
            watches=[watch(trouble="forbidden"), watch("Fine", synced=True)],
        )
    )

    assert told[2:6] == [
        "  waiting for sync source.Kind(Web); no reconcile starts before",
        "  pending write    the cache does not show version 8 yet",
        "  loop             3 writes in a row to Web ns/a are reverted by kubectl, Web: spec.a, Web",
        "  loop             3 writes in a row to Web ns/a undo the write before: spec.a, Web",
    ]
    assert told[-1] == "the watch of Web is waiting, no activity yet: forbidden"


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0.0 s"), (119, "119.0 s"), (600, "10 min"), (9000, "2.5 h")])
def test_times_have_the_unit_that_suits_them(seconds, text):
    assert ago(seconds) == text


class Tags(HTMLParser):
    """Collects tags, and complains about those that are not closed in order."""

    VOID = frozenset({"meta", "br", "input"})

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.seen = []
        self.links = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name in {"href", "src", "action"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def evil_overview():
    queued = facts.Queued(
        request=EVIL, state="ready", seconds=1.0, priority=0, attempts=1, triggers=[trigger(EVIL)], omitted=0
    )
    running = facts.Running(
        id="r",
        request=f"ns/{EVIL}",
        seconds=1.0,
        stands_at=EVIL,
        attempts=1,
        priority=0,
        triggers=[trigger(EVIL)],
        omitted=2,
        calls=[],
    )
    return facts.Overview(
        now=NOW,
        controllers=[
            facts.Controller(
                name=EVIL,
                group=EVIL,
                kind=EVIL,
                is_started=False,
                workers=1,
                sources=[facts.Source(name=EVIL, is_synced=False)],
                running=[running],
            )
        ],
        queues=[
            facts.Queue(
                controller=EVIL, ready=1, waiting=0, in_work=0, oldest_ready=1.0, by_priority={EVIL: 1}, keys=[queued]
            )
        ],
        watches=[
            facts.Watch(
                kind=EVIL,
                cluster=EVIL,
                scope=EVIL,
                state=EVIL,
                is_synced=False,
                objects=1,
                size_bytes=1,
                alive=None,
                watches=0,
                lists=0,
                version="",
                trouble=EVIL,
                subscribers=0,
            )
        ],
        loops=[loop(EVIL)],
        recent=[
            facts.Recent(
                controller=EVIL,
                kind=EVIL,
                request=EVIL,
                namespace=EVIL,
                name=EVIL,
                started=NOW,
                seconds=1.0,
                outcome=EVIL,
                error=EVIL,
                attempts=1,
                triggers=[trigger(EVIL, [EVIL])],
                omitted=1,
            )
        ],
        fleet=[
            facts.FleetCluster(
                name=EVIL, state=EVIL, seconds=1.0, silence=1.0, reason=EVIL, labels={EVIL: EVIL}, waiting=1
            )
        ],
    )


@pytest.mark.parametrize(
    "page",
    [
        overview_page(evil_overview()),
        why_page(
            facts.Why(
                now=NOW,
                kind=EVIL,
                namespace=EVIL,
                name=EVIL,
                watches=[watch(EVIL)],
                led_to=[],
                answers=[answer(run(error=EVIL), kind=EVIL, unsynced=[EVIL], unseen=EVIL, loops=[loop(EVIL)])],
            )
        ),
        refusal_page(facts.Refusal(error=EVIL, stack=[EVIL])),
    ],
    ids=["overview", "why", "refusal"],
)
def test_pages_are_well_formed_escape_all_they_show_and_load_nothing(page):
    tags = Tags(page)

    assert tags.open == []
    assert tags.seen.count("script") == page.count(f"<script>{SCRIPT}</script>") == 1
    assert EVIL not in page
    assert not {"link", "img", "iframe"} & set(tags.seen)
    assert not [link for link in tags.links if re.match(r"(?i)\w+:|//", link)]


def test_pages_load_themselves_again_unless_told_otherwise():
    refusal = facts.Refusal(error="no")
    query = {"kind": "Web", "name": "a b"}

    moving = refusal_page(refusal, query)
    assert f"<script>{SCRIPT}</script>" in moving
    assert "?kind=Web&name=a+b&refresh=0" in Tags(moving).links
    still = refusal_page(refusal, {**query, "refresh": "0"})
    assert "<script>" not in still
    assert "?kind=Web&name=a+b" in Tags(still).links


def test_long_errors_and_many_triggers_are_folded():
    error = "admission webhook denied the request: " + "x" * 200
    recent = facts.Recent(
        controller="web", kind="Web", request="ns/a", namespace="ns", name="a", started=NOW, seconds=1.0, outcome="error",
        error=error, attempts=0, triggers=[trigger(f"event {number}") for number in range(5)], omitted=0,
    )  # fmt: skip

    page = overview_page(facts.Overview(now=NOW, controllers=[], queues=[], watches=[], loops=[], recent=[recent]))

    assert f"<summary><code>{error[:100]}…</code></summary><code>{error}</code>" in page
    assert "event 2<details><summary>2 more</summary>event 3<br>event 4</details>" in page


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1000, "0.977 KiB"), (52_000, "50.8 KiB"), (3 * 2**30, "3 GiB")]
)
def test_sizes_have_readable_units(count, text):
    seen = watch("Pod.v1")
    seen.size_bytes = count

    page = overview_page(facts.Overview(now=NOW, controllers=[], queues=[], watches=[seen], loops=[], recent=[]))

    assert f">{text}<" in page


def test_an_empty_operator_has_a_page():
    empty = facts.Overview(now=NOW, controllers=[], queues=[], watches=[], loops=[], recent=[])

    assert ">none<" in overview_page(empty)
