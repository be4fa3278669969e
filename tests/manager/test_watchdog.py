"""The watchdog by itself: beats, warnings, and what it knows of a loop that does not answer."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.errors import ConfigError
from ctrlruntime.healthz import UnhealthyError
from ctrlruntime.manager.watchdog import LoopWatch, Watchdog, where
from ctrlruntime.metrics import LoopMetrics
from ctrlruntime.testing import eventually


class Loop:
    """A loop that answers when it is told to."""

    def __init__(self):
        self.calls = []
        self.has_ended = False

    def is_closed(self):
        return self.has_ended

    def call_soon_threadsafe(self, function, *args):
        if self.has_ended:
            raise RuntimeError("Event loop is closed")
        self.calls.append((function, args))

    def answer(self):
        calls, self.calls = self.calls, []
        for function, args in calls:
            function(*args)


class Scene:
    def __init__(self, **options):
        self.now = 100.0
        self.loop = Loop()
        self.metrics = LoopMetrics()
        self.watch = LoopWatch(
            Watchdog(**options), self.loop, thread=threading.get_ident(), metrics=self.metrics, clock=lambda: self.now
        )
        self.watch.look()

    def wait(self, seconds, *, answers=False):
        for _ in range(round(seconds * 4)):
            self.now += 0.25
            if answers:
                self.loop.answer()
            self.watch.look()


def events(logs, level="warning"):
    return [line["event"] for line in logs if line["level"] == level]


@pytest.mark.parametrize("times", [{"warn_after": 0}, {"warn_after": 2, "unhealthy_after": 1}])
def test_times_that_do_not_fit_together_are_refused(times):
    with pytest.raises(ConfigError, match="numbers above 0"):
        Watchdog(**times)


def test_a_loop_that_answers_is_no_trouble(logs):
    scene = Scene()

    scene.wait(10, answers=True)

    assert scene.watch.trouble() == ""
    assert scene.metrics.blocked == 0
    assert scene.metrics.lag.count == 40
    assert logs == []


def test_one_warning_for_a_block_of_a_second_with_the_stack(logs):
    scene = Scene()

    scene.wait(5)

    assert events(logs) == [event for event in events(logs) if "is blocked" in event]
    (line,) = logs
    assert line["durationSeconds"] == pytest.approx(0.75)
    assert "test_watchdog.py" in line["at"]
    assert line["at"].endswith(" in wait")
    assert line["trace"][-1].split(" in ")[1] == "_frame"
    assert line["at"] in line["trace"]
    assert (scene.metrics.blocked, scene.metrics.stalled) == (1, 5.0)


def test_a_block_shorter_than_that_is_none(logs):
    scene = Scene()

    scene.wait(0.5)
    scene.loop.answer()
    scene.wait(1, answers=True)

    assert logs == []
    assert scene.metrics.lag.counts[-8:] == [1, 0, 0, 0, 0, 0, 0, 0]


def test_when_the_loop_comes_back_a_line_says_for_how_long_and_the_next_block_warns_again(logs):
    scene = Scene()

    scene.wait(20)
    scene.loop.answer()
    scene.wait(0.25)
    assert events(logs, "info") == ["event loop responds again"]
    assert logs[-1]["blockedFor"] == 20.0
    assert scene.metrics.stalled == 0.0

    scene.wait(2)
    assert scene.metrics.blocked == 2


def test_a_loop_that_hangs_is_trouble_that_names_the_place(logs):
    scene = Scene(unhealthy_after=60.0)

    scene.wait(59.75)
    scene.watch.check()
    scene.wait(0.25)

    assert scene.watch.trouble().startswith("the main event loop has not answered for 60.0 s: ")
    assert "test_watchdog.py" in scene.watch.trouble()
    with pytest.raises(UnhealthyError, match=r"has not answered for 60\.0 s"):
        scene.watch.check()
    scene.wait(10)
    assert len(events(logs, "error")) == 1


def test_trouble_ends_with_the_answer(logs):
    scene = Scene()

    scene.wait(61)
    scene.loop.answer()

    assert scene.watch.trouble() == ""


def test_time_in_which_the_whole_process_stood_still_is_not_held_against_the_loop(logs):
    scene = Scene()
    scene.wait(0.25)

    scene.now += 300.0
    scene.watch.look()

    assert scene.watch.trouble() == ""
    assert [event.split(":")[0] for event in events(logs)] == ["process was paused"]
    assert logs[0]["durationSeconds"] == pytest.approx(299.75)
    scene.loop.answer()
    scene.wait(1, answers=True)
    assert scene.metrics.blocked == 0


def test_a_loop_that_is_closed_is_not_alive_and_ends_the_watch():
    scene = Scene()
    scene.loop.answer()
    scene.loop.has_ended = True

    assert not scene.watch.look()
    with pytest.raises(UnhealthyError, match="the main event loop has ended"):
        scene.watch.check()
    assert scene.watch.trouble() == ""


async def test_run_sees_a_real_block_and_its_end(logs):
    """The watchdog's thread releases the loop it blocks, once it has warned."""
    release = threading.Event()
    watch = LoopWatch(Watchdog(warn_after=0.08, unhealthy_after=0.2), asyncio.get_running_loop())
    warned, hung = threading.Event(), threading.Event()

    async def observe():
        run = asyncio.ensure_future(watch.run())
        while not hung.is_set():
            await asyncio.sleep(0.01)
            if any("is blocked" in line["event"] for line in logs):
                warned.set()
            if watch.trouble():
                hung.set()
        release.set()
        await eventually(lambda: any("responds again" in line["event"] for line in logs))
        run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run

    def block_here():
        assert release.wait(LONGEST_WAIT)

    thread = threading.Thread(target=lambda: asyncio.run(asyncio.wait_for(observe(), LONGEST_WAIT)))
    thread.start()
    block_here()
    await asyncio.to_thread(thread.join, LONGEST_WAIT)

    assert not thread.is_alive()
    assert warned.is_set()
    warning = next(line for line in logs if "is blocked" in line["event"])
    assert warning["at"].endswith(" in block_here")
    assert any("in test_run_sees_a_real_block" in entry for entry in warning["trace"])


def test_where_prefers_code_of_the_user_to_libraries():
    found = []

    def mine(*_):
        found.append(where(sys._getframe()))

    max([1, 2], key=lambda _: mine() or 0)
    asyncio.run(asyncio.wait_for(_call(mine), LONGEST_WAIT))

    assert all(place.endswith(" in mine") for place in found)
    assert where(None) == ""


async def _call(function):
    function()
