"""The store: JSON bytes and metadata of each object, and indexes.

The store has one writer (its informer) and returns entries, not decoded objects. Reads are plain calls without an await.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from ctrlruntime.api.metadata import Metadata
from ctrlruntime.selector import LabelSelector


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One object: its JSON (without managedFields, unless requested) and its metadata.

    It has no references back, so the garbage collector need not traverse tens of thousands of entries.
    """

    raw: bytes
    meta: Metadata


class Index:
    """A named index of values: `{value: {(namespace, name): None}}`.

    `extract` returns an entry's values (a single text is one value). If it raises, the object can still be read by key, `failures` counts
    it, and `on_failure` is called.
    """

    def __init__(
        self,
        name: str,
        extract: Callable[[Entry], Iterable[str]],
        *,
        on_failure: Callable[[str, Entry, Exception], None],
    ) -> None:
        self.name = name
        self.failures = 0
        self._extract = extract
        self._on_failure = on_failure
        self._keys: dict[str, dict[tuple[str, str], None]] = {}
        self._values: dict[tuple[str, str], tuple[str, ...]] = {}

    def new_like_this(self) -> Index:
        """Return an empty index of the same values."""
        return Index(self.name, self._extract, on_failure=self._on_failure)

    def put(self, entry: Entry) -> None:
        key = (entry.meta.namespace, entry.meta.name)
        try:
            values = _texts(self._extract(entry))
        except Exception as error:  # noqa: BLE001 - a user's function; one bad object must not stop the informer
            self.failures += 1
            self._on_failure(self.name, entry, error)
            values = ()
        if values == self._values.get(key, ()):
            return
        self.remove(key)
        if values:
            self._values[key] = values
            for value in values:
                self._keys.setdefault(value, {})[key] = None

    def remove(self, key: tuple[str, str]) -> None:
        for value in self._values.pop(key, ()):
            keys = self._keys[value]
            del keys[key]
            if not keys:
                del self._keys[value]

    def keys(self, value: str) -> Mapping[tuple[str, str], None]:
        return self._keys.get(value, {})


class Store:
    """The objects of one kind by namespace and name.

    `size_bytes` is the total size of their JSON.
    """

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, Entry]] = {}
        self._indexes: dict[str, Index] = {}
        self._count = 0
        self.size_bytes = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Entry]:
        for entries in self._namespaces.values():
            yield from entries.values()

    def get(self, namespace: str, name: str) -> Entry | None:
        entries = self._namespaces.get(namespace)
        return None if entries is None else entries.get(name)

    def new_like_this(self) -> Store:
        """Return an empty store with the same indexes."""
        store = Store()
        store._indexes = {name: index.new_like_this() for name, index in self._indexes.items()}
        return store

    def put(self, entry: Entry) -> Entry | None:
        """Store `entry` and return the one it replaces."""
        meta = entry.meta
        entries = self._namespaces.get(meta.namespace)
        if entries is None:
            entries = self._namespaces[meta.namespace] = {}
        old = entries.get(meta.name)
        entries[meta.name] = entry
        self.size_bytes += len(entry.raw)
        if old is None:
            self._count += 1
        else:
            self.size_bytes -= len(old.raw)
        for index in self._indexes.values():
            index.put(entry)
        return old

    def remove(self, namespace: str, name: str) -> Entry | None:
        """Remove an object and return its entry."""
        entries = self._namespaces.get(namespace)
        old = None if entries is None else entries.pop(name, None)
        if entries is None or old is None:
            return None
        if not entries:
            del self._namespaces[namespace]
        self._count -= 1
        self.size_bytes -= len(old.raw)
        for index in self._indexes.values():
            index.remove((namespace, name))
        return old

    def keys(self, namespace: str = "") -> set[tuple[str, str]]:
        """Return (namespace, name) of every object, in one namespace if it is given."""
        if namespace:
            return {(namespace, name) for name in self._namespaces.get(namespace, ())}
        return {(space, name) for space, entries in self._namespaces.items() for name in entries}

    def add_index(self, index: Index) -> None:
        """Add an index and fill it. Raises: ValueError if an index of this name exists."""
        if index.name in self._indexes:
            raise ValueError(f"the index {index.name} exists; index each field once")
        for entry in self:
            index.put(entry)
        self._indexes[index.name] = index

    def index(self, name: str) -> Index | None:
        return self._indexes.get(name)

    @property
    def index_names(self) -> list[str]:
        return sorted(self._indexes)

    def select(
        self, namespace: str = "", labels: LabelSelector | None = None, indexed: Iterable[tuple[str, str]] = ()
    ) -> list[Entry]:
        """Return the matching entries: in one namespace (empty: all), by labels, and by every (index, value) pair."""
        groups = self._candidates(namespace, list(indexed))
        if labels is None or labels.is_everything:
            return [entry for entries in groups for entry in entries]
        equal = _single_equality(labels)
        if equal is not None:
            key, value = equal
            return [
                entry
                for entries in groups
                for entry in entries
                if (found := entry.meta.labels) is not None and found.get(key) == value
            ]
        matches = labels.matches
        return [entry for entries in groups for entry in entries if matches(entry.meta.labels)]

    def _candidates(self, namespace: str, indexed: list[tuple[str, str]]) -> list[Iterable[Entry]]:
        if not indexed:
            chosen = [self._namespaces.get(namespace, {})] if namespace else self._namespaces.values()
            return [entries.values() for entries in chosen]
        keys: list[tuple[str, str]] | None = None
        for name, value in indexed:
            found = self._indexes[name].keys(value)
            keys = list(found) if keys is None else [key for key in keys if key in found]
        return [[self._namespaces[space][name] for space, name in keys or () if not namespace or space == namespace]]


def _single_equality(selector: LabelSelector) -> tuple[str, str] | None:
    # `app=web` is what nearly every list asks for; compared inline it costs a tenth of the general match.
    if len(selector.requirements) != 1 or selector.is_nothing:
        return None
    only = selector.requirements[0]
    if only.operator in {"=", "==", "in"} and len(only.values) == 1:
        return only.key, next(iter(only.values))
    return None


def field_path_index(path: str) -> Callable[[Entry], Iterable[str]]:
    """Return a function that reads the scalar at a path like `spec.nodeName` from the bytes, without decoding the rest.

    Missing fields and nulls have no value. Numbers and booleans are indexed as in JSON.

    Raises:
        ValueError: the path is empty.

    """
    segments = [segment for segment in path.strip().lstrip(".").split(".") if segment]
    if not segments:
        raise ValueError("an index needs a field path such as spec.nodeName")
    tree: Any = None
    for depth, segment in enumerate(reversed(segments)):
        inner: Any = Any if depth == 0 else tree | None
        tree = msgspec.defstruct(f"Path{depth}", [("value", inner, None)], rename={"value": segment}, gc=False)
    decode = msgspec.json.Decoder(tree).decode

    def extract(entry: Entry) -> Iterable[str]:
        node: Any = decode(entry.raw)
        for _ in segments:
            if node is None:
                return ()
            node = node.value
        return () if node is None else (_text(node),)

    return extract


def _texts(values: object) -> tuple[str, ...]:
    if isinstance(values, str):
        return (values,)  # taken for a list it would be indexed letter by letter
    texts = tuple(dict.fromkeys(cast("Iterable[object]", values)))
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"an index function returns strings, not {text!r} of type {type(text).__name__}")
    return cast("tuple[str, ...]", texts)


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            raise ValueError(f"a field index needs a scalar, not {type(value).__name__}")
