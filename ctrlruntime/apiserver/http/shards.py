"""`shardSelector`: the objects whose uid or namespace has a hash in one of some ranges (KEP-5866, ShardedListAndWatch).

The syntax, the hash and the sentences are those of apiserver's pkg/sharding and apimachinery's pkg/sharding.
"""

from __future__ import annotations

from typing import Any, Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.storage import Record
from ctrlruntime.field_errors import quoted
from ctrlruntime.shard_selectors import NAMESPACE_FIELD, UID_FIELD, fnv64a

_FIELDS: Final = (UID_FIELD, NAMESPACE_FIELD)
_LAST: Final = "0x10000000000000000"
_KINDS: Final = {
    "Call": 1,
    "Comprehension": 2,
    "Identifier": 3,
    "ListLiteral": 4,
    "Literal": 5,
    "MapLiteral": 6,
    "Select": 7,
}
"""The numbers of cel-go's kinds of expressions, which its sentences show."""


class _Refusal(Exception):  # noqa: N818 - it is the answer
    """The text is no selector; the message is the server's."""


class Shard:
    """The ranges of one request."""

    def __init__(self, text: str) -> None:
        """Raises: InternalError, as upstream, for a text that is wrong."""
        try:
            field, ranges = _parsed(text)
        except _Refusal as error:
            raise failures.plain_internal(f"invalid shard selector: {error}") from None
        self._by_uid = field == UID_FIELD
        self._ranges = [(int(start, 16), int(end, 16)) for start, end in ranges]
        self.shown = " || ".join(f"shardRange({field}, '{start}', '{end}')" for start, end in ranges)
        """What lists say that they are filtered by."""

    def matches(self, record: Record) -> bool:
        """Tell whether an object is in a range."""
        number = fnv64a(record.uid if self._by_uid else record.key[0])
        return any(start <= number < end for start, end in self._ranges)


def _parsed(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the field and the ranges. Raises: _Refusal."""
    from ctrlruntime.cel import syntax
    from ctrlruntime.cel.failures import CompileError
    from ctrlruntime.cel.parser import parse

    text = text.strip()
    if not text:
        raise _Refusal("empty shard selector is not allowed; omit the parameter for unfiltered lists")
    try:
        tree = parse(text)
    except CompileError as error:
        raise _Refusal(f"CEL parse error: {error.issues[0].message}") from None
    fields: list[str] = []
    ranges: list[tuple[str, str]] = []
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, syntax.Call):
            raise _Refusal(f"unexpected expression kind {_kind(node)}; expected shardRange() call or || operator")
        if node.function == "_||_":
            waiting += reversed(node.arguments)
        elif node.function == "shardRange":
            field, start, end = _range(node.arguments)
            fields.append(field)
            ranges.append((start, end))
        else:
            raise _Refusal(f'unsupported function "{node.function}"; only shardRange() and || are allowed')
    other = next((field for field in fields if field != fields[0]), None)
    if other is not None:
        raise _Refusal(f'all shard ranges must use the same field, got "{fields[0]}" and "{other}"')
    return fields[0], ranges


def _range(arguments: list[Any]) -> tuple[str, str, str]:
    if len(arguments) != 3:
        raise _Refusal(f"shardRange() requires exactly 3 arguments, got {len(arguments)}")
    field = _path(arguments[0])
    if field not in _FIELDS:
        raise _Refusal(f'unsupported field path "{field}"; supported: {", ".join(_FIELDS)}')
    start, end = _bound(arguments[1], "hexStart"), _bound(arguments[2], "hexEnd")
    if int(start, 16) >= int(end, 16):
        raise _Refusal(f"shard range start {start} must be less than end {end}")
    return field, start, end


def _path(node: Any) -> str:
    from ctrlruntime.cel import syntax

    names: list[str] = []
    while isinstance(node, syntax.Select):
        names.append(node.field)
        node = node.operand
    if not isinstance(node, syntax.Identifier):
        raise _Refusal(
            f"shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind {_kind(node)}"
        )
    return ".".join([node.name, *reversed(names)])


def _bound(node: Any, name: str) -> str:
    from ctrlruntime.cel import syntax

    if not isinstance(node, syntax.Literal):
        raise _Refusal(f"{name} must be a string literal (e.g. '0xff'), got expression kind {_kind(node)}")
    text = node.value
    if not isinstance(text, str):
        raise _Refusal(f"{name} must be a string literal, got {_go_type(text)}")
    if not text.startswith("0x"):
        raise _Refusal(f"{name} must have '0x' prefix, got {quoted(text)}")
    digits = text[2:]
    if not digits:
        raise _Refusal(f"{name}: hex value is required after '0x'")
    if len(digits.encode()) > 17:
        raise _Refusal(f"{name}: hex value too long ({len(digits.encode())} chars, max 17): {quoted(digits)}")
    wrong = next((char for char in digits if char not in "0123456789abcdef"), None)
    if wrong is not None:
        raise _Refusal(f"{name}: invalid hex character {quoted(wrong)} in {quoted(text)}")
    if len(digits) == 17 and text != _LAST:
        raise _Refusal(f"{name}: 17-digit hex value must be '{_LAST}' (2^64), got {quoted(text)}")
    if len(digits) < 16:
        padded = f"0x{digits:0>16}"
        raise _Refusal(
            f"{name} must be a 0x-prefixed 16-digit hex value, got {quoted(text)} (did you mean {quoted(padded)}?)"
        )
    return text


def _kind(node: Any) -> int:
    return _KINDS.get(type(node).__name__, 0)


def _go_type(value: Any) -> str:
    from ctrlruntime.cel.values import UInt

    match value:
        case None:
            return "structpb.NullValue"
        case bool():
            return "bool"
        case UInt():
            return "uint64"
        case int():
            return "int64"
        case float():
            return "float64"
        case _:
            return "[]uint8"
