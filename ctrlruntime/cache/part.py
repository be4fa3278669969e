"""The part of a kind that is cached for sharded controllers: their own objects, and the children of these.

The rules decide by the metadata of an object, before it is stored. What they keep changes when slots move: after a gain the kind is listed
again, after a loss its objects are removed without an event.
"""

from __future__ import annotations

from typing import Protocol

from ctrlruntime.api.metadata import Metadata
from ctrlruntime.errors import ForeignShardError


class Selection(Protocol):
    """The objects of all kinds that are kept, such as `ownership.Shards`."""

    @property
    def gains(self) -> int:
        """The number of times that objects were added."""
        ...

    @property
    def keeps_nothing(self) -> bool:
        """Whether no object of any kind is kept."""
        ...


class Rule(Protocol):
    """The objects of one kind that one controller reads."""

    @property
    def is_of_roots(self) -> bool:
        """Whether the controller reconciles the objects, so that other replicas reconcile the rest of them."""
        ...

    def keeps(self, meta: Metadata, /) -> bool:
        """Return whether the object is cached."""
        ...

    def has(self, namespace: str, name: str, /) -> bool:
        """Return whether an object of this key would be cached: if it is not, it does not exist."""
        ...

    def foreign(self, namespace: str, name: str, /) -> ForeignShardError | None:
        """Return the error of a read by a reconcile, if another replica has the key. None: the key alone does not say it."""
        ...

    def foreign_object(self, meta: Metadata, /) -> ForeignShardError | None:
        """Return the error of a read by a reconcile, if another replica has the object, which was read from the API server."""
        ...

    def server_ranges(self) -> str:
        """Return the shardSelector of what is kept; empty if the API server cannot select it."""
        ...


class Part:
    """The part of one kind: what at least one rule keeps."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self._rules: dict[object, list[Rule]] = {}
        self._all: list[Rule] = []

    def add(self, share: object, rule: Rule) -> None:
        """Add a rule of the controller with this share. It may have several for a kind."""
        self._rules.setdefault(share, []).append(rule)
        self._all.append(rule)

    def is_of(self, share: object) -> bool:
        """Return whether the controller with this share reads this part."""
        return share in self._rules

    def has_roots(self, share: object) -> bool:
        """Return whether the controller with this share reconciles the objects."""
        return any(rule.is_of_roots for rule in self._rules[share])

    @property
    def is_shared(self) -> bool:
        """Whether several controllers read it."""
        return len(self._rules) > 1

    def keeps(self, meta: Metadata) -> bool:
        for rule in self._all:  # noqa: SIM110 - half the time of `any`, and it is asked for each event
            if rule.keeps(meta):
                return True
        return False

    def keeps_for(self, share: object, meta: Metadata) -> bool:
        """Return whether the controller with this share has the object."""
        return any(rule.keeps(meta) for rule in self._rules[share])

    def has(self, share: object, namespace: str, name: str) -> bool:
        """Return whether an object of this key is cached for the controller if it exists."""
        return any(rule.has(namespace, name) for rule in self._rules[share])

    def foreign(self, share: object, namespace: str, name: str) -> ForeignShardError | None:
        """Return the error of a read by a reconcile of the controller. None: the server must be asked."""
        errors = [rule.foreign(namespace, name) for rule in self._rules[share]]
        return errors[0] if all(error is not None for error in errors) else None

    def foreign_object(self, share: object, meta: Metadata) -> ForeignShardError | None:
        """Return the error of a read by a reconcile of the controller, if the object belongs to another replica."""
        errors = [rule.foreign_object(meta) for rule in self._rules[share]]
        return errors[0] if all(error is not None for error in errors) else None

    def server_ranges(self) -> str:
        """Return the shardSelector of what is kept now; empty if the API server cannot select it."""
        found = {rule.server_ranges() for rule in self._all}
        return found.pop() if len(found) == 1 else ""
