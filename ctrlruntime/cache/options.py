"""What a cache holds: namespaces, selectors, transforms and watch timing, for all kinds and for one.

Precedence, as in controller-runtime: a kind's entry for a namespace, the kind's own value, the default entry for the namespace, the default.
None means inherit everywhere; an empty namespace mapping means all namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from ctrlruntime.cache.informer import Scope, Transform
from ctrlruntime.cache.reflector import WatchOptions
from ctrlruntime.client.interfaces import Fields, Labels
from ctrlruntime.client.selectors import fields_text, labels_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceOptions:
    """What is cached of one namespace."""

    labels: Labels | None = None
    fields: Fields | None = None


Namespaces: TypeAlias = Iterable[str] | Mapping[str, NamespaceOptions]
"""Names of namespaces, with options of their own if given as a mapping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindOptions:
    """What is cached of one kind; None inherits the cache's own setting."""

    namespaces: Namespaces | None = None
    labels: Labels | None = None
    fields: Fields | None = None
    transform: Transform | None = None
    keep_managed_fields: bool | None = None
    sync_period: float | None = None
    watch: WatchOptions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions:
    """What a cache holds and how it keeps it fresh. Times in seconds."""

    namespaces: Namespaces | None = None
    """Cache only these namespaces; None or empty: all. Cluster-scoped kinds are cached whatever stands here."""

    labels: Labels | None = None
    fields: Fields | None = None
    transform: Transform | None = None
    keep_managed_fields: bool = False
    sync_period: float | None = 36_000.0
    """How often every object is handed to the handlers again, without API traffic; None: never."""

    sync_timeout: float = 120.0
    """How long a read waits for a kind's first list."""

    start_on_read: bool = True
    """Start an informer when a kind is first read; with False such a read raises NotCachedError."""

    watch: WatchOptions = field(default_factory=WatchOptions)
    by_kind: Mapping[type[Any], KindOptions] = field(default_factory=dict[type[Any], KindOptions])

    def for_kind(self, kind: KindOptions | None) -> CacheOptions:
        """Return the options as they hold for one kind; its selectors are still to be combined by `scopes`."""
        own = kind or KindOptions()

        def pick(name: str) -> Any:
            value = getattr(own, name)
            return getattr(self, name) if value is None else value

        return CacheOptions(
            namespaces=pick("namespaces"),
            transform=pick("transform"),
            keep_managed_fields=pick("keep_managed_fields"),
            sync_period=pick("sync_period"),
            sync_timeout=self.sync_timeout,
            start_on_read=self.start_on_read,
            watch=pick("watch"),
        )

    def scopes(self, kind: KindOptions | None, *, namespaced: bool) -> list[Scope]:
        """Return what has to be listed and watched for a kind with these options of its own.

        Raises: ValueError when a cluster-scoped kind is given namespaces, or a selector does not parse.
        """
        own = kind or KindOptions()
        if not namespaced:
            if own.namespaces:
                raise ValueError("namespaces are set for a cluster-scoped kind; remove them from its KindOptions")
            return [_scope("", None, own, None, self)]
        mine, default = _by_namespace(own.namespaces), _by_namespace(self.namespaces)
        names = mine if own.namespaces is not None else default
        return [_scope(name, mine.get(name), own, default.get(name), self) for name in names] or [
            _scope("", None, own, None, self)
        ]


def _by_namespace(namespaces: Namespaces | None) -> dict[str, NamespaceOptions]:
    if namespaces is None:
        return {}
    if isinstance(namespaces, str):
        raise TypeError(
            f"namespaces must be a list or mapping of names, not the string {namespaces!r}; write [{namespaces!r}]"
        )
    if isinstance(namespaces, Mapping):
        return dict(cast("Mapping[str, NamespaceOptions]", namespaces))
    return {name: NamespaceOptions() for name in namespaces}


def _scope(
    namespace: str,
    kind_namespace: NamespaceOptions | None,
    kind: KindOptions,
    default_namespace: NamespaceOptions | None,
    default: CacheOptions,
) -> Scope:
    levels = (kind_namespace, kind, default_namespace, default)
    labels = next((level.labels for level in levels if level is not None and level.labels is not None), None)
    fields = next((level.fields for level in levels if level is not None and level.fields is not None), None)
    return Scope(namespace, None if labels is None else labels_of(labels), fields_text(fields))
