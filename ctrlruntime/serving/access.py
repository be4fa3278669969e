"""Access control of endpoints: the API server authenticates a bearer token (TokenReview) and authorizes its user (SubjectAccessReview).

Statuses, verbs and times are those of controller-runtime's filter: 401 without a valid token, 403 without permission, 500 if the API server
does not respond. The permission is for the path (a nonResourceURL) and the method in lower case: `get` of `/metrics`.

The operator needs `create` of `tokenreviews.authentication.k8s.io` and of `subjectaccessreviews.authorization.k8s.io`.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from ctrlruntime import log
from ctrlruntime.errors import APIStatusError, CtrlError, TransportError
from ctrlruntime.rest.transport import Transport
from ctrlruntime.serving.server import Handler

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["AccessReviews", "UserRecord", "guarded"]

T = TypeVar("T")

TOKEN_SECONDS: Final = 60.0
ALLOWED_SECONDS: Final = 300.0
DENIED_SECONDS: Final = 30.0
"""Cache times: the defaults of k8s.io/apiserver's delegated authentication and authorization, as in controller-runtime."""

REVIEW_SECONDS: Final = 10.0
"""The maximum time of one review, with attempts and waits."""

MAX_REMEMBERED: Final = 1024
"""The maximum number of cached results of each type; the oldest is dropped first."""

MAX_ASKED: Final = 8
"""The maximum number of concurrent reviews, so that unknown callers cannot overload the API server."""

_ATTEMPTS: Final = 5
_FIRST_WAIT: Final = 0.5
_GROWTH: Final = 1.5
_JITTER: Final = 0.2

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class UserRecord(msgspec.Struct, frozen=True):
    """The user of a token, from the API server."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    @property
    def key(self) -> Hashable:
        return self.username, self.uid, self.groups, tuple(sorted(self.extra.items()))


class AccessReviews:
    """Sends reviews to the API server, and caches the results.

    Failures and invalid tokens are not cached, because a token may become valid. Use it on one event loop. `clock`, `sleep` and `jitter` (0
    to 1) are for tests.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._transport = transport
        self._sleep = sleep
        self._jitter = jitter
        # A digest with a key of this process: no token lies in memory longer than its request.
        self._secret = secrets.token_bytes(32)
        self._users = _Memory[UserRecord](clock)
        self._permissions = _Memory[bool](clock)
        self._slots = asyncio.Semaphore(MAX_ASKED)

    async def user(self, token: str) -> UserRecord | None:
        """Return the user of the token, or None for an invalid token.

        Raises: CtrlError if the API server does not respond.
        """
        digest = hashlib.blake2b(token.encode("utf-8", "surrogateescape"), key=self._secret).digest()
        return await self._users.get(digest, lambda: self._review_token(token))

    async def may(self, user: UserRecord, verb: str, path: str) -> bool:
        """Return whether the user has permission for the path.

        Raises: CtrlError if the API server does not respond.
        """
        key = (user.key, verb, path)
        return bool(await self._permissions.get(key, lambda: self._review_access(user, verb, path)))

    async def close(self) -> None:
        """Send no more reviews, and close the connections of the running event loop."""
        await self._users.close()
        await self._permissions.close()
        await self._transport.close()

    async def _review_token(self, token: str) -> _Answer[UserRecord]:
        spec = {"token": token}
        status = await self._ask(_TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", spec)
        if not status.authenticated:
            return _Answer(None, 0.0)
        return _Answer(status.user, TOKEN_SECONDS)

    async def _review_access(self, user: UserRecord, verb: str, path: str) -> _Answer[bool]:
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        status = await self._ask(_ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", spec)
        is_allowed = status.allowed and not status.denied
        return _Answer(is_allowed, ALLOWED_SECONDS if is_allowed else DENIED_SECONDS)

    async def _ask(self, path: str, api_version: str, kind: str, spec: Mapping[str, Any]) -> _Status:
        body = msgspec.json.encode({"apiVersion": api_version, "kind": kind, "spec": spec})
        deadline = asyncio.get_running_loop().time() + REVIEW_SECONDS
        async with self._slots:
            for attempt in range(_ATTEMPTS):
                left = max(deadline - asyncio.get_running_loop().time(), 0.001)
                try:
                    response = await self._transport.request("POST", path, body=body, timeout=left)
                    return _decode(response.body).status
                except (TransportError, APIStatusError) as error:
                    wait = _FIRST_WAIT * _GROWTH**attempt * (1.0 + _JITTER * self._jitter())
                    is_late = asyncio.get_running_loop().time() + wait >= deadline
                    if not _is_passing(error) or is_late or attempt == _ATTEMPTS - 1:
                        raise
                    await self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def guarded(reviews: AccessReviews, handler: Handler) -> Handler:
    """Return a handler that calls `handler` only for authorized callers."""
    from aiohttp import web

    logger = log.get_logger("serving")

    async def answer(request: web.Request) -> web.StreamResponse:
        token = _bearer(request.headers.getall("Authorization", []))
        try:
            user = await reviews.user(token) if token else None
        except CtrlError as error:
            logger.warning("cannot authenticate caller", path=request.path, error=log.describe(error))
            return web.Response(status=500, text="Authentication failed\n")
        if user is None:
            return web.Response(status=401, text="Unauthorized\n", headers={"WWW-Authenticate": "Bearer"})
        verb = request.method.lower()
        try:
            may = await reviews.may(user, verb, request.path)
        except CtrlError as error:
            logger.warning(
                "cannot check permission of caller", user=user.username, path=request.path, error=log.describe(error)
            )
            return web.Response(status=500, text=f"Authorization for user {user.username} failed\n")
        if not may:
            return web.Response(status=403, text=f"{user.username} may not {verb} {request.path}\n")
        return await handler(request)

    return answer


def _bearer(headers: list[str]) -> str:
    """Return the token of the Authorization header; empty when there is none, or not one."""
    if len(headers) != 1:
        return ""
    scheme, _, token = headers[0].strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _is_passing(error: CtrlError) -> bool:
    """Say whether asking again may help: no answer, or the server in trouble."""
    return not isinstance(error, APIStatusError) or error.code >= 500 or error.code == 429


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: UserRecord = UserRecord()
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Review).decode


# What is remembered


class _Answer(NamedTuple, Generic[T]):
    value: T | None
    seconds: float
    """Seconds for which it may be cached; 0: not at all."""


class _Memory(Generic[T]):
    """Cached results by key. Concurrent callers with the same key share one review."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, T | None]] = OrderedDict()
        self._asked: dict[Hashable, asyncio.Task[_Answer[T]]] = {}

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[_Answer[T]]]) -> T | None:
        kept = self._kept.get(key)
        if kept is not None and self._clock() < kept[0]:
            return kept[1]
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.ensure_future(self._find(key, ask))
            task.add_done_callback(lambda done: self._asked_for(key, done))
        # Shielded: a caller who goes away does not take the answer from the others.
        return (await asyncio.shield(task)).value

    async def close(self) -> None:
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _asked_for(self, key: Hashable, task: asyncio.Task[_Answer[T]]) -> None:
        del self._asked[key]
        if not task.cancelled():
            task.exception()  # whoever still waits gets it; when nobody does, it is nobody's

    async def _find(self, key: Hashable, ask: Callable[[], Awaitable[_Answer[T]]]) -> _Answer[T]:
        answer = await ask()
        self._kept.pop(key, None)
        if answer.seconds > 0:
            self._kept[key] = (self._clock() + answer.seconds, answer.value)
            if len(self._kept) > MAX_REMEMBERED:
                self._kept.popitem(last=False)
        return answer
