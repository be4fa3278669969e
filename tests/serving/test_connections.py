"""Which connections a server takes, keeps and closes: the rules of `Connections`, one by one and against random histories."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlruntime.errors import ConfigError
from ctrlruntime.metrics.server import ServerMetrics
from ctrlruntime.serving.connections import Connection, Connections, ServerLimits, State

LIMITS = ServerLimits(
    connections=4,
    connections_per_client=3,
    tls_timeout=5,
    header_timeout=6,
    body_timeout=7,
    write_timeout=8,
    idle_timeout=9,
    body_bytes=100,
)


@dataclass
class Case:
    """Connections with a clock that the test moves."""

    limits: ServerLimits = LIMITS
    now: float = 100.0
    noted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.metrics = ServerMetrics("test")
        self.all = Connections(
            self.limits, self.metrics, clock=lambda: self.now, on_limit=lambda limit, _: self.noted.append(limit)
        )

    def admitted(self, client: str = "a", state: State = State.HEADER) -> Connection:
        connection, _ = self.all.admit(client, state)
        assert connection is not None
        return connection

    def idle(self, client: str = "a") -> Connection:
        connection = self.admitted(client)
        self.all.move(connection, State.HANDLER)
        self.all.move(connection, State.IDLE)
        return connection


@pytest.mark.parametrize("state", [state for state in State if state is not State.HANDLER])
def test_a_caller_that_takes_longer_than_its_state_allows_is_closed(state):
    case = Case()
    connection = case.admitted()
    case.all.move(connection, state)
    case.now += getattr(LIMITS, state.value) - 0.1
    assert case.all.overdue() == []

    case.now += 0.1

    assert case.all.overdue() == [connection]
    assert case.noted == [state.value]
    assert (len(case.all), case.metrics.connections) == (0, 0)


def test_a_handler_has_no_deadline_for_its_caller():
    case = Case()
    case.all.move(case.admitted(), State.HANDLER)
    case.now += 10_000

    assert case.all.overdue() == []


def test_the_connection_that_kept_the_server_waiting_longest_makes_room():
    case = Case()
    old = case.admitted()
    case.now += 2
    case.admitted()
    case.admitted()

    connection, closed = case.all.admit("a", State.HANDSHAKE)

    assert connection is not None
    assert closed is old
    assert case.noted == ["connections_per_client"]
    assert len(case.all) == 3


def test_a_connection_without_an_answer_is_closed_before_an_idle_one():
    case = Case()
    case.idle()
    case.now += 5
    stranger = case.admitted()
    case.now += 1
    case.admitted()

    assert case.all.admit("a", State.HEADER)[1] is stranger


def test_the_newest_is_refused_when_all_others_are_at_work():
    case = Case()
    for _ in range(3):
        case.all.move(case.admitted(), State.HANDLER)
    case.now += 50

    assert case.all.admit("a", State.HEADER) == (None, None)
    assert case.noted == ["connections_per_client"]


def test_a_caller_that_came_just_now_is_not_closed_for_another():
    case = Case()
    for _ in range(3):
        case.admitted()
    case.now += 0.9

    assert case.all.admit("a", State.HEADER) == (None, None)


def test_a_client_makes_room_from_its_own_connections():
    case = Case()
    other = case.admitted("b")
    case.now += 5
    own = case.admitted("a")
    case.now += 1
    case.admitted("a")
    case.admitted("a")

    assert case.all.admit("a", State.HEADER)[1] is own
    assert other in case.all


def test_in_total_the_client_with_most_connections_makes_room_at_once():
    case = Case()
    other = case.admitted("b")
    case.now += 5
    own = case.admitted("a")
    case.now += 0.1
    case.admitted("a")
    case.admitted("a")

    assert case.all.admit("c", State.HEADER)[1] is own
    assert other in case.all
    assert case.noted == ["connections"]


def test_among_clients_with_as_many_connections_the_one_that_waited_longest_makes_room():
    case = Case()
    old = case.admitted("a")
    case.now += 0.1
    for client in "bcd":
        case.admitted(client)

    assert case.all.admit("e", State.HEADER) == (None, None)
    case.now += 1
    assert case.all.admit("e", State.HEADER)[1] is old


def test_bytes_count_until_the_answer_is_taken():
    case = Case()
    connection = case.admitted()
    assert case.all.received(connection, 60) is None
    case.all.move(connection, State.HANDLER)
    assert case.all.held == 60

    case.all.move(connection, State.IDLE)

    assert case.all.held == 0


def test_the_oldest_unfinished_body_is_dropped_when_there_are_too_many_bytes():
    case = Case()
    old, new = case.admitted(), case.admitted()
    case.all.move(old, State.BODY)
    case.now += 1
    case.all.move(new, State.BODY)
    case.all.received(old, 60)

    assert case.all.received(new, 60) is old
    assert case.all.held == 60
    assert case.noted == ["body_bytes"]


def test_a_request_that_is_handled_keeps_its_bytes_and_the_new_one_is_dropped():
    case = Case()
    handled, new = case.admitted(), case.admitted()
    case.all.received(handled, 90)
    case.all.move(handled, State.HANDLER)
    case.all.move(new, State.BODY)

    assert case.all.received(new, 60) is new
    assert case.all.held == 90


def test_limits_are_above_zero():
    with pytest.raises(ConfigError, match=r"ServerLimits.idle_timeout is 0; give a number above 0"):
        ServerLimits(idle_timeout=0)


Step = st.one_of(
    st.tuples(st.just("admit"), st.sampled_from("abc")),
    st.tuples(
        st.just("move"), st.integers(0, 5), st.sampled_from([state for state in State if state is not State.HANDSHAKE])
    ),
    st.tuples(st.just("received"), st.integers(0, 5), st.integers(1, 80)),
    st.tuples(st.just("remove"), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 1.0, 4.0])),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(Step, max_size=60))
def test_in_any_history_the_bounds_hold_and_what_is_handled_stays(steps):
    case = Case()
    model: list[Connection] = []  # open, in order of admission
    for step in steps:
        handled = {one for one in model if one.state is State.HANDLER}
        match step:
            case ("admit", client):
                new, closed = case.all.admit(client, State.HANDSHAKE)
                if closed is not None:
                    model.remove(closed)
                if new is not None:
                    model.append(new)
                else:
                    assert closed is None
                    full = sum(one.client == client for one in model) == 3 or len(model) == 4
                    assert full, "a connection is refused only when there is no room"
            case ("move", at, state) if at < len(model):
                case.all.move(model[at], state)
                handled.discard(model[at])
            case ("received", at, size) if at < len(model):
                victim = case.all.received(model[at], size)
                assert victim is None or victim is model[at] or victim not in handled
                if victim is not None and victim is not model[at]:
                    case.all.remove(victim)
                    model.remove(victim)
            case ("remove", at) if at < len(model):
                gone = model.pop(at)
                handled.discard(gone)
                case.all.remove(gone)
                case.all.remove(gone)
            case ("wait", seconds):
                case.now += seconds
                for late in case.all.overdue():
                    model.remove(late)
        assert all(one in case.all for one in handled)
        assert len(case.all) == len(model) == case.metrics.connections <= 4
        assert all(sum(one.client == client for one in model) <= 3 for client in "abc")
        assert case.all.held == sum(one.held for one in model) <= 100
