"""The state of a cluster follows from its responses and from time."""

from __future__ import annotations

import pytest

from ctrlruntime.fleet.life import MAX_SILENCE, ClusterState, Life, Seen
from ctrlruntime.rest.contact import MAX_FAILURES, Contact

CONNECTING, ENGAGED, DEGRADED = ClusterState.CONNECTING, ClusterState.ENGAGED, ClusterState.DEGRADED


class Counter:
    def __init__(self):
        self.codes = []

    def request(self, code, method, host):
        self.codes.append(code)

    def throttled(self, seconds, host): ...

    def waited(self, seconds, reason, host): ...


@pytest.mark.parametrize(
    ("steps", "states"),
    [
        pytest.param([(0, 1, 0, False), (5, 2, 0, True)], [CONNECTING, ENGAGED], id="listed"),
        pytest.param([(600, 0, 90, False)], [CONNECTING], id="one that never responded stays connecting"),
        pytest.param([(1, 1, 0, True), (2, 1, 2, True), (3, 1, 3, True)], [ENGAGED, ENGAGED, DEGRADED], id="failures"),
        pytest.param([(1, 1, 0, True), (60.9, 1, 0, True), (61, 1, 0, True)], [ENGAGED, ENGAGED, DEGRADED], id="silence"),
        pytest.param([(1, 1, 0, True), (2, 1, 3, True), (9, 2, 0, True)], [ENGAGED, DEGRADED, ENGAGED], id="responds again"),
        pytest.param([(1, 1, 0, True), (61, 1, 0, True), (70, 2, 0, True)], [ENGAGED, DEGRADED, ENGAGED], id="no longer silent"),
        pytest.param([(1, 1, 0, True), (2, 1, 3, True), (9, 2, 1, True)], [ENGAGED, DEGRADED, DEGRADED], id="fails again at once"),
    ],
)  # fmt: skip
def test_states(steps, states):
    life = Life(0.0)

    assert [life.look(Seen(answers, failures, listed), now) for now, answers, failures, listed in steps] == states
    assert life.silence(100.0) <= 100.0


def test_a_cluster_of_another_replica_stands_by():
    life = Life(0.0)
    seen = [
        (0, False, True),
        (0, True, False),
        (0, True, True),
        (0, True, False),
        (3, True, False),
        (3, True, True),
        (3, True, True),
    ]
    states = [life.look(Seen(1, failures, listed, here), 1.0) for failures, listed, here in seen]

    standby = ClusterState.STANDBY
    assert states == [CONNECTING, standby, ENGAGED, standby, standby, ENGAGED, DEGRADED]
    life.stand_by(2.0)
    assert (life.state, life.since) == (standby, 2.0)


def test_a_removed_cluster_stays_gone():
    life = Life(0.0)
    life.end(1.0)

    assert life.look(Seen(5, 0, True), 2.0) is ClusterState.GONE
    assert life.since == 1.0
    assert MAX_SILENCE > 0


def test_contact_counts_failures_since_the_last_response():
    counter = Counter()
    contact = Contact(counter)
    turns = []
    contact.on_turn = lambda: turns.append(contact.failures)

    for code in ("200", "<error>", "401", "<error>", "<error>", "404", "200"):
        contact.request(code, "GET", "host")

    assert counter.codes == ["200", "<error>", "401", "<error>", "<error>", "404", "200"]
    assert (contact.answers, contact.failures) == (3, 0)
    assert turns == [MAX_FAILURES, 0]
