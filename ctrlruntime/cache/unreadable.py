"""Objects that cannot be decoded as a class: each version of them is counted and reported once.

The objects stay in the cache for `Unstructured` and metadata-only readers. Only a reader with this class gets the error.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from ctrlruntime import log
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata, metadata_of
from ctrlruntime.errors import DecodeError

MAX_KNOWN: Final = 1000
"""The number of remembered versions; an older one may be reported again."""


class Unreadable(NamedTuple):
    """One version of an object that does not match its class; the error names the fields and has the bytes."""

    kind: GroupVersionKind
    meta: Metadata
    error: DecodeError


class DecodeErrorCounter(Protocol):
    """Counts by kind, such as `metrics.cache(kind)`."""

    decode_errors: float


class UnreadableObjects:
    """Remembers which versions were reported. `tell` is called once for each."""

    def __init__(self, tell: Callable[[Unreadable], None]) -> None:
        self._tell = tell
        self._known: OrderedDict[tuple[GroupVersionKind, str, str], None] = OrderedDict()
        self._log = log.get_logger("cache")

    def note(self, kind: GroupVersionKind, raw: bytes, error: DecodeError, counter: DecodeErrorCounter | None) -> None:
        """Report an object that could not be decoded, unless this version of it is known."""
        meta = metadata_of(raw)
        version = (kind, meta.uid, meta.resource_version)
        if version in self._known:
            return
        self._known[version] = None
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        if counter is not None:
            counter.decode_errors += 1
        self._log.warning(
            "cannot decode object",
            hint="fix the object, or read it as Unstructured",
            kind=str(kind),
            object=str(meta.key),
            error=str(error),
        )
        self._tell(Unreadable(kind, meta, error))
