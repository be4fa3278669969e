"""Reads YAML as PyYAML's nodes, within limits. All YAML is read here.

A few lines of YAML can expand to more values than fit in memory (aliases of aliases, merges of merges), nest deeper than a stack, or keep a
scanner busy for minutes. So the nodes are created here from the parser's events, and counted: the content of an alias counts again for each
use, including merges. libyaml's parser is used if PyYAML has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, final

__all__ = ["BODY", "FILE", "Bounds", "MeaningError", "compose", "load", "python_parser"]

Path: TypeAlias = tuple[str | int, ...]
Resolve: TypeAlias = Callable[[type[Any], str | None, Any], str]
"""Returns the tag of a node without a tag: from the node class, its text (for scalars), and whether it is plain or quoted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits for a text."""

    size: int
    """Characters (for bytes: bytes)."""
    depth: int
    """Levels of nesting."""
    values: int
    """Keys and values, after aliases and merges are expanded."""


BODY: Final = Bounds(size=3 * 1024 * 1024, depth=200, values=200_000)
"""For data from the network: kube-apiserver reads 3 MiB, and no Kubernetes type nests half as deep."""
FILE: Final = Bounds(size=64 * 1024 * 1024, depth=200, values=1_000_000)
"""For files, which may have many objects."""


class MeaningError(ValueError):
    """The YAML has a value that JSON does not support, or exceeds a limit.

    `line` counts from 1.
    """

    def __init__(self, problem: str, line: int, path: Path = ()) -> None:
        super().__init__(f"line {line}: {problem}")
        self.problem = problem
        self.line = line
        self.path = path


def compose(
    text: str | bytes, bounds: Bounds = FILE, resolve: Resolve | None = None, parser: Any = None
) -> Iterator[Any]:
    """Yield the root node of each document.

    `resolve` defaults to YAML 1.1; `parser` is a PyYAML parser class, by default the fastest. Raises: MeaningError with the limit, and
    yaml.YAMLError.
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
    """Return the single document of a text, as yaml.safe_load does.

    Raises: MeaningError, yaml.YAMLError.
    """
    from yaml.constructor import SafeConstructor

    roots = list(compose(text, bounds))
    if len(roots) > 1:
        raise MeaningError(f"{len(roots)} documents where one is expected", 1)
    constructor: Any = SafeConstructor()
    return constructor.construct_document(roots[0]) if roots else None


@cache
def python_parser() -> Any:
    """Return PyYAML's own parser class, which needs no libyaml and is a hundred times slower."""
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
    """Creates nodes from events. An anchored node is stored with its number of values."""

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
