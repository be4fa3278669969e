"""YAML bodies as trees, read as kube-apiserver reads them (go-yaml, and then JSON), with what they say twice.

JSON is YAML too, and what kubectl sends is mostly JSON: where the two mean the same the fast decoder reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import msgspec

from ctrlruntime.apiserver.encoding import check_size, decode_strictly, duplicate_fields

_LARGEST: Final = 400_000
"""Values that a body may come to once its aliases are written out."""
_NOT_YAML: Final = re.compile(rb"\\/|\\u[dD][89a-fA-F]|\x7f|\xc2[\x80-\x84\x86-\x9f]|\xef\xbf[\xbe\xbf]")
"""What JSON may have and YAML may not: an escaped slash, escapes of surrogates, control characters."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NO_CHARACTER: Final = "found invalid Unicode character escape code"
_WORDS: Final = {
    "expected escape sequence": "did not find expected hexdecimal number",
    "found unknown escape character": "found unknown escape character",
    "mapping values are not allowed": "mapping values are not allowed in this context",
    "found character": "found character that cannot start any token",
}
"""What PyYAML's problems begin with, and go-yaml's words."""


class YAMLProblem(ValueError):  # noqa: N818 - upstream's word for it is a sentence
    """A body that is no YAML; the text is go-yaml's."""


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Return the tree and what it says twice (`line 5: key "q" already set in map`). Raises: YAMLProblem."""
    return _read_json(body) or _read_yaml(body)


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

    try:
        loader = _loader()(body)
        try:
            node = loader.get_node() if loader.check_node() else None
            tree = loader.construct_document(node) if node is not None else None
        finally:
            loader.dispose()
        check_size(tree, _LARGEST)
        return _with_text_keys(tree), [] if node is None else list(_repeated(node, set()))
    except ReaderError as error:
        raise YAMLProblem(f"yaml: {_unreadable(error)}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        where = f"line {line + 1}: " if line else ""  # go-yaml names no first line
        raise YAMLProblem(f"yaml: {where}{_in_go(error.problem or '')}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise YAMLProblem(f"yaml: {error}") from None
    except RecursionError:
        raise YAMLProblem("yaml: exceeded max depth") from None


def _unreadable(error: Any) -> str:
    """Return what go-yaml says of bytes that are no text."""
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


def _repeated(node: Any, seen: set[int]) -> Iterator[str]:
    """Yield what a document says twice, in its order; a part that aliases share is looked at once."""
    if id(node) in seen or isinstance(node.value, str):
        return
    seen.add(id(node))
    keys: set[str] = set()
    for entry in node.value:
        if not isinstance(entry, tuple):
            yield from _repeated(entry, seen)
            continue
        key, value = entry
        text = key.value if isinstance(key.value, str) else ""
        if text in keys:
            yield f'line {key.start_mark.line + 1}: key "{text}" already set in map'
        keys.add(text)
        yield from _repeated(value, seen)


def _with_text_keys(tree: Any) -> Any:
    """Return the tree with keys as JSON has them: numbers and booleans become text."""
    if type(tree) is dict:
        return {_text(key): _with_text_keys(value) for key, value in tree.items()}
    if type(tree) is list:
        return [_with_text_keys(value) for value in tree]
    if type(tree) is float and tree.is_integer():
        return int(tree)  # JSON made of YAML writes no point where none is needed
    return tree


def _text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


_NUMBERS = {  # without numbers to the base of sixty: 12:30 is a text
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(?:0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|[-+]?\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}


@cache
def _loader() -> Any:
    """Return the class that loads YAML as kube-apiserver reads it."""
    import yaml
    from yaml.scanner import ScannerError

    class Loader(yaml.SafeLoader):
        """The safe loader, without dates (which JSON does not have), and with go-yaml's escapes."""

        def scan_flow_scalar_non_spaces(self, double: bool, start_mark: Any) -> list[str]:
            try:
                chunks: list[str] = super().scan_flow_scalar_non_spaces(double, start_mark)
            except ValueError:  # no character has such a number
                raise ScannerError(None, start_mark, _NO_CHARACTER, start_mark) from None
            if any(_SURROGATE.search(chunk) for chunk in chunks):
                raise ScannerError(None, start_mark, _NO_CHARACTER, start_mark)
            return chunks

    made: Any = Loader
    made.ESCAPE_REPLACEMENTS = {**yaml.SafeLoader.ESCAPE_REPLACEMENTS, "'": "'"}
    del made.ESCAPE_REPLACEMENTS["/"]
    Loader.yaml_implicit_resolvers = {
        first: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    # go-yaml v2 reads y and n as booleans too.
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]\Z"), list("yYnN"))
    Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}
    return Loader
