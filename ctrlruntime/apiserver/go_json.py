r"""What Go's encoding/json says of a text that is not JSON, and of JSON that a Go type cannot hold.

The server reads JSON with msgspec. When that fails, the text is read once more by the rules of Go's scanner (encoding/json/scanner.go), so
that a client gets the message that kube-apiserver gives. The message names the first byte at which the text cannot be JSON any more.

Objects are read by `ctrlruntime.schema`. A few other types of Go are a `Struct` here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeAlias

from ctrlruntime.apiserver.go_values import go_name

END: Final = "unexpected end of JSON input"
TOO_DEEP: Final = "exceeded max depth"
_DEEPEST: Final = 10_000

_S: Final = rb"[ \t\r\n]*+"
_LETTERS: Final = rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+'
_SPACE: Final = re.compile(_S)
_TEXT: Final = re.compile(_LETTERS)
_HEX: Final = re.compile(rb"[0-9a-fA-F]*+")
_DIGITS: Final = re.compile(rb"[0-9]*+")
_WORDS: Final = {ord(word[:1]): word for word in (b"true", b"false", b"null")}
_QUOTE, _BACKSLASH, _MINUS, _ZERO = b'"\\-0'
_OBJECT, _ARRAY = b"{["
_SCALAR: Final = rb'(?:"%b"|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|true|false|null)' % _LETTERS
_MEMBER: Final = rb'"%b"%b:%b%b%b' % (_LETTERS, _S, _S, _SCALAR, _S)
_FLAT: Final = rb"(?:%(scalar)b|\[%(s)b(?:%(item)b(?:,%(s)b%(item)b)*+)?+\]|\{%(s)b(?:%(member)b(?:,%(s)b%(member)b)*+)?+\})" % {
    b"scalar": _SCALAR, b"s": _S, b"item": _SCALAR + _S, b"member": _MEMBER,
}  # fmt: skip
_MORE: Final = {
    _ARRAY: re.compile(rb"(?:,%b%b%b(?=[,\]]))*+" % (_S, _FLAT, _S)),
    _OBJECT: re.compile(rb'(?:,%b"%b"%b:%b%b%b(?=[,}]))*+' % (_S, _LETTERS, _S, _S, _FLAT, _S)),
}
"""What follows a value in an array or object and is right: skipped at once, so that the search in a large body takes no seconds."""
_ENDS: Final = {_OBJECT: ord("}"), _ARRAY: ord("]")}
_AFTER: Final = {_OBJECT: "after object key:value pair", _ARRAY: "after array element"}
_VALUE: Final = "looking for beginning of value"
_ESCAPED: Final = {byte: rf"\{letter}" for byte, letter in zip(b"\a\b\f\n\r\t\v\\'", r"abfnrtv\'", strict=True)}


class _UnexpectedError(Exception):
    """The text cannot go on with the byte at this place."""

    def __init__(self, at: int, where: str) -> None:
        super().__init__(at, where)
        self.at = at
        self.where = where


def syntax_error(body: bytes) -> str:
    """Return the message of encoding/json for a text; empty if the text is JSON."""
    body += b" "  # Go's scanner reads a space after the last byte, to learn whether a number or a word has ended
    try:
        _scan(body)
    except _UnexpectedError as error:
        return END if error.at >= len(body) else f"invalid character {quoted(body[error.at])} {error.where}"
    return ""


def quoted(byte: int) -> str:
    """Return a byte as encoding/json shows it: as the character of this number, in single quotes, escaped as in Go."""
    if byte in _ESCAPED:
        return f"'{_ESCAPED[byte]}'"
    if byte < 0x20 or byte == 0x7F:
        return rf"'\x{byte:02x}'"
    if 0x80 <= byte <= 0xA0 or byte == 0xAD:
        return rf"'\u{byte:04x}'"
    return f"'{chr(byte)}'"


def _scan(body: bytes) -> None:
    """Read a text to its end. Raises: _UnexpectedError."""
    opened: list[int] = []
    at = _skip(body, 0)
    while True:
        # A value begins at `at`.
        byte = body[at] if at < len(body) else 0
        if byte in _ENDS:
            opened.append(byte)
            if len(opened) > _DEEPEST:
                raise _UnexpectedError(at, TOO_DEEP)
            at = _skip(body, at + 1)
            if not body.startswith(bytes([_ENDS[byte]]), at):
                at = at if byte == _ARRAY else _key(body, at)
                continue
        else:
            at = _skip(body, _scalar(body, at, byte))
        # A value has ended, or an empty object or array is about to: go on to the next value.
        while opened:
            at = _end(_MORE[opened[-1]], body, at)
            if body.startswith(bytes([_ENDS[opened[-1]]]), at):
                opened.pop()
                at = _skip(body, at + 1)
            elif body.startswith(b",", at):
                at = _skip(body, at + 1)
                at = at if opened[-1] == _ARRAY else _key(body, at)
                break
            else:
                raise _UnexpectedError(at, _AFTER[opened[-1]])
        else:
            if at < len(body):
                raise _UnexpectedError(at, "after top-level value")
            return


def _key(body: bytes, at: int) -> int:
    """Return where the value of the key begins that begins at `at`."""
    if not body.startswith(b'"', at):
        raise _UnexpectedError(at, "looking for beginning of object key string")
    at = _skip(body, _text(body, at + 1))
    if not body.startswith(b":", at):
        raise _UnexpectedError(at, "after object key")
    return _skip(body, at + 1)


def _scalar(body: bytes, at: int, byte: int) -> int:
    """Return where the text, number or word ends that begins with `byte` at `at`."""
    if byte == _QUOTE:
        return _text(body, at + 1)
    if byte == _MINUS or 0 <= byte - _ZERO <= 9:
        return _number(body, at)
    if byte not in _WORDS:
        raise _UnexpectedError(at, _VALUE)
    word = _WORDS[byte]
    for index, expected in enumerate(word):
        if not body.startswith(bytes([expected]), at + index):
            raise _UnexpectedError(at + index, f"in literal {word.decode()} (expecting {quoted(expected)})")
    return at + len(word)


def _text(body: bytes, at: int) -> int:
    end = _end(_TEXT, body, at)
    if body.startswith(b'"', end):
        return end + 1
    if not body.startswith(b"\\", end):
        raise _UnexpectedError(end, "in string literal")
    if not body.startswith(b"u", end + 1):
        raise _UnexpectedError(end + 1, "in string escape code")
    raise _UnexpectedError(_end(_HEX, body, end + 2), r"in \u hexadecimal character escape")


def _number(body: bytes, at: int) -> int:
    at += body[at] == _MINUS
    at = at + 1 if body.startswith(b"0", at) else _digits(body, at, "in numeric literal")
    if body.startswith(b".", at):
        at = _digits(body, at + 1, "after decimal point in numeric literal")
    if body.startswith((b"e", b"E"), at):
        at += 1 + body.startswith((b"+", b"-"), at + 1)
        at = _digits(body, at, "in exponent of numeric literal")
    return at


def _digits(body: bytes, at: int, where: str) -> int:
    end = _end(_DIGITS, body, at)
    if end == at:
        raise _UnexpectedError(at, where)
    return end


def _skip(body: bytes, at: int) -> int:
    return _end(_SPACE, body, at)


def _end(pattern: re.Pattern[bytes], body: bytes, at: int) -> int:
    found = pattern.match(body, at)
    assert found is not None  # each of them matches nothing, too
    return found.end()


class OutOfRange(float):
    """A number that no float of 64 bits holds; it prints as it was written."""

    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, "inf")
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text

    __format__ = object.__format__


class NumberError(ValueError):
    """A body with a number that no float of 64 bits holds: fields of a type can say so better than the message of this error."""

    def __init__(self, number: OutOfRange, tree: Any) -> None:
        super().__init__(f"json: cannot unmarshal number {number} into Go value of type float64")
        self.tree = tree


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct of Go: what its fields may hold.

    Types are written as in Go. A name that is not known here is a type of strings, such as `types.UID`.
    """

    name: str
    """In messages about its fields."""
    go_type: str
    """In messages about the whole."""
    fields: Mapping[str, GoType]
    is_exact: bool = False
    """The names have to be written as they are; encoding/json takes other cases of letters, too."""
    _names: dict[str, str] = field(default_factory=dict[str, str], init=False, compare=False)

    def __post_init__(self) -> None:
        self._names.update({name.lower(): name for name in self.fields})

    def name_of(self, key: str) -> str | None:
        """Return the name of the field that a key of JSON is about."""
        if key in self.fields:
            return key
        return None if self.is_exact else self._names.get(key.lower())


GoType: TypeAlias = str | Struct
_HEAD: Final = Struct(
    "",
    r"""struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }""",
    {"apiVersion": "string", "kind": "string"},
)
"""What is read of each object first (SimpleMetaFactory in apimachinery's pkg/runtime/serializer/json/meta.go)."""


def unmarshal(value: Any, into: Struct) -> dict[str, Any]:
    """Return the fields of a struct that JSON gives; null gives none. Raises: ValueError with the message of encoding/json."""
    if value is None:
        return {}
    if type(value) is not dict:
        raise ValueError(f"json: cannot unmarshal {go_name(value)} into Go value of type {into.go_type}")
    return _fields(value, into, "")


def check_list(value: Any, element: Struct, go_type: str) -> list[Any]:
    """Return a list whose items a struct can hold, as it is; null has none. Raises: ValueError with the message of encoding/json."""
    if value is None:
        return []
    if type(value) is not list:
        raise ValueError(f"json: cannot unmarshal {go_name(value)} into Go value of type {go_type}")
    for item in value:
        unmarshal(item, element)
    return [{} if item is None else item for item in value]


def _fields(value: dict[str, Any], into: Struct, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, given in value.items():
        name = into.name_of(key)
        if name is not None and given is not None:
            found[name] = _held(given, into.fields[name], f"{path}{name}", into.name)
    return found


def _held(value: Any, into: GoType, path: str, struct: str) -> Any:
    """Return a value as a field of a type holds it. Raises: ValueError."""
    if isinstance(into, Struct):
        if type(value) is not dict:
            raise ValueError(_misfit(value, into.go_type, path, struct))
        return _fields(value, into, f"{path}.")
    if into.startswith("[]") and type(value) is list:
        return [_held(item, into[2:], path, struct) for item in value]
    if into.startswith(_MAP) and type(value) is dict:
        return {key: _held(item, into.removeprefix(_MAP), path, struct) for key, item in value.items()}
    if value is None:  # in a list or a map
        return _ZEROES.get(into, "")
    is_held = "[" not in into and type(value) is _TYPES.get(into, str)
    if is_held and into in _BITS:
        limit = 1 << (_BITS[into] - 1)
        is_held = -limit <= value < limit
    if not is_held:
        raise ValueError(_misfit(value, into, path, struct))
    return value


_MAP: Final = "map[string]"
_BITS: Final = {"int32": 32, "int64": 64}
_TYPES: Final[Mapping[str, type]] = {"bool": bool, "int32": int, "int64": int, "v1.StatusCause": dict}
_ZEROES: Final[Mapping[str, Any]] = {"bool": False, "int32": 0, "int64": 0}


def _misfit(value: Any, into: str, path: str, struct: str) -> str:
    given = go_name(value)
    if given == "number" and into in _BITS:
        given = f"number {value}"
    return f"json: cannot unmarshal {given} into Go struct field {struct}.{path} of type {into}"


def read_head(tree: Any) -> dict[str, Any]:
    """Return `apiVersion` and `kind` of an object that is read from JSON. Raises: ValueError with the message of apimachinery."""
    try:
        head = unmarshal(tree, _HEAD)
    except ValueError as error:
        raise ValueError(f"{NO_HEAD}: {error}") from None
    if head.get("apiVersion", "").count("/") > 1:
        raise ValueError(f"unexpected GroupVersion string: {head['apiVersion']}")
    return head


NO_HEAD: Final = "couldn't get version/kind; json parse error"


__all__ = [
    "END", "NO_HEAD", "TOO_DEEP", "NumberError", "OutOfRange", "Struct", "check_list", "quoted", "read_head", "syntax_error", "unmarshal",
]  # fmt: skip
