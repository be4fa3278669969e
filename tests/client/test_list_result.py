"""`ListResult`: what it decodes, what it keeps, and when other tasks run."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from ctrlruntime import ListResult
from ctrlruntime.api import core
from ctrlruntime.errors import DecodeError

RAW = [b'{"metadata":{"name":"%d"}}' % number for number in range(3)]


class Decoder:
    """Counts what it decodes."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, raw: bytes) -> core.ConfigMap:
        self.count += 1
        return core.ConfigMap.from_json(raw)


def test_a_sequence_decodes_once_and_keeps_the_items() -> None:
    decode = Decoder()
    found = ListResult(RAW, decode)
    for item in found:
        item.data = {"changed": "yes"}
    assert [item.data for item in found] == [{"changed": "yes"}] * 3
    assert found[1] is found[1] is list(found)[1] is found[-2]
    assert decode.count == 3


async def test_async_iteration_decodes_again_and_keeps_nothing() -> None:
    decode = Decoder()
    found = ListResult(RAW, decode)
    found[0].data = {"changed": "yes"}
    names = [(item.metadata.name, item.data) async for item in found]
    assert names == [("0", {}), ("1", {}), ("2", {})]
    assert decode.count == 4
    assert found[1] is not [item async for item in found][1]


async def test_other_tasks_run_during_an_async_iteration() -> None:
    wide = b'{"metadata":{"name":"a"},"data":{"k":"%s"}}' % (b"x" * 40_000)
    turns = list[int]()
    seen = 0

    async def other() -> None:
        while True:
            turns.append(seen)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    async for _ in ListResult([wide] * 20, core.ConfigMap.from_json):
        seen += 1
    task.cancel()
    steps = [after - before for before, after in itertools.pairwise(turns)]
    assert len(turns) >= 5
    assert max(steps) <= 4  # 128 KiB


async def test_an_item_that_does_not_match_ends_both_iterations() -> None:
    found = ListResult([RAW[0], b'{"metadata":7}'], core.ConfigMap.from_json)
    with pytest.raises(DecodeError):
        list(found)
    with pytest.raises(DecodeError):
        _ = [item async for item in found]
    assert [item.metadata.name for item in found.valid] == ["0"]
    assert len(found.decode_errors) == 1
