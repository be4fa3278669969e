"""Which tests of a parallel run stay together in one process, and in which order they start.

The first process has the real server and runs the tests that use it, so the machine carries one kube-apiserver and not one for each
process. The other processes run what needs no real server, and the first one helps them when it is done. When they are done first, one of
them starts a real server of its own and helps: the machine has time for it then, and two are the most that run at once.

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
        # Keep the order of the files: slow ones (conformance, faults) start early.
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
        self._helper: object = None

    def schedule(self) -> None:
        # Without the file the collection has failed, in all processes, and there is nothing to schedule.
        self._real = frozenset(json.loads(self._real_tests.read_text())) if self._real_tests.exists() else frozenset()
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return f"{file}{_REAL}" if nodeid in self._real else file

    def _reschedule(self, node) -> None:
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
        is_first = node is self._first
        for is_real in (is_first, not is_first):
            unit = next((unit for unit in self.workqueue if unit.endswith(_REAL) is is_real), None)
            if unit is not None and (not is_real or self._may_have_real_server(node)):
                return unit
        return None

    @property
    def _first(self) -> object:
        """The node that starts with the tests of the real server. When it dies, the next one takes over."""
        return next(node for node in self.nodes if not node.shutting_down)

    def _may_have_real_server(self, node) -> bool:
        """Tell whether the node is one of two: the first, and the one that helps it at the end."""
        if node is self._first:
            return True
        if self._helper not in self.nodes:
            self._helper = node
        return node is self._helper

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
