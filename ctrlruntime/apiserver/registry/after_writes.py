"""What the server does once after writes: it listens to them inside the write, and looks when that is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class AfterWrites:
    """Calls a function soon after it was asked to, once for all that asked meanwhile. For the server's loop only."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self._is_due = False

    def __call__(self, _change: Any = None) -> None:
        """Ask for a call. Takes the change that a listener gets."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._call)

    def _call(self) -> None:
        self._is_due = False
        self._look()
