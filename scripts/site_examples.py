"""Where the documentation shows each public name: in Python code that `scripts/check-docs` runs, or in the entry of an error."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ERRORS = "reference/errors.md"
_LINE = re.compile(r"^(?P<level>#{1,4}) (?P<title>.+?)(?: \{#(?P<anchor>\w+)\})?$|^```(?P<language>\w*)")


class Place(NamedTuple):
    """A section of a page."""

    page: str
    """`how-to/caches.md`"""

    title: str
    """Of the page."""

    heading: str
    anchor: str

    @property
    def link(self) -> str:
        """The link from a page of the Python API."""
        title = self.title if self.heading == self.title else f"{self.title}: {self.heading}"
        return f"[{title}](../../{self.page}#{self.anchor})"


def places(docs: Path) -> dict[str, list[Place]]:
    """Return the sections that use each name of the package, by its path: `ctrlruntime.crd.Format`. The key of an error's entry is its name.

    A section of a how-to page comes before one of another page, because it explains the name.
    """
    found: dict[str, list[Place]] = {}
    for page in sorted(docs.rglob("*.md"), key=lambda page: ("how-to" not in page.parts, page)):
        known: dict[str, str] = {}
        for place, code in sections(page, page.relative_to(docs).as_posix()):
            for name in sorted(used(code, known)) or ([place.anchor] if place.page == ERRORS else []):
                if place not in (listed := found.setdefault(name, [])):
                    listed.append(place)
    return found


def sections(page: Path, name: str) -> Iterator[tuple[Place, str]]:
    """Yield each block of Python code with its section, and the entry of each error without code."""
    title, place = "", Place(name, "", "", "")
    slugs: Counter[str] = Counter()
    block: list[str] | None = None
    for line in page.read_text(encoding="utf-8").splitlines():
        if block is not None:
            if line == "```":
                yield place, "\n".join(block[1:]) if block[0] == "python" else ""
                block = None
            else:
                block.append(line)
        elif (found := _LINE.match(line)) is None:
            continue
        elif found["level"]:
            heading = found["title"].replace("`", "")
            title = title or heading
            place = Place(name, title, heading, found["anchor"] or _slug(heading, slugs))
            if name == ERRORS and found["anchor"]:
                yield place, ""
        else:
            block = [found["language"]]


def _slug(heading: str, seen: Counter[str]) -> str:
    """Return the anchor that Markdown gives a heading."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
    seen[slug] += 1
    return slug if seen[slug] == 1 else f"{slug}_{seen[slug] - 1}"


def used(code: str, known: dict[str, str]) -> set[str]:
    """Return the paths of the package's names that code uses.

    Args:
        code: One block of a page.
        known: The names that earlier blocks of the page import, with their paths. Imports of this block are added.

    """
    tree = ast.parse(code)
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                known.update(
                    {each.asname or each.name: each.name for each in names if each.name.startswith("ctrlruntime")}
                )
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("ctrlruntime"):
                known.update({each.asname or each.name: f"{module}.{each.name}" for each in names})
            case _:
                pass
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in known:
                found.add(f"{known[first]}.{rest}" if rest else known[first])
    return found
