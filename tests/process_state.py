"""What belongs to the process and not to a test: after each test it is as it was before, or the test fails.

A test that changes it decides whether those that run after it in the same process pass. Which tests these are depends on how fast the
machine is. So `ProcessState` compares after each test, puts back what it can, and fails the test. What a fixture of a wider scope sets up
(a server of the module, say) may stay until that fixture is torn down.

To read the state takes 0.1 ms, and there are many tests. So the state after a test is the state before the next one, unless a fixture of a
wider scope was set up or torn down between them.
"""

from __future__ import annotations

import _signal  # signal.getsignal makes an enum of each, which takes ten times as long
import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

_PROC = "/proc/self"  # a text: to join a path with pathlib takes longer than to read it


@dataclass(frozen=True)
class _Value:
    """Something that has one value, which can be put back."""

    read: Callable[[], Any]
    write: Callable[[Any], object]


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - this is the one that is compared
    except FileNotFoundError:
        return "a folder that was deleted"


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}  # pytest changes it


def _write_environment(value: dict[str, str]) -> None:
    for name in _environment().keys() - value.keys():
        del os.environ[name]
    os.environ.update(value)


def _write_path(value: list[str]) -> None:
    sys.path[:] = value


_SIGNALS = tuple(map(int, signal.valid_signals()))


def _handlers() -> dict[int, Any]:
    return {number: _signal.getsignal(number) for number in _SIGNALS}


def _write_handlers(value: dict[int, Any]) -> None:
    for number, handler in value.items():
        if _signal.getsignal(number) is not handler and handler is not None:  # None: it was not set from Python
            signal.signal(number, handler)


def _umask() -> int:
    # os.umask has to set one to tell it, which other threads would see.
    status = _text(f"{_PROC}/status")
    return int(status[status.index("Umask:") + len("Umask:") :].split(None, 1)[0], 8)


def _logging() -> tuple[int, bool, int, list[logging.Handler]]:
    root = logging.getLogger()
    handlers = [handler for handler in root.handlers if not type(handler).__module__.startswith("_pytest.")]
    return root.level, root.disabled, root.manager.disable, handlers


def _write_logging(value: tuple[int, bool, int, list[logging.Handler]]) -> None:
    root = logging.getLogger()
    _, _, _, now = _logging()
    root.level, root.disabled, root.manager.disable, handlers = value
    root.handlers[:] = [handler for handler in root.handlers if handler not in now] + handlers


def _collector() -> tuple[bool, tuple[int, int, int]]:
    # Not what is frozen: all that was collected is, and a test may freeze more. To count it takes 15 ms.
    return gc.isenabled(), gc.get_threshold()


def _write_collector(value: tuple[bool, tuple[int, int, int]]) -> None:
    is_enabled, threshold = value
    (gc.enable if is_enabled else gc.disable)()
    gc.set_threshold(*threshold)


_VALUES = {
    "the current folder": _Value(_folder, os.chdir),
    "the environment": _Value(_environment, _write_environment),
    "sys.path": _Value(lambda: list(sys.path), _write_path),
    "the handlers of signals": _Value(_handlers, _write_handlers),
    "the umask": _Value(_umask, os.umask),
    "the policy of event loops": _Value(asyncio.get_event_loop_policy, asyncio.set_event_loop_policy),
    "the configuration of logging": _Value(_logging, _write_logging),
    "the garbage collector": _Value(_collector, _write_collector),
}


def _listeners() -> set[str]:
    """Return the sockets of this process that listen, as `inode address`."""
    found = set()
    for descriptor in os.listdir(f"{_PROC}/fd"):  # noqa: PTH208 - it takes names
        with contextlib.suppress(OSError):
            link = os.readlink(f"{_PROC}/fd/{descriptor}")  # noqa: PTH115 - half the time
            if not link.startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(descriptor))) as made:
                if made.family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX) and made.getsockopt(
                    socket.SOL_SOCKET, socket.SO_ACCEPTCONN
                ):
                    found.add(f"{link} {made.getsockname()}")
    return found


def _children() -> set[str]:
    """Return the processes that this one has started and not waited for, as `pid name`."""
    tasks = os.listdir(f"{_PROC}/task")  # noqa: PTH208 - a third of the time of Path.glob
    pids = [pid for task in tasks for pid in _text(f"{_PROC}/task/{task}/children").split()]
    return {f"{pid} {name}" for pid in pids if (name := _text(f"/proc/{pid}/comm").strip())}


_THINGS: dict[str, Callable[[], set[Any]]] = {
    "a thread": lambda: set(threading.enumerate()),
    "a socket that listens": _listeners,
    "a process": _children,
}
_SHORTEST_WAIT = 0.01  # seconds


@dataclass
class _State:
    values: dict[str, Any]
    things: dict[str, set[Any]]

    @classmethod
    def read(cls) -> _State:
        return cls(
            {name: value.read() for name, value in _VALUES.items()}, {name: find() for name, find in _THINGS.items()}
        )

    def allow(self, before: _State, after: _State) -> None:
        """Count what came between two states as there from the beginning."""
        for name, value in after.values.items():
            if value != before.values[name]:
                self.values[name] = value
        for name, things in after.things.items():
            self.things[name] |= things - before.things[name]

    def restore(self, patience: float) -> list[str]:
        """Put the values back that changed, and wait for things to end that came. Return what was changed, and what is left.

        Things that have ended are forgotten.
        """
        changed = []
        for name, value in _VALUES.items():
            before, now = self.values[name], value.read()
            if now != before:
                value.write(before)
                changed.append(f"{name}: {_difference(before, now)}")
        deadline = time.monotonic() + patience
        for name, find in _THINGS.items():
            while (left := (found := find()) - self.things[name]) and time.monotonic() < deadline:
                time.sleep(_SHORTEST_WAIT)
            changed += [f"{name}: {thing}" for thing in left]
            self.things[name] = found
        return changed


def _difference(before: Any, now: Any) -> str:
    if isinstance(before, dict):
        names = sorted(str(name) for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        return ", ".join(names)
    return f"{now} in place of {before}"


class ProcessState:
    """The plugin. `patience` is how many seconds a thread, a socket or a process may take to end after its test."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._state: _State | None = None  # before the test that runs
        self._next: _State | None = None  # before the next test

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        self._next = None
        if self._state is None:
            return (yield)
        before = _State.read()
        try:
            return (yield)
        finally:
            self._state.allow(before, _State.read())

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        if fixturedef.scope != "function":
            self._next = None

    @pytest.fixture(autouse=True)
    def _process_state(self) -> Iterator[None]:
        self._state = self._next or _State.read()
        yield
        state, self._state = self._state, None
        if changed := state.restore(self._patience):
            self._next = None
            pytest.fail("the test left the process changed:\n" + "\n".join(changed), pytrace=False)
        self._next = state


def _text(file: str) -> str:
    try:
        with open(file) as opened:  # noqa: PTH123
            return opened.read()
    except OSError:  # a thread or a process that has ended
        return ""
