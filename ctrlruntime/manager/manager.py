"""The manager: starts all parts in order, runs them, and stops them in reverse order.

```text
start   second loop, servers (metrics, probes) → webhooks → caches → runnables without leadership → warm-up
        → (elected) runnables with leadership
stop    runnables without leadership → with leadership → webhooks → caches → servers → lease released → recorded Events flushed → second loop
```

This code runs on the main event loop, with the user's code. Leader election, watchdog, probes and metrics run on the second loop, in its
own thread (`sideloop`), so that blocking user code loses neither Lease nor probe. They request data from the main loop.

A stop has two phases. First no new reconcile starts, and running reconciles can finish within the grace period, with a working client. Then
they are cancelled. Nothing here is global: two managers can run in one process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio

from ctrlruntime import healthz, log
from ctrlruntime.cache.cache import Cache
from ctrlruntime.cache.options import CacheOptions
from ctrlruntime.client.interfaces import Client, Reader
from ctrlruntime.cluster import Cluster
from ctrlruntime.controller.controller import Controller
from ctrlruntime.controller.options import ControllerDefaults
from ctrlruntime.errors import ConfigError, LeaderElectionLostError
from ctrlruntime.explain.calls import call_observer, left_out_observer
from ctrlruntime.explain.loops import WriteLoops
from ctrlruntime.fleet.clusters import Fleet, FleetClusters, Template
from ctrlruntime.journal import Journal
from ctrlruntime.manager.declarations import Declarations
from ctrlruntime.manager.discovery import discover
from ctrlruntime.manager.runnables import (
    FunctionRunnable,
    Grace,
    Group,
    Phase,
    Runnable,
    StopTimeoutError,
    WarmUp,
    actor_of,
    as_runnable,
    needs_leader_election,
)
from ctrlruntime.manager.shards import SharedObjects
from ctrlruntime.manager.sideloop import SideLoop
from ctrlruntime.manager.watchdog import USUAL, LoopWatch, Watchdog
from ctrlruntime.metrics import Metrics
from ctrlruntime.reconcile import Request
from ctrlruntime.recorder import EventRecorder
from ctrlruntime.rest.config import Config
from ctrlruntime.rest.fence import Actor, acting
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme
from ctrlruntime.serving.connections import DEFAULT_LIMITS, ServerLimits
from ctrlruntime.serving.loops import EventLoopBlockedError, run_on
from ctrlruntime.tracing import Tracing

if TYPE_CHECKING:
    from ctrlruntime.controller.sharding import Shard
    from ctrlruntime.handler import Owners
    from ctrlruntime.leaderelection import Elector, LeaderElection
    from ctrlruntime.leases.connection import LeaseConnection
    from ctrlruntime.manager.flags import Flags
    from ctrlruntime.manager.sharding import Replica
    from ctrlruntime.metrics import SecureMetrics
    from ctrlruntime.ownership.options import ShardBy, Sharding
    from ctrlruntime.serving.server import Address, Handler, HTTPServer
    from ctrlruntime.webhook.server import WebhookOptions, WebhookServer


T = TypeVar("T")

_RELEASE: Final = 1.0
"""Seconds to release the Lease if the grace period is already over."""

_REVIEWS: Final = 5.0
"""Seconds for running reviews of webhooks if the grace period is already over."""


ANSWER_WITHIN: Final = 4.0
"""Seconds until the main loop must start a call from the second loop; less than the timeout of a health check."""


class Manager:
    """Runs controllers and other runnables for a cluster.

    Create it with `new_manager`.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        metrics: Metrics,
        leader_election: LeaderElection | None = None,
        sharding: Sharding | None = None,
        has_replicas: bool = False,
        fleet: Fleet | None = None,
        metrics_bind_address: str = "",
        health_probe_bind_address: str = "",
        graceful_shutdown_timeout: float | None = 30.0,
        controller_defaults: ControllerDefaults | None = None,
        webhook: WebhookOptions | None = None,
        watchdog: Watchdog | None = USUAL,
        debug_bind_address: str = "",
        debug_address_file: str = "",
        tracing: Tracing | None = None,
        secure_metrics: SecureMetrics | None = None,
        server_limits: ServerLimits = DEFAULT_LIMITS,
    ) -> None:
        self.cluster = cluster
        self.metrics = metrics
        self.journal = Journal()
        self.controller_defaults = controller_defaults or ControllerDefaults()
        self.declarations = Declarations()
        """Declarations of builders and recorders, from which roles are generated."""

        self.elected = asyncio.Event()
        """Set when this process becomes the leader, or at once without leader election."""

        self.liveness = healthz.Checks()
        self.readiness = healthz.Checks()
        self._leader_election = leader_election
        self._sharding = sharding
        self._has_replicas = has_replicas
        self._replica: Replica | None = None
        if sharding is not None and has_replicas:
            from ctrlruntime.manager.sharding import Replica

            self._replica = Replica(
                sharding,
                fill=self._fill,
                free=self._free,
                catch_up=self._catch_up,
                lead=self._lead_as_member,
                stop_leading=self._stop_leading,
                lost=self._lose_leadership,
            )
            cluster.check_writes(self._replica.check_write)
            metrics.shard(sharding.id).read = self._replica.numbers
            metrics.leader(sharding.id)
        self._elector: Elector | None = None
        self._leases: LeaseConnection | None = None
        self._announce: Callable[[str, str], None] = lambda _action, _note: None
        self._metrics_address = metrics_bind_address
        self._secure_metrics = secure_metrics
        self._server_limits = server_limits
        self._health_address = health_probe_bind_address
        self._grace_seconds = graceful_shutdown_timeout
        self._grace: Grace | None = None
        self._names: dict[str, Controller[Any] | None] = {}
        """Names of controllers; None: reserved for one that is not added yet."""

        self._metrics_handlers: dict[str, Handler] = {}
        self.tracing = tracing
        self._observe_call = call_observer(self.journal, tracing)
        self._write_loops: list[WriteLoops] = []
        self._observe(cluster)
        divides_fleet = fleet is not None and fleet.sharded
        if divides_fleet and sharding is None:
            raise ConfigError(
                "Fleet(sharded=True) divides the clusters among replicas. Pass sharding=ctrl.Sharding(id) too"
            )
        self.fleet = FleetClusters(
            cluster,
            fleet,
            prepare=self._prepare_cluster,
            forget=self._forget_cluster,
            ring=self._replica.shards if self._replica is not None and divides_fleet else None,
        )
        """The other clusters: those of the providers, and those that were added with `add`."""

        if self._replica is not None and divides_fleet:
            self._replica.add_fleet(self.fleet)

        self.metrics.clusters = self.fleet.counts

        self._controllers: list[Controller[Any]] = []
        self.shards = SharedObjects(lambda: self._controllers, cluster.fence)
        """Which replica reconciles an object, if replicas share them."""

        self._others = Group("others", self._runnable_failed, ended=self._runnable_ended, fenced=False)
        self._leaders = Group("leader election", self._runnable_failed, ended=self._runnable_ended, fenced=True)
        self._caches = Group("caches", self._runnable_failed, fenced=False)
        self._warmups: set[asyncio.Task[None]] = set()
        self._waiting_for_warmup: list[WarmUp] = []
        self._metrics_server: HTTPServer | None = None
        self._health_server: HTTPServer | None = None
        self._debug_address = debug_bind_address
        self._debug_address_file = anyio.Path(debug_address_file) if debug_address_file else None
        self._debug_server: HTTPServer | None = None
        self._side = SideLoop()
        self._main: asyncio.AbstractEventLoop | None = None
        self._watchdog = watchdog
        self._watch: LoopWatch | None = None
        self.on_stall: Callable[[str], None] = lambda _where: None
        """Called on the second loop, several times a second, while code blocks the main loop for `warn_after`, with its line."""

        self._webhook_options = webhook
        self._webhook_server: WebhookServer | None = None
        self._stop = asyncio.Event()
        self._errors: list[BaseException] = []
        self._started = False
        self._log = log.get_logger("manager")

    # --- what controllers and users ask for -------------------------------------------------------------------------------

    @property
    def config(self) -> Config:
        return self.cluster.config

    @property
    def scheme(self) -> Scheme:
        return self.cluster.scheme

    @property
    def mapper(self) -> RESTMapper:
        return self.cluster.mapper

    @property
    def client(self) -> Client:
        """The client: reads from the cache, writes to the API server."""
        return self.cluster.client

    @property
    def cache(self) -> Cache:
        return self.cluster.cache

    @property
    def api_reader(self) -> Reader:
        """A reader that always reads from the API server. Also works before the start."""
        return self.cluster.api_reader

    @property
    def metrics_address(self) -> Address | None:
        """Host and actual port of /metrics; None if it is not served."""
        return None if self._metrics_server is None else self._metrics_server.address_if_running

    @property
    def health_probe_address(self) -> Address | None:
        """Host and actual port of /healthz and /readyz; None if they are not served."""
        return None if self._health_server is None else self._health_server.address_if_running

    @property
    def debug_address(self) -> Address | None:
        """Host and actual port of /debug/ctrlruntime/; None if it is not served."""
        return None if self._debug_server is None else self._debug_server.address_if_running

    @property
    def graceful_shutdown_timeout(self) -> float | None:
        """Seconds that running reconciles may take at a stop; None: no limit."""
        return self._grace_seconds

    @property
    def webhook_server(self) -> WebhookServer:
        """The webhook server, which runs on every replica.

        The first access adds it to the manager.

        Raises: RuntimeError for the first access after the start.
        """
        if self._webhook_server is None:
            self._refuse_late("the webhook server")
            from ctrlruntime.webhook.server import WebhookServer

            self._webhook_server = WebhookServer(
                self._webhook_options,
                client=self.cluster.unfenced_client(),
                synced=self._kind_synced,
                metrics=self.metrics,
            )
        return self._webhook_server

    async def _kind_synced(self, kind: type[Any]) -> None:
        await self.cache.wait_running()
        with acting(Actor("webhook", fenced=False)):  # the informer it may start is there for the webhooks
            await self.cache.list(kind, limit=1)

    def event_recorder(self, controller: str) -> EventRecorder:
        """Return the event recorder of a controller; the same recorder for the same name."""
        if controller not in self.declarations.recorders:
            self.declarations.recorders.append(controller)
        return self.cluster.event_recorder(controller)

    def register_controller_name(self, name: str) -> None:
        """Reserve the name of a controller that is added later.

        Raises: ConfigError if it is in use.
        """
        self._refuse_taken_name(name)
        self._names[name] = None

    def _refuse_taken_name(self, name: str) -> None:
        if name in self._names:
            raise ConfigError(
                f"cannot add controller {name}: the manager has one of this name, which labels metrics and owns fields. "
                "Give it another name with .named(…), or share the name with skip_name_validation=True"
            )

    def add(self, runnable: Runnable | Callable[[], Awaitable[None]] | Cluster) -> None:
        """Run something with the manager.

        A Runnable, an async function (which needs leadership), or another Cluster.

        After the start it runs at once. Raises: TypeError, ConfigError for a duplicate cluster or a controller name in use, RuntimeError
        while the manager is stopping.
        """
        if self.is_stopping:
            raise RuntimeError(f"cannot add {runnable!r}: the manager is stopping")
        if isinstance(runnable, Cluster):
            self.fleet.add(runnable)
            return
        accepted = as_runnable(runnable)
        if isinstance(accepted, Controller):
            if not accepted.options.skip_name_validation and self._names.get(accepted.name, accepted) is not None:
                self._refuse_taken_name(accepted.name)
            self._names[accepted.name] = accepted
            self._controllers.append(accepted)
            if self._replica is not None:
                self._replica.shards.add(accepted)
        self.declarations.note(accepted)
        if not needs_leader_election(accepted):
            self._others.add(accepted)
            return
        self._leaders.add(accepted)
        if isinstance(accepted, WarmUp) and not self.elected.is_set():
            if self._started:
                self._warm_up(accepted)
            else:
                self._waiting_for_warmup.append(accepted)

    def new_shard(self, controller: str, by: ShardBy, kind: type[Any] | None, /) -> Shard[Any] | None:
        """Return the share of a controller in this process, or None for everything.

        `kind`: what it reconciles.

        Builders call it for `sharded=True`. Raises: ConfigError for an unknown rule.
        """
        if self._replica is None:
            return None
        if kind is None:
            return self._replica.new_shard(controller, by, "", "", lambda _share, _request: None)
        gvk = self.scheme.gvk_for(kind)
        known = self.cache.known
        return self._replica.new_shard(
            controller,
            by,
            gvk.group,
            gvk.kind,
            lambda share, request: known(kind, share, request.namespace, request.name),
        )

    def new_fleet_share(self, *, needs_leadership: bool) -> Shard[Any]:
        """Return the share of a controller that watches the fleet.

        Builders call it.
        """
        return self.fleet.new_share(needs_leadership=needs_leadership)

    def watch_fleet(self, controller: Controller[Any], share: Shard[Any], watches: Sequence[Template], /) -> None:
        """Watch kinds for a controller in each cluster of the fleet, now and later.

        Builders call it.
        """
        self.fleet.watch(controller, share, watches)

    def hold_part(self, kind: type[Any], shard: Shard[Any], owners: Owners | None, /) -> None:
        """Cache only the objects of a share for its controller. Builders call it.

        `owners`: finds the owners of an object; None: the controller reconciles the objects themselves.
        """
        if self._replica is not None:
            rule = self._replica.rule(shard, self.scheme.gvk_for(kind).kind, owners)
            self.cache.hold_part(kind, shard, rule, self._replica.shards)

    def discover(self, package: str) -> None:
        """Import a package, and register its kinds.

        Then call `setup_with_manager(mgr)` of each module that has one.

        It includes sub-packages, in the order of dotted names, except `__main__` and tests. Raises: ConfigError for a package or module
        that cannot be imported, and for a `setup_with_manager` with the wrong signature.
        """
        discover(self, package)

    @property
    def _clusters(self) -> list[Cluster]:
        return [self.cluster, *self.fleet.clusters]

    def _prepare_cluster(self, cluster: Cluster) -> None:
        self.metrics.include(cluster.metrics)
        self._observe(cluster)
        if self._elector is not None:
            cluster.fence.arm(self._elector.deadline)
        elif self._replica is not None and self._started:
            cluster.fence.arm(self._replica.shards.leader_deadline)

    def _forget_cluster(self, cluster: Cluster) -> None:
        self.metrics.exclude(cluster.metrics)
        self.journal.forget(lambda key: isinstance(key, Request) and key.cluster == cluster.name)
        self._write_loops = [loops for loops in self._write_loops if loops.cluster != cluster.name]

    def _observe(self, cluster: Cluster) -> None:
        loops = WriteLoops(cluster.name, counter=self.metrics.client(cluster.name))
        self._write_loops.append(loops)
        cluster.observers.add_observer(self._observe_call)
        cluster.observers.add_left_out_observer(left_out_observer(self.journal, cluster.name))
        cluster.observers.add_write_observer(loops.wrote)
        cluster.observers.add_change_observer(loops.saw)

    def add_healthz_check(self, name: str, check: healthz.Check) -> None:
        """Add a liveness check.

        Raises: RuntimeError after the start, ValueError for a name in use.
        """
        self._refuse_late(f"the liveness check {name!r}")
        self.liveness.add(name, check)

    def add_readyz_check(self, name: str, check: healthz.Check) -> None:
        """Add a readiness check.

        Raises: RuntimeError after the start, ValueError for a name in use.
        """
        self._refuse_late(f"the readiness check {name!r}")
        self.readiness.add(name, check)

    def add_metrics_handler(self, path: str, handler: Handler) -> None:
        """Serve `handler` (an aiohttp.web handler) at `path` of the metrics server.

        It runs on the main event loop and must return a complete response. Raises: RuntimeError after the start, ValueError.
        """
        self._refuse_late(f"the metrics handler {path!r}")
        if path in self._metrics_handlers or path.rstrip("/") == "/metrics":
            raise ValueError(f"cannot add a handler for {path}: the metrics server has one")
        self._metrics_handlers[path] = handler

    def _refuse_late(self, what: str) -> None:
        if self._started:
            raise RuntimeError(f"{what} must be added before the manager starts")

    # --- life ---------------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Run until `stop` is called, this call is cancelled, or something fails.

        Raises: the first error (an ExceptionGroup for several), LeaderElectionLostError, StopTimeoutError for a runnable that does not end
        in the grace period, ConfigError for a sharded controller without sharding if there may be other replicas, RuntimeError for a second
        start.
        """
        if self._started:
            raise RuntimeError("cannot start the manager: it was started before. Create another with new_manager")
        self._refuse_sharded()
        self._started = True
        self._main = asyncio.get_running_loop()
        self._side.start()
        watching = self._watch_main()
        recorders = asyncio.ensure_future(self.cluster._run_recorders())  # noqa: SLF001 - a cluster beside this one runs its own
        election: asyncio.Task[None] | None = None
        was_cancelled = False
        try:
            election = await self._bring_up()
            await self._stop.wait()
        except asyncio.CancelledError:
            was_cancelled = True
        except Exception as error:  # noqa: BLE001 - raised after the stop, with what the stop itself brings
            self._errors.append(error)
        self._stop.set()
        was_cancelled |= await self._through(self._shut_down(election, recorders, watching))
        self._log.info("stopped")
        if was_cancelled:
            for failure in self._errors:
                self._log.error("failed during cancellation", error=log.describe(failure))
            raise asyncio.CancelledError
        self._raise()

    def _refuse_sharded(self) -> None:
        if self._sharding is not None or not self.declarations.is_sharded:
            return
        if self._has_replicas:
            raise ConfigError(
                "a controller has sharded=True, but the manager has no sharding. Pass sharding=ctrl.Sharding(…) to new_manager"
            )
        self._log.warning(
            "no sharding: this process reconciles everything",
            hint="a controller has sharded=True. Outside tests, pass sharding=ctrl.Sharding(…) to new_manager",
        )

    def stop(self) -> None:
        """Request a stop.

        `start` returns when everything has ended. May be called from signal handlers, and twice.
        """
        self._stop.set()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    async def _bring_up(self) -> asyncio.Task[None] | None:
        """Start everything in order; return the election that is under way, if there is one."""
        webhooks = self._webhook_server
        if not self._names and self._leaders.is_empty and self._others.is_empty and webhooks is None:
            self._log.warning(
                "manager has no controllers, webhooks or runnables", hint="call complete() on each builder"
            )
        elector = self._new_elector()
        await self._start_servers()
        if webhooks is not None:
            # Before the caches: what they list may have to be converted.
            await webhooks.start()
        self._caches.add(FunctionRunnable(self.cluster.cache.run, needs_leader_election=False))
        self._caches.add(FunctionRunnable(self.fleet.run, needs_leader_election=False))
        self._caches.start()
        await self._unless_stopped(self.cluster.wait_running())
        if self.is_stopping:
            return None
        if elector is not None:
            # Before the first runnable: from here on a write that is bound to leadership needs the lease.
            for cluster in self._clusters:
                cluster.fence.arm(elector.deadline)
        if self._replica is not None:
            for cluster in self._clusters:
                cluster.fence.arm(self._replica.shards.leader_deadline)
        self._others.start()
        if self._replica is not None:
            self._join(self._replica)
        elif elector is None:
            self._lead()
        if elector is None:
            return None
        for runnable in self._waiting_for_warmup:
            self._warm_up(runnable)
        election = asyncio.ensure_future(self._side.run(elector.run))
        election.add_done_callback(self._election_ended)
        return election

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Await `work`, but not longer than until the stop: what failed meanwhile may be what it waits for."""
        tasks = {asyncio.ensure_future(work), asyncio.ensure_future(self._stop.wait())}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    async def _start_servers(self) -> None:
        from ctrlruntime.serving.endpoints import health_server, metrics_server

        self._add_own_checks()
        self._metrics_server = metrics_server(
            self._metrics_address,
            self.metrics,
            handlers=self._metrics_handlers,
            ask=self.run_on_main_loop,
            secure=self._secure_metrics,
            transport=self._metrics_transport(),
            limits=self._server_limits,
        )
        self._health_server = health_server(
            self._health_address,
            liveness=self.liveness,
            readiness=self.readiness,
            ask=self.run_on_main_loop,
            metrics=self.metrics,
            limits=self._server_limits,
        )
        if self._metrics_server is None and self._metrics_handlers:
            self._log.info(
                "handlers not served: no metrics server",
                hint="set metrics_bind_address",
                paths=sorted(self._metrics_handlers),
            )
        self._debug_server = self._new_debug_server()
        for server in (self._metrics_server, self._health_server, self._debug_server):
            if server is not None:
                await self._side.run(server.start)
        if self._debug_address_file is not None and self.debug_address is not None:
            await self._write_debug_address(self._debug_address_file, self.debug_address)

    async def _write_debug_address(self, file: anyio.Path, address: Address) -> None:
        try:
            await file.write_text(f"{address}\n")
        except OSError as error:
            self._log.warning("address of the debug pages not written", file=str(file), error=str(error))

    def _metrics_transport(self) -> Transport | None:
        """Return a transport of the metrics server's own, for the second loop: who may scrape is asked however busy the main one is."""
        if self._secure_metrics is None:
            return None
        return self.cluster.transport.sibling()

    def _new_debug_server(self) -> HTTPServer | None:
        if self._debug_address in {"", "0"}:
            return None
        from ctrlruntime.explain.explainer import Explainer
        from ctrlruntime.explain.html import SCRIPT
        from ctrlruntime.explain.pages import pages
        from ctrlruntime.serving.debug import debug_server

        explainer = Explainer(
            self.journal,
            lambda: self._controllers,
            lambda: self._clusters,
            loops=lambda: self._write_loops,
            ring=lambda: None if self._replica is None else self._replica.state(),
            fleet=self.fleet.explained,
        )
        stack = list[str] if self._watch is None else self._watch.stack
        return debug_server(
            self._debug_address,
            pages(explainer),
            ask=self.run_on_main_loop,
            script=SCRIPT,
            stack=stack,
            metrics=self.metrics.server("debug"),
            limits=self._server_limits,
        )

    def _add_own_checks(self) -> None:
        self.readiness.add("running", self._check_running)
        if "caches" not in self.readiness:
            self.readiness.add("caches", self._check_caches)
        if self._webhook_server is not None and "webhook" not in self.readiness:
            self.readiness.add("webhook", self._webhook_server.started_checker)
        if self._replica is not None and "sharding" not in self.readiness:
            self.readiness.add("sharding", self._replica.check)
        if self._watch is not None and "event-loop" not in self.liveness:
            if not self.liveness.names():
                self.liveness.add("ping", healthz.ping)
            self.liveness.add("event-loop", self._watch.check)

    def _check_running(self) -> None:
        if self.is_stopping:
            raise RuntimeError("the manager is stopping")

    def _check_caches(self) -> None:
        self.cluster.cache.check()

    # --- the second loop ----------------------------------------------------------------------------------------------------

    def _watch_main(self) -> asyncio.Task[None] | None:
        """Begin to watch the main loop from the second one."""
        if self._watchdog is None:
            return None
        watch = self._watch = LoopWatch(
            self._watchdog, asyncio.get_running_loop(), metrics=self.metrics.loop, on_stall=self.on_stall
        )

        async def run() -> None:
            await watch.run()
            # The main loop is gone, and with it all that may write: what is left here ends, and gives the lease back.
            self._side.ask_to_end()

        return asyncio.ensure_future(self._side.run(run))

    async def run_on_main_loop(self, factory: Callable[[], Awaitable[T]], /, *, timeout: float | None = None) -> T:
        """Run an awaitable on the manager's main event loop.

        `factory` creates it there. Returns its result.

        HTTP handlers use it, because they run on the second event loop.

        Raises:
            EventLoopBlockedError: The main loop did not start it within `timeout` seconds (default: 4). The error names the line where
                the main loop is blocked.

        """
        if self._main is None:
            raise EventLoopBlockedError("the manager has not started")
        try:
            return await run_on(self._main, factory, begin_within=ANSWER_WITHIN if timeout is None else timeout)
        except EventLoopBlockedError as error:
            if self._watch is None:
                raise
            raise EventLoopBlockedError(self._watch.describe()) from error

    # --- leadership ---------------------------------------------------------------------------------------------------------

    def _new_elector(self) -> Elector | None:
        options = self._leader_election
        if options is None:
            return None
        from ctrlruntime.leaderelection import Elector, LeaseLock
        from ctrlruntime.leases.connection import LeaseConnection

        main = asyncio.get_running_loop()
        lock = options.lock
        if lock is None:
            self._leases = LeaseConnection(self.cluster.transport, scheme=self.scheme)
            lock = LeaseLock(self._leases.client, options)
        elector = Elector(
            lock,
            options,
            on_started=lambda: self._tell_elected(main),
            blocked_reason=self._watch.trouble if self._watch is not None else lambda: "",
            metrics=self.metrics.leader(options.id),
        )
        if isinstance(lock, LeaseLock):
            self._announce = self._announcer(lock.name, options.id, elector.identity)
        self._elector = elector
        return elector

    def _join(self, replica: Replica) -> None:
        """Become one of the replicas that share the objects."""
        grace = self._grace_seconds
        task = replica.start(
            self._side,
            self.cluster.transport,
            self.scheme,
            stop_grace=30.0 if grace is None else grace,
            blocked_reason=self._watch.trouble if self._watch is not None else lambda: "",
        )
        task.add_done_callback(self._membership_ended)
        for runnable in self._waiting_for_warmup:
            self._warm_up(runnable)

    def _membership_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._errors.append(error)
            self._stop.set()

    async def _fill(self, gains: int) -> None:
        # This process may have been cut off until now. A list over a dead connection would take until its timeout.
        self.cluster.transport.distrust_connections()
        await asyncio.gather(self.cache.fill_parts(gains), self.fleet.fill())

    async def _free(self) -> None:
        self.fleet.settle_all()
        await self.cache.release_parts()

    def _catch_up(self, slots: Collection[int]) -> None:
        self.cluster.distrust_cache()
        self.fleet.catch_up(slots)

    def _lead_as_member(self) -> None:
        if not self.is_stopping:
            self._note_leading(leads=True)
            self._lead()

    def _note_leading(self, *, leads: bool) -> None:
        if self._sharding is not None:
            self.metrics.leader(self._sharding.id).is_leader = leads

    async def _stop_leading(self) -> None:
        """End what only the leader runs."""
        if self._is_leadership_over():
            return
        if not self.is_stopping:
            # The others did not see this replica for long, and it came back. What only a leader runs cannot start again.
            self._end_with(LeaderElectionLostError("the leadership moves to another replica; this process must stop"))
        self._errors += await self._leaders.stop(self._grace or Grace(self._grace_seconds))

    def _lose_leadership(self) -> None:
        if not self._is_leadership_over():
            self._lost_lease(
                LeaderElectionLostError(
                    "another replica may lead, because this one did not renew its lease, or the lease of the ring, in time; "
                    "this process must stop what only a leader may do"
                )
            )

    def _is_leadership_over(self) -> bool:
        """Return whether the end of the leadership ends nothing here: it may then come back."""
        self._note_leading(leads=False)
        self.elected.clear()
        if not self._leaders.is_empty:
            return False
        self._leaders.phase = Phase.COLLECTING
        return True

    def _announcer(self, lease: str, id: str, identity: str) -> Callable[[str, str], None]:
        """Return a function that records on the Lease what becomes of the election."""
        from ctrlruntime.api.coordination.v1 import Lease
        from ctrlruntime.api.meta.v1 import ObjectMeta

        # The id is the name of a Lease (253 characters), an event's reporter a qualified name (63).
        recorder = self.cluster.event_recorder(id[:63].rstrip("-."))
        namespace, _, name = lease.rpartition("/")
        subject = Lease(metadata=ObjectMeta(namespace=namespace, name=name))
        return lambda action, note: recorder.event(
            subject, reason="LeaderElection", action=action, note=f"{identity} {note}"
        )

    def _tell_elected(self, main: asyncio.AbstractEventLoop) -> None:
        main.call_soon_threadsafe(self._elected)

    def _elected(self) -> None:
        if self.is_stopping or (self._elector is not None and self._elector.deadline() is None):
            return  # a lease that was lost again, or won during the stop, starts nothing
        for cluster in self._clusters:
            cluster.distrust_cache()
        self._announce("StartLeading", "became leader")
        self._lead()

    def _lead(self) -> None:
        """Leadership is ours (or nobody elects): start what waits for it."""
        self.elected.set()
        self._leaders.start()

    def _election_ended(self, task: asyncio.Task[None]) -> None:
        if self.elected.is_set():
            self._announce("StopLeading", "stopped leading")
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if isinstance(error, LeaderElectionLostError):
            self._lost_lease(error)
        else:
            self._end_with(error)

    def _lost_lease(self, error: LeaderElectionLostError) -> None:
        # Another process may lead by now: nothing of ours gets time to finish.
        self._grace_seconds = 0.0
        if self._grace is not None:
            self._grace.cut()
        if self.is_stopping:
            # The process was giving the lease up anyway: how that went does not fail the stop.
            self._log.warning("lease lost during shutdown", error=log.describe(error))
        else:
            self._end_with(error)

    def _end_with(self, error: BaseException) -> None:
        self._errors.append(error)
        if not self.is_stopping:
            self._log.error("leader election ended, stopping the manager", error=log.describe(error))
            self._stop.set()

    # --- what fails, and the end -----------------------------------------------------------------------------------------------

    def _warm_up(self, runnable: WarmUp) -> None:
        """Get a runnable ready for leadership; a failure fails the manager, as that of its start would."""

        async def warm() -> None:
            with acting(actor_of(runnable, fenced=True)):
                await runnable.warmup()

        task = asyncio.ensure_future(warm())
        self._warmups.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._warmups.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                error.add_note(f"during the warm-up of {runnable!r}")
                self._runnable_failed(runnable, error)

        task.add_done_callback(ended)

    def _runnable_failed(self, runnable: object, error: BaseException) -> None:
        if not self.is_stopping:
            self._log.error("runnable failed, stopping the manager", runnable=repr(runnable), error=log.describe(error))
        self._errors.append(error)
        self._stop.set()

    def _runnable_ended(self, runnable: Runnable) -> None:
        if isinstance(runnable, Controller) and not self.is_stopping:
            # It was stopped by itself, and may be replaced.
            self._controllers.remove(runnable)
            if self._names.get(runnable.name) is runnable:
                del self._names[runnable.name]

    async def _through(self, work: Coroutine[Any, Any, None]) -> bool:
        """Await `work` to its end whatever is cancelled, and say whether that happened; a cancellation cuts the grace short."""
        task = asyncio.ensure_future(work)
        was_cancelled = False
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                was_cancelled = True
                if self._grace is not None:
                    self._grace.cut()
        task.result()
        return was_cancelled

    async def _shut_down(
        self, election: asyncio.Task[None] | None, recorders: asyncio.Task[None], watching: asyncio.Task[None] | None
    ) -> None:
        grace = self._grace = Grace(self._grace_seconds)
        self._log.info("stopping", grace=self._grace_seconds)
        if election is not None and not self.elected.is_set():
            # A candidate that stops must not win: it would hold the lease for nothing.
            election.cancel()
        for task in self._warmups:
            task.cancel()
        if self._replica is not None:
            # First, while the controllers run: other replicas take the objects one part after the other.
            await self._attempt(self._replica.leave(grace.left()))
        for group in (self._others, self._leaders):
            self._errors += await group.stop(grace)
        if not grace.is_over_early:
            self._errors += [
                StopTimeoutError(
                    f"cannot stop {one!r} in time: the reconcile of {', '.join(map(str, one.left_behind))} did not end within the "
                    f"{grace.seconds:g} s of graceful_shutdown_timeout and ignores its cancellation. Let it end when it is cancelled"
                )
                for one in self._controllers
                if one.left_behind
            ]
        if self._webhook_server is not None:
            # After the controllers, whose writes may be reviewed here, and before the caches, which reviews read.
            # Reviews share the grace period: the Lease is released after them, and the process may be killed soon.
            left = grace.left()
            await self._attempt(self._webhook_server.stop(None if left is None else max(left, _REVIEWS)))
        self._errors += await self._caches.stop(Grace(10.0))
        for server in (self._metrics_server, self._health_server, self._debug_server):
            if server is not None:
                await self._attempt(self._side.run(server.stop))
        self._metrics_server = self._health_server = self._debug_server = None
        if self._debug_address_file is not None:
            await self._attempt(self._debug_address_file.unlink(missing_ok=True))
        if election is not None:
            await self._release_lease(election, grace)
        for last in (recorders, watching):
            if last is not None:
                last.cancel()
                await asyncio.wait({last})
        if self._leases is not None:
            await self._attempt(self._side.run(self._leases.close))
        if self._replica is not None:
            await self._attempt(self._replica.close())
        await self._side.stop()
        await asyncio.gather(*(self._attempt(cluster.close()) for cluster in self._clusters))

    async def _release_lease(self, election: asyncio.Task[None], grace: Grace) -> None:
        """End the election, which releases the lease; a server that does not answer is not waited for beyond the grace."""
        # Once: a second cancellation interrupts the release.
        if not election.cancelling():
            election.cancel()
        left = grace.left()
        if (await asyncio.wait({election}, timeout=None if left is None else max(left, _RELEASE)))[1]:
            self._log.warning("lease not released before the timeout", hint="it expires by itself")
            election.cancel()
            await asyncio.wait({election}, timeout=_RELEASE)

    async def _attempt(self, step: Coroutine[Any, Any, None]) -> None:
        try:
            await step
        except Exception as error:  # noqa: BLE001 - the steps after it are due all the same
            self._errors.append(error)

    def _raise(self) -> None:
        errors = [error for error in self._errors if not isinstance(error, asyncio.CancelledError)]
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise BaseExceptionGroup("the manager stopped after several failures", errors)


def new_manager(
    config: Config | object,
    *,
    scheme: Scheme | None = None,
    flags: Flags | None = None,
    cache: CacheOptions | None = None,
    disable_cache_for: Collection[type[Any]] = (),
    leader_election: LeaderElection | None = None,
    sharding: Sharding | None = None,
    fleet: Fleet | None = None,
    metrics_bind_address: str | None = None,
    health_probe_bind_address: str | None = None,
    graceful_shutdown_timeout: float | None = 30.0,
    read_your_writes_timeout: float = 5.0,
    controller_defaults: ControllerDefaults | None = None,
    metrics: Metrics | None = None,
    webhook: WebhookOptions | None = None,
    watchdog: Watchdog | None = USUAL,
    debug_bind_address: str | None = None,
    tracing: Tracing | None = None,
    secure_metrics: SecureMetrics | None = None,
    server_limits: ServerLimits = DEFAULT_LIMITS,
) -> Manager:
    """Return a manager for the cluster of `config`.

    `config` is a `ctrl.Config`, or a `Configuration` of kubernetes_asyncio.

    Args:
        config: the cluster and the credential.
        scheme: the classes of your kinds; built-in kinds are included.
        flags: the result of `parse_flags`; its addresses and leader election apply unless set here.
        cache: namespaces, selectors and transforms of the cache.
        disable_cache_for: classes that are always read live.
        leader_election: elect one leader with a Lease; with `flags` only if `--leader-elect` is set.
        sharding: share the objects of controllers with `sharded=True` among all replicas, in place of leader election. With `flags` only
            if `--leader-elect` is set; otherwise, and without `sharding` in a test, this process reconciles everything.
        fleet: providers of other clusters, which controllers watch with `on="fleet"`. The clusters of the flag `--clusters` are added.
        metrics_bind_address: host:port of `/metrics`; empty or "0", the default, turns it off.
        health_probe_bind_address: host:port of `/healthz` and `/readyz`; empty or "0" turns it off.
        graceful_shutdown_timeout: seconds that running reconciles may take at a stop; 0: none, None: no limit.
        read_your_writes_timeout: seconds that a cached read waits for this process's own writes.
        controller_defaults: defaults for all controllers.
        metrics: the metrics; default: a new registry.
        webhook: address and certificate of the webhook server; ignored without webhooks.
        watchdog: when blocking code causes a warning, and when it ends leadership; None: no watchdog.
        debug_bind_address: host:port of `/debug/ctrlruntime/` on loopback, or only a port; empty or "0", the default, turns it off.
        tracing: creates OpenTelemetry spans of reconciles and API calls; None: none.
        secure_metrics: serves `/metrics` over HTTPS to authorized callers; None: over plain HTTP to everybody.
        server_limits: limits for callers of metrics, probes and debug pages; webhooks have `WebhookOptions.limits`.

    Raises:
        ConfigError: the configuration cannot be used.

    """
    if config is None:
        raise ConfigError("new_manager needs a Config; get one with ctrl.get_config() or flags.get_config()")
    if leader_election is not None and sharding is not None:
        raise ConfigError(
            "new_manager has leader_election and sharding. Remove leader_election: with sharding, one replica leads, too"
        )
    has_replicas = leader_election is not None or sharding is not None
    resolved = config if isinstance(config, Config) else Config.from_configuration(config)
    if flags is not None:
        metrics_bind_address = flags.metrics_bind_address if metrics_bind_address is None else metrics_bind_address
        if health_probe_bind_address is None:
            health_probe_bind_address = flags.health_probe_bind_address
        debug_bind_address = flags.debug_bind_address if debug_bind_address is None else debug_bind_address
        leader_election = flags.election(leader_election)
        has_replicas = flags.leader_elect
        sharding = flags.shared(sharding)
        fleet = flags.fleet(fleet)
        cache = flags.cache(cache)
        webhook = flags.webhook(webhook)
        secure_metrics = flags.secure_metrics(secure_metrics)
    metrics = metrics or Metrics()
    cluster = Cluster(
        resolved,
        scheme=scheme,
        cache=cache,
        disable_cache_for=disable_cache_for,
        read_your_writes_timeout=read_your_writes_timeout,
        metrics=metrics,
    )
    return Manager(
        cluster,
        metrics=metrics,
        leader_election=leader_election,
        sharding=sharding,
        has_replicas=has_replicas,
        fleet=fleet,
        metrics_bind_address=metrics_bind_address or "",
        health_probe_bind_address=health_probe_bind_address or "",
        graceful_shutdown_timeout=graceful_shutdown_timeout,
        controller_defaults=controller_defaults,
        webhook=webhook,
        watchdog=watchdog,
        debug_bind_address=debug_bind_address or "",
        debug_address_file="" if flags is None else flags.debug_address_file,
        tracing=tracing,
        secure_metrics=secure_metrics,
        server_limits=server_limits,
    )


@contextlib.asynccontextmanager
async def running(manager: Manager) -> AsyncGenerator[Manager]:
    """Run a manager inside a block, for tests and scripts.

    The end of the block stops it and raises its error.
    """
    task = asyncio.ensure_future(manager.start())
    ready = asyncio.ensure_future(manager.cluster.wait_running())
    try:
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            yield manager
    finally:
        ready.cancel()
        manager.stop()
        await task
