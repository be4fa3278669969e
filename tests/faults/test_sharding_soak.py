"""The soak of replicas that share objects: the auditor sees what is wrong, and a short run with each fault has nothing of it.

The run takes four minutes and is part of `--all`; `scripts/soak --sharding` runs it for long.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from operators.history import Version
from operators.shard_audit import Findings, Kill, audit
from operators.shard_audit import story as told
from operators.sharding_soak import SCALED, soak

from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.ownership.ring import slot_of
from ctrlruntime.ownership.shards import key_of

SLOTS = 64
SLOT = slot_of(key_of("name", "", "ConfigMap")(NamespacedName("ns", "r")), SLOTS)


class Story:
    """What the server stored: each call is one version later, and one second."""

    def __init__(self) -> None:
        self.versions: list[Version] = []

    def _add(self, kind: str, obj: dict[str, Any], type: str = "MODIFIED") -> Story:
        number = len(self.versions)
        self.versions.append(Version(number, kind, type, obj, float(number)))
        return self

    def member(self, pod: str, *, expired: bool = False) -> Story:
        annotations = {"ctrlruntime.dev/ring-member": json.dumps({"pod": pod})}
        spec = {"holderIdentity": None if expired else pod}
        return self._add("Lease", {"metadata": {"name": f"soak-{pod}", "annotations": annotations}, "spec": spec})

    def ring(self, owner: str, type: str = "MODIFIED") -> Story:
        owners = {f"soak-{owner}": f"0-{SLOTS}"} if owner else {}
        annotations = {"ctrlruntime.dev/ring-slots": json.dumps({"slots": SLOTS, "owners": owners})}
        lease = {"metadata": {"name": "soak", "annotations": annotations}, "spec": {"holderIdentity": "ring"}}
        return self._add("Lease", lease, type)

    def _object(
        self, kind: str, name: str, labels: dict[str, str], annotations: dict[str, str], type: str = "MODIFIED"
    ) -> Story:
        given = {f"example.com/{key}": value for key, value in annotations.items()}
        metadata = {"name": name, "namespace": "ns", "labels": labels, "annotations": given}
        return self._add(kind, {"metadata": metadata}, type)

    def root(self, value: str, seen: str = "", writer: str = "", term: str = "", *, type: str = "MODIFIED") -> Story:
        stamp = {"seen": seen, "writer": writer, "term": term} if writer else {}
        return self._object("ConfigMap", "r", {"role": "root"}, {"value": value, **stamp}, type)

    def child(self, seen: str, writer: str, term: str = "", *, type: str = "MODIFIED") -> Story:
        return self._object("Secret", "r-child", {}, {"seen": seen, "writer": writer, "term": term}, type)

    def leader(self, writer: str, term: str) -> Story:
        return self._object("ConfigMap", "leader", {}, {"seen": "", "writer": writer, "term": term})

    def served(self, value: str, writer: str, term: int, number: int) -> Story:
        return self.child(value, writer, f"{term} {number}").root(value, value, writer, f"{term} {number + 1}")

    def found(self, *kills: Kill) -> Findings:
        return audit(self.versions, kills)


def running() -> Story:
    """Two members; `a` owns everything, and has served the root."""
    return Story().member("a").member("b").ring("a").root("1").served("1", "a", 1, 0)


def test_an_operator_without_a_fault_has_no_finding():
    found = running().root("2", "1", "a", "1 1").served("2", "a", 1, 2).leader("a", "0 9").found()

    assert (found.violations, found.pending, found.writes, found.moves) == ([], [], 5, 0)
    assert [(wait.seconds, wait.is_move) for wait in found.waits] == [(2.0, False), (2.0, False)]
    assert set(found.owners) == {"a"}


@pytest.mark.parametrize(
    ("tell", "message"),
    [
        (lambda story: story.root("1", "1", "b", "0 0"), f"written by b while a owns slot {SLOT}"),
        (lambda story: story.child("1", "b", "0 0"), f"written by b while a owns slot {SLOT}"),
        (lambda story: story.leader("b", "0 0"), f"written by b while a owns slot {SLOTS}"),
        (lambda story: story.ring("b").child("1", "a", "1 2"), f"written by a while b owns slot {SLOT}"),
        (lambda story: story.ring("").child("1", "a", "1 2"), f"written by a while no process owns slot {SLOT}"),
        (lambda story: story.member("a", expired=True).child("1", "a", "1 2"), "after its Lease soak-a had expired"),
        (
            lambda story: story.ring("b").ring("a").child("1", "a", "3 2").root("1", "1", "a", "1 3"),
            f"written by a in term 1 of slot {SLOT}, after 3",
        ),
        (
            lambda story: story.ring("a", "DELETED").ring("", "ADDED").ring("b").child("1", "a", "1 2"),
            f"written by a while b owns slot {SLOT}",
        ),
    ],
)
def test_a_write_of_another_process_than_the_owner_is_found(tell: Callable[[Story], Story], message: str):
    (violation,) = tell(running()).found().violations

    assert message in violation


@pytest.mark.parametrize(
    "tell",
    [
        lambda story: story.root("1", "1", "a", "1 1"),  # a change by a user, with the stamp of the last write
        lambda story: story.ring("b").root("2", "1", "a", "1 1"),
        lambda story: story.ring("a", "DELETED").child("1", "a", "1 2"),  # nobody else has taken it
        lambda story: story.ring("a", "DELETED").ring("", "ADDED").child("1", "a", "1 2"),
        lambda story: story.child("1", "a", "1 0", type="DELETED"),  # by the garbage collector
        lambda story: story.member("a", expired=True).member("a").child("1", "a", "1 2"),
    ],
)
def test_what_is_no_write_of_another_process(tell: Callable[[Story], Story]):
    assert tell(running()).found().violations == []


@pytest.mark.parametrize(
    "tell",
    [
        lambda story: story.root("2", "1", "a", "1 1"),
        lambda story: story.child("1", "a", "1 0", type="DELETED"),
        lambda story: story.ring("b"),
        lambda story: story.ring("b").root("1", "1", "b", "0 0"),  # its child is not served
    ],
)
def test_an_object_that_is_not_served_is_missed(tell: Callable[[Story], Story]):
    assert [wait.root for wait in tell(running()).found().pending] == ["/ConfigMap/ns/r"]


def test_an_object_that_is_deleted_is_not_missed():
    assert running().root("2", "1", "a", "1 1").root("2", type="DELETED").found().pending == []


def test_a_move_is_a_wait_until_the_new_owner_has_served():
    found = running().ring("b").served("1", "b", 0, 0).found()

    assert found.moves == SLOTS + 1
    assert [(wait.seconds, wait.is_move) for wait in found.waits] == [(2.0, False), (2.0, True)]


def test_a_kill_takes_until_another_process_has_served_all_its_objects():
    story = running()
    killed = float(len(story.versions)) - 0.5
    story.member("a", expired=True).ring("b").served("1", "b", 0, 0)

    (take_over,) = story.found(Kill("a", killed)).take_overs
    wait = take_over.last
    assert wait.seconds == 3.5
    assert [line.strip() for line in told(story.versions, wait)[-3:]] == [
        "1.50 s  owned by b",
        "2.50 s  MODIFIED r-child: b 1",
        "3.50 s  MODIFIED r: b 1 1",
    ]
    assert story.found(Kill("b", killed)).take_overs == []


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("fleet", [False, True], ids=["objects", "clusters"])
async def test_each_write_is_by_the_owner_and_no_object_is_missed(server, tmp_path, fleet):
    report = await soak(server, tmp_path, 180.0, roots=200, times=SCALED, fleet=fleet)

    assert not report.complaints(), "\n".join(report.lines())
    assert len(report.faults) >= 10, report.faults
    assert report.findings.take_overs
