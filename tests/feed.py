"""A source for tests of controllers."""

from __future__ import annotations

from typing import Any


class Feed:
    """A source that adds one request, once for each trigger."""

    def __init__(self, request: Any, *triggers: Any) -> None:
        self.request = request
        self.triggers = triggers

    async def start(self, queue: Any) -> None:
        for each in self.triggers:
            queue.add(self.request, trigger=each)

    async def wait_for_sync(self) -> None:
        return

    async def stop(self) -> None:
        return
