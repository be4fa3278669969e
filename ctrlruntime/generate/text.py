"""Manifests as text: the bytes that controller-gen writes for the same content.

Its YAML comes from Go's yaml.v2, a port of libyaml, as PyYAML is a binding of it: both choose the quotes and fold lines alike. What is here
differs from PyYAML's own dumper: keys in Go's natural order, numbers as Go writes them, and quotes for each text that Go reads as another
type.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, Final, cast

from ctrlruntime.errors import ConfigError

if TYPE_CHECKING:
    import yaml

__all__ = ["dump", "dump_all", "file_name"]

_TEXT: Final = "tag:yaml.org,2002:str"
_MAP: Final = "tag:yaml.org,2002:map"
_LIST: Final = "tag:yaml.org,2002:seq"


def file_name(definition: Mapping[str, Any]) -> str:
    """Return the name controller-gen gives the file of a definition: `GROUP_PLURAL.yaml`."""
    spec = definition["spec"]
    return f"{spec['group']}_{spec['names']['plural']}.yaml"


def dump(document: Mapping[str, Any]) -> str:
    """Return one document as YAML text that starts with `---`. Raises: ConfigError for a text that is not Unicode."""
    import yaml

    text: str = yaml.serialize(  # pyright: ignore[reportUnknownMemberType]
        _node(document), Dumper=_dumper(), explicit_start=True, allow_unicode=True, width=80
    )
    # PyYAML ends a document whose last text keeps its line breaks, and Go does not.
    return text.removesuffix("...\n") if text.endswith("\n...\n") else text


def dump_all(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return several documents as one text."""
    return "".join(dump(document) for document in documents)


@functools.cache
def _dumper() -> type[yaml.SafeDumper]:
    import yaml

    base: Any = getattr(
        yaml, "CSafeDumper", yaml.SafeDumper
    )  # it has the first where libyaml was there when it was built
    # Without resolvers a scalar is written as it is: `_scalar` has made its text, and `_is_quoted` decides about quotes.
    return cast("type[yaml.SafeDumper]", type("Dumper", (base,), {"yaml_implicit_resolvers": {}}))


def _node(value: Any) -> yaml.Node:
    import yaml

    match value:
        case Mapping():
            tree = cast("Mapping[str, Any]", value)
            keys = sorted(tree, key=functools.cmp_to_key(_compare))
            pairs = [(_text(key, is_key=True), _node(tree[key])) for key in keys]
            return yaml.MappingNode(_MAP, pairs, flow_style=not pairs)
        case list() | tuple():
            items = [_node(item) for item in cast("list[Any]", value)]
            return yaml.SequenceNode(_LIST, items, flow_style=not items)
        case str():
            return _text(value)
        case _:
            return yaml.ScalarNode(_TEXT, _scalar(value))


def _text(text: str, *, is_key: bool = False) -> yaml.ScalarNode:
    import yaml

    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{text!r:.60} cannot be written: it has half of a surrogate pair. Remove this character"
        ) from error
    has_breaks = "\n" in text
    style = '"' if _is_quoted(text) or (is_key and has_breaks) else "|" if has_breaks else None  # None: libyaml decides
    return yaml.ScalarNode(_TEXT, text, style=style)


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if -(2**63) <= value < 2**64 else _float(float(value))
        case _:
            return _float(value)


def _float(value: float) -> str:
    """A number as Go's FormatFloat(value, 'g', -1, 64) writes it; a whole one that JSON writes without a point as an int."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else "-.inf" if value < 0 else ".inf"
    if value.is_integer() and abs(value) < 1e21 and -(2**63) <= int(_digits(value)) < 2**64:
        return _digits(value)
    sign, digits, exponent = "-" if value < 0 else "", *_decompose(abs(value))
    if -4 <= exponent < 6:
        return sign + _plain(digits, exponent)
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _digits(value: float) -> str:
    """A whole number by its shortest digits: 2**63 is 9223372036854775807 rounded, 9223372036854776000."""
    digits, exponent = _decompose(abs(value))
    return ("-" if value < 0 else "") + (digits + "0" * exponent)[: exponent + 1]


def _decompose(value: float) -> tuple[str, int]:
    """The shortest digits of a number, and the power of ten of the first."""
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    for precision in range(17):
        text = f"{value:.{precision}e}"
        if float(text) == value:
            mantissa, _, exponent = text.partition("e")
            break
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole = (digits + "0" * exponent)[: exponent + 1]
    rest = digits[exponent + 1 :]
    return f"{whole}.{rest}" if rest else whole


# Texts

_BREAKS = re.compile("[\r\x85\u2028\u2029]")  # line breaks to a reader, besides \n
_WORDS = frozenset(
    [
        "", "~", ".nan", ".NaN", ".NAN",
        *(sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")),
        *(form for word in ("y", "yes", "true", "on", "n", "no", "false", "off", "null")
          for form in (word, word.capitalize(), word.upper())),
    ]
)  # fmt: skip
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_PREFIXED = re.compile(r"[-+]?0(?:b[01]+|o[0-7]+|x[0-9a-fA-F]+)", re.IGNORECASE)
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_MOMENT = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:[Tt](\d\d?):(\d\d?):(\d\d?)(?:\.\d*)?(?:Z|[-+]\d\d:\d\d)|"
    r" (\d\d?):(\d\d?):(\d\d?)(?:\.\d*)?)?"
)


def _is_quoted(text: str) -> bool:
    """Tell whether a text needs quotes: Go reads it as another type without them, or it has a line break that only an escape keeps."""
    return _BREAKS.search(text) is not None or not _stays_text(text)


def _stays_text(text: str) -> bool:
    """Tell whether a YAML 1.1 reader, as Go's is, reads the bare text as text."""
    if text in _WORDS or _BASE_60.fullmatch(text):
        return False
    if text[0] in "+-.0123456789":
        bare = text.replace("_", "")
        if _NUMBER.fullmatch(bare):
            return not math.isfinite(float(bare))
        if _PREFIXED.fullmatch(bare):
            return False
        moment = _MOMENT.fullmatch(text)
        return moment is None or not _is_moment([int(part or 0) for part in moment.groups()])
    return True


def _is_moment(parts: list[int]) -> bool:
    year, month, day, *clock = parts
    try:
        date(year, month, day)
    except ValueError:
        return False
    return all(hour < 24 and minute < 60 and second < 60 for hour, minute, second in (clock[:3], clock[3:]))


# The order of keys


def _compare(left: str, right: str) -> int:
    """Letters by code, numbers by value, other characters before letters."""
    for at, (one, other) in enumerate(zip(left, right, strict=False)):
        if one == other:
            continue
        if one.isalpha() and other.isalpha():
            return -1 if one < other else 1
        if one.isalpha() or other.isalpha():
            return -1 if other.isalpha() else 1
        return _compare_numbers(left, right, at)
    return len(left) - len(right)


def _compare_numbers(left: str, right: str, at: int) -> int:
    head = 0
    if "0" in {left[at], right[at]}:
        before = re.search(r"[0-9]*$", left[:at])
        head = 1 if before and before[0].strip("0") else 0
    one, other = (re.match(r"[0-9]*", text[at:]) for text in (left, right))
    digits = (one[0] if one else "", other[0] if other else "")
    values = tuple(int(f"{head}{text}") for text in digits)
    if values[0] != values[1]:
        return -1 if values[0] < values[1] else 1
    if len(digits[0]) != len(digits[1]):
        return len(digits[0]) - len(digits[1])
    return -1 if left[at] < right[at] else 1
