"""The manager: starts what belongs together in the right order, runs it, and stops it in the reverse order.

```text
start   servers (metrics, probes) → caches → runnables without leadership → warm-up → (elected) runnables with leadership
stop    runnables without leadership → with leadership → caches → servers → lease released → recorded Events flushed
```

Stopping has two phases: nothing new begins and running reconciles may finish inside the grace, with a working client; then they are
cancelled. Nothing here is global: two managers can live in one process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ctrlruntime import healthz, log
from ctrlruntime.cache.cache import Cache
from ctrlruntime.cache.options import CacheOptions
from ctrlruntime.client.interfaces import Client, Reader
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import ConfigError, LeaderElectionLostError
from ctrlruntime.journal import Journal
from ctrlruntime.manager.runnables import FunctionRunnable, Group, Runnable, WarmUp, as_runnable, needs_leader_election
from ctrlruntime.metrics import Metrics
from ctrlruntime.recorder import EventRecorder
from ctrlruntime.rest.config import Config
from ctrlruntime.rest.fence import Fence
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.scheme import Scheme

if TYPE_CHECKING:
    from ctrlruntime.leaderelection import Elector, LeaderElection
    from ctrlruntime.manager.flags import Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDefaults:
    """What holds for every controller of a manager that does not say otherwise."""

    max_concurrent_reconciles: int = 1
    group_kind_concurrency: Mapping[str, int] = field(default_factory=dict[str, int])
    """Workers by kind: {"Deployment.apps": 5, "Pod": 2}; wins over the one number, loses to a controller's own option."""

    reconciliation_timeout: float | None = None
    enable_warmup: bool = False
    needs_leader_election: bool = True


class Manager:
    """Runs controllers and other runnables against one cluster. Make it with `new_manager`."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        fence: Fence,
        metrics: Metrics,
        leader_election: LeaderElection | None = None,
        metrics_bind_address: str = ":8080",
        health_probe_bind_address: str = "",
        graceful_shutdown_timeout: float | None = 30.0,
        controller_defaults: ControllerDefaults | None = None,
    ) -> None:
        self.cluster = cluster
        self.metrics = metrics
        self.journal = Journal()
        self.controller_defaults = controller_defaults or ControllerDefaults()
        self.elected = asyncio.Event()
        """Set once this process is the leader, or at once when there is no election."""

        self.liveness = healthz.Checks()
        self.readiness = healthz.Checks()
        self._fence = fence
        self._leader_election = leader_election
        self._metrics_address = metrics_bind_address
        self._health_address = health_probe_bind_address
        self._grace = graceful_shutdown_timeout
        self._controller_names: set[str] = set()
        self._metrics_handlers: dict[str, Any] = {}
        self._clusters: list[Cluster] = [cluster]
        self._others = Group("others", self._runnable_failed, fenced=False)
        self._leaders = Group("leader election", self._runnable_failed, fenced=True)
        self._caches = Group("caches", self._runnable_failed, fenced=False)
        self._warmups: set[asyncio.Task[None]] = set()
        self._waiting_for_warmup: list[WarmUp] = []
        self._servers: list[Any] = []
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
        """Reads from the cache, writes to the server."""
        return self.cluster.client

    @property
    def cache(self) -> Cache:
        return self.cluster.cache

    @property
    def api_reader(self) -> Reader:
        """Reads that bypass the cache; works before the start, too."""
        return self.cluster.api_reader

    def event_recorder(self, controller: str) -> EventRecorder:
        """Return a recorder of Events in the name of a controller."""
        return self.cluster.event_recorder(controller)

    def register_controller_name(self, name: str) -> None:
        """Take a controller's name. Raises: ValueError when another one has it: it labels metrics and owns fields."""
        if name in self._controller_names:
            raise ConfigError(
                f"there is a controller named {name!r} already; give this one another name with .named(…)"
            )
        self._controller_names.add(name)

    def add(self, runnable: Runnable | Callable[[], Awaitable[None]] | Cluster) -> None:
        """Run something with the manager: a Runnable, an async function (needs leadership), or another Cluster.

        Before the start it is kept; afterwards it starts at once. Raises: TypeError, RuntimeError while the manager is stopping.
        """
        if isinstance(runnable, Cluster):
            self._clusters.append(runnable)
            self._caches.add(FunctionRunnable(runnable.run, needs_leader_election=False))
            return
        accepted = as_runnable(runnable)
        if not needs_leader_election(accepted):
            self._others.add(accepted)
            return
        self._leaders.add(accepted)
        if isinstance(accepted, WarmUp):
            if self._started and not self.elected.is_set():
                self._warm_up(accepted)
            else:
                self._waiting_for_warmup.append(accepted)

    def add_healthz_check(self, name: str, check: healthz.Check) -> None:
        """Add a liveness check. Raises: RuntimeError after the start, ValueError for a name that is taken."""
        self._refuse_late(f"the liveness check {name!r}")
        self.liveness.add(name, check)

    def add_readyz_check(self, name: str, check: healthz.Check) -> None:
        """Add a readiness check. Raises: RuntimeError after the start, ValueError for a name that is taken."""
        self._refuse_late(f"the readiness check {name!r}")
        self.readiness.add(name, check)

    def add_metrics_handler(self, path: str, handler: Any) -> None:
        """Serve `handler` (an aiohttp.web handler) at `path` of the metrics server. Raises: RuntimeError after the start, ValueError."""
        self._refuse_late(f"the metrics handler {path!r}")
        if path in self._metrics_handlers or path.rstrip("/") == "/metrics":
            raise ValueError(f"the metrics server has a handler for {path} already")
        self._metrics_handlers[path] = handler

    def _refuse_late(self, what: str) -> None:
        if self._started:
            raise RuntimeError(f"{what} must be added before the manager starts")

    # --- life ---------------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Run until `stop` is called, this call is cancelled, or something fails. Raises: what failed first (an ExceptionGroup for several)."""
        if self._started:
            raise RuntimeError("the manager was started before; a manager runs once")
        self._started = True
        elector = self._elector()
        election: asyncio.Task[None] | None = None
        recorders = asyncio.ensure_future(self.cluster.run_recorders())
        try:
            try:
                await self._start_servers()
                self._caches.add(FunctionRunnable(self.cluster.run, needs_leader_election=False))
                self._caches.start()
                await self.cluster.wait_running()
                self._others.start()
                for runnable in self._waiting_for_warmup:
                    self._warm_up(runnable)
                if elector is None:
                    self._lead()
                else:
                    self._fence.arm(elector.deadline)
                    election = asyncio.ensure_future(elector.run())
                    election.add_done_callback(self._election_ended)
                await self._stop.wait()
            except asyncio.CancelledError:
                self._stop.set()
                raise
            except Exception as error:  # noqa: BLE001 - shown after the stop, with what the stop itself brings
                self._errors.append(error)
            finally:
                await asyncio.shield(asyncio.ensure_future(self._shut_down(election, recorders)))
        finally:
            self._log.info("stopped")
        self._raise()

    def stop(self) -> None:
        """Ask the manager to stop; `start` returns when everything has ended. May be called from signal handlers, and twice."""
        self._stop.set()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def _elector(self) -> Elector | None:
        options = self._leader_election
        if options is None:
            return None
        from ctrlruntime.leaderelection import Elector, LeaseLock

        lock = LeaseLock(self.cluster.unfenced_client(), options)
        return Elector(lock, options, on_started=self._lead, metrics=self.metrics.leader(options.id))

    def _lead(self) -> None:
        """Leadership is ours (or nobody elects): start what waits for it. A lease won while stopping starts nothing."""
        if self._stop.is_set():
            return
        self.elected.set()
        self._leaders.start()

    def _election_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._errors.append(error)
        if not self._stop.is_set():
            if isinstance(self._errors[-1] if self._errors else None, LeaderElectionLostError):
                # Another process may lead by now: nothing of ours gets time to finish.
                self._grace = 0.0
            self._stop.set()

    def _warm_up(self, runnable: WarmUp) -> None:
        task = asyncio.ensure_future(runnable.warmup())
        self._warmups.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._warmups.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self._log.warning(
                    "warm-up failed; it is done again once elected", runnable=repr(runnable), error=str(error)
                )

        task.add_done_callback(ended)

    def _runnable_failed(self, runnable: Runnable, error: BaseException) -> None:
        if not self._stop.is_set():
            self._log.error("a runnable failed, the manager stops", runnable=repr(runnable), error=repr(error))
        self._errors.append(error)
        self._stop.set()

    async def _shut_down(self, election: asyncio.Task[None] | None, recorders: asyncio.Task[None]) -> None:
        self._log.info("stopping", grace=self._grace)
        for task in self._warmups:
            task.cancel()
        for group in (self._others, self._leaders):
            self._errors += await group.stop(self._grace)
        self._errors += await self._caches.stop(10.0)
        for server in self._servers:
            await server.stop()
        if election is not None:
            election.cancel()
            await asyncio.wait({election})
        recorders.cancel()
        await asyncio.wait({recorders})
        for cluster in self._clusters:
            await cluster.close()

    async def _start_servers(self) -> None:
        from ctrlruntime.serving import health_server, metrics_server

        if server := metrics_server(self._metrics_address, self.metrics, handlers=self._metrics_handlers):
            self._servers.append(server)
        if server := health_server(self._health_address, liveness=self.liveness, readiness=self.readiness):
            self._servers.append(server)
        for server in self._servers:
            await server.start()

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
    live_kinds: Collection[type[Any]] = (),
    leader_election: LeaderElection | None = None,
    metrics_bind_address: str | None = None,
    health_probe_bind_address: str | None = None,
    graceful_shutdown_timeout: float | None = 30.0,
    read_your_writes_wait: float = 5.0,
    controller_defaults: ControllerDefaults | None = None,
    metrics: Metrics | None = None,
) -> Manager:
    """Return a manager for the cluster of `config` (ours, or a kubernetes_asyncio `Configuration`).

    Args:
        config: which cluster, as whom.
        scheme: classes of your kinds; the built-in ones are always known.
        flags: what `parse_flags` returned; its addresses and election switch hold unless given here.
        cache: namespaces, selectors and transforms of the cache.
        live_kinds: classes that are read from the server and never cached.
        leader_election: one leader at a time, by a Lease; with `flags` only when `--leader-elect` is set.
        metrics_bind_address: host:port of `/metrics` (default ":8080"); "0" turns it off.
        health_probe_bind_address: host:port of `/healthz` and `/readyz`; empty or "0" turns it off.
        graceful_shutdown_timeout: seconds running reconciles may take to finish; 0: none, None: as long as they need.
        read_your_writes_wait: seconds a cached read waits for this process's own writes.
        controller_defaults: what holds for every controller that does not say otherwise.
        metrics: where metrics are kept; default: a registry of the manager's own.

    Raises:
        ConfigError: the configuration cannot be used.

    """
    if config is None:
        raise ConfigError("new_manager needs a Config; get one with ctrl.get_config() or flags.get_config()")
    resolved = config if isinstance(config, Config) else Config.from_configuration(config)
    if flags is not None:
        metrics_bind_address = flags.metrics_bind_address if metrics_bind_address is None else metrics_bind_address
        if health_probe_bind_address is None:
            health_probe_bind_address = flags.health_probe_bind_address
        leader_election = flags.election(leader_election)
        cache = flags.cache(cache)
    metrics = metrics or Metrics()
    fence = Fence()
    cluster = Cluster(
        resolved,
        scheme=scheme,
        cache=cache,
        live_kinds=live_kinds,
        read_your_writes_wait=read_your_writes_wait,
        fence=fence,
        metrics=metrics,
    )
    return Manager(
        cluster,
        fence=fence,
        metrics=metrics,
        leader_election=leader_election,
        metrics_bind_address=":8080" if metrics_bind_address is None else metrics_bind_address,
        health_probe_bind_address=health_probe_bind_address or "",
        graceful_shutdown_timeout=graceful_shutdown_timeout,
        controller_defaults=controller_defaults,
    )


@contextlib.asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[Manager]:
    """Run a manager inside a block, for tests and scripts; leaving the block stops it and raises what failed."""
    task = asyncio.ensure_future(manager.start())
    try:
        ready = asyncio.ensure_future(manager.cache.wait_running())
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        yield manager
    finally:
        manager.stop()
        await task
