"""What a controller asks about its share of the requests, if replicas share them."""

from __future__ import annotations

from typing import Protocol

from typing_extensions import TypeVar

from ctrlruntime.api.metadata import Metadata
from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.reconcile import Request
from ctrlruntime.rest.fence import Grant

R_contra = TypeVar("R_contra", default=Request, contravariant=True)


class Shard(Protocol[R_contra]):
    """The share of one controller in this process."""

    @property
    def is_divided(self) -> bool:
        """Whether other replicas reconcile the rest. False: all of it is reconciled here."""
        ...

    @property
    def has_lanes(self) -> bool:
        """Whether the requests belong to clusters that take turns (`Request.cluster`)."""
        ...

    def slot(self, request: R_contra, /) -> int | None:
        """Return the part of all requests that this one belongs to. None: it is not known here, so another replica may have it."""
        ...

    def admits(self, request: R_contra, /) -> bool:
        """Return whether the request is reconciled here. Requests of others are dropped."""
        ...

    def owner(self, request: R_contra, /) -> SlotOwner | None:
        """Return who reconciles the request, for people. None: it is not known here."""
        ...

    def grant(self, request: R_contra, /) -> Grant | None:
        """Return the right to write for a request, or None if it is not reconciled here."""
        ...

    def deleted(self, meta: Metadata, /) -> None:
        """Note that an object of the controller was deleted, before its request is enqueued."""
        ...

    def done(self, request: R_contra, /) -> None:
        """Note that the request is neither queued nor being reconciled any more."""
        ...
