"""Which warnings become headers, and at which writes a rule is asked (filters/warning.go and the strategies of kube-apiserver)."""

import pytest

from ctrlruntime.apiserver.http.answers import fitting
from ctrlruntime.apiserver.registry.object_warnings import warnings

LONG = [f"{number:03d}{'x' * 253}" for number in range(40)]
"""Warnings of 256 characters."""


def test_each_is_given_once_and_none_that_no_header_can_have():
    assert fitting(["a", "", "b", "a", "two\nlines", "a\x85"]) == ["a", "b"]


def test_those_that_fill_the_room_exactly_stay_whole():
    assert fitting(["y" * 3840, LONG[0]]) == ["y" * 3840, LONG[0]]


def test_one_more_letter_cuts_them_all():
    assert fitting(["y" * 3841, LONG[0]]) == ["y" * 256, LONG[0]]


def test_all_stay_up_to_the_one_that_was_too_much():
    assert fitting(LONG) == LONG[:17]


def test_others_follow_while_there_is_room():
    assert fitting(["y" * 4097, *LONG]) == ["y" * 256, *LONG[:15]]


def test_what_was_cut_is_still_known_as_a_whole():
    assert fitting(["y" * 4097, "y" * 4098, "y" * 4097]) == ["y" * 256] * 2


def test_what_is_cut_off_may_be_what_no_header_has():
    assert fitting(["y" * 4097, f"{'z' * 256}\n"]) == ["y" * 256, "z" * 256]


# When a rule is asked

OLD = "spec.template.spec.nodeSelector[beta.kubernetes.io/os]"


def workload(*, generation: int = 1, name: str = "a", labels: dict[str, str] | None = None, **spec: object):
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}, "containers": []},
    }
    return {"metadata": {"name": name, "generation": generation}, "spec": {"template": template, **spec}}


def said(
    group: str, kind: str, document: dict[str, object], old: dict[str, object] | None, part: str = ""
) -> list[str]:
    return [text.partition(": ")[0] for text in warnings(group, kind, document, old, part)]


def test_a_new_generation_asks_and_a_label_does_not():
    assert said("apps", "Deployment", workload(), None) == [OLD]
    assert said("apps", "Deployment", workload(), workload()) == []
    assert said("apps", "Deployment", workload(generation=2), workload()) == [OLD]


def test_a_name_is_looked_at_when_the_object_is_made():
    assert said("apps", "Deployment", workload(name="a.b"), None) == ["metadata.name", OLD]
    assert said("apps", "Deployment", workload(name="a.b", generation=2), workload(name="a.b")) == [OLD]


def test_a_daemon_set_asks_for_a_new_template_only():
    assert said("apps", "DaemonSet", workload(generation=2, minReadySeconds=3), workload()) == []
    assert said("apps", "DaemonSet", workload(generation=2, labels={"c": "d"}), workload()) == [OLD]


def test_a_scale_is_a_write_of_the_object_and_a_status_is_not():
    assert said("apps", "Deployment", workload(generation=2), workload(), "scale") == [OLD]
    assert said("apps", "Deployment", workload(generation=2), workload(), "status") == []


def test_a_replication_controller_is_warned_of_what_it_had():
    plain = {"metadata": {"name": "a", "generation": 2}, "spec": {"template": {"spec": {"containers": []}}}}
    assert said("", "ReplicationController", plain, workload()) == [OLD]
    assert said("", "ReplicationController", workload(generation=3), plain) == []


def test_a_stateful_set_keeps_its_history_at_every_write():
    document = workload(revisionHistoryLimit=-1)
    assert said("apps", "StatefulSet", document, document) == ["spec.revisionHistoryLimit"]


@pytest.mark.parametrize(("schedule", "count"), [("TZ=UTC * * * * *", 1), ("* * * * *", 0)])
def test_a_schedule_with_a_zone_is_warned_of_at_every_write(schedule: str, count: int):
    document = {"metadata": {"name": "a", "generation": 1}, "spec": {"schedule": schedule}}
    assert len(said("batch", "CronJob", document, document)) == count
