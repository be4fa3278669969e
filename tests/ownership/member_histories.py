"""Histories of an operator with several members: a model of the API server, of the network and of the processes, in virtual time.

`History(seed)` is one: what fails, when and for how long follows from the seed. It raises `BrokenError` if an invariant does not hold.
"""

from __future__ import annotations

import heapq
import itertools
import sys
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from ctrlruntime.ownership.machine import Machine, SlotState
from ctrlruntime.ownership.messages import (
    DeleteMember,
    ExpireMember,
    GetMember,
    Listing,
    ListLeases,
    MemberLease,
    NoResponse,
    PutMember,
    PutRing,
    Rejected,
    Request,
    Response,
    RingLease,
    Stored,
)

SLOTS = 8
REQUEST_LIMIT = 2.0
LATEST = 8.0
"""Seconds after which a request without a response can still be stored."""


_HELD = {SlotState.OPEN, SlotState.DRAINING}


class BrokenError(AssertionError):
    """An invariant does not hold."""


class Server:
    """The Leases, with compare-and-swap."""

    def __init__(self) -> None:
        self.members: dict[str, MemberLease] = {}
        self.ring: RingLease | None = None
        self._numbers = itertools.count(1)

    def handle(self, request: Request) -> Response:
        match request:
            case ListLeases():
                return Listing(tuple(self.members.values()), self.ring)
            case GetMember(identity):
                return self.members.get(identity)
            case PutMember(lease) | ExpireMember(lease):
                stored = self.members.get(lease.identity)
                if not self._matches(lease, stored):
                    return Rejected()
                new = self.members[lease.identity] = self._new(lease)
                return Stored(new.uid, new.version)
            case DeleteMember(identity, uid):
                found = self.members.get(identity)
                if found is not None and found.uid == uid:
                    del self.members[identity]
                return None
            case PutRing(lease):
                if not self._matches(lease, self.ring):
                    return Rejected()
                self.ring = self._new(lease)
                return Stored(self.ring.uid, self.ring.version)

    def _matches(self, lease: Any, stored: Any) -> bool:
        if stored is None:
            return not lease.version and not lease.uid
        return bool(lease.version == stored.version and lease.uid == stored.uid)

    def _new(self, lease: Any) -> Any:
        return msgspec.structs.replace(
            lease, uid=lease.uid or f"uid-{next(self._numbers)}", version=str(next(self._numbers))
        )


class Process:
    """One member: its machine, its clock, and the work that it does for its slots."""

    def __init__(self, history: History, name: str, layout: str) -> None:
        self.history = history
        self.name = name
        self.offset = history.random.uniform(0, 1e6)  # its clock began at another time
        self.starts = itertools.count(1)
        self.is_frozen = False
        self.is_dead = False
        self.is_cut_off = False
        self.waiting: list[Callable[[], None]] = []
        self.machine = Machine(
            lambda: f"{name}-{next(self.starts)}", layout=layout, slots=SLOTS, now=self.clock(), weight=1
        )

    def clock(self) -> float:
        return self.history.now + self.offset

    def tick(self) -> None:
        if self.is_dead:
            return
        for request in self.machine.tick(self.clock()):
            self.send(request)
        for change in self.machine.changes():
            self.history.note(self, change.slot, change.state, change.grant)
            self.work(change.slot, change.state, change.grant)
        if not self.machine.is_done:
            self.history.at(0.25, lambda: self.run(self.tick))

    def run(self, step: Callable[[], None]) -> None:
        """Do a step, or when the process is not frozen any more."""
        if self.is_frozen:
            self.waiting.append(step)
        elif not self.is_dead:
            step()

    def thaw(self) -> None:
        self.is_frozen = False
        waiting, self.waiting = self.waiting, []
        self.history.random.shuffle(waiting)  # timers and responses that are due, in any order
        for step in waiting:
            self.run(step)

    def send(self, request: Request) -> None:
        history, random = self.history, self.history.random
        started = self.clock()
        is_answered = [False]

        def answer(response: Response) -> None:
            if not is_answered[0]:
                is_answered[0] = True
                self.machine.answered(request, response, started=started, now=self.clock())

        def arrive() -> None:
            response = history.server.handle(request)
            history.check(f"{self.name}: {type(request).__name__}")
            if random.random() >= history.lost and not self.is_cut_off:
                history.at(history.delay(), lambda: self.run(lambda: answer(response)))

        if not self.is_cut_off and random.random() >= history.lost:
            history.at(history.delay(), arrive)
        elif random.random() < 0.3:
            history.at(random.uniform(0, LATEST), arrive)  # the sender does not know
        history.at(REQUEST_LIMIT, lambda: self.run(lambda: answer(NoResponse())))

    def work(self, slot: int, state: SlotState, grant: int) -> None:
        history, random, machine = self.history, self.history.random, self.machine
        match state:
            case SlotState.WARMING:
                history.at(random.uniform(0.1, 3), lambda: self.run(lambda: machine.warmed(slot)))
            case SlotState.CATCHING_UP:
                history.at(random.uniform(0.05, 1), lambda: self.run(lambda: machine.caught_up(slot, grant)))
            case SlotState.DRAINING:
                history.at(random.uniform(0, 10), lambda: self.run(lambda: machine.drained(slot, grant)))
            case _:
                pass


class Elector:
    """A process of an older version, which leads by the same Lease. It follows the rules of `ctrlruntime.leaderelection`."""

    DURATION, DEADLINE, PERIOD = 15.0, 10.0, 2.0

    def __init__(self, history: History, name: str) -> None:
        self.history = history
        self.name = name
        self.leads_until = 0.0
        self.seen = ("", 0.0)  # a version, and the time at which it was seen first
        self.is_stopping = False

    def tick(self) -> None:
        history = self.history
        started = history.now

        def arrive() -> None:
            history.at(history.delay(), lambda: self.decide(history.server.ring, started))

        if not (self.is_stopping and self.leads_until <= history.now):
            if history.random.random() >= history.lost:
                history.at(history.delay(), arrive)
            history.at(self.PERIOD, self.tick)

    def decide(self, found: RingLease | None, started: float) -> None:
        history = self.history
        version = "" if found is None else found.version
        if version != self.seen[0]:
            self.seen = (version, history.now)
        holder = "" if found is None else found.holder
        is_free = found is None or not holder or history.now >= self.seen[1] + found.duration
        if self.is_stopping and holder == self.name:
            self.leads_until = 0.0  # before the write
            holder = ""
        elif not self.is_stopping and (holder == self.name or is_free):
            holder = self.name
        else:
            return
        base = found or RingLease(holder="", ring=None)
        lease = msgspec.structs.replace(
            base, holder=holder, ring=None, duration=self.DURATION, renewal=base.renewal + 1
        )

        def arrive() -> None:
            response = history.server.handle(PutRing(lease))
            if isinstance(response, Stored) and holder and history.random.random() >= history.lost:
                history.at(history.delay(), lambda: self.won(started))

        history.at(history.delay(), arrive)

    def won(self, started: float) -> None:
        if not self.is_stopping:
            self.leads_until = max(self.leads_until, started + self.DEADLINE)


class History:
    """One history of faults, from a seed."""

    def __init__(self, seed: int, *, processes: int = 3, seconds: float = 240.0, quiet: float = 150.0) -> None:
        self.random = Random(seed)
        self.seed = seed
        self.now = 0.0
        self.lost = 0.0
        self.slow = 0.02
        self.server = Server()
        self.log: list[str] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._names = itertools.count(1)
        self.processes: list[Process] = []
        self.electors: list[Elector] = []
        self.layout = "v1"
        self._seconds = seconds
        self._quiet = quiet
        # An elector that starts after another client deleted the Lease cannot know of a leader. So histories have electors, or that deletion.
        self.has_electors = self.random.random() < 0.4
        if self.has_electors and self.random.random() < 0.5:
            self.elect()
        for _ in range(processes):
            self.at(self.random.uniform(0, 5), self.start)
        self.at(10, self.fault)

    def at(self, after: float, step: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + after, next(self._order), step))

    def delay(self) -> float:
        return self.random.uniform(0.001, self.slow)

    def say(self, text: str) -> None:
        self.log.append(f"{self.now:8.2f} {text}")

    def start(self) -> Process:
        process = Process(self, f"m{next(self._names)}", self.layout)
        self.processes.append(process)
        self.say(f"{process.name} starts")
        process.tick()
        return process

    def run(self) -> None:
        """Run the faults, then a time without any; at its end, all slots are served and shared."""
        self._run_until(self._seconds)
        self.recover()
        self._run_until(self._seconds + self._quiet)
        self.check_shares()

    def _run_until(self, end: float) -> None:
        while self._queue and self._queue[0][0] <= end:
            self.now, _, step = heapq.heappop(self._queue)
            step()
            self.check("")
        self.now = end

    # Faults.

    def fault(self) -> None:
        if self.now >= self._seconds:
            return
        running = [each for each in self.processes if not each.is_dead and not each.machine.is_done]
        kinds = ["slow", "lost", "outage", "start", "layout", "elector" if self.has_electors else "delete ring"]
        if running:
            kinds += ["kill", "freeze", "freeze", "cut off", "stop", "delete lease"]
        kind = self.random.choice(kinds)
        process = self.random.choice(running) if running else None
        length = self.random.choice([1, 5, 12, 20, 40])
        self.say(f"fault: {kind} {process.name if process else ''} {length} s")
        if kind == "slow":
            self.slow = self.random.choice([0.5, 1.9, 4.0])
            self.at(length, self.fast)
        elif kind == "lost":
            self.lost = self.random.choice([0.1, 0.5])
            self.at(length, self.fast)
        elif kind == "outage":
            self.lost = 1.0
            self.at(length, self.fast)
        elif kind == "start" and len(running) < 5:
            self.start()
        elif kind == "elector":
            self.elect()
        elif kind == "layout":
            self.roll_out()
        elif process is not None and kind == "kill":
            process.is_dead = True
            if self.random.random() < 0.8:
                self.at(self.random.uniform(0.1, 10), self.start)
        elif process is not None and kind == "freeze":
            process.is_frozen = True
            self.at(length, process.thaw)
        elif process is not None and kind == "cut off":
            process.is_cut_off = True
            self.at(length, lambda: self.join(process))
        elif process is not None and kind == "stop":
            process.machine.stop(process.clock())
            self.at(self.random.uniform(0, 3), self.start)
        elif process is not None and kind == "delete lease":
            self.server.members.pop(process.machine.identity, None)
        elif kind == "delete ring":
            self.server.ring = None
        self.at(self.random.uniform(0.5, 15), self.fault)

    def elect(self) -> None:
        """Start an elector, as in a rollout back to leader election, and stop it later."""
        elector = Elector(self, f"elector-{next(self._names)}")
        self.electors.append(elector)
        self.say(f"{elector.name} starts")
        elector.tick()
        self.at(self.random.uniform(5, 80), lambda: setattr(elector, "is_stopping", True))

    def roll_out(self) -> None:
        """Replace the members, one after the other, by members with another layout."""
        self.layout = f"v{next(self._names)}"
        for number, process in enumerate(each for each in self.processes if self.is_alive(each)):
            self.at(number * 5, lambda each=process: self.replace(each))

    def replace(self, process: Process) -> None:
        process.run(lambda: process.machine.stop(process.clock()))
        self.start()

    def fast(self) -> None:
        self.slow, self.lost = 0.02, 0.0

    def join(self, process: Process) -> None:
        process.is_cut_off = False

    def recover(self) -> None:
        self.fast()
        for process in self.processes:
            process.is_cut_off = False
            if process.is_frozen:
                process.thaw()
        for elector in self.electors:
            elector.is_stopping = True
        for process in self.processes:
            if process.machine.layout != self.layout:
                process.machine.stop(process.clock())
        if not any(self.is_alive(each) for each in self.processes):
            self.start()

    def is_alive(self, process: Process) -> bool:
        return not process.is_dead and not process.machine.is_done and process.machine._stop_at is None

    # Invariants.

    def note(self, process: Process, slot: int, state: SlotState, grant: int) -> None:
        self.say(f"{process.machine.identity} slot {slot}: {state.value} ({grant})")

    def writers(self, slot: int) -> list[Process]:
        """Return the processes that can start a write for a slot now; a frozen one starts it as soon as it runs."""
        return [
            each
            for each in self.processes
            if not each.is_dead and each.machine.writable(slot, each.machine.slot(slot).grant, each.clock())
        ]

    def check(self, what: str) -> None:
        leaders = [each.name for each in self.electors if self.now < each.leads_until]
        if len(leaders) > 1:
            raise BrokenError(self.story(f"the leaders {leaders} {what}"))
        writers: dict[int, str] = {}
        for process in self.processes:
            if process.is_dead:
                continue
            machine, now = process.machine, process.clock()
            if now >= machine.deadline():
                continue
            for slot, own in enumerate(machine._slots):
                if own.state in _HELD and machine.writable(slot, own.grant, now):
                    if slot in writers:
                        raise BrokenError(
                            self.story(f"slot {slot} has the writers {writers[slot]}, {process.name} {what}")
                        )
                    if leaders:
                        raise BrokenError(
                            self.story(f"slot {slot} of {process.name} is open, and {leaders} leads {what}")
                        )
                    writers[slot] = process.name

    def check_shares(self) -> None:
        alive = [each for each in self.processes if self.is_alive(each)]
        served = {slot: self.writers(slot) for slot in range(SLOTS + 1)}
        missing = [slot for slot, writers in served.items() if not writers]
        if missing:
            raise BrokenError(self.story(f"the slots {missing} are not served"))
        counts = [sum(writers == [each] for slot, writers in served.items() if slot < SLOTS) for each in alive]
        least = SLOTS // len(alive)
        if not all(least <= count <= least + 1 for count in counts):
            raise BrokenError(self.story(f"the shares are {counts}"))

    def story(self, text: str) -> str:
        ring = self.server.ring
        return "\n".join([*self.log[-120:], f"{ring}", f"seed {self.seed}, at {self.now:.2f}: {text}"])


def main() -> None:
    first = int(sys.argv[1])
    last = int(sys.argv[2]) if len(sys.argv) > 2 else first + 1
    for seed in range(first, last):
        history = History(seed)
        try:
            history.run()
        except BrokenError as error:
            print(error)
        if last == first + 1:
            print("\n".join(history.log))
    print(f"{last - first} histories")


if __name__ == "__main__":
    main()
