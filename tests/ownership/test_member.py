"""The member beside a server that fails: it continues, whatever the failure is."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from member_histories import SLOTS, Server

from ctrlruntime.errors import Forbidden, TransportError
from ctrlruntime.ownership.machine import Machine, SlotState
from ctrlruntime.ownership.member import REQUEST_LIMIT, Member
from ctrlruntime.testing.virtual_time import in_virtual_time


class Process:
    """A member whose first requests of each type fail."""

    def __init__(self, failure) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = Server()
        self._failure = failure
        self._failed = set()
        starts = itertools.count(1)
        machine = Machine(lambda: f"m-{next(starts)}", layout="v1", slots=SLOTS, now=self._loop.time())
        self.member = Member(machine, self.send, on_changes=self.changed, clock=self._loop.time)

    async def send(self, request):
        if type(request) not in self._failed:
            self._failed.add(type(request))
            if self._failure is None:
                await asyncio.Event().wait()
            raise self._failure
        return self._server.handle(request)

    def changed(self, changes) -> None:
        for change in changes:
            if change.state is SlotState.WARMING:
                self.member.warmed([change.slot])
            elif change.state is SlotState.CATCHING_UP:
                self.member.caught_up([(change.slot, change.grant)])

    @property
    def held(self) -> int:
        machine = self.member.machine
        return sum(machine.writable(slot, machine.slot(slot).grant, self._loop.time()) for slot in range(SLOTS + 1))


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (TransportError("connection refused"), "connection refused"),
        (Forbidden("no list of leases"), "sharding needs get, list, create, update and delete of leases"),
        (ValueError("not a number"), "not a number"),
        (None, f"no response within {REQUEST_LIMIT:g} s"),
    ],
    ids=["no connection", "no permission", "a defect", "no response"],
)
@in_virtual_time
async def test_a_member_continues_after_a_failure_and_names_its_reason(failure, reason, capsys):
    process = Process(failure)
    task = asyncio.ensure_future(process.member.run())
    await asyncio.sleep(1)
    assert process.held == 0
    await asyncio.sleep(60)
    assert process.held == SLOTS + 1
    assert process.member.failures >= 3
    assert process.member.trouble() == ""
    assert reason in capsys.readouterr().err

    task.cancel()
    await asyncio.wait({task})
