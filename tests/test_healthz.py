from __future__ import annotations

import asyncio
import threading

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.healthz import Answer, Checks, UnhealthyError


def fail():
    raise RuntimeError("the password is 12345")


async def well():
    return None


async def unwell():
    raise RuntimeError("no")


async def test_without_checks_there_is_ping():
    checks = Checks()

    assert (await checks.answer())[:2] == (200, "ok")
    assert (await checks.answer(verbose=True))[:2] == (200, "[+]ping ok\nhealthz check passed\n")
    assert await checks.answer_one("ping") == Answer(200, "ok")
    assert "ping" in checks


async def test_a_failure_lists_all_checks_sorted_and_hides_the_reason():
    checks = Checks()
    checks.add("store", well)
    checks.add("cache", fail)

    answer = await checks.answer(path="readyz")

    assert answer[:2] == (500, "[-]cache failed: reason withheld\n[+]store ok\nreadyz check failed\n")
    assert str(answer.failures["cache"]) == "the password is 12345"


async def test_success_is_listed_only_when_asked():
    checks = Checks()
    checks.add("b", well)
    checks.add("a", lambda: None)

    assert (await checks.answer())[:2] == (200, "ok")
    assert (await checks.answer(verbose=True)).text == "[+]a ok\n[+]b ok\nhealthz check passed\n"


async def test_an_excluded_check_does_not_run():
    checks = Checks()
    checks.add("a", unwell)
    checks.add("b", well)

    assert (await checks.answer(exclude=["a"]))[:2] == (200, "ok")
    assert (
        await checks.answer(exclude=["a"], verbose=True)
    ).text == "[+]a excluded: ok\n[+]b ok\nhealthz check passed\n"


async def test_excluding_an_unknown_check_is_warned_about():
    answer = await Checks().answer(exclude=["nope"], verbose=True)

    assert answer.status == 200
    assert "warn: unknown check in exclude: 'nope'" in answer.text
    assert answer.unknown == ["nope"]


async def test_one_check_by_name():
    checks = Checks()
    checks.add("good", well)
    checks.add("bad", unwell)

    assert await checks.answer_one("good") == Answer(200, "ok")
    assert (await checks.answer_one("bad"))[:2] == (500, "bad failed: reason withheld\n")
    assert (await checks.answer_one("other")).status == 404


async def test_an_async_check_has_a_time_limit():
    checks = Checks(time_limit=0.05)
    checks.add("slow", asyncio.Event().wait)
    checks.add("fine", well)

    answer = await asyncio.wait_for(checks.answer(), LONGEST_WAIT)
    assert "longer than 0.05 s" in str(answer.failures["slow"])
    assert answer.text == "[+]fine ok\n[-]slow failed: reason withheld\nhealthz check failed\n"


async def test_a_plain_check_that_blocks_holds_up_nobody_and_is_not_started_twice():
    checks = Checks(time_limit=0.05)
    release, calls = threading.Event(), []
    checks.add("blocked", lambda: (calls.append(1), release.wait(10))[0])

    first = await asyncio.wait_for(checks.answer(), LONGEST_WAIT)
    second = await asyncio.wait_for(checks.answer(), LONGEST_WAIT)

    assert first.status == second.status == 500
    assert len(calls) == 1
    release.set()
    async with asyncio.timeout(LONGEST_WAIT):
        while (await checks.answer()).status != 200:  # noqa: ASYNC110 - a probe polls
            await asyncio.sleep(0.01)


async def test_a_plain_check_may_return_an_awaitable():
    checks = Checks()
    checks.add("wrapped", lambda: unwell())  # noqa: PLW0108 - plain on purpose

    assert (await checks.answer()).status == 500


async def test_a_check_that_cancels_itself_has_failed():
    checks = Checks()

    async def cancel():
        raise asyncio.CancelledError

    checks.add("odd", cancel)
    assert (await checks.answer()).status == 500


def test_names_and_functions_are_checked():
    checks = Checks()
    checks.add("a", well)

    with pytest.raises(ValueError, match="a check of this name exists"):
        checks.add("a", well)
    with pytest.raises(ValueError, match="part of a path"):
        checks.add("a/b", well)
    with pytest.raises(TypeError, match="give a function"):
        checks.add("c", 3)
    with pytest.raises(ValueError, match="time_limit"):
        Checks(time_limit=0)


async def test_a_check_chooses_to_show_its_reason():
    checks = Checks()

    def sick():
        raise UnhealthyError("Pod: no activity for 121 s")

    checks.add("caches", sick)

    assert "[-]caches failed: Pod: no activity for 121 s\n" in (await checks.answer()).text
    assert (await checks.answer_one("caches")).text == "caches failed: Pod: no activity for 121 s\n"
