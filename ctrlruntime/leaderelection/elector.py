"""The elector: acquire a Lease, renew it, stop in time, and release it.

An elector is *waiting* for the Lease, *leading*, or *done*. It uses only its own monotonic clock, which continues while the machine is
suspended. A candidate measures the Lease duration from the moment at which it last saw the record change. A leader measures from before it
sent the last successful renewal, and stops leading `renew_deadline` seconds later. That is earlier than any candidate can take over,
because candidates saw the renewal later and wait longer. `deadline` is that moment: the fence lets no write start after it.

It uses a `Lock`, and provides `on_started`, `deadline` and the end of `run`.
"""

from __future__ import annotations

import asyncio
import math
import random
import socket
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from ctrlruntime import log
from ctrlruntime.errors import (
    AlreadyExists,
    APIStatusError,
    Conflict,
    LeaderElectionLostError,
    NotFound,
)
from ctrlruntime.leaderelection.lock import LeaseRecord, Lock
from ctrlruntime.leaderelection.options import LeaderElection
from ctrlruntime.leases.attempts import AttemptError, Troubles, attempt
from ctrlruntime.metrics import LeaderMetrics
from ctrlruntime.rest.fence import lease_clock

JITTER: Final = 0.2
"""Candidates wait up to this share of `retry_period` longer, so that they do not all try at once."""

RELEASED_FOR: Final = 1
"""Seconds for which a released Lease still counts, for candidates that check nothing else."""

_RELEASE_ATTEMPTS = 5

_NEEDS: Final = "leader election needs get, create and update of leases in the group coordination.k8s.io"


class Elector:
    """Takes part in the leader election of a lock.

    on_started: called once, when the Lease is acquired.
    blocked_reason: returns why this process must not lead (its main loop hangs), or nothing; called before each attempt. A leader then lets
    the Lease expire and does not release it, because the blocked code may continue.
    clock: measures all times (seconds, monotonic).
    wall: the times in the record.
    rng: a number from 0 to 1 for the jitter.
    """

    def __init__(
        self,
        lock: Lock,
        options: LeaderElection,
        *,
        on_started: Callable[[], None] = lambda: None,
        blocked_reason: Callable[[], str] = lambda: "",
        clock: Callable[[], float] = lease_clock,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: Callable[[], float] = random.random,
        metrics: LeaderMetrics | None = None,
    ) -> None:
        self.identity = options.identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        self._lock = lock
        self._options = options
        self._on_started = on_started
        self._blocked_reason = blocked_reason
        self._clock = clock
        self._wall = wall
        self._rng = rng
        self._metrics = metrics or LeaderMetrics(options.id)
        self._is_leader = False
        self._leads_until = -math.inf
        # A write of ours may have reached the server without an answer: at a stop there may be something to give back.
        self._may_hold = False
        self._observed: LeaseRecord | None = None
        self._observed_at = -math.inf
        self._troubles = Troubles()
        self._log = log.get_logger("leaderelection").bind(lease=lock.name, identity=self.identity)

    def __repr__(self) -> str:
        return f"Elector({self._lock.name}, {'leading' if self._is_leader else 'not leading'})"

    @property
    def is_leader(self) -> bool:
        """Whether this process certainly holds the Lease now."""
        return self._is_leader and self._clock() < self._leads_until

    @property
    def leader(self) -> str:
        """The identity of the last known leader; empty if unknown."""
        return self._observed.holder if self._observed is not None else ""

    def deadline(self) -> float | None:
        """Return the time on `clock` until which this process is certainly the leader.

        None if it is not. Safe in any thread.
        """
        return self._leads_until if self._is_leader else None

    async def run(self) -> None:
        """Acquire the Lease, then renew it.

        Cancel the call to end it; it then releases the Lease (`release_on_cancel`).

        Raises: LeaderElectionLostError if the Lease was not renewed in time or has another holder; the error of `on_started`, after
        releasing the Lease.
        """
        try:
            await self._acquire()
            self._log.info("became leader")
            self._on_started()
            await self._hold()
        except LeaderElectionLostError:
            raise
        except BaseException:
            await self._stop()
            raise
        finally:
            self._step_down()

    # --- waiting ---------------------------------------------------------------------------------------------------

    async def _acquire(self) -> None:
        self._log.info("waiting for the lease")
        while True:
            # A lease may come with an answer so late that it is of no use; the next attempt renews it.
            if await self._attempt(self._options.request_timeout) and self._clock() < self._leads_until:
                self._is_leader = True
                self._metrics.is_leader = True
                return
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        """Return the seconds until the next attempt; not longer than until the lease of somebody else runs out."""
        jitter = JITTER * self._options.retry_period * self._rng()
        pause = self._options.retry_period + jitter
        if self._observed is None or self._may_take(self._observed):
            return pause
        left = self._observed_at + self._observed.lease_duration - self._clock()
        return min(pause, max(0.0, left) + jitter)

    # --- leading ---------------------------------------------------------------------------------------------------

    async def _hold(self) -> None:
        while True:
            await asyncio.sleep(max(0.0, min(self._options.retry_period, self._leads_until - self._clock())))
            left = self._leads_until - self._clock()
            if left <= 0:
                raise self._lost(
                    f"it was not renewed within {self._options.renew_deadline:g} s ({str(self._troubles) or 'no attempt was made in time'})"
                )
            await self._attempt(min(left, self._options.request_timeout))
            if self.leader not in {self.identity, ""}:
                raise self._lost(f"{self.leader} holds it")

    def _lost(self, why: str) -> LeaderElectionLostError:
        self._step_down()
        # Whoever leads now, it is not for us to give back.
        self._may_hold = False
        return LeaderElectionLostError(
            f"the lease {self._lock.name} is lost: {why}; this process must stop what only a leader may do"
        )

    def _step_down(self) -> None:
        if self._is_leader:
            self._is_leader = False
            self._metrics.is_leader = False
            self._log.info("no longer leader")

    # --- one attempt -----------------------------------------------------------------------------------------------

    async def _attempt(self, limit: float) -> bool:
        """Get or renew the lease within `limit` seconds; say whether that worked."""
        if blocked_reason := self._blocked_reason():
            self._report(blocked_reason)
            return False
        try:
            has_it = await attempt(self._get_or_renew, within=limit, needs=f"{_NEEDS} (lease {self._lock.name})")
        except AttemptError as error:
            if isinstance(error.__cause__, Conflict) and not self._is_leader:
                self._log.debug("another candidate acquired the lease")
            else:
                self._report(str(error))
            return False
        if has_it and self._troubles.ends(Lock):
            self._log.info("lease reachable again")
        return has_it

    async def _get_or_renew(self) -> bool:
        if self._is_leader and self._observed is not None and self._observed.holder == self.identity:
            try:
                return await self._write(self._renewed(self._observed))
            except (Conflict, NotFound):
                self._metrics.slow_paths += 1
        record = await self._lock.get()
        if record is None:
            # Deleted by hand: who leads by it, as we saw it last, may go on until it would have run out.
            gone = self._observed
            return await self._create() if gone is None or self._may_take(gone) else False
        self._observe(record)
        if not self._may_take(record):
            self._may_hold = False
            return False
        return await self._write(self._renewed(record) if record.holder == self.identity else self._taken(record))

    def _may_take(self, record: LeaseRecord) -> bool:
        if record.holder in {"", self.identity}:
            return True
        # A leader that sees another holder does not fight for the lease: it has lost.
        return not self._is_leader and self._clock() >= self._observed_at + record.lease_duration

    def _observe(self, record: LeaseRecord) -> None:
        if record == self._observed:
            return
        if record.holder != self.leader and record.holder not in {"", self.identity}:
            self._log.info("another candidate leads", leader=record.holder)
        self._observed = record
        self._observed_at = self._clock()

    async def _create(self) -> bool:
        now = self._wall()
        began = self._clock()
        record = LeaseRecord(holder=self.identity, lease_duration=self._duration, acquire_time=now, renew_time=now)
        self._may_hold = True
        try:
            await self._lock.create(record)
        except AlreadyExists:
            self._may_hold = False
            return False
        self._won(record, began)
        return True

    async def _write(self, record: LeaseRecord) -> bool:
        began = self._clock()
        self._may_hold = True
        try:
            await self._lock.update(record)
        except APIStatusError:
            # Refused, so a candidate holds nothing. (A leader holds what it held before.)
            self._may_hold = self._is_leader
            raise
        self._won(record, began)
        return True

    def _won(self, record: LeaseRecord, began: float) -> None:
        self._observed = record
        self._observed_at = self._clock()
        self._leads_until = began + self._options.renew_deadline

    @property
    def _duration(self) -> int:
        # Whole seconds on the wire: rounded up, so that nobody takes over early.
        return math.ceil(self._options.lease_duration)

    def _renewed(self, record: LeaseRecord) -> LeaseRecord:
        return replace(record, lease_duration=self._duration, renew_time=self._wall())

    def _taken(self, record: LeaseRecord) -> LeaseRecord:
        now = self._wall()
        return LeaseRecord(
            holder=self.identity,
            lease_duration=self._duration,
            acquire_time=now,
            renew_time=now,
            transitions=record.transitions + 1,
        )

    def _report(self, trouble: str) -> None:
        if self._troubles.begins(Lock, trouble):
            self._log.warning(
                "cannot renew the lease" if self._is_leader else "cannot acquire the lease", reason=trouble
            )

    # --- the end ---------------------------------------------------------------------------------------------------

    async def _stop(self) -> None:
        was_leader = self._is_leader
        if self._blocked_reason():
            # What hangs may still write when it goes on. Our fence stops it, but the lease had better run out, too.
            self._may_hold = False
        # First this, then the write: nothing of ours may go out once others can see the lease free.
        self._step_down()
        if not (self._options.release_on_cancel and self._may_hold):
            return
        try:
            async with asyncio.timeout(self._options.request_timeout):
                if await self._release(read_first=not was_leader):
                    self._log.info("released the lease")
        except Exception as error:  # noqa: BLE001 - it runs out by itself; the stop goes on
            self._log.warning("cannot release the lease", hint="it expires by itself", error=log.describe(error))

    async def _release(self, *, read_first: bool) -> bool:
        """Empty the holder if it is us; say whether it was."""
        record = self._observed
        for _ in range(_RELEASE_ATTEMPTS):
            if read_first:
                record = await self._lock.get()
            if record is None or record.holder != self.identity:
                return False
            now = self._wall()
            released = LeaseRecord(
                lease_duration=RELEASED_FOR, acquire_time=now, renew_time=now, transitions=record.transitions
            )
            try:
                await self._lock.update(released)
            except Conflict:
                read_first = True
                continue
            except NotFound:
                return False
            self._may_hold = False
            self._observed = released
            return True
        raise Conflict(f"cannot release the lease {self._lock.name}: it changed {_RELEASE_ATTEMPTS} times meanwhile")
