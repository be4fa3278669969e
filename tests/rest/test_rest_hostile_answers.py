"""Each hostile answer ends as an error of ctrlruntime or as an answer, within bounds. `python -m benchmarks.attack.servers KIND` measures one at its full size."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ctrlruntime
from benchmarks.attack.servers import KINDS, attack

LARGE = "AnswerTooLargeError: GET /api/v1/pods: "
OUTCOMES = {
    "gzip-garbage": "TransportError: .*cannot be unpacked",
    "gzip-cut": "TransportError: .*cannot be unpacked",
    "unknown-coding": "TransportError: .*is packed as 'br'",
    "header-200": LARGE + ".*max_header_size",
    "headers-200": LARGE + ".*max_header_size",
    "reason-200": LARGE + ".*max_header_size",
    "interim-200": LARGE + ".*max_header_size",
    "trailers-200": LARGE + ".*max_header_size",
    "extension-200": LARGE + ".*max_header_size",
    "body-600": LARGE + ".*max_answer_size",
    "tiny-chunks": "a response",
    "deep-list": "TransportError: .*nested too deeply",
    "deep-frame": "TransportError: .*nested too deeply",
    "deep-status": "InternalError: ",
    "odd-status": "NotFound",
    "two-answers": "a response",
    "cut": "TransportError: .*broke off",
    "no-http": "TransportError: .*not HTTP/1.1",
}
"""What the small kinds end as; the others need much memory or time, and are measured each in a process of its own."""


@pytest.mark.parametrize("kind", OUTCOMES)
async def test_a_hostile_answer_ends_as_an_error_that_says_why(kind):
    row = await attack(kind)

    assert re.match(OUTCOMES[kind], row.outcome), row


async def test_silence_ends_with_the_time_limit():
    row = await attack("silence", timeout=0.2)

    assert row.outcome.startswith("RequestTimeoutError: ")


async def test_a_server_that_says_now_is_not_asked_without_end():
    row = await attack("retry-now", timeout=1.0)

    assert row.outcome.startswith("TooManyRequests")
    assert row.requests <= 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gzip-400", "gzip-stream", "body-endless", "frame-200"])
async def test_a_large_answer_takes_no_more_memory_than_its_limit(kind):
    root = Path(ctrlruntime.__file__).parent.parent
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "benchmarks.attack.servers", kind, "--timeout", "120"],  # it decompresses 400 MB
        cwd=root,
        env={"PYTHONPATH": str(root)},
        capture_output=True,
        check=True,
    )

    row = json.loads(done.stdout)
    assert row["outcome"].startswith("AnswerTooLargeError: ")
    # The limit, a copy of it while parts are joined, and what the test's own server holds.
    assert row["memory"] < 2.5 * 256


def test_each_kind_says_what_it_is():
    assert all(kind.what for kind in KINDS.values())
    assert OUTCOMES.keys() <= KINDS.keys()
