"""Tells whether a stream is a terminal, and escapes control characters of foreign text on it.

A manifest, an error of the API or a bundle can have sequences that move the cursor, recolour or hide text, set the window title, or reverse
the order of letters (Unicode TR36, section 3).
"""

from __future__ import annotations

import re
from typing import Final, TextIO

__all__ = ["escaped", "is_terminal"]

# C0 but tab and newline, DEL, C1; marks, embeddings and isolates that change the direction of text; halves of surrogate pairs,
# which no stream can encode.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def is_terminal(stream: TextIO) -> bool:
    """Return whether what is written to `stream` appears on a terminal."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # not a whole stream, or a closed one
        return False


def escaped(text: str) -> str:
    r"""Return text with its control characters as `\x1b` or `\u202e`; tabs and newlines stay."""
    return _CONTROL.sub(_code, text)


def _code(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
