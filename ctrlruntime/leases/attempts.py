"""One request for a Lease: it has a limit, any failure has a reason for people, and each reason is logged once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ctrlruntime import log
from ctrlruntime.errors import CtrlError, Forbidden

T = TypeVar("T")


class AttemptError(CtrlError):
    """A request for a Lease failed. The message is the reason for people, and the cause is the error, if there is one."""


async def attempt(send: Callable[[], Awaitable[T]], *, within: float, needs: str) -> T:
    """Send a request for a Lease.

    Any failure is an AttemptError, also one of a user's own lock: the Lease decides what follows, not the error.

    Args:
        send: Sends the request.
        within: The limit, in seconds.
        needs: The permissions, for the reason of a request that is forbidden.

    Raises: AttemptError.

    """
    try:
        async with asyncio.timeout(within):
            return await send()
    except TimeoutError as error:
        raise AttemptError(f"no response within {within:g} s") from error
    except Exception as error:
        text = log.describe(error)
        raise AttemptError(f"{text}; {needs}" if isinstance(error, Forbidden) else text) from error


class Troubles:
    """The current reason for which each kind of request fails."""

    def __init__(self) -> None:
        self._reasons: dict[object, str] = {}

    def begins(self, kind: object, reason: str) -> bool:
        """Note a failure. Return whether its reason is new."""
        is_new = self._reasons.get(kind) != reason
        self._reasons[kind] = reason
        return is_new

    def ends(self, kind: object) -> bool:
        """Note a success. Return whether the last request of this kind failed."""
        return bool(self._reasons.pop(kind, ""))

    def __str__(self) -> str:
        return "; ".join(dict.fromkeys(list(self._reasons.values())))
