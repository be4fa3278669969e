"""The tokens of an expression, as the grammar of the Common Expression Language defines them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

DEEPEST: Final = 250
"""Levels of an expression, as in cel-go: of brackets, and of operators below each other."""
END: Final = "<EOF>"
FLOAT: Final = "NUM_FLOAT"
INT: Final = "NUM_INT"
UINT: Final = "NUM_UINT"
STRING: Final = "STRING"
BYTES: Final = "BYTES"
NAME: Final = "IDENTIFIER"
QUOTED_NAME: Final = "ESC_IDENTIFIER"
SPACE: Final = "SPACE"
SYMBOLS: Final = (
    "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*", "/", "%",
    "true", "false", "null",
)  # fmt: skip
"""Tokens that are their own kind, in the order in which cel-go lists them."""
KINDS: Final = (END, *SYMBOLS, FLOAT, INT, UINT, STRING, BYTES, NAME, QUOTED_NAME)
_WORDS: Final = frozenset({"in", "true", "false", "null"})

_ESCAPE: Final = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_TEXT: Final = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
        r'[rR]"""(?s:.*?)"""',
        r"[rR]'''(?s:.*?)'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
    )
)
_TOKEN: Final = re.compile(
    rf"(?P<{SPACE}>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<{BYTES}>[bB](?:{_TEXT}))"
    rf"|(?P<{STRING}>{_TEXT})"
    rf"|(?P<{FLOAT}>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    rf"|(?P<{UINT}>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])"
    rf"|(?P<{INT}>0x[0-9a-fA-F]+|[0-9]+)"
    rf"|(?P<{NAME}>[A-Za-z_][A-Za-z0-9_]*)"
    rf"|(?P<{QUOTED_NAME}>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<symbol>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
)
_BEGINNINGS: Final = re.compile(
    rf"""[=&|]|"(?:{_ESCAPE}|[^\\"\n\r])*|'(?:{_ESCAPE}|[^\\'\n\r])*|`[A-Za-z0-9_.\-/ ]*|"""
)
"""What begins a token and may still be one when the next character is read."""
_UNFINISHED: Final = re.compile(r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?|)")


class Token(NamedTuple):
    """A piece of the expression."""

    kind: str
    """One of `KINDS`, or `SPACE` for blanks and comments."""
    text: str
    at: int
    """Characters before it."""


class BadText(NamedTuple):
    """Characters that are not a token."""

    text: str
    at: int


def read_tokens(text: str) -> tuple[list[Token], list[BadText]]:
    """Return all tokens, `END` last, and what is left out because it is not one."""
    tokens: list[Token] = []
    bad: list[BadText] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            end = _end_of_bad(text, at)
            bad.append(BadText(text[at:end], at))
        else:
            kind, part, end = str(found.lastgroup), found[0], found.end()
            tokens.append(Token(part if kind == "symbol" or part in _WORDS else kind, part, at))
        at = end
    tokens.append(Token(END, END, len(text)))
    return tokens, bad


def _end_of_bad(text: str, at: int) -> int:
    """Return where reading continues: after the first character that cannot belong to a token, as in ANTLR."""
    found = _BEGINNINGS.match(text, at)
    end = at if found is None else found.end()
    if text[at : at + 1] in {'"', "'"}:
        unfinished = _UNFINISHED.match(text, end)
        end = end if unfinished is None else unfinished.end()
    return end + 1


__all__ = [
    "BYTES",
    "DEEPEST",
    "END",
    "FLOAT",
    "INT",
    "KINDS",
    "NAME",
    "QUOTED_NAME",
    "SPACE",
    "STRING",
    "SYMBOLS",
    "UINT",
    "BadText",
    "Token",
    "read_tokens",
]
