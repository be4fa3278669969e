"""YAML as PyYAML's nodes, within bounds: the one door through which all of ctrlruntime reads YAML.

A few lines of YAML can stand for more values than any memory holds (aliases of aliases, merges of merges), nest deeper than a
stack, or keep a scanner busy for minutes. So the nodes are composed here from the parser's events, one by one, and each is
counted: what an alias stands for counts again wherever the alias stands, merges included. libyaml's parser does the work where
PyYAML has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, final

__all__ = ["BODY", "FILE", "Bounds", "MeaningError", "compose", "load", "python_parser"]

Path: TypeAlias = tuple[str | int, ...]
Resolve: TypeAlias = Callable[[type[Any], str | None, Any], str]
"""Gives a node without a tag its tag: of a class of nodes, a text (of scalars), and whether it is (plain, quoted) and may have any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a text may come to."""

    size: int
    """Characters (of bytes: bytes)."""
    depth: int
    """Levels of nesting."""
    values: int
    """Keys and values, once aliases and merges are written out."""


BODY: Final = Bounds(size=3 * 1024 * 1024, depth=200, values=200_000)
"""For what comes over the network: kube-apiserver reads 3 MiB, and no Kubernetes type nests half as deep."""
FILE: Final = Bounds(size=64 * 1024 * 1024, depth=200, values=1_000_000)
"""For files, which may hold many objects."""


class MeaningError(ValueError):
    """A text is YAML and says something that JSON cannot, or more than it may; `line` counts from 1."""

    def __init__(self, problem: str, line: int, path: Path = ()) -> None:
        super().__init__(f"line {line}: {problem}")
        self.problem = problem
        self.line = line
        self.path = path


def compose(
    text: str | bytes, bounds: Bounds = FILE, resolve: Resolve | None = None, parser: Any = None
) -> Iterator[Any]:
    """Yield the root node of each document in turn.

    `resolve` is by default YAML 1.1's; `parser` a class of PyYAML's parsers, by default its fastest. Raises: MeaningError for
    what is out of bounds, with the bound, and yaml.YAMLError.
    """
    from yaml.resolver import Resolver

    if len(text) > bounds.size:
        raise MeaningError(f"the text is longer than {bounds.size:,}; split it", 1)
    resolver: Any = Resolver()
    try:
        events = (parser or _fastest())(text)
    except UnicodeEncodeError:
        raise MeaningError("half of a surrogate pair is not a character", 1) from None
    try:
        yield from _Composer(events, bounds, resolve or resolver.resolve).documents()
    finally:
        events.dispose()


def load(text: str | bytes, bounds: Bounds = FILE) -> Any:
    """Return the only document of a text as yaml.safe_load does. Raises: MeaningError, yaml.YAMLError."""
    from yaml.constructor import SafeConstructor

    roots = list(compose(text, bounds))
    if len(roots) > 1:
        raise MeaningError(f"{len(roots)} documents where one is expected", 1)
    constructor: Any = SafeConstructor()
    return constructor.construct_document(roots[0]) if roots else None


@cache
def python_parser() -> Any:
    """Return the class of PyYAML's own parser, which needs no libyaml and takes a hundred times as long."""
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class PythonParser(Reader, Scanner, Parser):
        def __init__(self, stream: Any) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)

    return PythonParser


@cache
def _fastest() -> Any:
    import yaml

    libyaml: Any = getattr(yaml, "cyaml", None)
    return python_parser() if libyaml is None else libyaml.CParser


@final
class _Composer:
    """Makes nodes of events. What an anchor names is kept with the number of values that it stands for."""

    def __init__(self, events: Any, bounds: Bounds, resolve: Resolve) -> None:
        import yaml

        self._yaml: Any = yaml
        self._next: Callable[[], Any] = events.get_event
        self._bounds = bounds
        self._resolve = resolve
        self._values = 0
        self._anchors: dict[str, tuple[Any, int]] = {}

    def documents(self) -> Iterator[Any]:
        yaml = self._yaml
        while (event := self._next()) is not None:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}
                yield self._node(self._next(), 1)
            elif isinstance(event, yaml.StreamEndEvent):
                return

    def _node(self, event: Any, depth: int) -> Any:
        yaml = self._yaml
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        self._count(1, event)
        before = self._values
        if isinstance(event, yaml.ScalarEvent):
            tag = event.tag
            if tag is None or tag == "!":
                tag = self._resolve(yaml.ScalarNode, event.value, event.implicit)
            node = yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark, style=event.style)
            if event.anchor is not None:
                self._anchors[event.anchor] = node, 1
            return node
        if depth > self._bounds.depth:
            raise MeaningError(f"exceeded max depth of {self._bounds.depth}", event.start_mark.line + 1)
        is_map = isinstance(event, yaml.MappingStartEvent)
        kind, end = (yaml.MappingNode, yaml.MappingEndEvent) if is_map else (yaml.SequenceNode, yaml.SequenceEndEvent)
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._resolve(kind, None, event.implicit)
        node = kind(tag, [], event.start_mark, None, flow_style=event.flow_style)
        if event.anchor is not None:
            self._anchors[event.anchor] = node, 0  # 0 until it is closed
        while not isinstance(child := self._next(), end):
            item = self._node(child, depth + 1)
            node.value.append((item, self._node(self._next(), depth + 1)) if is_map else item)
        node.end_mark = child.end_mark
        if event.anchor is not None:
            self._anchors[event.anchor] = node, self._values - before + 1
        return node

    def _alias(self, event: Any) -> Any:
        found = self._anchors.get(event.anchor)
        if found is None:
            raise self._yaml.composer.ComposerError(
                None, None, f"found undefined alias {event.anchor!r}", event.start_mark
            )
        node, size = found
        if not size:
            raise MeaningError("an anchor's value contains itself", event.start_mark.line + 1)
        self._count(size, event)
        return node

    def _count(self, values: int, event: Any) -> None:
        self._values += values
        if self._values > self._bounds.values:
            why = " (document contains excessive aliasing)" if self._anchors else ""
            raise MeaningError(
                f"the text comes to more than {self._bounds.values:,} values{why}", event.start_mark.line + 1
            )
