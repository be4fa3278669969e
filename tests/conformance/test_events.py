"""What the recorder of Events writes, on both servers: a count for all that happened, and nothing the server refuses."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from ctrlruntime.api import core, events, meta, rbac
from ctrlruntime.errors import TransportError
from ctrlruntime.field import MicroTime
from ctrlruntime.recorder import FINISH_AFTER, REFRESH_EVERY, RETRY_DELAY, EventRecorder

ODD_WORDS = ["Made", "x" * 128, "ä" * 64, "two words", "a/b:c", "\u2028", '"', "😀"]
ODD_NOTES = ["", "ä" * 600, "😀" * 300, "x" * 5000, "lone \ud800 surrogate", "\x00\x1f", "line\nline"]


class Clock:
    time = 0.0

    def __call__(self):
        return self.time

    def now(self):
        return MicroTime.of(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.time))


class Unreliable:
    """A client whose requests are lost, or their answers."""

    def __init__(self, client, random):
        self.client, self.random, self.is_broken = client, random, True

    async def _send(self, request):
        fate = self.random.random() if self.is_broken else 1.0
        if fate < 0.15:
            raise TransportError("refused")
        await request()
        if fate < 0.3:
            raise TransportError("reset")

    async def create(self, obj):
        # Of a lost answer the object knows nothing, so the client gets a copy.
        await self._send(lambda: self.client.create(obj.deep_copy()))

    async def patch(self, obj, patch):
        await self._send(lambda: self.client.patch(obj.deep_copy(), patch))


async def end(recorder):
    task = asyncio.create_task(recorder.run(flush_within=60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def stored(client, reporter):
    found = [*await client.list(events.Event, namespace="default"), *await client.list(events.Event)]
    return {event.metadata.uid: event for event in found if event.reporting_controller == reporter}.values()


def config_map(name, namespace):
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace))


@pytest.mark.parametrize("seed", range(6))
async def test_what_is_stored_is_what_happened(client, namespace, seed):
    random, clock, happened = Random(seed), Clock(), 0
    reporter = f"{namespace}.example.com/history"
    writer = Unreliable(client, random)
    recorder = EventRecorder(writer, reporter, capacity=4, clock=clock, now=clock.now, rng=random.random)
    for _ in range(80):
        clock.time += 0.001
        match random.randrange(6):
            case 0:
                clock.time += random.choice([1.0, RETRY_DELAY, FINISH_AFTER, REFRESH_EVERY])
            case 1:
                await recorder.flush()
            case _:
                recorder.event(
                    config_map(f"c{random.randrange(6)}", namespace), reason="Made", action="Make", note=str(happened)
                )
                happened += 1
    writer.is_broken = False
    await end(recorder)

    counts = [event.series.count if event.series else 1 for event in await stored(client, reporter)]
    assert sum(counts) + recorder.dropped == happened
    assert happened > recorder.dropped


async def test_the_server_takes_odd_words_notes_and_names(client, namespace):
    reporter = f"{namespace}.example.com/odd"
    recorder = EventRecorder(client, reporter, instance="ä" * 100)
    about = [
        config_map("a", namespace),
        config_map("a" * 253, namespace),
        config_map("a." * 126 + "b", namespace),
        rbac.ClusterRole(metadata=meta.ObjectMeta(name="system:admin")),
        core.Node(metadata=meta.ObjectMeta(name="node")),
        core.ConfigMap(),
    ]
    for obj in about:
        for related in (None, about[0]):
            recorder.event(obj, reason="Made", action="Make", note="", related=related)
    for number, word in enumerate(ODD_WORDS):
        recorder.event(about[0], reason=word, action=f"Word{number}", note="", type="Warning")
        recorder.event(about[0], reason=f"Word{number}", action=word, note="")
    for number, note in enumerate(ODD_NOTES):
        recorder.event(about[0], reason="Noted", action=f"Note{number}", note=note)
    count = recorder.pending
    await recorder.flush()

    assert (recorder.pending, recorder.dropped) == (0, 0)
    assert len(await stored(client, reporter)) == count == 2 * len(about) + 2 * len(ODD_WORDS) + len(ODD_NOTES)
