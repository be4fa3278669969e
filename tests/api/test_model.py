from __future__ import annotations

import copy
import functools
import http
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from ipaddress import IPv4Address, IPv6Network
from typing import Any, ClassVar
from uuid import UUID

import pytest
from pydantic import Field, ValidationError

from ctrlruntime.api import Model, Object, Unstructured
from ctrlruntime.api.fields import wire_names
from ctrlruntime.errors import DecodeError
from ctrlruntime.field import Duration, IntOrString, MicroTime, Quantity, Time


class Color(Enum):
    RED = "red"


class Part(Model):
    name: str = ""
    weight: int = 0


class Thing(Model):
    size: int = Field(ge=0)
    replicas: int | None = None
    pod_name: str = ""
    host_ip: str = Field(default="", validation_alias="hostIP", serialization_alias="hostIP")
    protocol: str = "TCP"
    enabled: bool = True
    limit: Quantity = Quantity(0)
    memory: Quantity | None = None
    port: IntOrString = 0
    started: Time | None = None
    renewed: MicroTime | None = None
    timeout: Duration = Duration(0)
    tags: list[str] = Field(default_factory=list)
    part: Part = Field(default_factory=Part)
    other: Part | None = None
    parts: list[Part] = Field(default_factory=list)
    by_name: dict[str, Part] = Field(default_factory=dict)
    data: dict[str, bytes] = Field(default_factory=dict)
    color: Color | None = None
    from_: str = ""
    free: Any = None


def wire(document: dict[str, Any]) -> Any:
    return json.loads(Thing.from_json(json.dumps(document)).to_json())


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"replicas": 0},
        {"replicas": 3, "podName": "a", "hostIP": "1.2.3.4", "from": "here"},
        {"protocol": ""},
        {"enabled": False},
        {"limit": "1.50", "memory": "0"},
        {"port": "http"},
        {"started": "2026-01-02T03:04:05.1234567Z", "renewed": "2026-01-02T03:04:05.000000Z"},
        {"timeout": "1h"},
        {"other": {}},
        {"part": {"weight": 1}, "parts": [{}, {"name": "x"}], "byName": {"a": {}}},
        {"data": {"a": "AAEC+/8="}},
        {"color": "red"},
        {"free": {"a": [None, 0, ""]}},
        {"unknown": {"deep": [None, {"x": 0}]}, "alsoUnknown": ""},
    ],
)
def test_what_is_read_is_written(content: dict[str, Any]) -> None:
    expected = {"size": 0, "protocol": "TCP", "enabled": True, **content}

    assert wire({"size": 0, **content}) == expected


def test_numbers_are_written_as_go_writes_them() -> None:
    class Numbers(Model):
        one: float = 0.0
        many: list[float] = Field(default_factory=list[float])
        either: float | str = ""

    read = b'{"one":2,"many":[1,2.5,1e300],"either":3}'

    assert Numbers.model_validate_json(read).to_json() == read
    assert Numbers(one=4.0, many=[5.0]).to_apply_dict() == {"one": 4, "many": [5]}
    assert Numbers(one=4.0).to_json() == b'{"one":4}'


def test_zeros_that_are_defaults_are_left_out() -> None:
    thing = Thing(size=0, pod_name="", port=0, tags=[], part=Part(name=""), limit=Quantity("0Gi"))

    assert thing.to_dict() == {"size": 0, "protocol": "TCP", "enabled": True}


def test_fields_named_always_sent_are_written_with_zeros() -> None:
    class Always(Model, always_sent=("name",)):
        name: str = ""
        tags: list[str] = Field(default_factory=list)

    assert Always().to_dict() == {"name": ""}


def test_in_place_edits_are_written() -> None:
    thing = Thing(size=1)

    thing.tags.append("x")
    thing.part.weight = 2
    thing.by_name["a"] = Part()

    written = thing.to_dict()
    assert (written["tags"], written["part"], written["byName"]) == (["x"], {"weight": 2}, {"a": {}})


def test_both_spellings_construct() -> None:
    assert Thing(size=1, pod_name="a") == Thing.model_validate({"size": 1, "podName": "a"})


def test_unknown_constructor_arguments_are_refused_with_the_nearest_name() -> None:
    with pytest.raises(TypeError, match=r"Thing has no field 'pod_nam'; did you mean 'pod_name'\?"):
        Thing(size=1, pod_nam="a")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pod_nam", r"; did you mean 'pod_name'\?"),
        ("podName", r"; did you mean 'pod_name'\?"),
        ("hostIP", r"; did you mean 'host_ip'\?"),
        ("xyzzy", r"\. Declare it in the class"),
        ("copy", "unknown field"),  # a method of the class
    ],
)
def test_an_assignment_to_an_unknown_name_is_refused_with_the_nearest_name(name: str, hint: str) -> None:
    for thing in (Thing(size=1), Thing.from_json('{"size": 1, "more": 2}')):
        before = thing.to_dict()
        with pytest.raises(AttributeError, match=rf"cannot set Thing\.{name}: .*{hint}"):
            setattr(thing, name, "a")
        assert thing.to_dict() == before


def test_what_the_server_sent_beside_the_fields_may_be_changed_and_is_sent_back() -> None:
    thing: Any = Thing.from_json('{"size": 1, "newField": {"a": [1]}}')
    assert thing.to_dict()["newField"] == {"a": [1]}

    thing.newField = "b"

    assert thing.to_dict()["newField"] == "b"


def test_properties_and_private_attributes_are_assigned_as_ever() -> None:
    class Named(Part):
        _seen: int = 0

        @property
        def first(self) -> str:
            return self.name[:1]

        @first.setter
        def first(self, letter: str) -> None:
            self.name = letter + self.name[1:]

        @functools.cached_property
        def length(self) -> int:
            return len(self.name)

    named = Named(name="abc")
    named.first, named._seen = "x", 2
    assert (named.name, named._seen, named.length, named.to_dict()) == ("xbc", 2, 3, {"name": "xbc"})


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda t: setattr(t, "replicas", "three"), "replicas: expected int, got 'three'"),
        (lambda t: setattr(t, "replicas", True), "replicas: expected int, got True"),
        (lambda t: setattr(t, "size", 1.5), "size: expected int, got 1.5"),
        (lambda t: setattr(t, "enabled", 1), "enabled: expected bool, got 1"),
        (lambda t: setattr(t, "port", 1.5), "port: expected int or str, got 1.5"),
        (lambda t: setattr(t, "pod_name", 5), "podName: expected str, got 5"),
        (lambda t: setattr(t, "other", {"weight": 1}), "other: expected Part, got {'weight': 1}"),
        (lambda t: setattr(t.part, "weight", "w"), "part.weight: expected int, got 'w'"),
        (lambda t: t.tags.extend(["a", 1]), "tags[1]: expected str, got 1"),
        (lambda t: setattr(t, "tags", "abc"), "tags: expected a list, got 'abc'"),
        (lambda t: t.parts.append(Part.model_construct(weight="w")), "parts[0].weight: expected int, got 'w'"),
        (lambda t: t.by_name.update(a=None), "byName[a]: expected Part, got None"),
        (lambda t: t.data.update(a="YQ=="), "data[a]: expected bytes, got 'YQ=='"),
        (lambda t: setattr(t, "memory", "many"), "memory: 'many' is not a quantity"),
        (lambda t: setattr(t, "tags", [["x" * 100]]), "tags[0]: expected str, got ['" + "x" * 55 + "…"),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_path_when_written(change: Any, error: str) -> None:
    thing = Thing(size=1)
    change(thing)
    for write in (thing.to_dict, thing.to_json, thing.to_apply_dict):
        with pytest.raises(ValueError, match=r"^" + re.escape(error)):
            write()


class Holds(Model):
    alone: Duration | None = None
    items: list[Duration] = Field(default_factory=list)
    several: tuple[Duration, ...] = ()
    sequence: Sequence[Duration] = ()
    members: set[Duration] = Field(default_factory=set)
    by_name: dict[str, Duration] = Field(default_factory=dict)
    mapping: Mapping[str, Duration] = Field(default_factory=dict)
    deep: list[list[Duration | None]] = Field(default_factory=list)


PLACES: dict[str, tuple[Any, str]] = {
    "alone": (lambda value: value, "alone"),
    "items": (lambda value: [value], "items[0]"),
    "several": (lambda value: (value,), "several[0]"),
    "sequence": (lambda value: [value], "sequence[0]"),
    "members": (lambda value: {value}, "members[0]"),
    "by_name": (lambda value: {"k": value}, "byName[k]"),
    "mapping": (lambda value: {"k": value}, "mapping[k]"),
    "deep": (lambda value: [[value]], "deep[0][0]"),
}


@pytest.mark.parametrize("form", [Model.to_dict, Model.to_apply_dict])
@pytest.mark.parametrize("place", PLACES)
def test_the_rules_for_assigned_values_are_the_same_everywhere(place: str, form: Any) -> None:
    around, path = PLACES[place]
    holds = Holds()

    setattr(holds, place, around(timedelta(minutes=1)))
    assert form(holds) == Holds.from_dict({wire_names(Holds)[place]: jsonable(around("1m0s"))}).to_dict()

    setattr(holds, place, around("soon"))
    with pytest.raises(ValueError, match=f"^{re.escape(path)}: 'soon' is not a duration"):
        form(holds)


def jsonable(value: Any) -> Any:
    return list(value) if isinstance(value, (set, tuple)) else value


def test_relatives_of_a_type_are_written_as_it() -> None:
    thing: Any = Thing(size=1)
    thing.size, thing.tags, thing.pod_name = http.HTTPStatus.OK, ("a", "b"), Color.RED
    written = thing.to_dict()
    assert (written["size"], written["tags"], written["podName"]) == (200, ["a", "b"], "red")


@pytest.mark.parametrize(
    ("base", "name", "owner"),
    [
        (Model, "deep_copy", "Model"),
        (Model, "to_dict", "Model"),
        (Model, "refresh", "Model"),
        (Model, "json", "BaseModel"),
        (Object, "apply_payload", "Object"),
        (Unstructured, "content", "Unstructured"),
    ],
)
@pytest.mark.parametrize("annotation", [str, "str", "str | None"])
def test_a_field_named_like_a_method_is_refused_where_the_class_stands(
    base: type[Model], name: str, owner: str, annotation: object
) -> None:
    with pytest.raises(
        TypeError, match=rf"cannot have the name {name}, because {owner} has.*Use {name}_: its name in JSON is"
    ):
        type(base)("Named", (base,), {"__module__": __name__, "__annotations__": {name: annotation}, name: ""})


def test_a_field_with_an_underscore_behind_and_constants_of_a_class_are_no_methods() -> None:
    class Named(Model):
        limit: ClassVar[int] = 3
        refresh_: str = ""
        to_json_: str = ""

    class More(Named):
        limit: ClassVar[int] = 4
        refresh_: str = "x"

    assert More(refresh_="soon").to_dict() == {"refresh": "soon"}
    assert More.limit == 4


class Routes(Model):
    hops: dict[IPv4Address, int] = Field(default_factory=dict)
    nets: dict[IPv6Network, Part] = Field(default_factory=dict)
    ids: dict[UUID, list[str]] = Field(default_factory=dict)


def test_keys_of_dicts_may_be_addresses_networks_and_uuids() -> None:
    routes = Routes(
        hops={IPv4Address("10.0.0.1"): 1}, nets={IPv6Network("::/64"): Part(name="a")}, ids={UUID(int=5): ["x"]}
    )
    wire = {
        "hops": {"10.0.0.1": 1},
        "nets": {"::/64": {"name": "a"}},
        "ids": {"00000000-0000-0000-0000-000000000005": ["x"]},
    }

    assert routes.to_dict() == wire
    assert routes.to_apply_dict() == wire
    assert json.loads(routes.to_json()) == wire
    assert Routes.from_dict(wire) == routes


def test_unknown_class_keywords_are_refused_with_the_nearest_name() -> None:
    with pytest.raises(TypeError, match=r"unknown class keyword 'always_send'; did you mean 'always_sent'\?"):

        class Wrong(Model, always_send=("a",)):  # type: ignore[arg-type]
            a: int = 0


def test_plain_relatives_are_written_in_the_form_of_their_field() -> None:
    moment = datetime(2026, 1, 2, 5, 4, 5, tzinfo=timezone(timedelta(hours=2)))
    thing: Any = Thing(size=1)

    thing.started, thing.renewed, thing.limit, thing.timeout = moment, moment, "5", timedelta(seconds=90)

    written = thing.to_dict()
    assert written["started"] == "2026-01-02T03:04:05Z"
    assert written["renewed"] == "2026-01-02T03:04:05.000000Z"
    assert (written["limit"], written["timeout"]) == ("5", "1m30s")


def test_a_value_no_field_can_hold_names_the_field_when_written() -> None:
    thing: Any = Thing(size=1)
    thing.limit = "many"

    with pytest.raises(ValueError, match="limit: 'many' is not a quantity"):
        thing.to_dict()


def test_naive_times_are_refused() -> None:
    thing: Any = Thing(size=1)
    thing.started = datetime(2026, 1, 2)  # noqa: DTZ001 - the case under test

    with pytest.raises(ValueError, match="no time zone"):
        thing.to_dict()


def test_equality_is_by_content() -> None:
    assert Thing(size=1) == Thing(size=1, protocol="TCP", replicas=None, part=Part(), tags=[])
    assert Thing(size=1, limit=Quantity("1")) == Thing(size=1, limit=Quantity("1000m"))
    assert Thing.from_json('{"size":1,"started":"2026-01-02T05:04:05+02:00"}') == Thing(
        size=1, started=Time(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    )
    assert Thing(size=1) != Thing(size=2)
    assert Thing.from_json('{"size":1,"x":1}') != Thing(size=1)
    assert Thing(size=1) != Part()


def test_objects_are_unhashable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Part())


@pytest.mark.parametrize("duplicate", [Thing.deep_copy, copy.deepcopy])
def test_a_copy_shares_nothing(duplicate: Any) -> None:
    thing = Thing.from_json('{"size":1,"tags":["a"],"part":{"name":"p"},"parts":[{"name":"q"}],"x":{"y":[1]}}')

    fresh = duplicate(thing)
    fresh.tags.append("b")
    fresh.part.name = fresh.parts[0].name = "changed"
    fresh.model_extra["x"]["y"].append(2)

    assert thing == Thing.from_json('{"size":1,"tags":["a"],"part":{"name":"p"},"parts":[{"name":"q"}],"x":{"y":[1]}}')
    assert fresh != thing
    assert duplicate(thing).to_apply_dict() == thing.to_apply_dict()


def test_refresh_replaces_all_content_in_place() -> None:
    thing, other = Thing(size=1, tags=["a"]), Thing.from_json('{"size":2,"x":1}')

    thing.refresh(other)

    assert thing == Thing.from_json('{"size":2,"x":1}')
    assert thing.part is other.part, "taken over, not copied"
    with pytest.raises(TypeError, match="Part"):
        thing.refresh(Part())  # type: ignore[arg-type]


def test_a_missing_required_field_is_filled_with_its_zero() -> None:
    class Inner(Model):
        count: int
        name: str
        deep: Part

    class Outer(Model):
        inner: Inner
        items: list[Inner]
        limit: Quantity
        names: dict[str, str]
        pointer: int | None

    outer = Outer.from_json('{"items":[{"name":"x"}]}')

    assert outer == Outer(
        inner=Inner(count=0, name="", deep=Part()),
        items=[Inner(count=0, name="x", deep=Part())],
        limit=Quantity(0),
        names={},
        pointer=None,
    )


def test_an_explicit_null_is_dropped_where_there_is_none() -> None:
    thing = Thing.from_json('{"size":null,"tags":null,"part":null,"replicas":null,"parts":[{"name":null}]}')

    assert thing == Thing(size=0, parts=[Part()])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ('{"size":"big"}', r"size: Input should be a valid integer.* not 'big'"),
        ('{"size":-1}', r"size: Input should be greater than or equal to 0, not -1"),
        ('{"size":1,"part":{"weight":[]},"limit":"x"}', r"limit: .*; part\.weight: "),
        ('{"size":1,"parts":[{},{"weight":"x"}]}', r"parts\[1\]\.weight"),
        ('{"size":1,"tags":[null]}', r"tags\[0\]"),
        ("{", "are not JSON"),
        ("[]", "does not fit the class Thing"),
    ],
)
def test_what_does_not_fit_is_named_and_the_bytes_are_kept(raw: str, message: str) -> None:
    with pytest.raises(DecodeError, match=message) as caught:
        Thing.from_json(raw)

    assert caught.value.raw == raw.encode()


def test_a_required_field_whose_zero_is_not_allowed_is_named() -> None:
    class Strict(Model):
        size: int = Field(ge=1)

    with pytest.raises(DecodeError, match="size is missing"):
        Strict.from_json("{}")


def test_the_object_is_named_when_it_has_a_name() -> None:
    with pytest.raises(DecodeError, match="Thing ns/a does not fit"):
        Thing.from_json('{"size":"x","metadata":{"name":"a","namespace":"ns"}}')


def test_yaml_is_another_spelling_of_json() -> None:
    thing = Thing.from_yaml("size: 1\nstarted: 2026-01-02T03:04:05Z\nfree: 2026-01-02\ntags: [a]\n")

    assert thing == Thing(size=1, started=Time(2026, 1, 2, 3, 4, 5, tzinfo=UTC), free="2026-01-02", tags=["a"])


@pytest.mark.parametrize("text", ["", "a: 1\n---\nb: 2\n", "[1]", "a: [", "text"])
def test_yaml_must_hold_one_mapping(text: str) -> None:
    with pytest.raises(DecodeError, match="YAML"):
        Thing.from_yaml(text)


def test_the_apply_form_holds_what_the_code_set() -> None:
    thing = Thing(size=0, replicas=None, pod_name="", tags=[], part=Part(name="x"), other=Part())

    assert thing.to_apply_dict() == {"size": 0, "podName": "", "tags": [], "part": {"name": "x"}, "other": {}}


def test_the_apply_form_holds_in_place_edits_and_no_defaults() -> None:
    thing = Thing(size=1)

    thing.tags.append("x")
    thing.part.weight = 0
    thing.protocol = "TCP"

    assert thing.to_apply_dict() == {"size": 1, "tags": ["x"], "part": {"weight": 0}, "protocol": "TCP"}


def test_a_set_but_empty_nested_object_is_applied() -> None:
    assert Thing(size=1, part=Part()).to_apply_dict() == {"size": 1, "part": {}}
    assert Thing(size=1, parts=[Part(name="a")]).to_apply_dict() == {"size": 1, "parts": [{"name": "a"}]}


def test_a_null_is_never_applied() -> None:
    thing = Thing.from_json('{"size":1,"replicas":null,"x":null}')

    assert thing.to_apply_dict() == {"size": 1}


def test_the_text_form_shows_only_what_is_there() -> None:
    assert repr(Thing(size=1, part=Part(name="x"))) == "Thing(size=1, part=Part(name='x'))"


def test_a_default_that_is_not_empty_is_always_written() -> None:
    class Nested(Model):
        part: Part = Field(default_factory=lambda: Part(name="standard"))

    nested = Nested()
    nested.part.name = ""

    assert nested.to_dict() == {"part": {}}


def test_a_tree_may_hold_our_scalars() -> None:
    thing = Thing.from_dict({"size": 1, "limit": Quantity("1"), "data": {"a": b"x"}, "free": [Part(name="p")]})

    assert thing == Thing(size=1, limit=Quantity(1), data={"a": b"x"}, free=[{"name": "p"}])


class Standard(Model):
    tags: list[str] = ["standard"]  # noqa: RUF012 - pydantic copies it


class Whole(Model):
    made: Part = Field(default_factory=Part)
    given: Part = Part()
    filled: Part = Part(name="standard")
    touched: Part = Part(name="")
    names: list[str] = []  # noqa: RUF012 - pydantic copies it
    by_name: dict[str, Part] = {}  # noqa: RUF012
    checked: Part = Field(default=Part(), validate_default=True)
    standard: Standard = Standard()


@pytest.mark.parametrize("make", [Whole, lambda: Whole.from_json("{}"), lambda: Whole.model_validate({})])
def test_no_two_objects_share_a_default(make: Any) -> None:
    first, second = make(), make()

    for part in (first.made, first.given, first.filled, first.touched, first.checked):
        part.weight = 1
    first.names.append("x")
    first.by_name["a"] = Part()
    first.standard.tags.append("x")

    assert second == Whole()
    assert second.to_dict() == {"filled": {"name": "standard"}, "standard": {"tags": ["standard"]}}


def test_a_default_knows_what_was_set_in_it() -> None:
    whole = Whole.from_json("{}")

    assert whole.to_apply_dict() == Whole().to_apply_dict() == {}
    assert whole.model_fields_set == whole.made.model_fields_set == whole.given.model_fields_set == set()
    assert (whole.filled.model_fields_set, whole.touched.model_fields_set) == ({"name"}, {"name"})
    whole.filled.weight = 2
    assert whole.to_apply_dict() == {"filled": {"name": "standard", "weight": 2}}


def test_the_json_schema_of_pydantic_names_the_defaults() -> None:
    properties = Whole.model_json_schema()["properties"]

    assert properties["given"]["default"] == {"name": "", "weight": 0}
    assert (properties["names"]["default"], properties["byName"]["default"]) == ([], {})
    assert "default" not in properties["made"]


def test_a_default_with_a_constructor_of_its_own_is_made_by_it() -> None:
    class Counted(Model):
        number: int = 0

        def __init__(self, /, **data: Any) -> None:
            super().__init__(**{"number": 7, **data})

    class Holder(Model):
        counted: Counted = Field(default_factory=Counted)

    assert Holder.from_json("{}").counted.number == Holder().counted.number == 7


def test_a_default_that_lacks_a_required_field_cannot_be_made() -> None:
    class Needy(Model):
        size: int

    class Holder(Model):
        needy: Needy = Field(default_factory=Needy)

    with pytest.raises(ValidationError, match="size"):
        Holder()
    assert Holder.from_json('{"needy":{"size":1}}').needy.size == 1


def test_a_copy_shares_no_content_that_its_class_does_not_know() -> None:
    part: Any = Part.from_json('{"unknown": 1}')

    part.deep_copy().unknown = 2

    assert part.model_extra == {"unknown": 1}
