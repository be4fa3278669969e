"""Objects that break the limits of their class: webhooks read them, and the API server is left to refuse them."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Literal

import pytest
from pydantic import Field
from webhook_reviews import patch_in, response_of, review

import ctrlruntime as ctrl
from ctrlruntime.errors import DecodeError
from ctrlruntime.webhook import ConversionEndpoint, defaulting, validating
from ctrlruntime.webhook.limits import IncompleteError, decode_beyond_limits
from ctrlruntime.webhook.request import RequestDecodeError


class Mode(StrEnum):
    FAST = "fast"
    SLOW = "slow"


class Part(ctrl.Model):
    names: list[str] = Field(default_factory=list, max_length=2)
    below: Part | None = None


class PlanSpec(ctrl.Model):
    replicas: int | None = Field(None, ge=1, le=3)
    step: int = Field(2, multiple_of=2)
    mode: Mode = Mode.FAST
    colour: Literal["red", "blue"] = "red"
    level: Literal[1, 2] = 1
    host: str = Field("", min_length=2, max_length=5, pattern="^a")
    image: str = ""
    part: Part = Field(default_factory=Part)
    notes: dict[str, str] = Field(default_factory=dict, max_length=1)
    type: str = Field("", max_length=3)
    budget: ctrl.Quantity | None = None


class Plan(ctrl.Object, group="plans.example.com", version="v1"):
    spec: PlanSpec = Field(default_factory=PlanSpec)


class Strict(ctrl.Object, group="plans.example.com", version="v1"):
    mode: Mode
    size: int = Field(1, ge=1)


def raw(kind: str = "Plan", api_version: str = "plans.example.com/v1", **fields) -> bytes:
    return json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "p"}, **fields}).encode()


BROKEN = {
    "replicas": -1,
    "step": 3,
    "mode": "lazy",
    "colour": "green",
    "level": 7,
    "host": "b",
    "part": {"names": ["a", "b", "c"], "below": {"names": ["a", "b", "c"]}},
    "notes": {"a": "1", "b": "2"},
    "type": "long",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_limit_is_read_and_written_as_it_is(name):
    plan = decode_beyond_limits(Plan, raw(spec={name: BROKEN[name]}))

    assert plan.to_dict()["spec"][name] == BROKEN[name]


def test_parts_are_still_objects_of_their_classes_and_unknown_fields_are_kept():
    plan = decode_beyond_limits(Plan, raw(spec={**BROKEN, "budget": "10Mi", "colours": [1]}))

    assert isinstance(plan, Plan)
    assert isinstance(plan.spec.part.below, Part)
    assert plan.spec.budget == ctrl.Quantity("10Mi")
    assert plan.to_dict()["spec"]["colours"] == [1]


def test_what_keeps_the_limits_is_read_as_ever():
    plan = decode_beyond_limits(Plan, raw(spec={"replicas": 2, "mode": "slow"}))

    assert plan == Plan.from_json(raw(spec={"replicas": 2, "mode": "slow"}))
    assert plan.spec.mode is Mode.SLOW


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (raw(spec={"replicas": "many"}), "spec.replicas"),
        (raw(spec={"replicas": -1, "budget": "nonsense"}), "spec.budget"),
        (raw(spec={"mode": 3}), "spec.mode"),
        (raw(spec=[]), "spec"),
        (raw("Pod", "v1", spec={"replicas": -1}), "is greater|greater than"),
        (b"{", "not JSON"),
    ],
)
def test_what_does_not_fit_for_another_reason_stays_an_error(body, named):
    with pytest.raises(DecodeError, match=named) as failed:
        decode_beyond_limits(Plan, body)

    assert not isinstance(failed.value, IncompleteError)


def test_a_required_field_without_a_zero_is_told_apart():
    with pytest.raises(IncompleteError, match="mode is missing"):
        decode_beyond_limits(Strict, raw("Strict", size=0))


def test_a_request_reads_beyond_limits_only_when_asked():
    request = ctrl.webhook.AdmissionRequest(object=raw(spec={"replicas": 0}), old_object=raw(spec={"replicas": 9}))

    with pytest.raises(RequestDecodeError, match=r"spec\.replicas"):
        request.decode(Plan)
    assert request.decode(Plan, validate=False).spec.replicas == 0
    assert request.decode_old(Plan, validate=False).spec.replicas == 9


class Image:
    async def default(self, plan: Plan) -> None:
        plan.spec.image = plan.spec.image or "default"


class Nothing:
    async def default(self, _: Strict) -> None:
        raise AssertionError("it is not asked")


class Counts:
    def __init__(self) -> None:
        self.seen: list[int | None] = []

    async def validate_create(self, plan: Plan) -> None:
        self.seen += [plan.spec.replicas]

    async def validate_update(self, old: Plan, new: Plan) -> None:
        self.seen += [old.spec.replicas, new.spec.replicas]

    async def validate_delete(self, plan: Plan) -> None:
        self.seen += [plan.spec.replicas]


async def ask(handler, body: bytes):
    return response_of(await ctrl.webhook.Admission(handler).answer(body))


def tree(**spec):
    return json.loads(raw(spec=spec))


async def test_a_defaulter_fills_in_what_it_can_and_leaves_the_broken_limit_to_the_server():
    response = await ask(defaulting(Plan, Image()), review(object=tree(**BROKEN)))

    assert response["allowed"]
    assert patch_in(response) == [{"op": "add", "path": "/spec/image", "value": "default"}]


async def test_an_object_that_lacks_a_required_field_passes_the_defaulter_untouched():
    response = await ask(defaulting(Strict, Nothing()), review(object=json.loads(raw("Strict"))))

    assert response == {"uid": "u1", "allowed": True, "status": {"code": 200}}


async def test_a_type_that_does_not_fit_is_a_400_from_the_defaulter():
    response = await ask(defaulting(Plan, Image()), review(object=tree(replicas="many")))

    assert response["status"]["code"] == 400
    assert "spec.replicas" in response["status"]["message"]


async def test_a_validator_lets_what_was_stored_before_a_limit_be_mended_and_deleted():
    validator = Counts()
    handler = validating(Plan, validator)

    assert (await ask(handler, review("UPDATE", tree(replicas=0), tree(replicas=9))))["allowed"]
    assert (await ask(handler, review("DELETE", None, tree(replicas=9))))["allowed"]
    assert validator.seen == [9, 0, 9]


async def test_a_validator_is_not_given_a_new_object_that_breaks_a_limit():
    response = await ask(validating(Plan, Counts()), review(object=tree(replicas=9)))

    assert response["status"]["code"] == 400
    assert "spec.replicas" in response["status"]["message"]


async def test_a_raw_handler_may_patch_what_breaks_a_limit():
    async def handle(request: ctrl.webhook.AdmissionRequest) -> ctrl.webhook.AdmissionResponse:
        plan = request.decode(Plan, validate=False)
        plan.spec.image = "mine"
        return ctrl.webhook.patch_response(request, plan)

    response = await ask(handle, review(object=tree(replicas=9)))

    assert patch_in(response) == [{"op": "add", "path": "/spec/image", "value": "mine"}]


def test_stored_objects_convert_although_they_break_a_limit():
    class Later(ctrl.Object, group="plans.example.com", version="v2", kind="Plan"):
        replicas: int = 0

    conversion = ctrl.webhook.Conversion(Later).spoke(
        Plan,
        to_hub=lambda plan: Later(replicas=plan.spec.replicas or 0),
        from_hub=lambda plan: Plan(spec=PlanSpec(replicas=plan.replicas)),
    )

    converted = json.loads(conversion.convert_raw(raw(spec={"replicas": 9}), "v2"))

    assert converted["replicas"] == 9


async def test_a_converter_that_breaks_a_limit_of_the_other_version_is_told_which():
    class Later(ctrl.Object, group="plans.example.com", version="v2", kind="Plan"):
        replicas: int = Field(0, le=3)

    endpoint = ConversionEndpoint(
        [
            ctrl.webhook.Conversion(Later).spoke(
                Plan, to_hub=lambda plan: Later(replicas=plan.spec.replicas), from_hub=lambda _: Plan()
            )
        ]
    )
    request = {"uid": "u", "desiredAPIVersion": "plans.example.com/v2", "objects": [tree(replicas=9)]}
    body = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}

    result = response_of(await endpoint.answer(json.dumps(body).encode()))["result"]

    assert result["status"] == "Failure"
    assert (
        "made a Later that does not fit its class: replicas: Input should be less than or equal to 3"
        in result["message"]
    )
    assert endpoint.panics == 0
