"""The checks on random objects: they find what is lost and what changes twice, and nothing else."""

from __future__ import annotations

import enum
import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from pydantic import Field, field_validator

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.testing.properties import check_defaulting, check_round_trips, check_validation, lossy_fields, objects

GROUP = "properties.example.com"


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Part(ctrl.Model):
    name: str
    parts: list[Part] = Field(default_factory=list)


class Spec(ctrl.Model):
    size: int = Field(ge=1, le=9)
    even: int = Field(default=0, multiple_of=2, gt=-5, lt=5)
    text: str = Field(default="", max_length=3)
    host: str = Field(default="", pattern=r"^[a-z]{2,4}$|^$")
    colour: Colour = Colour.RED
    mode: Literal["a", "b"] = "a"
    port: ctrl.IntOrString | None = None
    memory: ctrl.Quantity | None = None
    since: ctrl.Time | None = None
    wait: ctrl.Duration | None = None
    few: Annotated[list[int], Field(min_length=1, max_length=2)] = Field(default_factory=lambda: [1])
    part: Part | None = None
    words: dict[str, str] = Field(default_factory=dict)
    free: Any = None
    container: core.Container | None = None
    odd: int = 1

    @field_validator("odd")
    @classmethod
    def is_odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("must be odd")
        return value


class Thing(ctrl.Object, group=GROUP, version="v1"):
    spec: Spec


@given(objects(Thing))
def test_objects_fit_their_class_and_survive_the_wire(thing):
    assert 1 <= thing.spec.size <= 9
    assert thing.spec.odd % 2 == 1
    assert thing.metadata.name
    assert Thing.from_dict(thing.to_dict()) == thing


class NewSpec(ctrl.Model):
    replicas: int = 0
    image: str = ""
    hosts: list[str] = Field(default_factory=list)


class OldSpec(ctrl.Model):
    size: int = 0
    image: str = ""
    host: str = ""


class New(ctrl.Object, group=GROUP, version="v2", kind="Game"):
    spec: NewSpec = Field(default_factory=NewSpec)


class Old(ctrl.Object, group=GROUP, version="v1", kind="Game"):
    spec: OldSpec = Field(default_factory=OldSpec)


def up(old: Old) -> New:
    hosts = [old.spec.host] if old.spec.host else []
    return New(spec=NewSpec(replicas=old.spec.size, image=old.spec.image, hosts=hosts))


def down(new: New) -> Old:
    return Old(spec=OldSpec(size=new.spec.replicas, image=new.spec.image, host="".join(new.spec.hosts[:1])))


def test_lost_fields_are_listed_by_way():
    conversion = ctrl.webhook.Conversion(New).spoke(Old, to_hub=up, from_hub=down)

    assert lossy_fields(conversion) == {"v2 → v1 → v2": {".spec.hosts"}, "v1 → v2 → v1": set()}
    with pytest.raises(AssertionError, match=r"v2 → v1 → v2: \.spec\.hosts"):
        check_round_trips(conversion)
    check_round_trips(conversion, lossy={"v2 → v1 → v2": [".spec.hosts"]})


class Renamed(ctrl.Object, group=GROUP, version="v3", kind="Game"):
    spec: NewSpec = Field(default_factory=NewSpec)
    free: Annotated[OldSpec, ctrl.crd.PreserveUnknownFields] = Field(default_factory=OldSpec)


class Named(ctrl.Object, group=GROUP, version="v1", kind="Game"):
    spec: OldSpec = Field(default_factory=OldSpec)
    free: Annotated[NewSpec, ctrl.crd.PreserveUnknownFields] = Field(default_factory=NewSpec)


def test_field_that_is_copied_under_name_of_other_version_is_lost():
    def copy(kind):
        return lambda obj: kind.from_dict(
            {"metadata": obj.metadata.to_dict(), "spec": obj.spec.to_dict(), "free": obj.free.to_dict()}
        )

    conversion = ctrl.webhook.Conversion(Renamed).spoke(Named, to_hub=copy(Renamed), from_hub=copy(Named))

    assert lossy_fields(conversion) == {
        "v3 → v1 → v3": {".spec.replicas", ".spec.hosts"},
        "v1 → v3 → v1": {".spec.size", ".spec.host"},
    }


def test_a_conversion_that_keeps_the_rest_in_an_annotation_loses_nothing():
    def keep(new: New) -> Old:
        old = down(new)
        if up(old).spec.hosts != new.spec.hosts:
            old.metadata = meta.ObjectMeta(annotations={"hosts": json.dumps(new.spec.hosts)})
        return old

    def restore(old: Old) -> New:
        new = up(old)
        metadata = old.metadata
        text = metadata.annotations.pop("hosts", None)
        if text is not None:
            new.spec.hosts = json.loads(text)
        new.metadata = metadata
        return new

    check_round_trips(ctrl.webhook.Conversion(New).spoke(Old, to_hub=restore, from_hub=keep))


class Fills:
    async def default(self, game: New) -> None:
        game.spec.image = game.spec.image or "i"
        game.spec.replicas = max(game.spec.replicas, 1)


class Counts:
    async def default(self, game: New) -> None:
        game.spec.replicas += 1


def test_a_defaulter_that_is_idempotent_passes():
    check_defaulting(New, Fills())


def test_a_defaulter_that_changes_again_is_found():
    with pytest.raises(AssertionError, match=r"not idempotent for .*\.spec\.replicas"):
        check_defaulting(New, Counts())


class Strict:
    """Rejects in both ways."""

    async def validate_create(self, thing: Thing) -> None:
        if thing.spec.size > 3:
            raise ctrl.webhook.invalid(Thing, thing.metadata.name, [ctrl.webhook.FieldError.required("spec.text", "")])

    def validate_delete(self, thing: Thing) -> None:
        raise ctrl.webhook.Denied("never")


class FewSpec(ctrl.Model):
    few: Annotated[list[int], Field(min_length=1, max_length=2)]


class Few(ctrl.Object, group=GROUP, version="v1"):
    """Small: Hypothesis makes what it found simpler, field by field."""

    spec: FewSpec


class Fails:
    def validate_update(self, old: Few, new: Few) -> None:
        assert old.spec.few == new.spec.few
        _ = new.spec.few[1]


def test_check_validation_passes_for_a_validator_that_rejects():
    check_validation(Thing, Strict(), examples=20)


def test_check_validation_names_the_object_for_which_a_validator_fails():
    with pytest.raises(AssertionError, match=r"the validator fails at UPDATE of \{.*\}: IndexError: list index"):
        check_validation(Few, Fails(), examples=20)
