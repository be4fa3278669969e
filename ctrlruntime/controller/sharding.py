"""What a controller asks about its share of the requests, if replicas share them."""

from __future__ import annotations

from typing import Protocol

from typing_extensions import TypeVar

from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.reconcile import Request
from ctrlruntime.rest.fence import Grant

R_contra = TypeVar("R_contra", default=Request, contravariant=True)


class Shard(Protocol[R_contra]):
    """The share of one controller in this process."""

    def slot(self, request: R_contra, /) -> int:
        """Return the part of all requests that this one belongs to."""
        ...

    def admits(self, request: R_contra, /) -> bool:
        """Return whether the request is reconciled here. Requests of others are dropped."""
        ...

    def owner(self, request: R_contra, /) -> SlotOwner:
        """Return who reconciles the request, for people."""
        ...

    def grant(self, request: R_contra, /) -> Grant | None:
        """Return the right to write for a request, or None if it is not reconciled here."""
        ...
