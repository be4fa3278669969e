"""Reads YAML as Kubernetes does, as another syntax for JSON.

kubectl and kube-apiserver use sigs.k8s.io/yaml: go-yaml v2 determines the type of a scalar, keys become text, and values that JSON does not
support are errors. PyYAML creates the nodes; only this module interprets them.
"""

from __future__ import annotations

import base64
import functools
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ctrlruntime.api.yaml_nodes import BODY, Bounds, MeaningError, Path, compose, python_parser

__all__ = ["MeaningError", "path_text", "read_documents", "scalar"]

Repeated: TypeAlias = Callable[[str, int, Path], None]
"""Called for a duplicate key, with the key, its line (from 1), and the path of the mapping."""

_MOST_IN_PYTHON: Final = 64 * 1024
"""The maximum number of characters for PyYAML's own parser, which would need seconds for more."""
_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = "plain"
"""The tag of a plain scalar without its own tag."""
_WORDS: Final[Mapping[str, Any]] = {
    **{word: True for name in ("y", "yes", "true", "on") for word in (name, name.capitalize(), name.upper())},
    **{word: False for name in ("n", "no", "false", "off") for word in (name, name.capitalize(), name.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_WHOLE: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>0|[1-9][0-9]*))"
)
_BASES: Final = {"x": 16, "b": 2, "o": 8, "d": 10}
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_MOST_DIGITS: Final = 100
"""The number of digits above which a number is not an integer of 64 bits, in any base."""
_TYPES: Final[Mapping[str, tuple[type[Any], ...]]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "null": (type(None),),
}


def read_documents(text: str | bytes, repeated: Repeated | None = None, bounds: Bounds = BODY) -> Iterator[Any]:
    """Yield the JSON document of each YAML document; an empty one is None.

    For a duplicate key the last value counts, and `repeated` is called. Raises: MeaningError, also for an exceeded limit, and
    yaml.YAMLError.
    """
    for node in compose(text, bounds, _resolve, _parser_of(text)):
        yield _Reader(repeated).tree(node, ())


def scalar(text: str) -> Any:
    """Return the value of a plain scalar: None, a bool, an int, a float, or the text itself.

    The rules are those of resolve.go in go-yaml v2: `on` and `y` are true, 0o14 and 014 are twelve, 1_000 is a thousand, and 12:30:45 and
    dates are text.
    """
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first == ".":
        return _float(text, text)
    if first not in "+-0123456789":
        return text
    plain = text.replace("_", "")
    found = _WHOLE.fullmatch(plain) if len(plain) <= _MOST_DIGITS else None
    if found is not None:
        base = next(name for name in _BASES if found[name] is not None)
        value = int(found["sign"] + found[base], _BASES[base])
        if -(2**63) <= value < (2**63 if found["sign"] else 2**64):
            return value
    return _float(plain, text)


def path_text(path: Sequence[str | int]) -> str:
    """Return a path as in messages: `spec.items[0].name`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _float(number: str, text: str) -> float | str:
    value = float(number) if _FLOAT.fullmatch(number) else math.inf
    return value if math.isfinite(value) else text


class _Reader:
    """Converts the nodes of one document to JSON values."""

    def __init__(self, repeated: Repeated | None) -> None:
        self._repeated = repeated
        self._told: set[int] = set()  # what aliases share is told of once

    def tree(self, node: Any, path: Path) -> Any:
        if isinstance(node.value, str):
            value = _meaning(node, path)
            if isinstance(value, float):
                return _number(value, node, path)
            return value
        if node.id == "mapping":
            tree: Any = {}
            self._fill(tree, node, path)
        else:
            tree = [self.tree(item, (*path, index)) for index, item in enumerate(node.value)]
        return tree

    def _fill(self, tree: dict[str, Any], node: Any, path: Path) -> None:
        repeated = None if id(node) in self._told else self._repeated
        self._told.add(id(node))
        seen: set[str] = set()
        for key, value in node.value:
            if key.value == "<<" and key.tag in {_PLAIN, f"{_TAG}merge"}:
                self._merge(tree, value, path)
                continue
            name = _name(key, path)
            if name in seen and repeated is not None:
                repeated(name, _line(key), path)
            seen.add(name)
            tree[name] = self.tree(value, (*path, name))

    def _merge(self, tree: dict[str, Any], node: Any, path: Path) -> None:
        """Take over the entries of a mapping, or of several, of which the first has the last word."""
        for mapping in reversed(node.value) if node.id == "sequence" else [node]:
            if mapping.id != "mapping":
                raise MeaningError("map merge requires map or sequence of maps as the value", _line(mapping), path)
            tree.update(self.tree(mapping, path))


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _meaning(node: Any, path: Path) -> Any:
    """Return what a scalar says, with quotes and tags taken into account."""
    tag, text = str(node.tag).removeprefix(_TAG), str(node.value)
    if tag == _PLAIN:
        return scalar(text)
    if tag == "binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode(errors="replace")
        except ValueError:
            raise MeaningError("!!binary value contains invalid base64 data", _line(node), path) from None
    if tag not in _TYPES:
        return text
    value = scalar(text)
    if type(value) not in _TYPES[tag]:
        raise MeaningError(f"cannot decode `{text}` as a !!{tag}", _line(node), path)
    return value


def _number(value: float, node: Any, path: Path) -> float | int:
    """Return a float as JSON has it: without a point where none is needed."""
    if not math.isfinite(value):
        raise MeaningError(f"JSON has no number {node.value}; write it in quotes if a text is meant", _line(node), path)
    return int(value) if value.is_integer() and -(2**63) <= value < 2**64 else value


def _name(key: Any, path: Path) -> str:
    """Return the text that stands for a key."""
    value = _meaning(key, path) if isinstance(key.value, str) else key.value
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() if value < 2**63:
            return str(value)
        case float():
            return _float_name(value)
        case _:
            shown = (
                key.value if isinstance(key.value, str) and key.value else f"a {'null' if value is None else key.id}"
            )
            raise MeaningError(f"{shown} is not a key: keys are text; write it in quotes", _line(key), path)


def _float_name(value: float) -> str:
    """Return a float as Go writes a float32 in the fewest digits (strconv.FormatFloat(x, 'g', -1, 32))."""
    wanted = struct.pack("f", value)  # what no float32 holds is infinite
    if not value or not math.isfinite(struct.unpack("f", wanted)[0]):
        return f"{value:.0f}" if not value else ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    shortest = next(
        text for digits in range(9) if struct.pack("f", float(text := f"{value:.{digits}e}")) == wanted or digits == 8
    )
    digits, exponent = len(shortest.lstrip("-").partition("e")[0].replace(".", "")), int(shortest.partition("e")[2])
    return f"{float(shortest):.{max(digits - 1 - exponent, 0)}f}" if -4 <= exponent < 6 else shortest


def _resolve(kind: Any, _text: str | None, implicit: Any) -> str:
    """Return the tag of a node that has none: what a scalar without quotes is, `scalar` says later."""
    is_scalar = kind.id == "scalar"
    if is_scalar and implicit[0]:
        return _PLAIN
    return f"{_TAG}{'str' if is_scalar else 'map' if kind.id == 'mapping' else 'seq'}"


def _parser_of(text: str | bytes) -> Any:
    r"""Return go-yaml's parser for a text with an escape that libyaml takes otherwise, None for libyaml's.

    libyaml takes `\/`, which go-yaml refuses, and refuses `\'`, which go-yaml takes. In all else it is go-yaml's model.
    """
    escapes = (b"\\/", b"\\'") if isinstance(text, bytes) else ("\\/", "\\'")
    differs = len(text) <= _MOST_IN_PYTHON and any(escape in text for escape in escapes)  # type: ignore[operator]
    return _go_parser() if differs else None


@functools.cache
def _go_parser() -> Any:
    """Return PyYAML's own parser with go-yaml's escapes."""
    import yaml
    from yaml.scanner import ScannerError

    no_character = "found invalid Unicode character escape code"

    class Parser(python_parser()):  # type: ignore[misc]
        def scan_flow_scalar_non_spaces(self, double: bool, start_mark: Any) -> list[str]:
            try:
                chunks: list[str] = super().scan_flow_scalar_non_spaces(double, start_mark)
            except ValueError:  # no character has such a number
                raise ScannerError(None, start_mark, no_character, start_mark) from None
            if any("\ud800" <= character <= "\udfff" for chunk in chunks for character in chunk):
                raise ScannerError(None, start_mark, no_character, start_mark)
            return chunks

    escapes: dict[str, str] = yaml.SafeLoader.ESCAPE_REPLACEMENTS
    made: Any = Parser
    made.ESCAPE_REPLACEMENTS = {**{key: value for key, value in escapes.items() if key != "/"}, "'": "'"}
    return made
