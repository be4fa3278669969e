"""Which tests of a parallel run stay together in one process, and in which order they start."""

from __future__ import annotations

import re

from xdist.scheduler import LoadScopeScheduling

_SERVER = re.compile(r"\[(?:.*-)?(embedded|real)(?:-.*)?\]$")


class ByFileAndServer(LoadScopeScheduling):
    """A unit of work is the tests of one file on one server: they share their fixtures, and a process starts a server once."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """Return the file of a test, and the server it runs on where it names one."""
    file = nodeid.partition("::")[0]
    found = _SERVER.search(nodeid)
    return f"{file}[{found[1]}]" if found else file
