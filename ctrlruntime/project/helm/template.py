"""Objects as the text of a Helm template: trees that hold expressions, conditions and blocks, written as YAML.

Where a tree holds more than plain values, a mark of letters and digits goes through the YAML writer in its place, and the text the mark
replaces is inserted later, at the indent of the mark. So quoting and order are those of every other manifest.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

from ctrlruntime.generate.options import Document
from ctrlruntime.generate.text import dump
from ctrlruntime.project.helm.conditions import Cases, Switches
from ctrlruntime.project.helm.merging import Choice, Sometimes

__all__ = ["Block", "Expressions", "When", "written_as_template"]

_Lines: TypeAlias = "Callable[[int], list[str]]"  # the lines of a mark, for the indent it stands at

_INLINE: Final = re.compile(r"zzInline(\d+)zz")
_LINE: Final = re.compile(r'( *)(?:zzBlock(\d+)zz: ""|- zzBlock(\d+)zz)')
_DEEPER: Final = re.compile(r"@\+(\d+)@")


@dataclass(frozen=True, slots=True)
class When:
    """A value of a map, or an item of a list, under a condition of its own."""

    condition: str
    value: Any


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of a template instead of an entry of a map or a list; `@+2@` is their indent and two more."""

    lines: tuple[str, ...]


class Expressions:
    """Expressions inside values. Equal ones have equal marks, so trees with marks compare as their templates would."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def mark(self, expression: str) -> str:
        """Return a text that is replaced by `{{ expression }}`."""
        return self._marks.setdefault(expression, f"zzInline{len(self._marks)}zz")

    def fill(self, text: str) -> str:
        """Put the expressions in the places of their marks."""
        expressions = list(self._marks)
        return _INLINE.sub(lambda found: f"{{{{ {expressions[int(found[1])]} }}}}", text)

    def escaped(self, text: str) -> str:
        """Return a text in which nothing is an expression that was none."""
        return text.replace("{{", self.mark('"{{"')) if "{{" in text else text


def written_as_template(tree: Document, expressions: Expressions, switches: Switches, among: Cases) -> str:
    """Return one document of a template. `among`: the cases in which it is there."""
    return expressions.fill("".join(f"{line}\n" for line in _Writer(switches).lines(tree, among, 0)))


class _Writer:
    def __init__(self, switches: Switches) -> None:
        self._switches = switches
        self._blocks: list[_Lines] = []

    def lines(self, tree: Document, among: Cases, indent: int) -> list[str]:
        """Return the lines of a map, without the indent they will stand at."""
        text = dump(self._plain(tree, among)).removeprefix("---\n")
        return list(self._with_blocks(text.splitlines(), indent))

    def _with_blocks(self, lines: list[str], indent: int) -> Iterator[str]:
        for line in lines:
            found = _LINE.fullmatch(line)
            if found is None:
                yield line
                continue
            inside = found[1]
            for each in self._blocks[int(found[2] or found[3])](indent + len(inside)):
                yield f"{inside}{each}" if each else ""

    def _plain(self, node: Any, among: Cases) -> Any:
        match node:
            case dict():
                entries = cast("Document", node)
                return dict(self._entry(key, value, among) for key, value in entries.items())
            case list():
                return list(self._items(node, among))
            case _:
                return node

    def _entry(self, key: str, value: Any, among: Cases) -> tuple[str, Any]:
        lines = self._block(value, among, lambda inner, cases, indent: self.lines({key: inner}, cases, indent))
        return (key, self._plain(value, among)) if lines is None else (self._mark(lines), "")

    def _items(self, items: list[Any], among: Cases) -> Iterator[Any]:
        """Yield the items of a list; neighbours under the same condition are under it together."""

        def some(inner: Any, cases: Cases, indent: int) -> list[str]:
            first, *others = self.lines({"_": inner}, cases, indent)
            assert first == "_:"
            return others

        for (kind, _), group in itertools.groupby(items, _condition_of):
            if kind is None:
                yield from (self._plain(each, among) for each in group)
                continue
            first, *others = group
            if kind is not Block:
                first = replace(first, value=[first.value, *(each.value for each in others)])
            lines = self._block(first, among, some)
            assert lines is not None
            yield self._mark(lines)

    def _block(self, value: Any, among: Cases, one: Callable[[Any, Cases, int], list[str]]) -> _Lines | None:
        match value:
            case Block(lines):
                return lambda indent: [_DEEPER.sub(lambda found: str(indent + int(found[1])), line) for line in lines]
            case When(condition, inner):
                return lambda indent: _under({condition: one(inner, among, indent)})
            case Sometimes(cases, inner):
                condition = self._switches.condition(cases, among)
                return lambda indent: _under({condition: one(inner, cases, indent)})
            case Choice(options):
                return lambda indent: _under(
                    {self._switches.condition(cases, among): one(inner, cases, indent) for cases, inner in options},
                    is_complete=True,
                )
            case _:
                return None

    def _mark(self, lines: _Lines) -> str:
        self._blocks.append(lines)
        return f"zzBlock{len(self._blocks) - 1}zz"


def _condition_of(item: Any) -> tuple[type[Any] | None, object]:
    match item:
        case Sometimes(cases, _):
            return Sometimes, cases
        case When(condition, _):
            return When, condition
        case Block():
            return Block, id(item)
        case _:
            return None, None


def _under(branches: Mapping[str, list[str]], *, is_complete: bool = False) -> list[str]:
    """Return lines under their conditions; when the branches are complete, the last of several needs none."""
    if list(branches) == [""]:
        return branches[""]
    lines: list[str] = []
    for place, (condition, inner) in enumerate(branches.items()):
        is_last = is_complete and place == len(branches) - 1
        word = "if" if place == 0 else "else if"
        lines.append("{{- else }}" if is_last else f"{{{{- {word} {condition} }}}}")
        lines += inner
    return [*lines, "{{- end }}"]
