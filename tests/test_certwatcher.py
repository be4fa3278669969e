"""The certificate watcher: what is in the files, however they are replaced, and nothing half-written."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.certificates import Authority, KeyPair, make_authority
from ctrlruntime.certwatcher import CertWatcher, check_key_pair
from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import eventually


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority("test")


@pytest.fixture
def first(authority) -> KeyPair:
    return authority.server(["localhost"])


@pytest.fixture
def second(authority) -> KeyPair:
    return authority.server(["localhost"])


def write(folder: Path, pair: KeyPair) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)


def replace(folder: Path, pair: KeyPair) -> None:
    """Rename new files over the old ones."""
    for name, content in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
        (folder / f".{name}").write_bytes(content)
        (folder / f".{name}").rename(folder / name)


class Ticks:
    """The watcher's sleep: one look each time it is let."""

    def __init__(self) -> None:
        self._gate = asyncio.Semaphore(0)
        self._waits = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self._waits.set()
        await self._gate.acquire()

    async def look(self, times: int = 1) -> None:
        for _ in range(times):
            await self._waits.wait()
            self._waits.clear()
            self._gate.release()
        async with asyncio.timeout(LONGEST_WAIT):
            await self._waits.wait()


@contextlib.asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[tuple[CertWatcher, Ticks, list[KeyPair]]]:
    ticks, seen = Ticks(), []
    watcher = CertWatcher(folder / "tls.crt", folder / "tls.key", sleep=ticks.sleep)
    watcher.read()
    watcher.on_change(seen.append)
    task = asyncio.ensure_future(watcher.run())
    try:
        yield watcher, ticks, seen
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_who_asks_for_changes_gets_the_present_pair_at_once(tmp_path, first):
    write(tmp_path, first)
    async with watching(tmp_path) as (watcher, _, seen):
        assert seen == [first]
        assert watcher.pair == first


@pytest.mark.parametrize("put", [write, replace])
async def test_a_replaced_pair_is_handed_over(tmp_path, first, second, put):
    write(tmp_path, first)
    async with watching(tmp_path) as (watcher, ticks, seen):
        put(tmp_path, second)
        await ticks.look()

        assert seen == [first, second]
        assert watcher.pair == second
        assert (watcher.reads, watcher.errors) == (2, 0)


async def test_a_swapped_symbolic_link_is_followed(tmp_path, first, second):
    """As kubelet does with the volume of a Secret."""
    write(tmp_path / "one", first)
    write(tmp_path / "two", second)
    (tmp_path / "data").symlink_to("one")
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"data/{name}")
    async with watching(tmp_path) as (_, ticks, seen):
        (tmp_path / "new").symlink_to("two")
        (tmp_path / "new").replace(tmp_path / "data")
        await ticks.look()

        assert seen == [first, second]


async def test_a_half_written_pair_keeps_the_old_one_until_the_other_half_is_there(tmp_path, first, second):
    write(tmp_path, first)
    async with watching(tmp_path) as (watcher, ticks, seen):
        (tmp_path / "tls.crt").write_bytes(second.certificate)
        await ticks.look(3)
        assert seen == [first]
        assert watcher.errors == 3

        (tmp_path / "tls.key").write_bytes(second.key)
        await ticks.look()
        assert seen == [first, second]


async def test_a_file_that_vanishes_and_comes_back_is_found(tmp_path, first, second):
    write(tmp_path, first)
    async with watching(tmp_path) as (watcher, ticks, seen):
        (tmp_path / "tls.key").unlink()
        await ticks.look(2)
        assert watcher.pair == first

        write(tmp_path, second)
        await ticks.look()
        assert seen == [first, second]


async def test_a_problem_is_logged_once(tmp_path, first, capsys):
    write(tmp_path, first)
    async with watching(tmp_path) as (_, ticks, _seen):
        (tmp_path / "tls.key").unlink()
        await ticks.look(4)

    assert capsys.readouterr().err.count("cannot load new certificate, keeping the old one") == 1


async def test_equal_content_is_no_change(tmp_path, first):
    write(tmp_path, first)
    async with watching(tmp_path) as (watcher, ticks, seen):
        replace(tmp_path, first)
        await ticks.look()

        assert seen == [first]
        assert watcher.reads == 2


async def test_content_is_read_at_times_even_when_the_files_look_the_same(tmp_path, first, second):
    write(tmp_path, first)
    async with watching(tmp_path) as (watcher, ticks, _):
        await ticks.look(9)
        assert watcher.reads == 1

        await ticks.look()
        assert watcher.reads == 2


async def test_it_looks_by_the_clock(tmp_path, first, second):
    write(tmp_path, first)
    watcher = CertWatcher(tmp_path / "tls.crt", tmp_path / "tls.key", interval=0.01)
    watcher.read()
    task = asyncio.ensure_future(watcher.run())
    replace(tmp_path, second)

    async def is_second() -> bool:
        return watcher.pair == second

    await eventually(is_second)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_the_first_read_says_what_is_missing(tmp_path, first):
    watcher = CertWatcher(tmp_path / "tls.crt", tmp_path / "tls.key")
    with pytest.raises(ConfigError, match=r"cannot read .*tls\.crt: No such file"):
        watcher.read()
    with pytest.raises(ConfigError, match="is not loaded"):
        _ = watcher.pair


def test_what_is_no_pair_is_refused(first, second):
    check_key_pair(first)
    for pair in (
        KeyPair(first.certificate, second.key),
        KeyPair(b"", first.key),
        KeyPair(first.certificate, b"nonsense"),
        KeyPair(first.certificate[:100], first.key),
    ):
        with pytest.raises(ConfigError, match="must be PEM and belong together"):
            check_key_pair(pair)


def test_an_encrypted_key_is_refused_and_asks_nobody_for_a_password(first):
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(first.key, None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(ConfigError):
        check_key_pair(KeyPair(first.certificate, encrypted))


def test_an_interval_must_pass():
    with pytest.raises(ConfigError, match="interval is 0"):
        CertWatcher("a", "b", interval=0)
