"""What the results of mutating expressions become; that both servers agree on most: tests/conformance/test_admission_policies.py."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ctrlruntime.apiserver.admission.mutation_values import ConversionError, configuration_value, json_value
from ctrlruntime.apiserver.go_values import Foreign
from ctrlruntime.cel.values import Duration, Message, Optional, Timestamp, TypeValue, UInt


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53, str(2**53)),
        (UInt(7), 7),
        (1e20, 10**20),
        (1e21, 1e21),
        (b"x", "eA=="),
        ([Optional([UInt(1)])], [[1]]),
        (Duration(1_500_000_000), "1.5s"),
        ({"a": Message("Object.spec", {"b": TypeValue("int"), "c": UInt(2)})}, {"a": {"b": "int", "c": 2}}),
    ],
)
def test_a_json_patch_writes(value: Any, expected: Any) -> None:
    found = json_value(value)

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, "google.protobuf.Value.number_value: invalid NaN value"),
        ([-math.inf], "google.protobuf.Value.number_value: invalid -Inf value"),
        ({1: 2}, "unsupported type conversion from 'int' to string"),
        (Message("Object", {"a": None}), "proto: invalid type: structpb.NullValue"),
        (
            Message("Object", {"a": {True: 1}}),
            'fail to convert field "a": map key %!q(types.Bool=true) is of type types.Bool',
        ),
    ],
)
def test_a_json_patch_cannot_write(value: Any, expected: str) -> None:
    with pytest.raises(ConversionError, match=r"[a-z]") as caught:
        json_value(value)

    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize(
    ("value", "text", "syntax", "go_type"),
    [
        (UInt(255), "255", "0xff", "uint64"),
        (None, "NULL_VALUE", "0", "structpb.NullValue"),
        (b"ab", "[97 98]", "[]byte{0x61, 0x62}", "[]uint8"),
        (Duration(90_000_000_000), "1m30s", "90000000000", "time.Duration"),
        (Timestamp(0), "1970-01-01 00:00:00 +0000 UTC", "1970-01-01 00:00:00 +0000 UTC", "time.Time"),
        (math.inf, "+Inf", "+Inf", "float64"),
        (
            Message("Object", {"a": {2: 1}}),
            *["fail to convert field \"a\": map key '\\x02' is of type types.Int, not string"] * 2,
            "*types.Err",
        ),
    ],
)
def test_no_field_of_a_configuration_takes(value: Any, text: str, syntax: str, go_type: str) -> None:
    assert configuration_value(value) == Foreign(text, syntax, go_type)


def test_a_configuration_takes_trees() -> None:
    value = Message(
        "Object", {"a": [Optional(1), Message("Object.a", {"b": {"c": True}})], "d": Optional(present=False)}
    )

    assert configuration_value(value) == {"a": [1, {"b": {"c": True}}], "d": None}
