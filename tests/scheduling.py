"""Which tests of a parallel run stay together in one process, and in which order they start.

The first two processes have a real server each and run the tests that use it, so the machine carries two kube-apiservers and not one for
each process: one costs little while it idles (0.03 of a core), and much while it starts. The other processes run what needs no real server,
and the first two help them when they are done.

Files with tests marked `slow` start first, so that none of them runs at the end with nothing beside it.

Which tests use the real server is known by their fixtures (`uses_real_server`). Only the processes that run tests have these, and the one
that schedules gets names alone. So they write the list to a file for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

_REAL = "[real]"  # ends the names of the units of work that use the real server
_REAL_SERVERS = 2  # at once
_FILE = "real_tests"  # in the input of a worker: the path of the list


class Scheduling:
    """A plugin of all processes of a run: tells the one that schedules which tests use the real server."""

    def __init__(self, config: pytest.Config) -> None:
        self._worker: dict[str, str] | None = getattr(config, "workerinput", None)
        if self._worker is None:
            folder = tempfile.TemporaryDirectory(prefix="ctrlruntime-tests-")
            config.add_cleanup(folder.cleanup)
            self._file = Path(folder.name) / f"{_FILE}.json"

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node) -> None:
        node.workerinput[_FILE] = str(self._file)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items) -> None:
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in slow)
        if order := config.getoption("--file-order", default=""):
            items.sort(key=_place_in(order, items))
        if self._worker is None:
            return
        file = Path(self._worker[_FILE])
        written = file.with_suffix(f".{self._worker['workerid']}")
        written.write_text(json.dumps([item.nodeid for item in items if uses_real_server(item)]))
        os.replace(written, file)  # noqa: PTH105 - every process writes the same

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config, log):
        # xdist would start the files with the most tests first.
        config.option.loadscopereorder = False
        return ByFileAndServer(config, log, self._file)


def _place_in(order: str, items: list[pytest.Item]) -> Callable[[pytest.Item], int]:
    """Return what gives the place of a test's file: "reverse", or any other text as the seed of a random order."""
    files = list(dict.fromkeys(item.path for item in items))
    if order == "reverse":
        files.reverse()
    else:
        random.Random(order).shuffle(files)
    places = {file: place for place, file in enumerate(files)}
    return lambda item: places[item.path]


def uses_real_server(item: pytest.Item) -> bool:
    """Tell whether a test starts the real server, or uses one that runs: by a fixture, or by a parameter that is "real"."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return "real_programs" in getattr(item, "fixturenames", ()) or "real" in parameters.values()


class ByFileAndServer(LoadScopeScheduling):
    """A unit of work is the tests of one file on one server: they share their fixtures, and a process starts a server once."""

    def __init__(self, config, log, real_tests: Path) -> None:
        super().__init__(config, log)
        self._real_tests = real_tests
        self._real: frozenset[str] = frozenset()
        self._with_real_server: list[object] = []

    def schedule(self) -> None:
        # Without the file the collection has failed, in all processes, and there is nothing to schedule.
        self._real = frozenset(json.loads(self._real_tests.read_text())) if self._real_tests.exists() else frozenset()
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return f"{file}{_REAL}" if nodeid in self._real else file

    def _reschedule(self, node) -> None:
        # The worker that follows a dead one collects yet, and is scheduled when it has. The scheduler of xdist asks it before, when it
        # schedules another one.
        if node not in self.registered_collections:
            return
        # Until it has enough or was told that there is no more: a worker keeps its last test until it gets another one.
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) <= 2:
            self._assign_work_unit(node)

    def _assign_work_unit(self, node) -> None:
        """Give a node its next unit, or tell it that there is none for it."""
        unit = self._next_unit(node)
        if unit is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(unit, last=False)
        # OSError: it has just died. xdist calls `remove_node` next, which gives its units to the others.
        with contextlib.suppress(OSError):
            super()._assign_work_unit(node)

    def _next_unit(self, node) -> str | None:
        """Return the next unit of the kind the node starts with, then of the other kind."""
        has_real_server = self._may_have_real_server(node)
        for is_real in (True, False) if has_real_server else (False,):
            unit = next((unit for unit in self.workqueue if unit.endswith(_REAL) is is_real), None)
            if unit is not None:
                return unit
        return None

    def _may_have_real_server(self, node) -> bool:
        """Tell whether the node is one of the first. When one of them dies, the next node that needs work takes over."""
        self._with_real_server = [
            each for each in self._with_real_server if each in self.nodes and not each.shutting_down
        ]
        if node not in self._with_real_server and len(self._with_real_server) < _REAL_SERVERS:
            self._with_real_server.append(node)
        return node in self._with_real_server

    def remove_node(self, node):
        """Return the test in which a worker died. It counts as done: the scheduler of xdist would run it in the next worker, and so on.

        The scheduler of xdist would also give out the finished units again. A worker that gets no test from a unit hangs: it starts its
        last test only when it gets another one, or when the run ends.
        """
        units = self.assigned_work[node]
        open_tests = ((unit, test) for unit in units.values() for test, is_done in unit.items() if not is_done)
        unit, died_in = next(open_tests, ({}, None))
        if died_in is not None:
            unit[died_in] = True
            self.assigned_work[node] = {name: unit for name, unit in units.items() if not all(unit.values())}
        super().remove_node(node)
        return died_in
