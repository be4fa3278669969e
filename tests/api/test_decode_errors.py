"""Whatever is read, what comes out of it is an object or a DecodeError that names the place."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, Field

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.api.object import ObjectList, Unstructured
from ctrlruntime.errors import DecodeError


class Level(Enum):
    NONE = ""
    HIGH = "high"


class Mood(Enum):
    GOOD = "good"


def overflow(value: int) -> int:
    raise OverflowError(f"{value} is too much")


class Wide(ctrl.Model):
    numbers: tuple[int, ...]
    names: Sequence[str]
    labels: Mapping[str, str]
    tags: frozenset[str]
    marks: set[str]
    level: Level
    mode: Literal["", "fast"]
    count: Literal[0, 1]
    share: ctrl.Quantity


class Narrow(ctrl.Model):
    mood: Mood
    since: ctrl.Time
    speed: Literal["slow", "fast"]
    size: int
    wide: list[Wide] = Field(default_factory=list)


class Careful(ctrl.Model):
    number: Annotated[int, AfterValidator(overflow)] = 0
    inner: list[dict[str, Careful]] = Field(default_factory=list)


class Clock(ctrl.Object, group="decode-tests.example.com", version="v1"):
    at: ctrl.Time | None = None
    every: ctrl.Duration | None = None
    micro: ctrl.MicroTime | None = None
    size: ctrl.Quantity | None = None
    data: dict[str, int] = Field(default_factory=dict)


def test_every_missing_field_with_a_zero_is_filled():
    wide = Wide.from_json(b"{}")

    assert (wide.numbers, list(wide.names), dict(wide.labels), wide.tags, wide.marks) == (
        (),
        [],
        {},
        frozenset(),
        set(),
    )
    assert (wide.level, wide.mode, wide.count, wide.share) == (Level.NONE, "", 0, 0)


def test_all_missing_fields_without_a_zero_are_named_and_no_other():
    with pytest.raises(DecodeError) as refused:
        Narrow.from_json(b'{"wide": [{}]}')

    assert str(refused.value) == (
        "the object does not fit the class Narrow: mood is missing; since is missing; speed is missing"
    )


def test_what_is_wrong_is_named_beside_what_is_filled():
    with pytest.raises(DecodeError, match=r": wide\[1\]\.numbers\[0\]: Input should be a valid integer[^;]*$"):
        Narrow.from_json(b'{"mood":"good","since":"2026-01-02T03:04:05Z","speed":"slow","wide":[{},{"numbers":["x"]}]}')


def test_an_error_that_is_no_value_error_names_its_path():
    with pytest.raises(DecodeError, match=r"inner\[1\]\.b\.number: 7 is too much"):
        Careful.from_dict({"inner": [{}, {"a": {}, "b": {"number": 7}}]})


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "the bytes are not JSON"),
        (b"\xff", "the bytes are not JSON"),
        (b'{"kind": "\xff"}', "the bytes are not JSON"),
        (rb'{"kind": "\ud800"}', "the bytes are not JSON"),
        ('{"kind": "\ud800"}', "does not fit"),
        (b"[" * 100_000, "the bytes are not JSON"),
        (b'{"a":' * 100_000, "the bytes are not JSON"),
        (b'{"data": {"a": ' + b"9" * 5_000 + b"}}", "the bytes are not JSON|data.a"),
        (b'{"data": {"a": 1e400}}', r"data\.a"),
        (b'{"size": 1e400}', "size"),
        (b'{"every": 1e300}', "every"),
        (b'{"at": 1}', "at: "),
        (b"[]", "does not fit"),
        (b"null", "does not fit"),
    ],
)
def test_json_that_cannot_be_read_is_a_decode_error(raw: Any, problem: str):
    with pytest.raises(DecodeError, match=problem):
        Clock.from_json(raw)


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"data": {None: 1}}, "data"),
        ({"x": [1, {"y": object}]}, r"x\[1\]\.y"),
        ({"x": ["\ud800"]}, r"x\[0\]"),
    ],
)
def test_a_tree_that_has_no_json_is_a_decode_error(tree: dict[str, Any], path: str):
    with pytest.raises(DecodeError, match=f"^cannot read a Clock: {path} cannot be encoded as JSON: "):
        Clock.from_dict(tree)


def test_a_tree_that_holds_itself_is_a_decode_error():
    tree: dict[str, Any] = {}
    tree["x"] = tree

    with pytest.raises(DecodeError, match="cannot be encoded as JSON"):
        Clock.from_dict(tree)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("data:\n  a: .nan", r"^line 2, data\.a: JSON has no number \.nan"),
        ("data:\n  a: -.inf", r"^line 2, data\.a: JSON has no number"),
        ("data:\n  ~: 1", r"^line 2, data: ~ is not a key"),
        ("data:\n- {x: 1, x: 2}", r"^line 2, data\[0\]: duplicate key 'x'"),
        ("data:\n  on: 1\n  true: 2", r"^line 3, data: duplicate key 'true'"),
        ("data: &x\n  a: *x", "contains itself"),
        ("data: !!int x", "^line 1, data: cannot decode `x` as a !!int"),
        ("[" * 2_000 + "]" * 2_000, "max depth"),
        ("a: 1\n---\nb: 2", "2 documents"),
        ("a: '", "the text is not YAML"),
    ],
)
def test_yaml_that_cannot_be_read_names_line_and_path(text: str, problem: str):
    with pytest.raises(DecodeError, match=problem):
        Clock.from_yaml(text)


def test_aliases_cannot_make_a_text_without_end():
    text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )

    with pytest.raises(DecodeError, match="excessive aliasing"):
        Clock.from_yaml(text)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b'{"items": [{}, {"data": {"a": "x"}}]}', r"^items\[1\] of a list of Clock: .*data\.a"),
        (b'{"items": [1]}', r"^items\[0\] of a list"),
        (b'{"items": {}}', "cannot read a list of Clock"),
        (b'{"metadata": 5}', "^metadata of a list"),
        (b"[" * 100_000, "cannot read a list of Clock"),
        (b'{"items": ' + b"[" * 100_000, "cannot read a list of Clock"),
        (b"\xff", "cannot read a list of Clock"),
    ],
)
def test_a_list_that_cannot_be_read_is_a_decode_error(raw: bytes, problem: str):
    with pytest.raises(DecodeError, match=problem):
        ObjectList.from_json(Clock, raw)


def test_a_list_without_metadata_is_read():
    assert list(ObjectList.from_json(Clock, b'{"metadata": null, "items": null}')) == []


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(
        ["9999-12-31T23:59:59-23:00", "0000-01-01T00:00:00Z", "1e999999", "9" * 40 + "h", "8Ei", "\ud800"]
    )
)
KEYS = (
    st.sampled_from(["at", "every", "micro", "size", "data", "metadata", "kind", "apiVersion", "name", "labels"])
    | st.text()
)
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=12)
OBJECTS = st.dictionaries(KEYS, TREES)
KINDS = (Clock, core.Pod, core.ConfigMap, Unstructured, Narrow, Wide)


def read(read_it, *arguments):
    with contextlib.suppress(DecodeError):
        read_it(*arguments)


@given(st.sampled_from(KINDS), OBJECTS)
def test_any_tree_is_read_or_refused(kind, tree):
    read(kind.from_dict, tree)


@given(st.sampled_from(KINDS), OBJECTS | st.binary() | st.text())
def test_any_json_is_read_or_refused(kind, content):
    raw = json.dumps(content) if isinstance(content, dict) else content
    read(kind.from_json, raw)
    if issubclass(kind, ctrl.Object):
        listed = raw.encode(errors="surrogatepass") if isinstance(raw, str) else raw
        read(ObjectList.from_json, kind, listed)
        read(ObjectList.from_json, kind, b'{"items": [' + listed + b"]}")


@given(st.sampled_from(KINDS), st.text(alphabet="ab:-~.0123456789eEonyinf_xT+Z[]{}&*!<,'\"\\\n |>%?#") | st.text())
def test_any_yaml_is_read_or_refused(kind, text):
    read(kind.from_yaml, text)
