"""How property names become CEL identifiers: `a-b` is `a__dash__b`, a keyword `if` is `__if__`."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*\Z")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SPECIAL = re.compile(r"__|\.|-|/")
_ESCAPED = re.compile(r"__(underscores|dot|dash|slash)__")
_TO = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_FROM = {name[2:-2]: char for char, name in _TO.items()}
_KEYWORDS = frozenset(
    {
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
    }
    | {"loop", "package", "namespace", "return", "var", "void", "while"}
)


def escape(name: str) -> str | None:
    """Return how an expression writes the property; None when it cannot."""
    if name in _KEYWORDS:
        return f"__{name}__"
    if not _NAME.match(name):
        return None
    return _SPECIAL.sub(lambda found: _TO[found[0]], name)


def spellings(name: str) -> list[str]:
    """Return every way an expression may write the property."""
    escaped = escape(name)
    if escaped is None:
        return []
    if name in _KEYWORDS and _IDENTIFIER.match(name):
        return [escaped, name]
    return [escaped]


def unescape(name: str) -> str:
    """Return the property an expression's field means."""
    if name.startswith("__") and name[2:-2] in _KEYWORDS and name.endswith("__"):
        return name[2:-2]
    return _ESCAPED.sub(lambda found: _FROM[found[1]], name)
