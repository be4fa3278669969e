"""One write of a built-in kind that both servers are asked: what the tables of cases are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One write: `body` is created, or, with `changes`, stored and then replaced by itself with the changes (a merge
    patch) in it.
    """

    name: str
    path: str
    body: Document
    changes: Document | None = None
    subresource: str = ""
    is_stored: bool = False
    """The create is not a dry run: for what only a real write is told."""
    is_deleted: bool = False
    """What is compared is the answer to the delete."""


def named(name: str = "x", /, **rest: Any) -> Document:
    meta = rest.pop("meta", {})
    return {"metadata": {"name": name, **meta}, **rest}


def cases(path: str, base: Document, changes: dict[str, Document]) -> list[Case]:
    """The base with something else at its top, each by itself."""
    kind = path.split("/")[-1]
    return [Case(f"{kind} {name}", path, {**base, **change}) for name, change in changes.items()]


def specs(path: str, base: Document, changes: dict[str, Document], name: str = "x") -> list[Case]:
    return cases(path, named(name), {key: {"spec": {**base, **change}} for key, change in changes.items()})


def updates(path: str, base: Document, changes: dict[str, Document], subresource: str = "") -> list[Case]:
    """The base, changed by each of the changes."""
    kind = path.split("/")[-1] + (f"/{subresource}" if subresource else "")
    bodies = {name: _named_for(path, base, name) for name in changes}
    return [Case(f"{kind} change {name}", path, bodies[name], change, subresource) for name, change in changes.items()]


def _named_for(path: str, base: Document, change: str) -> Document:
    """The base with a name of its own where a finalizer may hold it after it is deleted."""
    if not path.endswith(("/persistentvolumes", "/volumeattributesclasses")):
        return base
    return {**base, "metadata": {"name": f"less-{change.replace(' ', '-').lower()}"}}
