"""Rules of the subresources of Pods, without a server."""

import copy

import pytest

from ctrlruntime.apiserver.registry.bindings import check_binding, set_condition
from ctrlruntime.apiserver.registry.defaults import default
from ctrlruntime.apiserver.registry.pod_parts import keep_the_rest, resize_causes
from ctrlruntime.errors import APIStatusError

OLD = {
    "metadata": {"name": "a", "labels": {"x": "old"}},
    "spec": {
        "initContainers": [
            {"name": "i", "image": "i", "resources": {"requests": {"cpu": "1"}}},
            {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        ],
        "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
        ],
    },
    "status": {"phase": "Pending", "qosClass": "Burstable"},
}
default("", "Pod", OLD)
RESTART = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


def edited(edit):
    pod = copy.deepcopy(OLD)
    edit(pod)
    return pod


def of(pod, kind="containers", index=0):
    return pod["spec"][kind][index]


def test_a_resize_changes_resources_alone():
    def edit(pod):
        of(pod).update(image="other", resources={"requests": {"cpu": "2", "memory": "1Gi"}})
        pod["metadata"]["labels"] = {"x": "new"}
        pod["spec"]["nodeName"] = "n"
        pod["status"]["phase"] = "Failed"

    pod = edited(edit)
    keep_the_rest(pod, OLD, "resize")

    expected = edited(lambda pod: of(pod)["resources"]["requests"].update(cpu="2"))
    assert pod == expected


def test_ephemeral_containers_are_all_that_is_taken():
    def edit(pod):
        of(pod)["image"] = "other"
        pod["spec"]["ephemeralContainers"] = [{"name": "d", "image": "i"}]

    pod = edited(edit)
    keep_the_rest(pod, OLD, "ephemeralcontainers")

    assert of(pod)["image"] == "i"
    assert pod["spec"]["ephemeralContainers"] == [{"name": "d", "image": "i"}]


@pytest.mark.parametrize(
    ("edit", "fields"),
    [
        (lambda pod: of(pod)["resources"]["requests"].update(cpu="2"), []),
        (lambda pod: of(pod)["resources"]["requests"].pop("memory"), ["spec.containers[0].resources.requests"]),
        (lambda pod: of(pod).update(resizePolicy=RESTART), ["spec"]),
        (lambda pod: of(pod, "initContainers", 1)["resources"]["requests"].update(cpu="2"), []),
        (lambda pod: of(pod, "initContainers")["resources"]["requests"].update(cpu="2"), []),
        (lambda pod: of(pod)["resources"]["requests"].update({"ephemeral-storage": "1Gi"}), ["spec"]),
        (lambda pod: pod["spec"]["containers"].append({"name": "z", "image": "i"}), ["spec.containers"]),
        (lambda pod: pod["spec"]["initContainers"].reverse(), [f"spec.initContainers[{i}].name" for i in (0, 1)]),
    ],
)
def test_what_a_resize_may_change(edit, fields):
    pod = edited(edit)
    default("", "Pod", pod)

    assert [cause.field for cause in resize_causes(pod, OLD)] == fields


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ({"metadata": {**OLD["metadata"], "annotations": {"kubernetes.io/config.mirror": "x"}}}, "static pods"),
        ({"spec": {**OLD["spec"], "os": {"name": "windows"}}}, "windows pods"),
    ],
)
def test_pods_that_cannot_be_resized_at_all(before, text):
    old = {**copy.deepcopy(OLD), **before}

    (cause,) = resize_causes(old, old)

    assert cause.message == f"Forbidden: {text} cannot be resized"


def test_a_node_that_reports_no_resources_cannot_resize():
    running = {"name": "c", "state": {"running": {}}}
    old = edited(lambda pod: pod["status"].update(containerStatuses=[running]))

    (cause,) = resize_causes(old, old)

    assert cause.message == "Forbidden: Pod running on node without support for resize"


def test_a_binding_with_two_faults_says_both():
    with pytest.raises(APIStatusError) as raised:
        check_binding({"metadata": {"name": "a"}, "target": {"kind": "Pod"}}, "a")

    assert raised.value.code == 500
    assert str(raised.value).count("target.") == 2


@pytest.mark.parametrize(("status", "moment"), [("True", "before"), ("False", "now")])
def test_a_condition_keeps_its_place_and_its_time_while_it_is_the_same(status, moment):
    present = [{"type": "A", "status": status, "lastTransitionTime": "before"}, {"type": "B", "status": "True"}]
    tree = {"conditions": present}

    set_condition(tree, {"type": "A", "status": "True", "lastProbeTime": None}, "now")

    assert tree["conditions"][0] == {
        "type": "A",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": moment,
    }
    assert tree["conditions"][1]["type"] == "B"
