"""The SidecarSet example without a server: hashes, injection, validation, counts, and the files that follow from its classes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.field import Time
from ctrlruntime.patch import apply_json_patch
from ctrlruntime.project import load, manifests
from ctrlruntime.project.config import refresh
from ctrlruntime.project.settings import read_settings
from ctrlruntime.testing.properties import check_defaulting
from examples.sidecarset.api import HASH, SidecarSet, SidecarSetSpec, SidecarSetStatus, hash_of, selector_of
from examples.sidecarset.controller import SidecarSetReconciler, count, injected_hash, is_active
from examples.sidecarset.webhook import SidecarInjector, SidecarSetDefaulter, SidecarSetValidator, inject

PROJECT = Path(__file__).parents[2] / "examples" / "sidecarset"


def new_set(name: str = "s", *containers: core.Container, **labels: str) -> SidecarSet:
    return SidecarSet(
        metadata=meta.ObjectMeta(name=name),
        spec=SidecarSetSpec(selector=meta.LabelSelector(match_labels=labels), containers=list(containers)),
    )


def new_pod(*containers: str, phase: str = "Running", ready: str = "True", **annotations: str) -> core.Pod:
    return core.Pod(
        metadata=meta.ObjectMeta(name="p", labels={"app": "a"}, annotations=annotations),
        spec=core.PodSpec(containers=[core.Container(name=name) for name in containers]),
        status=core.PodStatus(phase=phase, conditions=[core.PodCondition(type="Ready", status=ready)]),
    )


class Sets:
    """A client that has these sets."""

    def __init__(self, *sets: SidecarSet) -> None:
        self.sets = sets

    async def list(self, _kind: type[SidecarSet]) -> tuple[SidecarSet, ...]:
        return self.sets

    async def get_or_none(self, _kind: type[SidecarSet], key: ctrl.Request) -> SidecarSet | None:
        return next((each for each in self.sets if each.metadata.name == key.name), None)


def test_the_committed_manifests_are_the_generated_ones():
    assert refresh(PROJECT, read_settings(PROJECT)).stale == []


def test_webhooks_are_at_their_paths():
    [mutating, validating] = manifests(load("examples.sidecarset")).webhooks

    found = {
        each["clientConfig"]["service"]["path"]: (each["rules"][0]["resources"], each["rules"][0]["operations"])
        for each in (*mutating["webhooks"], *validating["webhooks"])
    }
    assert found == {
        "/mutate-sidecar-pod": (["pods"], ["CREATE"]),
        "/mutate-apps-chinalhr-github-io-v1alpha1-sidecarset": (["sidecarsets"], ["CREATE", "UPDATE"]),
        "/validate-apps-chinalhr-github-io-v1alpha1-sidecarset": (["sidecarsets"], ["CREATE", "UPDATE"]),
    }


def test_the_hash_is_of_the_containers_alone():
    one = new_set("one", core.Container(name="c", image="i"), a="b")
    other = new_set("other", core.Container(name="c", image="i"), x="y")
    changed = new_set("one", core.Container(name="c", image="j"), a="b")

    assert hash_of(one) == hash_of(other) != hash_of(changed)


def test_defaulting_twice_is_defaulting_once():
    check_defaulting(SidecarSet, SidecarSetDefaulter(), examples=25)


def test_an_injected_container_says_so_once_and_the_set_stays_as_it_is():
    env = [core.EnvVar(name="IS_INJECTED", value="no"), core.EnvVar(name="A", value="b")]
    sidecar_set = new_set("s", core.Container(name="c", env=env))
    before = sidecar_set.deep_copy()
    pod = new_pod("main")

    inject(sidecar_set, pod)
    inject(sidecar_set, pod)

    assert [container.name for container in pod.spec.containers] == ["main", "c"]
    assert [(one.name, one.value) for one in pod.spec.containers[1].env] == [("A", "b"), ("IS_INJECTED", "true")]
    assert sidecar_set == before


async def test_a_set_whose_selector_cannot_be_parsed_does_not_keep_others_from_pods():
    odd = new_set("odd", core.Container(name="odd"))
    odd.spec.selector = meta.LabelSelector(match_expressions=[meta.LabelSelectorRequirement(key="a", operator="Near")])
    good = new_set("good", core.Container(name="good"), app="a")
    tree = new_pod("main").to_dict()

    answer = await SidecarInjector(Sets(odd, good)).handle(
        ctrl.webhook.AdmissionRequest(object=json.dumps(tree).encode())
    )

    pod = core.Pod.from_dict(apply_json_patch(tree, answer.patches))
    assert [container.name for container in pod.spec.containers] == ["main", "good"]
    assert json.loads(pod.metadata.annotations[HASH]) == {"good": hash_of(good)}


async def test_a_pod_that_no_set_selects_is_answered_without_a_patch():
    raw = json.dumps(new_pod("main").to_dict()).encode()

    answer = await SidecarInjector(Sets(new_set("s", app="other"))).handle(ctrl.webhook.AdmissionRequest(object=raw))

    assert answer.allowed
    assert not answer.patches


def test_an_empty_selector_selects_nothing():
    assert not selector_of(new_set()).matches({"app": "a"})
    assert not selector_of(SidecarSet()).matches({"app": "a"})


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        (None, "FieldValueRequired"),
        (meta.LabelSelector(), "FieldValueRequired"),
        (meta.LabelSelector(match_labels={"a": "not a value"}), "FieldValueInvalid"),
        (
            meta.LabelSelector(match_expressions=[meta.LabelSelectorRequirement(key="a", operator="In")]),
            "FieldValueInvalid",
        ),
    ],
)
async def test_a_selector_has_to_be_there_and_to_parse(selector, reason):
    sidecar_set = new_set(app="a")
    sidecar_set.spec.selector = selector

    with pytest.raises(ctrl.Invalid) as failed:
        await SidecarSetValidator().validate_create(sidecar_set)

    assert [(cause.field, cause.reason) for cause in failed.value.causes] == [("spec.selector", reason)]


def test_pods_that_are_done_or_go_are_not_active():
    going = new_pod("main")
    going.metadata.deletion_timestamp = Time.now()

    assert is_active(new_pod("main", phase="Pending"))
    assert not is_active(going)
    assert not is_active(new_pod("main", phase="Succeeded"))
    assert not is_active(new_pod("main", phase="Failed"))


def test_pods_are_updated_when_their_hash_is_the_present_one_of_the_set():
    sidecar_set = new_set("s", core.Container(name="c"), app="a")
    present = json.dumps({"s": hash_of(sidecar_set), "other": "1"})
    pods = [
        new_pod("main", "c", **{HASH: present}),
        new_pod("main", "c", ready="False", **{HASH: json.dumps({"s": "before"})}),
        new_pod("main"),
    ]

    status = count(sidecar_set, pods)

    assert (status.matched_pods, status.updated_pods, status.ready_pods) == (3, 1, 2)


@pytest.mark.parametrize("text", ["", "no json", "[1]", '"s"', "null", "{}"])
def test_an_annotation_that_is_no_object_of_hashes_counts_as_none(text):
    assert injected_hash(new_set("s"), new_pod("main", **{HASH: text})) is None


async def test_a_set_that_is_gone_is_done_and_one_that_is_there_is_counted_again_after_five_seconds():
    there = new_set("there")
    there.status = SidecarSetStatus()
    reconciler = SidecarSetReconciler(Sets(there))

    assert await reconciler.reconcile(ctrl.Request("", "gone")) is None
    assert await reconciler.reconcile(ctrl.Request("", "there")) == ctrl.Result(requeue_after=5.0)


async def test_a_stored_selector_that_cannot_be_parsed_is_not_tried_again():
    odd = new_set("odd", a="not a value")

    with pytest.raises(ctrl.TerminalError, match=r"spec\.selector: .*not a value"):
        await SidecarSetReconciler(Sets(odd)).reconcile(ctrl.Request("", "odd"))
