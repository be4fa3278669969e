"""`FaultProxy`: a proxy before an API server that makes things go wrong on demand.

Clients speak HTTP/1.1 over TLS with it, and it speaks so with the server: the embedded one, the real one or a cluster, so one
fault means the same before each. It runs in a thread with a loop of its own; its methods may be called from any other thread or loop.

Each fault is a context manager: it holds inside the block, for requests that come and for those that are under way, and
faults may be nested. It gives a `Fault`, whose `hits` tells how often it struck.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.testing.environment import Environment
from ctrlruntime.testing.faults import plan
from ctrlruntime.testing.faults.listener import Listener
from ctrlruntime.testing.faults.match import Match, SeenRequest
from ctrlruntime.testing.faults.plan import Change, Fault, Reply, status_body
from ctrlruntime.testing.faults.traffic import Traffic, Upstream

if TYPE_CHECKING:
    from ctrlruntime.rest.config import Config

__all__ = ["FaultProxy"]

T = TypeVar("T")
_Context: TypeAlias = AbstractContextManager[Fault]
_ALL = Match()


class FaultProxy:
    """A proxy before `target`: a running `Environment`, or the text of a kubeconfig.

    Use it as a context manager, or by `start` and `stop`. ::

        with FaultProxy(environment) as proxy:
            manager = ctrl.new_manager(proxy.config)
            with proxy.stall(Match(verb="watch", resource="pods")):
                ...
    """

    def __init__(self, target: Environment | str) -> None:
        self._target = target
        self._traffic = Traffic()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._listener: Listener | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._kubeconfig = ""
        self._authority = b""

    # --- life --------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Begin to listen on a free port of 127.0.0.1 and return self. Raises: ConfigError when it runs already."""
        if self._thread is not None:
            raise ConfigError("the fault proxy is running; stop() it before another start()")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ctrlruntime-fault-proxy", daemon=True)
        self._thread.start()
        try:
            self._listener, self._authority = self._wait(Listener.open(self._traffic))
            self._folder = tempfile.TemporaryDirectory(prefix="ctrlruntime-fault-proxy-")
            target = self._target
            self._kubeconfig = self.kubeconfig_for(target.kubeconfig if isinstance(target, Environment) else target)
            self.kubeconfig_path.touch(mode=0o600)
            self.kubeconfig_path.write_text(self._kubeconfig)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Reset all connections and end the thread; does nothing when it does not run."""
        thread, loop, listener = self._thread, self._loop, self._listener
        if thread is None or loop is None:
            return
        self._thread = self._listener = None
        try:
            if listener is not None:
                self._wait(listener.close())
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
            self._loop = None
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- the way to it -----------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The address clients use instead of the server's."""
        if self._listener is None:
            raise ConfigError("the fault proxy is not running; call start() first, or use it in a with statement")
        return f"https://127.0.0.1:{self._listener.port}"

    @property
    def kubeconfig(self) -> str:
        """The target's kubeconfig through the proxy, as text."""
        return self._kubeconfig

    @property
    def kubeconfig_path(self) -> Path:
        """A file with that text, for other processes; it goes with `stop`."""
        if self._folder is None:
            raise ConfigError("the fault proxy is not running; call start() first, or use it in a with statement")
        return Path(self._folder.name, "kubeconfig")

    @property
    def config(self) -> Config:
        """The target's credentials, through the proxy; for `new_manager` and clients."""
        from ctrlruntime.rest.config import get_config

        return get_config(str(self.kubeconfig_path))

    def kubeconfig_for(self, kubeconfig: str) -> str:
        """Return the text of a kubeconfig (of `Environment.add_user`, say) changed so that it goes through the proxy.

        Its user gets a token that the proxy exchanges for the credential, since a client certificate ends where TLS does.
        """
        from ctrlruntime.api.yaml_nodes import load
        from ctrlruntime.testing.connection import Connection

        tree = cast("dict[str, Any]", load(kubeconfig))
        upstream = Upstream.of(Connection(tree))
        anonymous = Upstream.of(Connection({**tree, "users": [{**user, "user": {}} for user in tree["users"]]}))
        token = f"fault-proxy-{secrets.token_hex(16)}"
        self._call(lambda: self._traffic.know(token, upstream, anonymous))
        return json.dumps(_kubeconfig(self.url, self._authority, token), indent=2) + "\n"

    # --- what was seen -----------------------------------------------------------------------------------------------

    @property
    def requests(self) -> list[SeenRequest]:
        """The requests that came since the start or the last `forget`, oldest first; copies."""
        return self._call(lambda: [replace(request) for request in self._traffic.seen])

    def matching(self, match: Match, *, since: float = 0.0) -> list[SeenRequest]:
        """Return those of `requests` that `match` covers and that came at `since` (`time.monotonic`) or later."""
        return [request for request in self.requests if request.time >= since and match.covers(request)]

    def count(self, match: Match, *, since: float = 0.0) -> int:
        """Return how many there are of them."""
        return len(self.matching(match, since=since))

    def forget(self) -> None:
        """Clear the recorded requests."""
        self._call(self._traffic.seen.clear)

    def open_streams(self, match: Match = _ALL) -> int:
        """Return how many watches (and other streamed responses) are open and alive."""
        return self._call(lambda: len(self._traffic.streams(match)))

    async def wait_for(
        self, match: Match, count: int = 1, *, timeout: float = 10.0, since: float = 0.0, answered: bool = False
    ) -> list[SeenRequest]:
        """Wait in a coroutine until `count` such requests have come (`answered`: and been answered); return them.

        Raises: AssertionError after `timeout` seconds; its message says which requests did come.
        """
        deadline = time.monotonic() + timeout
        while True:
            if found := self._enough(match, count, since, deadline, answered=answered):
                return found
            await asyncio.sleep(0.01)

    def wait(
        self, match: Match, count: int = 1, *, timeout: float = 10.0, since: float = 0.0, answered: bool = False
    ) -> list[SeenRequest]:
        """Do as `wait_for`, and block the thread."""
        deadline = time.monotonic() + timeout
        while True:
            if found := self._enough(match, count, since, deadline, answered=answered):
                return found
            time.sleep(0.01)

    def _enough(
        self, match: Match, count: int, since: float, deadline: float, *, answered: bool
    ) -> list[SeenRequest] | None:
        found = [r for r in self.matching(match, since=since) if r.status or not answered]
        if len(found) >= count:
            return found
        if time.monotonic() >= deadline:
            came = "; ".join(f"{r.label} ({r.status or 'not answered'})" for r in self.requests[-10:])
            raise AssertionError(
                f"{len(found)} of {count} expected requests matched {match}. The last requests of any kind: {came}"
            )
        return None

    # --- connections that fail ---------------------------------------------------------------------------------------

    def stall(self, match: Match = _ALL, *, after: int = 0, count: int | None = None) -> _Context:
        """Swallow all bytes of these requests and their answers; the sockets stay open.

        With `after` so many bytes of the answer's body still pass, counted from now: a watch goes silent inside a frame.
        A connection that was stalled stays dead after the block, as one that a load balancer has forgotten.
        """
        return self._during(plan.Stall(match=match, after=after, count=count), self._traffic.stall)

    def black_hole(self) -> _Context:
        """Swallow everything: open connections go silent for good; new ones are accepted, but TLS is never answered."""
        return self._during(plan.BlackHole(), self._traffic.stall_all)

    def refuse(self) -> _Context:
        """Be down: reset the open connections, refuse new ones."""
        return self._during(plan.Refusal(), self._the_listener().refuse, self._the_listener().listen)

    def reset(self, match: Match = _ALL, *, after: int = 0, count: int | None = None) -> _Context:
        """Reset the connections of these requests, open ones at once and new ones when the request was read.

        With `after` so many bytes of the answer's body still pass, counted from now: a watch breaks inside a frame.
        """
        return self._during(plan.Cut(match=match, after=after, count=count), self._traffic.cut)

    def close_watches(self, match: Match = _ALL) -> _Context:
        """End open watches cleanly, as the server does after their length; while it holds new ones end at once, too."""
        return self._during(plan.Ending(match=match), self._traffic.end)

    # --- answers that are late or lost -------------------------------------------------------------------------------

    def slow_body(self, match: Match = _ALL, interval: float = 0.5, *, count: int | None = None) -> _Context:
        """Let the bodies of these answers come byte by byte, one each `interval` seconds."""
        return self._during(plan.Drip(match=match, interval=interval, count=count), self._traffic.drip)

    def delay(
        self, match: Match, seconds: float, *, at: Literal["response", "request"] = "response", count: int | None = None
    ) -> _Context:
        """Let answers come `seconds` later; of watches each frame, in order.

        at="request": what is late is the request; the server does it later, also when the client has given up.
        """
        return self._during(plan.Delay(match=match, seconds=seconds, at=at, count=count))

    def drop_response(
        self, match: Match, count: int | None = 1, *, how: Literal["reset", "silence"] = "reset"
    ) -> _Context:
        """Let the server do the request and lose its answer: the connection is reset, or stays open in silence."""
        return self._during(plan.DropAnswer(match=match, count=count, how=how))

    def split(self, match: Match, size: int, *, pause: float = 0.001) -> _Context:
        """Send answers and frames in pieces of `size` bytes with a pause of so many seconds between them."""
        if size < 1:
            raise ValueError(f"size is 1 byte or more, not {size}")
        return self._during(plan.Split(match=match, size=size, pause=pause))

    # --- answers that are errors -------------------------------------------------------------------------------------

    def respond(
        self,
        match: Match,
        status: int,
        *,
        reason: str = "",
        message: str = "",
        retry_after: float | None = None,
        count: int | None = None,
    ) -> _Context:
        """Answer with a Status of this HTTP status, and do not ask the server. `retry_after` is in seconds."""

        def reply(request: SeenRequest) -> Reply:
            body = status_body(request, status, reason=reason, message=message, retry_after=retry_after)
            headers = () if retry_after is None else (("Retry-After", f"{retry_after:g}"),)
            return Reply(status, body, headers)

        return self._during(plan.Answering(match=match, count=count, reply=reply))

    def throttle(self, match: Match = _ALL, *, retry_after: float = 1.0, count: int | None = None) -> _Context:
        """Answer 429 with Retry-After; the protocol has whole seconds, but a fraction is sent as it is."""
        return self.respond(
            match, 429, message="too many requests, please try again later", retry_after=retry_after, count=count
        )

    def deny(self, match: Match = _ALL, *, count: int | None = None) -> _Context:
        """Answer 403 as RBAC does."""

        def reply(request: SeenRequest) -> Reply:
            where = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
            message = (
                f'{request.resource} is forbidden: the fault proxy forbids to {request.verb} resource "{request.resource}" '
                f'in API group "{request.group}" {where}'
            )
            return Reply(403, status_body(request, 403, message=message))

        return self._during(plan.Answering(match=match, count=count, reply=reply))

    def expire(
        self,
        match: Match = _ALL,
        how: Literal["http", "event", "page"] = "http",
        *,
        count: int | None = 1,
        reason: Literal["Expired", "Gone"] = "Expired",
    ) -> _Context:
        """Say 410 to `count` requests: the version, or the continue token, is too old.

        http: the watches that begin next are answered so. event: the open watches (else those that begin next) get an ERROR
        frame. page: lists with a continue token get it.
        """
        message = "too old resource version: 1 (2)" if how != "page" else "The provided continue parameter is too old"

        def reply(request: SeenRequest) -> Reply:
            return Reply(410, status_body(request, 410, reason=reason, message=message))

        match how:
            case "http":
                narrowed = plan.Answering(match=match, count=count, reply=reply, applies=_resumes)
                return self._during(narrowed)
            case "page":
                return self._during(plan.Answering(match=match, count=count, reply=reply, applies=_continues))
            case "event":
                return self._during(plan.ExpiryEvent(match=match, count=count, reason=reason), self._traffic.expire)

    def accept_only_token(self, token: str) -> _Context:
        """Answer 401 to every bearer token but this one, which counts as the target's own credential."""
        return self._during(plan.OnlyToken(token=token))

    # --- answers that are wrong --------------------------------------------------------------------------------------

    def rewrite(self, match: Match, change: Change) -> _Context:
        """Change the objects in answers and frames (JSON only): `change` gets each as a dict.

        It returns another dict, bytes that are put in its place as they are (broken JSON, say), or None to leave it out.
        """
        return self._during(plan.Poison(match=match, change=change))

    def serve_stale(self, match: Match = _ALL) -> _Context:
        """Answer gets and lists with what the same request was answered last before the block: objects go back in time.

        Requests that were not made before pass.
        """
        recorded = self._call(lambda: dict(self._traffic.recorded))
        narrowed = plan.Rewind(match=match, recorded=recorded)
        return self._during(narrowed)

    # --- parts -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _during(
        self,
        fault: Fault,
        begin: Callable[[Any], None] | None = None,
        finish: Callable[[Any], None] | None = None,
    ) -> Generator[Fault, None, None]:
        def enter() -> None:
            self._traffic.faults.append(fault)
            if begin is not None:
                begin(fault)

        def leave() -> None:
            self._traffic.faults.remove(fault)
            if finish is not None:
                finish(fault)

        self._call(enter)
        try:
            yield fault
        finally:
            if self._thread is not None:  # the proxy may have been stopped inside the block
                self._call(leave)
        if fault.failure is not None:
            raise fault.failure

    def _the_listener(self) -> Listener:
        if self._listener is None:
            raise ConfigError("the fault proxy is not running; call start() first, or use it in a with statement")
        return self._listener

    def _call(self, function: Callable[[], T]) -> T:
        async def run() -> T:
            return function()

        return self._wait(run())

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise ConfigError("the fault proxy is not running; call start() first, or use it in a with statement")
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "the fault proxy is asked from its own thread (by the function of `rewrite`?), which would wait for itself"
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _resumes(request: SeenRequest) -> bool:
    return request.verb == "watch"


def _continues(request: SeenRequest) -> bool:
    return request.verb == "list" and bool(request.query.get("continue"))


def _kubeconfig(url: str, authority: bytes, token: str) -> Mapping[str, Any]:
    import base64

    cluster = {"server": url, "certificate-authority-data": base64.b64encode(authority).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fault-proxy", "cluster": cluster}],
        "users": [{"name": "fault-proxy", "user": {"token": token}}],
        "contexts": [{"name": "fault-proxy", "context": {"cluster": "fault-proxy", "user": "fault-proxy"}}],
        "current-context": "fault-proxy",
    }
