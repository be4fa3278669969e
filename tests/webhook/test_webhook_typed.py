"""Defaulters and validators of a kind, and the patches they lead to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from webhook_reviews import Game, game, patch_in, response_of, review

import ctrlruntime as ctrl
from ctrlruntime.errors import ConfigError
from ctrlruntime.patch import apply_json_patch
from ctrlruntime.webhook import defaulting, operations_of, validating
from ctrlruntime.webhook.difference import laid_over, patch_of


async def ask(handler, body: bytes):
    return response_of(await ctrl.webhook.Admission(handler).answer(body))


class Image:
    async def default(self, game: Game) -> None:
        game.spec.image = game.spec.image or "default"


def defaulted(response: dict[str, Any], sent: Any) -> Any:
    return apply_json_patch(sent, patch_in(response) if "patch" in response else [])


class Seat(ctrl.Model):
    name: str = ""
    price_: int = 0


# Defaulters


async def test_a_defaulter_changes_the_object_in_place():
    response = await ask(defaulting(Game, Image()), review(object=game(replicas=2)))

    assert patch_in(response) == [{"op": "add", "path": "/spec/image", "value": "default"}]


async def test_a_defaulter_that_changes_nothing_makes_no_patch():
    response = await ask(defaulting(Game, Image()), review(object=game(image="i", unknown={"a": None}, hosts=None)))

    assert response == {"uid": "u1", "allowed": True, "status": {"code": 200}}


class Text(ctrl.Object, group="texts.example.com", version="v1"):
    spec: Seat = Field(default_factory=Seat)


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("spec", [{"price": 0}, {"price": 0, "name": ""}, {"price": None}, {}])
async def test_explicit_zeros_of_a_part_that_holds_nothing_else_stay(spec, remove):
    class Names:
        def default(self, text: Text) -> None:
            text.spec.name = "n"

    sent = {"apiVersion": "texts.example.com/v1", "kind": "Text", "metadata": {"name": "t"}, "spec": spec}
    response = await ask(defaulting(Text, Names(), remove_unknown_fields=remove), review(object=sent))

    assert defaulted(response, sent)["spec"] == {**spec, "name": "n"}


async def test_what_the_class_does_not_know_or_writes_otherwise_stays():
    body = game(replicas=0, image="", unknown=[1, {"b": None}], sides={})
    body["status"] = {"x": 1}
    body["metadata"]["creationTimestamp"] = None
    response = await ask(defaulting(Game, Image()), review(object=body))

    assert patch_in(response) == [{"op": "replace", "path": "/spec/image", "value": "default"}]


async def test_a_part_keeps_its_zeros_when_its_last_other_field_is_cleared():
    class Clear:
        def default(self, hall: Hall) -> None:
            hall.spec.stage.price_ = 0

    body = {**HALL, "spec": {"stage": {"name": "", "price": 5}}}
    response = await ask(defaulting(Hall, Clear()), review(object=body))

    assert defaulted(response, body)["spec"] == {"stage": {"name": ""}}


class HallSpec(ctrl.Model):
    seats: list[Seat] = Field(default_factory=list)
    rows: dict[str, Seat] = Field(default_factory=dict)
    best: Seat | None = None
    stage: Seat = Field(default_factory=Seat)
    size: int = Field(1, le=3)
    free: dict[str, Any] = Field(default_factory=dict)
    other: ctrl.Unstructured | None = None


class Hall(ctrl.Object, group="halls.example.com", version="v1"):
    spec: HallSpec


def seat(**more: int) -> dict[str, Any]:
    return {"name": "", "price": 0, **more}


HALL = {
    "apiVersion": "halls.example.com/v1",
    "kind": "Hall",
    "metadata": {
        "name": "h",
        "creationTimestamp": None,
        "labels": {"a": "b"},
        "managedFields": [{"fieldsV1": {"f:x": {}}}],
    },
    "spec": {
        "seats": [seat(x=1), {"x": 1}],
        "rows": {"a": seat(x=1)},
        "best": seat(x=1),
        "stage": seat(x=1),
        "size": 9,
        "free": {"x": {"x": None}},
        "other": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1"}, "metadata": {"name": "c"}},
        "x": 1,
    },
    "x": {"y": 1},
}


class AddsASeat:
    def default(self, hall: Hall) -> None:
        hall.spec.seats.append(Seat(name="new"))


async def test_unknown_fields_are_removed_when_the_option_says_so():
    class Nothing:
        def default(self, hall: Hall) -> None:
            assert hall.model_extra == {}
            assert hall.spec.model_extra == {}

    response = await ask(defaulting(Hall, Nothing(), remove_unknown_fields=True), review(object=HALL))

    spec = {**HALL["spec"], "seats": [seat(), {}], "rows": {"a": seat()}, "best": seat(), "stage": seat()}
    assert defaulted(response, HALL) == {
        **{name: HALL[name] for name in ("apiVersion", "kind", "metadata")},
        "spec": {name: value for name, value in spec.items() if name != "x"},
    }


@pytest.mark.parametrize(("remove", "first"), [(True, {"name": "a"}), (False, {"name": "a", "x": 1})])
async def test_a_list_that_grows_keeps_unknown_fields_unless_the_option_removes_them(remove, first):
    sent = {**HALL, "spec": {"seats": [{"name": "a", "x": 1}]}}
    response = await ask(defaulting(Hall, AddsASeat(), remove_unknown_fields=remove), review(object=sent))

    assert defaulted(response, sent)["spec"]["seats"] == [first, {"name": "new"}]


async def test_an_object_without_unknown_fields_makes_no_patch_with_the_option():
    handler = defaulting(Game, Image(), remove_unknown_fields=True)

    assert "patch" not in await ask(handler, review(object=game(image="i", replicas=0, hosts=None)))


async def test_a_delete_is_not_defaulted():
    response = await ask(defaulting(Game, Image()), review("DELETE", old=game()))

    assert response["allowed"]
    assert "patch" not in response


async def test_a_method_may_be_plain_and_may_take_the_request():
    class Namespaced:
        def default(self, game: Game, request: ctrl.webhook.AdmissionRequest) -> None:
            game.spec.image = request.namespace

    response = await ask(defaulting(Game, Namespaced()), review(object=game()))

    assert patch_in(response)[0]["value"] == "ns"


async def test_a_defaulter_may_refuse():
    class Refuses:
        async def default(self, game: Game) -> None:
            raise ctrl.webhook.Denied("no")

    assert (await ask(defaulting(Game, Refuses()), review(object=game())))["status"]["code"] == 403


# Validators


class Validator:
    def __init__(self) -> None:
        self.calls: list[tuple] = []

    async def validate_create(self, game: Game) -> ctrl.webhook.Warnings | None:
        self.calls.append(("create", game.spec.replicas))
        return ["created"]

    async def validate_update(self, old: Game, new: Game, request: ctrl.webhook.AdmissionRequest) -> None:
        self.calls.append(("update", old.spec.replicas, new.spec.replicas, request.name))

    def validate_delete(self, game: Game) -> None:
        self.calls.append(("delete", game.spec.replicas))
        raise ctrl.webhook.Denied("stay")


async def test_each_operation_has_its_method():
    validator = Validator()
    handler = validating(Game, validator)

    created = await ask(handler, review("CREATE", game(replicas=1)))
    updated = await ask(handler, review("UPDATE", game(replicas=3), game(replicas=2)))
    deleted = await ask(handler, review("DELETE", None, game(replicas=4)))

    assert validator.calls == [("create", 1), ("update", 2, 3, "g"), ("delete", 4)]
    assert created["warnings"] == ["created"]
    assert updated == {"uid": "u1", "allowed": True, "status": {"code": 200}}
    assert (deleted["allowed"], deleted["status"]["message"]) == (False, "stay")


def deleting(finalizers: list[str], **spec: Any) -> dict[str, Any]:
    obj = game(**spec)
    obj["metadata"] |= {"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": finalizers}
    return obj


@pytest.mark.parametrize(
    ("old", "new", "is_asked"),
    [
        (deleting(["a", "b"], replicas=1), deleting(["b"], replicas=1), False),
        (deleting(["a"], replicas=1), deleting([], replicas=1), False),
        (deleting(["a"]), {**deleting([]), "metadata": {"name": "g", "labels": {"a": "b"}}}, False),
        (deleting(["a"], replicas=1), deleting([], replicas=2), True),
        (deleting(["a"], replicas=1), deleting([], replicas=True), True),
        (deleting(["a"], replicas=1), {**deleting([], replicas=1), "status": {"phase": "x"}}, True),
        (game(replicas=1), game(replicas=1), True),
        (game(replicas=1), deleting(["a"], replicas=1), True),  # the old object says what is being deleted
        ({**game(), "note": "deletionTimestamp", "deletionTimestamp": "x"}, game(), True),
    ],
)
async def test_an_update_that_lets_a_deleting_object_go_is_not_validated(old, new, is_asked):
    class Refuses:
        async def validate_update(self, old: Game, new: Game) -> None:
            raise ctrl.webhook.Denied("no")

    found = await ask(validating(Game, Refuses()), review("UPDATE", new, old))
    with_option = await ask(validating(Game, Refuses(), validate_deleting=True), review("UPDATE", new, old))

    assert found["allowed"] is not is_asked
    assert not with_option["allowed"]


async def test_connect_passes_and_an_unknown_operation_is_a_400():
    handler = validating(Game, Validator())

    assert (await ask(handler, review("CONNECT", game())))["allowed"]
    assert (await ask(handler, review("PEEK", game())))["status"]["code"] == 400


async def test_operations_without_a_method_pass_and_are_not_asked_for():
    class OnlyUpdate:
        async def validate_update(self, old: Game, new: Game) -> None:
            raise ctrl.webhook.Denied("no")

    handler = validating(Game, OnlyUpdate())

    assert operations_of(OnlyUpdate()) == ("UPDATE",)
    assert operations_of(Validator()) == ("CREATE", "UPDATE", "DELETE")
    assert (await ask(handler, review("CREATE", game())))["allowed"]
    assert not (await ask(handler, review("UPDATE", game(), game())))["allowed"]


async def test_warnings_are_a_list_and_no_text():
    class Text:
        async def validate_create(self, game: Game) -> str:
            return "careful"

    assert (await ask(validating(Game, Text()), review("CREATE", game())))["status"]["code"] == 500


def test_methods_that_cannot_be_called_are_refused_at_once():
    class TooMany:
        async def default(self, game, request, more): ...

    class TooFew:
        async def validate_update(self, new): ...

    with pytest.raises(ConfigError, match=r"TooMany\.default takes 3 parameters"):
        defaulting(Game, TooMany())
    with pytest.raises(ConfigError, match=r"called with \(old, new\)"):
        validating(Game, TooFew())
    with pytest.raises(ConfigError, match="has no method default"):
        defaulting(Game, object())
    with pytest.raises(ConfigError, match="pass an instance"):
        defaulting(Game, Image)
    with pytest.raises(ConfigError, match="validates nothing"):
        validating(Game, object())


# Patches

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b/c", "~"])
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab/~c"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("ab/~cd"), trees, max_size=4)


@given(objects, objects)
def test_a_patch_from_an_object_to_another_makes_it_that(before, after):
    assert apply_json_patch(before, patch_of(before, before, after)) == after


@given(objects, objects, objects)
def test_what_is_laid_over_an_object_equals_it_where_it_was_changed(raw, before, after):
    result = apply_json_patch(raw, patch_of(raw, before, after))

    for name, value in after.items():
        if name not in before:
            assert result[name] == value
    for name in raw.keys() - before.keys() - after.keys():
        assert result[name] == raw[name]
    for name in before.keys() - after.keys():
        assert name not in result


@given(objects, objects)
def test_without_a_change_there_is_no_patch(raw, before):
    assert laid_over(raw, before, before) is raw
    assert patch_of(raw, before, before) == []


specs = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 5),
        "image": st.sampled_from(["", "i"]),
        "hosts": st.none() | st.lists(st.sampled_from(["a", "b", ""]), max_size=4),
        "sides": st.dictionaries(st.sampled_from("xyz"), st.text(max_size=2), max_size=3),
        "unknown": trees,
    },
)


class Everything:
    """Changes each sort of field, and nothing the second time."""

    async def default(self, game: Game) -> None:
        game.spec.image = game.spec.image or "i"
        game.spec.hosts = sorted({*game.spec.hosts, "a"})
        game.spec.sides = {"x": "1", **{name: value for name, value in game.spec.sides.items() if name != "y"}}
        game.metadata.labels = {**game.metadata.labels, "defaulted": "yes"}


@given(specs)
async def test_the_patch_applied_to_what_was_sent_is_the_defaulted_object(spec):
    sent = game(**spec)
    response = await ask(defaulting(Game, Everything()), review(object=sent))
    expected = Game.from_dict(sent)
    await Everything().default(expected)

    patched = apply_json_patch(sent, patch_in(response))

    assert Game.from_dict(patched).to_dict() == expected.to_dict()
    assert patched["spec"].get("unknown", 0) == spec.get("unknown", 0)
    again = await ask(defaulting(Game, Everything()), review(object=patched))
    assert "patch" not in again
