"""What is read is written as it was, but for what the code changed: single rules, and random classes with random JSON."""

from __future__ import annotations

import pickle
from random import Random
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, Field
from random_classes import Definition, definition, python_value

from ctrlruntime.api import Model
from ctrlruntime.api.fields import is_explicit, wire_names
from ctrlruntime.field import Quantity
from ctrlruntime.markers import Default, Immutable, Nullable


class Part(Model):
    weight: int = 0
    name: str = ""


class Thing(Model):
    plain: int = 0
    with_default: Annotated[int, Default(5)] = 0
    fixed: Annotated[str, Immutable] = ""
    pointer: int | None = None
    nullable: Annotated[int | None, Nullable, Default(7)] = None
    part: Part = Field(default_factory=Part)
    tags: list[str] = Field(default_factory=list)
    amount: Quantity = Quantity(0)


ZEROS: dict[str, Any] = {
    "plain": 0,
    "withDefault": 0,
    "fixed": "",
    "pointer": None,
    "nullable": None,
    "part": {"weight": 0},
    "tags": [],
    "amount": 0,
}


def read(**document: Any) -> Thing:
    return Thing.from_dict(document)


def test_zeros_and_nulls_that_were_read_are_written() -> None:
    assert read(**ZEROS).to_dict() == ZEROS


@pytest.mark.parametrize(
    "copied", [Thing.deep_copy, lambda it: pickle.loads(pickle.dumps(it)), lambda it: it.model_copy()]
)
def test_copies_write_the_same(copied: Any) -> None:
    changed = read(**ZEROS)
    changed.plain, changed.tags = 1, ["a"]
    changed.plain, changed.pointer = 0, None

    assert copied(changed).to_dict() == ZEROS | {"tags": ["a"]}
    assert copied(Thing(plain=0, part=Part())).to_dict() == {}


def test_a_null_that_the_class_does_not_take_is_written_until_it_is_changed() -> None:
    class Strict(Model):
        size: int
        names: list[str] = Field(default_factory=list)
        parts: list[Part] = Field(default_factory=list)

    document = {"size": None, "names": None, "parts": [{"name": None}]}
    strict = Strict.from_dict(document)

    assert strict.to_dict() == document
    strict.size, strict.parts[0].name = 3, "x"
    assert strict.to_dict() == {"size": 3, "names": None, "parts": [{"name": "x"}]}


def test_a_null_below_a_model_of_pydantics_own_is_dropped() -> None:
    class Plain(BaseModel):
        size: int = 0
        parts: list[Part] = []

    class Holder(Model):
        plain: Plain = Field(default_factory=Plain)

    holder = Holder.from_dict({"plain": {"size": None, "parts": [{"weight": None}]}})

    assert (holder.plain.size, holder.plain.parts) == (0, [Part()])


def test_a_zero_that_is_set_again_is_still_the_zero_that_was_read() -> None:
    thing = read(**ZEROS)
    for name in Thing.model_fields:
        setattr(thing, name, getattr(Thing(), name))

    assert thing.to_dict() == {**ZEROS, "part": {}, "amount": "0"}


def test_a_value_that_is_changed_and_changed_back_is_what_it_was() -> None:
    thing = read(plain=0)
    thing.plain = thing.with_default = 3
    thing.plain = 0
    thing.pointer = 3
    thing.pointer = None

    assert thing.to_dict() == {"plain": 0, "withDefault": 3}


def test_a_zero_that_the_code_sets_is_left_out_where_an_absent_field_reads_as_it() -> None:
    thing = read(plain=3, tags=["a"], pointer=3, amount="1")
    thing.plain, thing.tags, thing.pointer, thing.amount = 0, [], None, Quantity(0)

    assert thing.to_dict() == Thing(plain=0, tags=[], pointer=None, part=Part()).to_dict() == {}


def test_a_zero_that_the_code_sets_is_written_where_the_server_has_another_default() -> None:
    thing = read(withDefault=3, fixed="a", nullable=3)
    thing.with_default, thing.fixed, thing.nullable = 0, "", None

    expected = {"withDefault": 0, "fixed": "", "nullable": None}
    assert thing.to_dict() == Thing(with_default=0, fixed="", nullable=None).to_dict() == expected
    assert Thing(nullable=None).to_apply_dict() == {"nullable": None}
    assert Thing().to_dict() == {}


def test_a_part_that_was_read_stays_when_its_last_field_is_cleared() -> None:
    thing = read(part={"weight": 3})
    thing.part.weight = 0

    assert thing.to_dict() == {"part": {}}


def test_a_deleted_field_is_left_out_and_has_its_default_again() -> None:
    thing = read(**ZEROS)
    for name in Thing.model_fields:
        delattr(thing, name)

    assert thing == Thing()
    assert thing.to_dict() == thing.to_apply_dict() == {}


def test_a_required_field_cannot_be_deleted() -> None:
    class Strict(Model):
        size: int

    with pytest.raises(AttributeError, match=r"Strict\.size is required, so it cannot be deleted"):
        del Strict(size=1).size


def test_a_refreshed_object_writes_what_the_other_one_read() -> None:
    thing = Thing(plain=0)
    thing.refresh(read(**ZEROS))

    assert thing.to_dict() == ZEROS


# Names


class Named(Model):
    one: int = Field(0, validation_alias="clusterIPs")
    other: int = Field(0, serialization_alias="x-y")
    both: int = Field(0, alias="z")
    many: int = Field(0, validation_alias=AliasChoices("new", "old"))
    host_ip: int = 0
    own: int = Field(0, exclude=True)


def test_a_field_is_read_and_written_by_one_name() -> None:
    document = {"clusterIPs": 1, "x-y": 2, "z": 3, "new": 4, "hostIp": 5}

    assert Named.from_dict(document).to_dict() == document
    assert Named(one=1, other=2, many=4, host_ip=5, z=3).to_dict() == document
    assert Named.from_dict({"old": 4}).to_dict() == {"new": 4}


def test_the_name_of_an_attribute_is_an_unknown_field_in_json() -> None:
    document = {"host_ip": 1, "one": "x"}

    assert Named.from_dict(document) == Named.from_dict(document).deep_copy()
    assert (Named.from_dict(document).host_ip, Named.from_dict(document).to_dict()) == (0, document)


def test_an_excluded_field_is_never_sent() -> None:
    assert Named(own=3).to_dict() == Named(own=3).to_apply_dict() == {}


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ({"validation_alias": "a", "serialization_alias": "b"}, "would be read as 'a' and written as 'b'"),
        ({"validation_alias": AliasPath("a", 0)}, "is a path into other fields"),
    ],
)
def test_a_field_with_two_names_is_refused(aliases: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):

        class _Odd(Model):
            field: int = Field(0, **aliases)


def test_names_hold_where_annotations_are_resolved_later() -> None:
    class Later(Model):
        one: LaterPart | None = Field(None, validation_alias="clusterIPs")

    class LaterPart(Model):
        two: int = Field(0, serialization_alias="x-y")

    Later.model_rebuild(_types_namespace={"LaterPart": LaterPart})

    assert Later.from_dict({"clusterIPs": {"x-y": 1}}).to_dict() == {"clusterIPs": {"x-y": 1}}


# Random classes


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """Return what of a JSON tree is not in another one; fields may be added, as defaults are."""
    if isinstance(before, dict) and isinstance(after, dict):
        missing = [f"{path}.{name} is gone" for name in before.keys() - after.keys()]
        kept = before.keys() & after.keys()
        return missing + [found for name in kept for found in lost(before[name], after[name], f"{path}.{name}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            found
            for position, pair in enumerate(zip(before, after, strict=True))
            for found in lost(*pair, f"{path}[{position}]")
        ]
    return [] if before == after and isinstance(before, bool) == isinstance(after, bool) else [f"{path}: {after!r}"]


def check(made: Definition, random: Random) -> None:
    document = made.values(random)
    obj = made.cls.from_dict(document)
    written = obj.to_dict()
    assert not lost(document, written), document
    assert obj.deep_copy().to_dict() == obj.model_copy(deep=True).to_dict() == written

    for name, sort in made.fields.items():
        wire = wire_names(made.cls)[name]
        old = getattr(obj, name)
        changed = obj.deep_copy()
        setattr(changed, name, python_value(sort.annotation, sort.values(random)))
        rest = {key: value for key, value in changed.to_dict().items() if key != wire}
        assert rest == {key: value for key, value in written.items() if key != wire}, (document, name)
        if name not in obj.model_fields_set and is_explicit(made.cls.model_fields[name]):
            delattr(changed, name)  # what the code sets in such a field is sent
        else:
            setattr(changed, name, old)
        assert changed.to_dict() == written, (document, name)


def run(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        made = definition(random)
        for _ in range(3):
            check(made, random)


def test_objects_of_random_classes_survive() -> None:
    run(range(200))


@pytest.mark.thorough
def test_objects_of_many_random_classes_survive() -> None:
    run(range(200, 5000))
