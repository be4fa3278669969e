"""Options of a cache: namespaces, selectors, transforms and watch timeouts, for all kinds and for one kind.

Precedence, as in controller-runtime: a kind's entry for a namespace, the kind's own value, the default entry for the namespace, the
default. None means inherit everywhere; an empty namespace mapping means all namespaces. The namespace "" in a mapping means all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from ctrlruntime.cache.reflector import WatchOptions
from ctrlruntime.cache.scope import Scope, Transform
from ctrlruntime.client.interfaces import Fields, Labels
from ctrlruntime.client.selectors import fields_of, labels_of
from ctrlruntime.selector import LabelSelector

OnMissingInformer: TypeAlias = Literal["start", "live", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceOptions:
    """Options for one namespace; None inherits."""

    labels: Labels | None = None
    fields: Fields | None = None
    transform: Transform | None = None
    sync_period: float | None = None
    """Seconds; `math.inf` for no resync."""

    def __post_init__(self) -> None:
        _check_own(self)


Namespaces: TypeAlias = Iterable[str] | Mapping[str, NamespaceOptions]
"""Names of namespaces, as a list, or as a mapping to their options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByObject:
    """Options for one kind; None inherits the option of the cache.

    Raises:
        ValueError, TypeError: from the constructor, for invalid values.

    """

    namespaces: Namespaces | None = None
    labels: Labels | None = None
    fields: Fields | None = None
    transform: Transform | None = None
    keep_managed_fields: bool | None = None
    sync_period: float | None = None
    """Seconds; `math.inf` for no resync."""

    watch: WatchOptions | None = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions:
    """Options of a cache. Times in seconds.

    Raises:
        ValueError, TypeError: from the constructor, for invalid values.

    """

    namespaces: Namespaces | None = None
    """Cache only these namespaces.

    None or empty: all. Cluster-scoped kinds are always cached.
    """

    namespace_selector: Labels | None = None
    """Also cache the namespaces with these labels, and update them when labels change.

    Needs to list and watch Namespaces.
    """

    labels: Labels | None = None
    fields: Fields | None = None
    transform: Transform | None = None
    keep_managed_fields: bool = False
    sync_period: float | None = 36_000.0
    """The time between two deliveries of every object to the handlers, without API requests; None: never."""

    sync_timeout: float = 120.0
    """The time that a read waits for a kind's first list."""

    stale_after: float | None = 120.0
    """The time without activity after which `Cache.check` fails for a kind; None: never.

    For a kind with longer watches it is at least the time of two of them.
    """

    on_missing_informer: OnMissingInformer = "start"
    """Reads of a kind without an informer: "start" one, read "live", or "fail" with NotCachedError."""

    watch: WatchOptions = field(default_factory=WatchOptions)
    by_object: Mapping[type[Any], ByObject] = field(default_factory=dict[type[Any], ByObject])

    def __post_init__(self) -> None:
        _check(self)
        if self.sync_timeout <= 0:
            raise ValueError(f"sync_timeout is {self.sync_timeout}: give seconds above 0")
        if self.stale_after is not None and self.stale_after <= 0:
            raise ValueError(f"stale_after is {self.stale_after}: give seconds above 0, or None for no check")
        selector = self.namespace_selector
        if selector is not None:
            if "" in by_namespace(self.namespaces):
                raise ValueError('namespace_selector needs named namespaces, and "" (all others) is in the list')
            object.__setattr__(self, "namespace_selector", selecting(selector))
        if self.on_missing_informer not in ("start", "live", "fail"):
            raise ValueError(f'on_missing_informer is {self.on_missing_informer!r}: give "start", "live" or "fail"')
        object.__setattr__(self, "by_object", dict(self.by_object))

    def for_kind(self, kind: ByObject | None) -> CacheOptions:
        """Return the options for one kind.

        Options that `scopes` combines by namespace are not included.
        """
        own = kind or ByObject()

        def pick(name: str) -> Any:
            value = getattr(own, name)
            return getattr(self, name) if value is None else value

        return CacheOptions(
            namespaces=pick("namespaces"),
            keep_managed_fields=pick("keep_managed_fields"),
            sync_timeout=self.sync_timeout,
            stale_after=self.stale_after,
            on_missing_informer=self.on_missing_informer,
            watch=pick("watch"),
        )

    def scopes(
        self, kind: ByObject | None, *, namespaced: bool, namespaces: Mapping[str, NamespaceOptions] | None = None
    ) -> list[Scope]:
        """Return the lists and watches for a kind with these options of its own.

        `namespaces` replaces those of the options with their current value; an empty one means none.

        Raises:
            ValueError: a cluster-scoped kind has namespaces.

        """
        own = kind or ByObject()
        if not namespaced:
            if own.namespaces:
                raise ValueError("a cluster-scoped kind has no namespaces. Remove them from its ByObject")
            return [_scope("", (own, self))]
        default = by_namespace(self.namespaces) if namespaces is None else namespaces
        names = default if own.namespaces is None else by_namespace(own.namespaces)
        mine = names if own.namespaces is not None else {}
        named = tuple(sorted(name for name in names if name))
        return [
            _scope(name, (mine.get(name), own, default.get(name), self), besides=() if name else named)
            for name in names or (("",) if namespaces is None or own.namespaces is not None else ())
        ]


def _check(options: ByObject | CacheOptions) -> None:
    _check_own(options)
    namespaces = options.namespaces
    if namespaces is not None:
        # Kept as our own: an iterator would be empty the second time, and a caller's mapping may change later.
        object.__setattr__(options, "namespaces", by_namespace(namespaces))


def _check_own(options: NamespaceOptions | ByObject | CacheOptions) -> None:
    if options.labels is not None and labels_of(options.labels).is_nothing:
        raise ValueError("the label selector matches nothing. Leave the kind out of the cache instead")
    if options.fields is not None:
        fields_of(options.fields)
    if options.sync_period is not None and options.sync_period < 1.0:
        raise ValueError(f"sync_period is {options.sync_period}: give 1 second or more, or None for no resync")


def selecting(labels: Labels) -> LabelSelector:
    """Return a selector of namespaces. Raises: ValueError if it matches nothing."""
    selector = labels_of(labels)
    if selector.is_nothing:
        raise ValueError("the namespace selector matches nothing. Leave it out instead")
    return selector


def by_namespace(namespaces: Namespaces | None) -> dict[str, NamespaceOptions]:
    """Return a copy of the namespaces as a mapping. Raises: TypeError for a single string."""
    if namespaces is None:
        return {}
    if isinstance(namespaces, str):
        raise TypeError(
            f"namespaces must be a list or mapping of names, not the string {namespaces!r}; write [{namespaces!r}]"
        )
    if isinstance(namespaces, Mapping):
        return dict(cast("Mapping[str, NamespaceOptions]", namespaces))
    return {name: NamespaceOptions() for name in namespaces}


_Level: TypeAlias = NamespaceOptions | ByObject | CacheOptions | None


def _scope(namespace: str, levels: tuple[_Level, ...], *, besides: tuple[str, ...] = ()) -> Scope:
    """Return the scope of a namespace: each option from the first of `levels` that has one."""

    def first(option: str) -> Any:
        values = (getattr(level, option) for level in levels if level is not None)
        return next((value for value in values if value is not None), None)

    labels, fields, period = first("labels"), first("fields"), first("sync_period")
    terms = ["" if fields is None else str(fields_of(fields)), *(f"metadata.namespace!={name}" for name in besides)]
    return Scope(
        namespace,
        None if labels is None else labels_of(labels),
        ",".join(term for term in terms if term),
        besides,
        first("transform"),
        None if period == math.inf else period,
    )
