"""The faults as values: what is to go wrong, for which requests, and how often it did. `exchange` carries them out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ctrlruntime.testing.faults.match import Match, SeenRequest

__all__ = [
    "Answering",
    "BlackHole",
    "Change",
    "Cut",
    "Delay",
    "Drip",
    "DropAnswer",
    "Ending",
    "ExpiryEvent",
    "Fault",
    "OnlyToken",
    "Poison",
    "Refusal",
    "Reply",
    "Rewind",
    "Split",
    "Stall",
    "status_body",
]

Change: TypeAlias = Callable[[dict[str, Any]], dict[str, Any] | bytes | None]
"""What becomes of an object: another one, bytes put in its place as they are, or None: it is left out."""

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(slots=True, kw_only=True, eq=False)
class Fault:
    """A fault in force. `hits` counts the requests it has struck."""

    match: Match = field(default_factory=Match)
    count: int | None = None
    """How many requests it strikes; None: all."""

    hits: int = 0
    failure: Exception | None = None
    """What a function given with the fault raised; raised again where its block ends."""

    def strikes(self, request: SeenRequest) -> bool:
        """Whether this request is meant and the fault not used up."""
        return (self.count is None or self.hits < self.count) and self.match.covers(request)


@dataclass(slots=True, kw_only=True, eq=False)
class Stall(Fault):
    """Every byte of these requests' connections is swallowed, after so many bytes more."""

    after: int


@dataclass(slots=True, kw_only=True, eq=False)
class BlackHole(Fault):
    """Every byte of every connection is swallowed, new ones included."""


@dataclass(slots=True, kw_only=True, eq=False)
class Refusal(Fault):
    """Connections are refused."""


@dataclass(slots=True, kw_only=True, eq=False)
class Drip(Fault):
    """The answer comes byte by byte."""

    interval: float


@dataclass(slots=True, kw_only=True, eq=False)
class Cut(Fault):
    """The connection is reset after so many bytes more."""

    after: int


@dataclass(slots=True, kw_only=True, eq=False)
class Ending(Fault):
    """Streamed responses are ended as a server ends them."""


@dataclass(slots=True, kw_only=True, eq=False)
class Delay(Fault):
    """Requests or answers come later."""

    seconds: float
    at: Literal["response", "request"]


@dataclass(slots=True, kw_only=True, eq=False)
class DropAnswer(Fault):
    """The server executes the request, and the response is lost."""

    how: Literal["reset", "silence"]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer made here."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, kw_only=True, eq=False)
class Answering(Fault):
    """The proxy answers instead of the server."""

    reply: Callable[[SeenRequest], Reply]
    applies: Callable[[SeenRequest], bool] = lambda _request: True

    def strikes(self, request: SeenRequest) -> bool:
        # super() without arguments does not work in a slotted dataclass, which is made a second time.
        return Fault.strikes(self, request) and self.applies(request)


@dataclass(slots=True, kw_only=True, eq=False)
class ExpiryEvent(Fault):
    """A watch says in the stream that its version is too old."""

    reason: str


@dataclass(slots=True, kw_only=True, eq=False)
class Poison(Fault):
    """Objects are changed on their way."""

    change: Change


@dataclass(slots=True, kw_only=True, eq=False)
class Rewind(Fault):
    """Reads are answered from what was recorded before."""

    recorded: Mapping[str, Reply]


@dataclass(slots=True, kw_only=True, eq=False)
class OnlyToken(Fault):
    """All bearer tokens but one are refused."""

    token: str = field(repr=False)


@dataclass(slots=True, kw_only=True, eq=False)
class Split(Fault):
    """Answers come in pieces."""

    size: int
    pause: float


def status_body(
    request: SeenRequest, status: int, *, reason: str = "", message: str = "", retry_after: float | None = None
) -> bytes:
    """Return the JSON of a Status as the API server words one."""
    resource = request.resource.partition("/")[0]
    details: dict[str, Any] = {"name": request.name, "group": request.group, "kind": resource}
    if retry_after is not None:
        details["retryAfterSeconds"] = int(retry_after)
    return json.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message or f"{request.label}: answered with {status} by the fault proxy",
            "reason": reason or _REASONS.get(status, "Unknown"),
            "details": {key: value for key, value in details.items() if value != ""},
            "code": status,
        }
    ).encode()
