"""Write loops: what is one, what is none, and what the warning says."""

from __future__ import annotations

import json

import pytest

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import metadata_of
from ctrlruntime.client.observers import Write
from ctrlruntime.explain.loops import MAX_NAMED, WriteLoops
from ctrlruntime.journal import Trigger
from ctrlruntime.log.options import WARN
from ctrlruntime.log.output import sink
from ctrlruntime.metrics import ClientMetrics
from ctrlruntime.rest.fence import Actor, acting

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Writes:
    """A server that stores one Deployment or several, as the detector is told of it."""

    def __init__(self, **options):
        self.clock = Clock()
        self.counter = ClientMetrics()
        self.loops = WriteLoops(counter=self.counter, clock=self.clock, **options)
        self.version = 10
        self.generation = 1
        self.stored = {}

    def tree(self, name, spec, *, status=None, uid="uid", managed=None):
        metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(self.version)}
        metadata["generation"] = self.generation
        if managed is not None:
            metadata["managedFields"] = managed
        tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
        return tree if status is None else {**tree, "status": status}

    def write(
        self, spec, *, sent=None, name="web", verb="update", controller="ours", is_apply=False, changes=True, subresource="",
        before=None, status=None, uid="uid", reconcile_id="", triggers=(),
    ):  # fmt: skip
        held = self.stored.get(name, b"")
        self.version += changes
        after = json.dumps(self.tree(name, spec, status=status, uid=uid)).encode()
        body = sent if isinstance(sent, bytes) else json.dumps({"spec": sent if sent is not None else spec}).encode()
        with acting(Actor(controller, reconcile_id=reconcile_id, triggers=triggers)):
            self.loops.wrote(
                Write(
                    verb, DEPLOYMENT, "ns", name, subresource, controller, is_apply,
                    held if before is None else before, body, after,
                )
            )  # fmt: skip
        self.stored[name] = after

    def interfere(self, spec, *, name="web", manager="other", fields=None):
        """Let another manager write, and the cache see it."""
        self.version += 1
        managed = [
            {"manager": manager, "fieldsV1": fields or {}},
            {"manager": "ours", "fieldsV1": {"f:spec": {"f:x": {}}}},
        ]
        raw = json.dumps(self.tree(name, spec, managed=managed)).encode()
        self.loops.saw(GroupVersionKind("apps", "v1", "Deployment"), metadata_of(raw), raw)
        self.stored[name] = json.dumps(self.tree(name, spec)).encode()


@pytest.fixture
def writes():
    return Writes()


@pytest.fixture
def logged():
    class Lines:
        threshold = -100

        def write(self, level, name, event, fields):
            lines.append({"event": event, "is_warning": level == WARN, **fields})

    lines, before = [], sink.output
    sink.output = Lines()
    yield lines
    sink.output = before


def test_three_writes_that_change_nothing_are_named_once_with_the_fields_the_server_stores_otherwise(writes, logged):
    writes.write({"cpu": "500m", "replicas": 1}, sent={"cpu": "0.5", "replicas": 1}, verb="create")
    for _ in range(2):
        writes.write({"cpu": "500m", "replicas": 1}, sent={"cpu": "0.5", "replicas": 1}, changes=False)
    assert logged == []

    for _ in range(5):
        writes.write({"cpu": "500m", "replicas": 1}, sent={"cpu": "0.5", "replicas": 1}, changes=False)

    (line,) = logged
    assert line["event"] == "write loop"
    assert line["is_warning"]
    assert (line["controller"], line["kind"], line["object"]) == ("ours", "Deployment.apps", "ns/web")
    assert (line["reason"], line["fields"], line["writes"]) == ("no_op", "spec.cpu", 3)
    assert writes.counter.redundant_writes == {("ours", "Deployment.apps", "no_op"): 7}
    assert writes.counter.loops == {("ours", "Deployment.apps", "no_op"): 1}


def test_a_write_that_differs_from_nothing_at_all_says_so(writes, logged):
    for _ in range(4):
        writes.write({"replicas": 1}, changes=False)

    assert logged[0]["fields"].startswith("none")


def test_the_version_a_write_was_made_from_tells_that_nothing_changed_at_the_first_time(writes, logged):
    body = json.dumps(writes.tree("web", {"replicas": 1})).encode()
    for _ in range(3):
        writes.write({"replicas": 1}, sent=body, changes=False)

    assert len(logged) == 1


def test_two_values_in_turn_are_a_loop_of_the_controller_with_itself(writes, logged):
    for replicas in (1, 2, 1, 2):
        writes.write({"replicas": replicas, "image": "a", "step": writes.version})
    assert logged == []

    writes.write({"replicas": 1, "image": "a", "step": writes.version})

    (line,) = logged
    assert (line["reason"], line["fields"]) == ("reverted", "spec.replicas")


def change(version, source="Deployment.apps"):
    return Trigger("update", source, "ns", "web", str(version))


@pytest.mark.parametrize(
    ("triggers", "is_loop"),
    [
        pytest.param(lambda version: [change(version)], True, id="its own write"),
        pytest.param(lambda version: [change(version), change(version - 1)], True, id="its own last writes"),
        pytest.param(lambda version: [change(1000 + version)], False, id="a change by others"),
        pytest.param(lambda version: [change(version), change(1000 + version)], False, id="its own write and another change"),
        pytest.param(lambda version: ["a timer of the user"], False, id="a source of the user"),
        pytest.param(lambda version: [], False, id="requeue_after"),
    ],
)  # fmt: skip
def test_values_in_turn_are_loop_only_if_own_writes_triggered_reconcile(writes, logged, triggers, is_loop):
    writes.write({"x": 0})
    for number in range(8):
        causes = tuple(triggers(writes.version))
        writes.write({"ready": number % 2}, status={}, reconcile_id=f"run-{number}", triggers=causes)

    assert [line["reason"] for line in logged] == ["reverted"] * is_loop


def test_two_writes_in_each_reconcile_that_undo_each_other_are_loop(writes, logged):
    for number in range(4):
        causes = (change(writes.version),)
        writes.write({"progressing": True}, reconcile_id=f"run-{number}", triggers=causes)
        writes.write({"progressing": False}, reconcile_id=f"run-{number}", triggers=causes)

    assert [line["reason"] for line in logged] == ["reverted"]


def test_members_in_another_order_are_no_change(writes, logged):
    for spec in ({"x": 1, "y": 2}, {"y": 2, "x": 1}) * 3:
        writes.write(spec)

    assert logged == []
    assert writes.loops.loops() == []


def test_fields_another_manager_changes_back_are_named_with_that_manager(writes, logged):
    ours = {"containers": [{"name": "web", "image": "a"}], "replicas": 2}
    writes.write(ours)
    for number in range(3):
        writes.interfere({**ours, "replicas": 5 + number}, manager="autoscaler", fields={"f:spec": {"f:replicas": {}}})
        writes.write(ours)

    (line,) = logged
    assert (line["reason"], line["fields"], line["otherManager"]) == ("contested", "spec.replicas", "autoscaler")


def test_a_field_inside_a_list_is_named_by_the_items_name(writes, logged):
    def containers(image):
        return {"containers": [{"name": "web", "image": image}, {"name": "log", "image": "z"}]}

    writes.write(containers("a"))
    for _ in range(3):
        owned = {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:image": {}}}}}
        writes.interfere(containers("b"), manager="pinner", fields=owned)
        writes.write(containers("a"))

    (line,) = logged
    assert (line["fields"], line["otherManager"]) == ("spec.containers[name=web].image", "pinner")


def test_a_fight_whose_other_side_was_never_seen_is_named_without_it(writes, logged):
    writes.write({"replicas": 2})
    for _ in range(3):
        writes.version += 1
        writes.write({"replicas": 2}, before=json.dumps(writes.tree("web", {"replicas": 9})).encode())

    (line,) = logged
    assert (line["reason"], line["fields"], line["otherManager"]) == (
        "contested",
        "spec.replicas",
        "unknown (not seen by the cache)",
    )


def test_a_fight_over_an_object_that_is_not_cached_shows_in_its_generation(writes, logged):
    writes.write({"replicas": 2}, before=b"")
    for _ in range(3):
        writes.version += 1
        writes.generation += 2  # somebody's change, and ours
        writes.write({"replicas": 2}, before=b"")

    (line,) = logged
    assert (line["reason"], line["otherManager"]) == ("contested", "unknown (not seen by the cache)")
    assert line["fields"].startswith("unknown")


def test_a_status_that_changes_leaves_the_generation_and_is_no_fight(writes, logged):
    for number in range(6):
        writes.version += 1
        writes.write({"replicas": 2}, before=b"", status={"ready": number})
        writes.generation += 2
        writes.write({"replicas": number}, before=b"", status={"ready": 1}, subresource="status")
        writes.generation -= 2

    assert logged == []


def test_a_change_of_the_status_by_somebody_else_is_no_fight(writes, logged):
    for number in range(6):
        writes.version += 1
        seen = json.dumps(writes.tree("web", {"replicas": number}, status={"ready": number})).encode()
        writes.write({"replicas": number + 1}, before=seen)

    assert logged == []
    assert writes.counter.redundant_writes == {}


def test_a_cache_that_lags_behind_own_writes_shows_no_fight(writes, logged):
    stale = json.dumps(writes.tree("web", {"replicas": 0})).encode()
    for number in range(5):
        writes.version += 1  # the status changes each time
        writes.write({"replicas": 3}, before=stale, status={"n": number})

    assert logged == []


def test_a_write_that_leads_somewhere_begins_anew(writes, logged):
    for round_ in range(5):
        writes.write({"replicas": round_})
        writes.write({"replicas": round_}, changes=False)
        writes.write({"replicas": round_}, changes=False)

    assert logged == []
    assert writes.counter.redundant_writes == {("ours", "Deployment.apps", "no_op"): 10}


def test_applying_what_is_there_is_no_loop_unless_the_server_keeps_something_else(writes, logged):
    for _ in range(6):
        writes.write({"cpu": "500m"}, is_apply=True, verb="patch", changes=False)
    assert logged == []

    for _ in range(3):
        writes.write({"cpu": "500m"}, sent={"cpu": "0.5"}, is_apply=True, verb="patch", changes=False)

    assert [line["fields"] for line in logged] == ["spec.cpu"]


def test_a_json_patch_has_no_fields_to_name_and_is_counted_all_the_same(writes, logged):
    for _ in range(4):
        writes.write({"a": 1}, sent=b'[{"op": "test", "path": "/spec/a", "value": 1}]', verb="patch", changes=False)

    assert logged[0]["reason"] == "no_op"


def test_status_and_main_resource_have_trails_of_their_own(writes, logged):
    for number in range(4):
        writes.write({"replicas": number}, status={"ready": 1})
        writes.write({"replicas": number}, status={"ready": 1}, subresource="status", changes=False)

    (line,) = logged
    assert (line["subresource"], line["reason"]) == ("status", "no_op")


def test_each_controller_is_judged_by_itself_and_code_outside_controllers_not_at_all(writes, logged):
    for controller in ("one", "two", "", "one", "two", "", "one", "", ""):
        writes.write({"replicas": 1}, controller=controller, changes=False)

    assert writes.counter.redundant_writes == {
        ("one", "Deployment.apps", "no_op"): 2,
        ("two", "Deployment.apps", "no_op"): 2,
    }
    assert logged == []


def test_writes_far_apart_are_no_loop(writes, logged):
    for _ in range(6):
        writes.write({"replicas": 1}, changes=False)
        writes.clock.now += 601

    assert logged == []


def test_a_new_life_of_the_name_begins_anew(writes, logged):
    for number in range(8):
        writes.write({"replicas": 1}, uid=f"uid-{number // 2}", changes=False)

    assert logged == []


def test_many_looping_objects_are_named_up_to_a_number_and_then_counted(writes, logged):
    for number in range(3 * MAX_NAMED):
        for _ in range(4):
            writes.write({"replicas": 1}, name=f"web-{number}", changes=False)

    assert len(logged) == MAX_NAMED
    assert writes.counter.loops == {("ours", "Deployment.apps", "no_op"): 3 * MAX_NAMED}


def test_what_is_remembered_is_bounded_in_objects_and_bytes():
    few, small = Writes(max_trails=5), Writes(max_bytes=1000)
    for number in range(50):
        few.write({"replicas": 1}, name=f"web-{number}")
        small.write({"text": "x" * 100}, name=f"web-{number}")

    assert len(few.loops) == 5
    assert 1 < len(small.loops) < 10


def test_a_fight_that_is_forgotten_leaves_no_suspect_behind(logged):
    writes = Writes(max_trails=1)
    writes.write({"replicas": 2})
    writes.interfere({"replicas": 5})
    writes.write({"replicas": 2})

    writes.write({"replicas": 2}, name="another")
    writes.interfere({"replicas": 5})

    assert len(writes.loops) == 1
    assert logged == []
