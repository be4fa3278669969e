"""Which tests of a parallel run stay together in one process, and in which order they start."""

from __future__ import annotations

import re

from xdist.scheduler import LoadScopeScheduling

_SERVER = re.compile(r"\[(?:.*-)?(embedded|real)(?:-.*)?\]$")


class ByFileAndServer(LoadScopeScheduling):
    """A unit of work is the tests of one file on one server: they share their fixtures, and a process starts a server once."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

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


def unit_of(nodeid: str) -> str:
    """Return the file of a test, and the server it runs on where it names one."""
    file = nodeid.partition("::")[0]
    found = _SERVER.search(nodeid)
    return f"{file}[{found[1]}]" if found else file
