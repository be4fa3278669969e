"""The queue against a model of a few lines: what may be handed out, in which order, and that nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ctrlruntime.workqueue import PriorityQueue
from ctrlruntime.workqueue.fair import FairQueue

KEYS = st.sampled_from("abcdefg")
PRIORITIES = st.sampled_from([-100, 0, 1, 5])
DELAYS = st.sampled_from([1.0, 2.0, 5.0])


@dataclass
class Pending:
    priority: int
    due: float
    turn: int | None = None


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.queue = self.new_queue()
        self.pending: dict[str, Pending] = {}
        self.in_work: set[str] = set()
        self.turns = 0

    def new_queue(self) -> PriorityQueue[str] | FairQueue[str]:
        return PriorityQueue(aging=None, clock=lambda: self.now)

    def _next_turn(self) -> int:
        self.turns += 1
        return self.turns

    def _promote(self) -> None:
        self.queue.tick()
        waiting = [(p.due, key) for key, p in self.pending.items() if p.turn is None and p.due <= self.now]
        for _, key in sorted(waiting):
            self.pending[key].turn = self._next_turn()

    @rule(key=KEYS, priority=PRIORITIES)
    def add(self, key: str, priority: int) -> None:
        self._promote()
        self.queue.add(key, priority=priority)
        entry = self.pending.get(key)
        if entry is None:
            self.pending[key] = Pending(priority, self.now, self._next_turn())
            return
        if entry.turn is None or priority > entry.priority:
            entry.turn = self._next_turn()
        entry.priority = max(entry.priority, priority)

    @rule(key=KEYS, priority=PRIORITIES, delay=DELAYS)
    def add_later(self, key: str, priority: int, delay: float) -> None:
        self._promote()
        self.queue.add(key, priority=priority, after=delay)
        # Distinct moments: which of two keys due at the very same one comes first is not promised.
        due = self.now + delay
        entry = self.pending.get(key)
        if entry is None:
            self.pending[key] = Pending(priority, due)
        else:
            if entry.turn is None:
                entry.due = min(entry.due, due)
            elif priority > entry.priority:
                entry.turn = self._next_turn()
            entry.priority = max(entry.priority, priority)
        self.now += 0.0625

    @rule(seconds=st.sampled_from([0.03125, 1.03125, 4.03125]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        self._promote()
        item = self.queue.get_nowait()
        free = {k: p for k, p in self.pending.items() if p.turn is not None and k not in self.in_work and self._may(k)}
        if item is None:
            assert not free
            return
        self._check_turn(item.key, free)
        assert item.priority == free[item.key].priority
        del self.pending[item.key]
        self.in_work.add(item.key)

    def _may(self, key: str) -> bool:
        return True

    def _check_turn(self, taken: str, free: dict[str, Pending]) -> None:
        assert taken == min(free, key=lambda k: (-free[k].priority, free[k].turn))

    @precondition(lambda self: self.in_work)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.in_work)))
        self.queue.done(key)
        self.in_work.remove(key)

    @rule(keys=st.sets(KEYS))
    def remove(self, keys: set[str]) -> None:
        self._promote()
        removed = self.queue.remove(keys.__contains__)
        assert sorted(removed) == sorted(keys & self.pending.keys())
        for key in keys:
            self.pending.pop(key, None)

    @invariant()
    def length_counts_ready_keys(self) -> None:
        ready = sum(p.turn is not None or p.due <= self.now for p in self.pending.values())
        self._promote()
        assert len(self.queue) == ready

    @invariant()
    def depths_add_up(self) -> None:
        length = len(self.queue)
        assert sum(self.queue.state().ready.values()) == length
        assert len(self.queue.state().in_work) == len(self.in_work)

    def teardown(self) -> None:
        self.now += 100
        for key in sorted(self.in_work):
            self.queue.done(key)
        rest = set()
        self.queue.tick()
        while (item := self.queue.get_nowait()) is not None:
            assert item.key not in rest
            rest.add(item.key)
            self.queue.done(item.key)
        assert rest == set(self.pending)


TestQueueAgainstModel = QueueMachine.TestCase
TestQueueAgainstModel.settings = settings(stateful_step_count=60)


class FairQueueMachine(QueueMachine):
    """The same with three groups of keys: the group is chosen first, and has at most two keys in work."""

    def __init__(self) -> None:
        super().__init__()
        self.served: dict[int, int] = {}
        self.hand_overs = 0

    def new_queue(self) -> FairQueue[str]:
        return FairQueue(group, most_in_work=2, aging=None, clock=lambda: self.now)

    def _may(self, key: str) -> bool:
        return sum(group(other) == group(key) for other in self.in_work) < 2

    def _check_turn(self, taken: str, free: dict[str, Pending]) -> None:
        mine = group(taken)
        turns = {
            each: min((-p.priority, self.served.get(each, 0)) for k, p in free.items() if group(k) == each)
            for each in map(group, free)
        }
        assert turns[mine] == min(turns.values())
        super()._check_turn(taken, {k: p for k, p in free.items() if group(k) == mine})
        self.hand_overs += 1
        self.served[mine] = self.hand_overs

    @rule(keys=st.sets(KEYS))
    def remove(self, keys: set[str]) -> None:
        super().remove(keys)
        left = {*map(group, self.pending), *map(group, self.in_work)}
        self.served = {each: turn for each, turn in self.served.items() if each in left}


def group(key: str) -> int:
    return "abcdefg".index(key) % 3


TestFairQueueAgainstModel = FairQueueMachine.TestCase
TestFairQueueAgainstModel.settings = settings(stateful_step_count=60)
