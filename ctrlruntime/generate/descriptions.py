"""Docstrings and `Field(description=…)` to the descriptions of a schema, by controller-gen's rules."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from ctrlruntime.generate.options import Document

__all__ = ["clean", "docstring", "drop", "truncate"]

_SENTENCE_ENDS = ".!?\u0589\u061f\u06d4\u0964\u0965\u203c\u2047\u2048\u2049\u3002\ufe52\uff01\uff0e\uff1f\uff61"


def docstring(cls: type[Any]) -> str:
    """Return the description of a class itself, without those of its bases."""
    text = cls.__dict__.get("__doc__")
    return clean(text) if isinstance(text, str) else ""


def clean(text: str) -> str:
    """Return a docstring without indentation, lines that start with TODO, and what follows a line that starts with `---`."""
    kept: list[str] = []
    fenced = False
    for line in _lines(inspect.cleandoc(text)):
        if line.startswith(("```", "~~~")):
            fenced = not fenced
        if not fenced:
            if line.startswith("TODO"):
                continue
            if line.startswith("---"):
                break
        kept.append(line)
    return "\n".join(kept)


def _lines(text: str) -> Iterator[str]:
    """Lines without blanks at their end, and never two empty ones in a row."""
    before = ""
    for line in (line.rstrip() for line in text.strip().split("\n")):
        if line or before:
            yield line
        before = line


def truncate(schema: Document, limit: int) -> None:
    """Cut every description at or below a schema to `limit` bytes; 0 drops them."""
    for node in _nodes(schema):
        text = node.get("description", "")
        if limit == 0:
            node.pop("description", None)
        elif len(text.encode()) > limit:
            node["description"] = _cut(text, limit)


def drop(schema: Document) -> None:
    """Drop the descriptions below a schema, not its own."""
    own = schema.get("description")
    truncate(schema, 0)
    if own:
        schema["description"] = own


def _cut(text: str, limit: int) -> str:
    text = text.encode()[:limit].decode("utf-8", "ignore")
    end = max(text.rfind(char) for char in _SENTENCE_ENDS)
    if end > 0:
        return text[: end + 1]
    gap = next((at for at in range(len(text) - 1, 0, -1) if text[at].isspace()), 0)
    return f"{text[:gap] if gap else text}..."


def _nodes(schema: Document) -> Iterator[Document]:
    yield schema
    for child in (schema.get("properties") or {}).values():
        yield from _nodes(child)
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key])
    for key in ("allOf", "anyOf", "oneOf"):
        for child in schema.get(key) or ():
            yield from _nodes(child)
