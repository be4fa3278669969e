"""What the generated schema takes, the class reads; what the class writes, the schema takes. On both servers, and by the embedded one's
validation alone for many more values.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import date, datetime
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import AnyUrl, Field

import ctrlruntime as ctrl
from ctrlruntime.errors import APIStatusError, DecodeError
from ctrlruntime.field import Duration, MicroTime, Quantity, Time
from ctrlruntime.generate import GenerateWarning, crds
from ctrlruntime.schema.structural import compile_schema

GROUP = "stored-tests.example.com"


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


FIELDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "time": (
        Time,
        (
            "2026-01-02T03:04:05Z",
            "2026-01-02t03:04:05.1234567z",
            "9999-12-31T23:59:59-23:00",
            "0000-01-01T00:00:00+99:99",
        ),
    ),
    "micro": (MicroTime, ("2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:05+24:00")),
    "moment": (datetime, ("2026-01-02T03:04:05Z", "2026-01-02t03:04:05.123456789+23:59", "0001-01-01T00:00:00+23:00")),
    "day": (date, ("2026-01-02", "0001-01-01", "2024-02-29", "0000-01-01")),
    "wait": (Duration, ("1h30m", "-.5s", "+1.µs", "0", "99999999999999999999h", "1μs2ns")),
    "size": (Quantity, ("1Gi", "1e3", "1E", "-.5m", "+1.5Ki", "1e3.5", "1e+03", "12E-3")),
    "uuid": (
        UUID,
        (
            "12345678-1234-5678-1234-56781234567a",
            "1234567812345678123456781234567A",
            "urn:uuid:12345678-1234-5678-1234-567812345678",
        ),
    ),
    "v4": (IPv4Address, ("10.0.0.255", "01.2.3.4", "::ffff:1.2.3.4")),
    "v6": (IPv6Address, ("::1", "fe80::1%eth0", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::", "1::0002")),
    "net4": (IPv4Network, ("10.0.0.0/8", "10.0.0.1/8", "10.0.0.1", "0.0.0.0/0")),
    "net6": (IPv6Network, ("fe80::/64", "fe80::1/64", "::/0", "10.0.0.0/8")),
    "if4": (IPv4Interface, ("10.0.0.1/8", "10.0.0.1", "10.0.0.1/33")),
    "if6": (IPv6Interface, ("fe80::1/64", "10.0.0.1/8", "::1/128")),
    "blob": (Annotated[bytes, Field(min_length=1)], ("aGk=", "aGl=", "aGk", "aG+/", "aG-_", "AAAA")),
    "some": (Annotated[bytes, Field(min_length=2, max_length=5)], ("AA==", "AAA=", "AAAA", "AAAAAAA=", "AAAAAAAA")),
    "word": (Annotated[str, Field(min_length=2, max_length=4, pattern="^[a-z]+$")], ("ab", "abcd", "abcde", "a")),
    "mode": (Literal["a", "b"], ("a", "b", "c")),
    "grade": (Size, ("small", "large", "Small")),
}
"""Field → its type, and texts that are of it or nearly so."""
KEYS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "of_choice": (dict[Literal["a", "b"], int], ("a", "b", "c")),
    "of_enum": (dict[Size, int], ("small", "large", "Small", "")),
    "of_length": (
        Annotated[dict[Annotated[str, Field(min_length=1, max_length=3)], int], Field(max_length=5)],
        ("", "abc", "abcd"),
    ),
    **{
        f"of_{name}": (Annotated[dict[kind, int], Field(max_length=5)], texts)
        for name, kind, texts in (
            ("uuid", UUID, FIELDS["uuid"][1]),
            ("v4", IPv4Address, FIELDS["v4"][1]),
            ("v6", IPv6Address, ("::1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::", "1::0002", "FE80::1", "10.0.0.1")),
            ("net4", IPv4Network, FIELDS["net4"][1]),
            ("net6", IPv6Network, (*FIELDS["net6"][1], "FE80::/64", "fe80::/064", "::ffff:1.2.3.0/120")),
        )
    },
}
LISTS: dict[str, Any] = {f"{name}s": list[FIELDS[name][0]] for name in ("blob", "time", "size", "net4")}

ANNOTATIONS = {
    **{name: kind for name, (kind, _) in (FIELDS | KEYS).items()},
    **{name: Annotated[kind, Field(max_length=5)] for name, kind in LISTS.items()},
}


def kind_of(annotations: dict[str, Any], name: str = "Crate") -> type[ctrl.Object]:
    """A kind with a field of each type, all optional."""
    body: dict[str, Any] = {"__module__": __name__}
    body["__annotations__"] = {one: optional(kind) for one, kind in annotations.items()}
    return type(ctrl.Object)(name, (ctrl.Object,), {**body, **dict.fromkeys(annotations)}, group=GROUP, version="v1")


def optional(kind: Any) -> Any:
    return Optional[kind]  # noqa: UP045 - made at run time


Crate = kind_of(ANNOTATIONS)
ALIASES = {name: Crate.model_fields[name].serialization_alias for name in ANNOTATIONS}


class Schema:
    """The generated schema of a kind, as the embedded server checks it."""

    def __init__(self, kind: type[ctrl.Object]) -> None:
        self.warnings: list[str] = []
        (self.definition,) = crds([kind], warn=self.warnings.append)
        schema = self.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        self._structural = compile_schema(schema)

    def takes(self, content: dict[str, Any]) -> bool:
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Crate", "metadata": {"name": "one"}, **content}
        return not self._structural.judge_object(body, None).causes


SCHEMA = Schema(Crate)


def read(kind: type[ctrl.Object], content: dict[str, Any]) -> ctrl.Object | None:
    try:
        return kind.from_dict(
            {"apiVersion": f"{GROUP}/v1", "kind": kind.__name__, "metadata": {"name": "one"}, **content}
        )
    except DecodeError:
        return None


def written(obj: ctrl.Object) -> dict[str, Any]:
    return {name: value for name, value in obj.to_dict().items() if name not in {"apiVersion", "kind", "metadata"}}


def agree(takes: Any, kind: type[ctrl.Object], content: dict[str, Any]) -> None:
    found = read(kind, content)
    if takes(content):
        assert found is not None, f"the schema takes {content}, and the class does not read it"
        for name in KEYS:
            value = content.get(ALIASES[name])
            assert not value or written(found)[ALIASES[name]] == value, "a key is written in another way"
    if found is not None and is_writable(found):
        assert takes(written(found)), f"the class writes {written(found)}, and the schema does not take it"


def is_writable(obj: ctrl.Object) -> bool:
    # A zone of an IPv6 address (fe80::1%eth0) is of one machine; the API has none. A datetime without a zone cannot be written. As a key, an
    # IPv4 address has one form, and not that of IPv6.
    moment = getattr(obj, "moment", None)
    keys = [*(getattr(obj, "of_v6", None) or ()), *(one.network_address for one in getattr(obj, "of_net6", None) or ())]
    if any(key.ipv4_mapped is not None or key.scope_id for key in keys):
        return False
    return "%" not in str(getattr(obj, "v6", "")) and (moment is None or moment.tzinfo is not None)


@st.composite
def nearly(draw: st.DrawFn, examples: tuple[str, ...]) -> str:
    """A text that is an example, or an example with a letter lost, changed or added."""
    text = draw(st.sampled_from(examples))
    if draw(st.booleans()):
        return text
    at = draw(st.integers(0, len(text)))
    letter = draw(st.sampled_from("0123456789abefgzTZ.:-+/=%_ e٣") | st.characters(codec="utf-8"))
    return text[:at] + draw(st.sampled_from(["", letter])) + text[at + draw(st.integers(0, 1)) :]


JSON = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.lists(st.text())
    | st.dictionaries(st.text(), st.integers())
)


def values_of(name: str) -> st.SearchStrategy[Any]:
    if name in FIELDS:
        return nearly(FIELDS[name][1]) | nearly(FIELDS[name][1]) | nearly(FIELDS[name][1]) | JSON
    if name in KEYS:
        return st.dictionaries(nearly(KEYS[name][1]), st.integers(0, 9), max_size=6)
    return st.lists(nearly(FIELDS[name.removesuffix("s")][1]), max_size=6)


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_schema_and_class_agree_on_a_value(name: str):
    @given(values_of(name))
    def check(value: Any) -> None:
        assume(value is not None)
        agree(SCHEMA.takes, Crate, {ALIASES[name]: value})

    check()


def test_the_schema_says_all_of_it():
    assert SCHEMA.warnings == []


BOUNDS = st.tuples(st.integers(0, 7), st.integers(0, 7)).map(sorted)


@st.composite
def bounded(draw: st.DrawFn) -> tuple[Any, st.SearchStrategy[Any]]:
    """A type with random limits, and values near them."""
    low, high = draw(BOUNDS)
    limits = Field(min_length=low, max_length=high)
    texts = st.text(alphabet="ab", max_size=9)
    blobs = st.binary(min_size=1, max_size=9).map(base64_of)
    plain = draw(st.sampled_from(["bytes", "str", "list", "dict", "keys", "chosen"]))
    match plain:
        case "bytes":
            return Annotated[bytes, Field(min_length=max(low, 1), max_length=max(high, 1))], blobs
        case "str":
            return Annotated[str, limits], texts
        case "list":
            return Annotated[list[Annotated[bytes, Field(min_length=1, max_length=high + 1)]], limits], st.lists(
                blobs, max_size=9
            )
        case "dict":
            return Annotated[dict[str, int], limits], st.dictionaries(texts, st.integers(0, 9), max_size=9)
        case "keys":
            key = Annotated[str, limits]
            return Annotated[dict[key, int], Field(max_length=9)], st.dictionaries(texts, st.integers(0, 9), max_size=4)
        case _:
            choices = tuple(draw(st.lists(texts, min_size=1, max_size=4, unique=True)))
            return dict[Literal[choices], int], st.dictionaries(texts, st.integers(0, 9), max_size=4)


def base64_of(value: bytes) -> str:
    return b64encode(value).decode()


@given(st.data())
def test_schema_and_class_agree_on_random_limits(data: st.DataObject):
    annotation, values = data.draw(bounded())
    kind = kind_of({"value": annotation})
    schema = Schema(kind)
    for value in data.draw(st.lists(values, min_size=1, max_size=8)):
        agree(schema.takes, kind, {"value": value})


@pytest.fixture(scope="module")
def crates(server):
    server.install_crds([SCHEMA.definition])
    yield f"/apis/{GROUP}/v1"
    server.connection.request("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crates.{GROUP}")


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_the_servers_take_what_the_embedded_validation_takes(server, namespace, crates, name):
    path = f"{crates}/namespaces/{namespace}/crates?dryRun=All"

    def takes(content: dict[str, Any]) -> bool:
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Crate", "metadata": {"name": "one"}, **content}
        try:
            server.connection.request("POST", path, body)
        except APIStatusError:
            return False
        return True

    for value in examples_of(name):
        agree(takes, Crate, {ALIASES[name]: value})


def examples_of(name: str) -> list[Any]:
    if name in FIELDS:
        return list(FIELDS[name][1])
    if name in KEYS:
        return [{}, *({key: 1} for key in KEYS[name][1]), dict.fromkeys(KEYS[name][1], 1)]
    texts = FIELDS[name.removesuffix("s")][1]
    return [[], *([text] for text in texts), list(texts)]


def test_what_a_schema_cannot_say_is_a_warning():
    long = f"^{'(ab|cd)?' * 300}$"  # such a rule costs more than the server allows
    kind = kind_of({"link": AnyUrl, "blob": bytes, "names": dict[Annotated[str, Field(pattern=long)], int]})

    with pytest.warns(GenerateWarning) as told:
        crds([kind])

    assert [str(one.message).partition(": ")[2].partition(",")[0] for one in told] == [
        "the schema checks only that a URL starts with a scheme",
        "the API server rejects empty bytes",
        f"the keys must match {long}",
    ]
