"""Bytes in and out: JSON bodies become trees, trees become JSON (or YAML), in kube-apiserver's conventions.

The rooms above hand over request bodies and get trees with a list of duplicate keys; what they store they encode here, once.
"""

from __future__ import annotations

import codecs
import json
import re
import time
from collections import Counter
from math import isfinite
from typing import Any, TypeAlias

import msgspec

from ctrlruntime.apiserver.go_json import TOO_DEEP, NumberError, OutOfRange, syntax_error

_DEEPEST = 500
"""Levels of nesting that a body may have. kube-apiserver takes 10,000 of JSON; no Kubernetes type has a tenth of this, and each level here
is a call on Python's stack."""
_LONGEST_INTEGER = 300
"""Digits of an integer that is read as one; Go reads as floats those that have more than 64 bits."""
_KEY = re.compile(rb'"\s*:')
_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()

Pairs: TypeAlias = list[tuple[str, Any]]


class Metadata(msgspec.Struct, gc=False):
    """The part of an object that a metadata-only view needs, cut out and not decoded."""

    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_metadata_decoder = msgspec.json.Decoder(Metadata)


def decode(body: bytes) -> Any:
    """Return the tree of a JSON body. Raises: ValueError."""
    return _decoder.decode(body)


def decode_body(body: bytes) -> Any:
    """Return the tree of a JSON body that a client sent. What is not text in it becomes U+FFFD, as Go reads it.

    Raises:
        ValueError: with the message of encoding/json, also when it is nested too deep.
        NumberError: a number is larger than a float of 64 bits can be.

    """
    try:
        return decode_strictly(body)
    except (UnicodeDecodeError, msgspec.DecodeError):
        if why := syntax_error(body):
            raise ValueError(why) from None
    legible = _legible(body)
    try:
        return decode_strictly(legible)
    except msgspec.DecodeError:
        return _decode_numbers(legible)


def _decode_numbers(body: bytes) -> Any:
    """Return the tree of a body with numbers that msgspec does not read. Raises: NumberError, ValueError."""
    beyond: list[OutOfRange] = []

    def number(text: str) -> float:
        if isfinite(found := float(text)):
            return found
        beyond.append(OutOfRange(text))
        return beyond[-1]

    def integer(text: str) -> float:
        return int(text) if len(text) < _LONGEST_INTEGER else number(text)

    try:
        tree = json.loads(body, parse_float=number, parse_int=integer)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    _check_depth(tree)
    if beyond:
        raise NumberError(beyond[0], tree)
    return tree


def decode_strictly(body: bytes) -> Any:
    """Return the tree of a JSON body whose every text is Unicode.

    Raises: UnicodeDecodeError, msgspec.DecodeError, and ValueError when it is nested too deep.
    """
    try:
        tree = _decoder.decode(body)
    except RecursionError:
        raise ValueError(syntax_error(body) or TOO_DEEP) from None
    if len(body) > _DEEPEST:
        _check_depth(tree)
    return tree


def _legible(body: bytes) -> bytes:
    """Return a body with U+FFFD for every byte that is not UTF-8, and for escapes of half a surrogate pair."""
    return _ESCAPES.sub(_whole_escape, body.decode(errors=_BY_BYTE)).encode()


def _whole_escape(found: re.Match[str]) -> str:
    return "\\ufffd" if found["half"] else found[0]


def _replace_one(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd", error.start + 1


_BY_BYTE = "ctrlruntime-replace-by-byte"
codecs.register_error(_BY_BYTE, _replace_one)
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def _check_depth(tree: Any) -> None:
    level: list[Any] = [[tree]]
    for _ in range(_DEEPEST + 1):
        members = [value for node in level for value in (node.values() if type(node) is dict else node)]
        level = [value for value in members if type(value) is dict or type(value) is list]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def as_written(why: str, body: bytes) -> str:
    """Return a message about a number that does not fit with the digits that the client sent: 1e2, not 100.0."""
    found = _MISFIT.search(why)
    if found is None:
        return why
    literals = [literal.decode() for literal in _NUMBER.findall(body)]
    number = found[0]
    if number in literals:
        return why
    written = next((literal for literal in literals if str(float(literal)) == number), number)
    return why.replace(f"number {number} into", f"number {written} into")


_MISFIT = re.compile(r"(?<=cannot unmarshal number )\S+[.e]\S*(?= into)")
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def cut_metadata(body: bytes) -> bytes:
    """Return the bytes of `.metadata` without decoding anything else."""
    return bytes(_metadata_decoder.decode(body).metadata)


def timestamp(seconds: float) -> str:
    """Return a time (seconds since the epoch) as objects hold it: RFC 3339 in UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def duplicate_fields(body: bytes, tree: Any) -> list[str]:
    """Return the paths of keys that a JSON body gives twice."""
    # Every key leaves one `":` in the text; only a body with more of them than keys needs the slow parse.
    if len(_KEY.findall(body)) == _count_keys(tree):
        return []
    found: list[str] = []
    _collect(json.loads(_legible(body), object_pairs_hook=_Marked), "", found)
    return found


class _Marked(dict[str, Any]):
    """An object that remembers which of its keys came twice."""

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs)
        self.repeated = [key for key, count in counts.items() if count > 1]


def _collect(node: Any, path: str, found: list[str]) -> None:
    if isinstance(node, _Marked):
        found.extend(f"{path}.{key}".lstrip(".") for key in node.repeated)
        for key, value in node.items():
            _collect(value, f"{path}.{key}", found)
    elif isinstance(node, list):
        for index, item in enumerate(node):
            _collect(item, f"{path}[{index}]", found)


def _count_keys(node: Any) -> int:
    if type(node) is dict:
        count = len(node)
        for value in node.values():
            if type(value) is dict or type(value) is list:
                count += _count_keys(value)
        return count
    count = 0
    if type(node) is list:
        for value in node:
            if type(value) is dict or type(value) is list:
                count += _count_keys(value)
    return count


def encode_yaml(document: Any) -> bytes:
    import yaml

    return yaml.safe_dump(document, default_flow_style=False, sort_keys=True).encode()
