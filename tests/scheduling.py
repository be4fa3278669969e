"""Which tests of a parallel run stay together in one worker."""

from __future__ import annotations

import re

from xdist.scheduler import LoadScopeScheduling

_SERVER = re.compile(r"\[(?:.*-)?(embedded|real)(?:-.*)?\]$")


class ByFileAndServer(LoadScopeScheduling):
    """A unit of work is the tests of one file on one server: they share their fixtures, and a worker starts a server once."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        found = _SERVER.search(nodeid)
        return f"{file}[{found[1]}]" if found else file
