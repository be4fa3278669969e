"""YAML bodies as trees, read as kube-apiserver reads them (go-yaml, and then JSON), with what they say twice.

JSON is YAML too, and what kubectl sends is mostly JSON: where the two mean the same the fast decoder reads it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ctrlruntime.api.yaml_text import MeaningError, read_documents
from ctrlruntime.apiserver.encoding import decode_strictly, duplicate_fields
from ctrlruntime.schema.trees import settle_numbers

if TYPE_CHECKING:
    from yaml import MarkedYAMLError

_NOT_YAML: Final = re.compile(rb"\\/|\\u[dD][89a-fA-F]|\x7f|\xc2[\x80-\x84\x86-\x9f]|\xef\xbf[\xbe\xbf]")
"""What JSON may have and YAML may not: an escaped slash, escapes of surrogates, control characters."""
_FRACTION: Final = re.compile(rb"[0-9][.eE]")
"""What a number with a fraction or an exponent has."""
_WORDS: Final = {
    "expected escape sequence": "did not find expected hexdecimal number",
    "found unknown escape character": "found unknown escape character",
    "mapping values are not allowed": "mapping values are not allowed in this context",
    "found character": "found character that cannot start any token",
}
"""What PyYAML's problems begin with, and go-yaml's words."""


class YAMLProblem(ValueError):  # noqa: N818 - upstream's word for it is a sentence
    """A body that is not YAML; the text is go-yaml's."""


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Return the tree and what it says twice (`line 5: key "q" already set in map`). Raises: YAMLProblem."""
    tree, repeated = _read_json(body) or _read_yaml(body)
    if _FRACTION.search(body) and (type(tree) is dict or type(tree) is list):
        settle_numbers(tree)  # between YAML and the tree there is JSON, in which 1.0 is 1
    return tree, repeated


def _read_json(body: bytes) -> tuple[Any, list[str]] | None:
    if body[:1] != b"{" or _NOT_YAML.search(body):
        return None
    try:
        tree = decode_strictly(body)
    except (ValueError, msgspec.DecodeError):
        return None  # YAML's reader says what is wrong, or reads it after all
    return None if duplicate_fields(body, tree) else (tree, [])


def _read_yaml(body: bytes) -> tuple[Any, list[str]]:
    import yaml
    from yaml.reader import ReaderError

    repeated: list[str] = []
    try:
        tree = next(
            read_documents(
                body, lambda key, line, _path: repeated.append(f'line {line}: key "{key}" already set in map')
            ),
            None,
        )
    except MeaningError as error:
        raise YAMLProblem(f"yaml: {error.problem}") from None
    except ReaderError as error:
        raise YAMLProblem(f"yaml: {_unreadable(error)}") from None
    except yaml.MarkedYAMLError as error:
        where = f"line {line}: " if (line := _line(error)) else ""
        raise YAMLProblem(f"yaml: {where}{_in_go(error.problem or '')}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise YAMLProblem(f"yaml: {error}") from None
    return tree, repeated


def _line(error: MarkedYAMLError) -> int:
    """Return the line that go-yaml names, 0 for none: it counts from 0, and adds one for an error of the scanner (decode.go)."""
    from yaml.scanner import ScannerError

    line: int = error.problem_mark.line if error.problem_mark else 0
    if line:
        return line + isinstance(error, ScannerError)
    return error.context_mark.line if error.context_mark else 0


def _unreadable(error: Any) -> str:
    """Return what go-yaml says of bytes that are not text; libyaml says it in the same words."""
    if error.encoding == "?":  # so PyYAML marks libyaml's
        return str(error.reason)
    match error.reason, error.character:
        case "special characters are not allowed", _:
            return "control characters are not allowed"
        case "unexpected end of data", _:
            return "incomplete UTF-8 octet sequence"
        case _, 0xC0 | 0xC1 | 0xE0 | 0xF0:
            return "invalid length of a UTF-8 sequence"
        case "invalid start byte", _:
            return "invalid leading UTF-8 octet"
        case _, 0xED | 0xF4:
            return "invalid Unicode character"
        case _:
            return "invalid trailing UTF-8 octet"


def _in_go(problem: str) -> str:
    """Return what go-yaml says of a problem, where the words are known."""
    return next((theirs for ours, theirs in _WORDS.items() if problem.startswith(ours)), problem)
