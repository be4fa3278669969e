"""Runs the machine of one member: sends its requests, and tells the process what becomes of its slots.

It runs on one event loop, the second one in a manager, so that blocking user code delays no renewal. The process calls `warmed`, `caught_up`,
`drained` and `stop` from that loop. What people ask, and `writable` and `deadline` of the machine, may be called from any thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from ctrlruntime import log
from ctrlruntime.leases.attempts import AttemptError, Troubles, attempt
from ctrlruntime.ownership.machine import Change, Machine
from ctrlruntime.ownership.messages import NoResponse, PutMember, Request, Response
from ctrlruntime.ownership.state import ReplicaState, RingState, SlotOwner
from ctrlruntime.rest.fence import lease_clock

TICK: Final = 0.25
"""The longest time in seconds between two looks at the clock."""

REQUEST_LIMIT: Final = 2.0
"""Seconds after which a request counts as one without a response."""

_NEEDS: Final = "sharding needs get, list, create, update and delete of leases in the group coordination.k8s.io"


class Member:
    """Takes part in a ring until it has left.

    Args:
        machine: The state of the member.
        send: Sends a request.
        pod_of: Returns the name of a member for people.
        on_changes: Gets each change of a slot, in order.
        blocked_reason: Returns why this process must not renew its Lease (its main loop hangs), or nothing.
        clock: Measures all times, in seconds.

    """

    def __init__(
        self,
        machine: Machine,
        send: Callable[[Request], Awaitable[Response]],
        *,
        pod_of: Callable[[str], str] = str,
        on_changes: Callable[[Sequence[Change]], None],
        blocked_reason: Callable[[], str] = lambda: "",
        clock: Callable[[], float] = lease_clock,
    ) -> None:
        self.machine = machine
        self._send_to_server = send
        self._pod_of = pod_of
        self._on_changes = on_changes
        self._blocked_reason = blocked_reason
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._troubles = Troubles()
        self.failures = 0
        """The number of requests without a response."""

        self._log = log.get_logger("sharding")

    async def run(self) -> None:
        """Take part until the member has left after `stop`. If the call is cancelled, the Lease runs out by itself."""
        try:
            while not self.machine.is_done:
                self._wake.clear()
                for request in self.machine.tick(self._clock()):
                    task = asyncio.ensure_future(self._send(request))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                if changes := self.machine.changes():
                    self._on_changes(changes)
                try:
                    async with asyncio.timeout(TICK):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def _send(self, request: Request) -> None:
        started = self._clock()
        response = await self._response(request)
        self.machine.answered(request, response, started=started, now=self._clock())
        self._wake.set()

    async def _response(self, request: Request) -> Response:
        if isinstance(request, PutMember) and (reason := self._blocked_reason()):
            self._report(request, reason)
            return NoResponse()
        try:
            response = await attempt(partial(self._send_to_server, request), within=REQUEST_LIMIT, needs=_NEEDS)
        except AttemptError as error:  # the next request must be sent: without it the slots close, and stay closed
            self._report(request, str(error))
            return NoResponse()
        if self._troubles.ends(type(request)):
            self._log.info("leases of the ring reachable again", request=type(request).__name__)
        return response

    def _report(self, request: Request, reason: str) -> None:
        self.failures += 1
        if self._troubles.begins(type(request), reason):
            self._log.warning("no response about the ring", request=type(request).__name__, reason=reason)

    # --- what people ask -------------------------------------------------------------------------------------------

    def state(self) -> RingState:
        """Return the ring as it was seen last. Safe in any thread."""
        machine = self.machine
        ring = machine.ring
        owners, nexts = (ring.owners, ring.nexts) if ring is not None else ((), ())
        return RingState(
            slots=0 if ring is None else ring.slots,
            layout="" if ring is None else ring.layout,
            epoch=0 if ring is None else ring.epoch,
            unowned=owners.count(""),
            replicas=[
                ReplicaState(
                    member=lease.identity,
                    pod=self._pod_of(lease.identity),
                    is_here=lease.identity == machine.identity,
                    state=lease.state if lease.holder else "expired",
                    slots=owners[:-1].count(lease.identity),
                    coming=nexts.count(lease.identity),
                    leads=owners[-1:] == (lease.identity,),
                    weight=lease.weight,
                    layout=lease.layout,
                    seconds=machine.age(lease.identity),
                )
                for lease in machine.members()
            ],
            trouble=str(self._troubles),
        )

    def owner(self, slot: int) -> SlotOwner:
        """Return who reconciles the objects of a slot. Safe in any thread."""
        machine = self.machine
        ring = machine.ring
        owner, following = (
            (ring.owners[slot], ring.nexts[slot]) if ring is not None and slot <= ring.slots else ("", "")
        )
        return SlotOwner(
            slot=slot,
            of=0 if ring is None else ring.slots,
            owner=self._pod_of(owner) if owner else "",
            member=owner,
            following=self._pod_of(following) if following else "",
            is_here=owner == machine.identity,
            state=machine.slot(slot).state.value,
        )

    def trouble(self) -> str:
        """Return why this member cannot work now, or nothing. Safe in any thread."""
        if self._clock() < self.machine.deadline():
            return ""
        return f"the Lease {self.machine.identity} is not renewed ({str(self._troubles) or 'no renewal so far'})"

    # --- news of the process ---------------------------------------------------------------------------------------

    def warmed(self, slots: Sequence[int]) -> None:
        """Note that the caches of slots are filled."""
        for slot in slots:
            self.machine.warmed(slot)
        self._wake.set()

    def caught_up(self, slots: Sequence[tuple[int, int]]) -> None:
        """Note that the caches have all that was stored before the grants of slots."""
        for slot, grant in slots:
            self.machine.caught_up(slot, grant)
        self._wake.set()

    def drained(self, slots: Sequence[tuple[int, int]]) -> None:
        """Note that nothing of the grants of slots runs any more, and none of their writes is open."""
        for slot, grant in slots:
            self.machine.drained(slot, grant)
        self._wake.set()

    def stop(self) -> None:
        """Begin to leave: give all slots away, and delete the Lease."""
        self.machine.stop(self._clock())
        self._wake.set()
