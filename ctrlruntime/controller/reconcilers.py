"""Checks the reconciler of a controller, and its results."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

from ctrlruntime.api.metadata import ObjectKey
from ctrlruntime.controller.blocking import blocking
from ctrlruntime.controller.running import is_async
from ctrlruntime.errors import RequeueAfter
from ctrlruntime.frames import name_of
from ctrlruntime.reconcile import Reconciler, Request, Result

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class ObjectReader(Protocol):
    """The part of a client that `as_reconciler` uses."""

    async def get_or_none(self, kind: type[T], key: ObjectKey, /) -> T | None: ...


class ObjectReconciler(Protocol[T_contra]):
    """A reconciler that receives the object instead of its name."""

    def reconcile(self, obj: T_contra, /) -> Awaitable[Result | None] | Result | None: ...


def as_reconciler(
    client: ObjectReader,
    kind: type[T],
    reconciler: ObjectReconciler[T] | Callable[[T], Awaitable[Result | None] | Result | None],
) -> Reconciler[Request]:
    """Return a reconciler of requests that passes the object to `reconciler`.

    It reads the object first.

    An object that no longer exists is skipped. A plain `def` runs in a thread. Raises: TypeError if `reconciler` is not a reconciler.
    """
    return _Fetching(client, kind, reconcile_of(reconciler))


class _Fetching:
    def __init__(self, client: ObjectReader, kind: type[Any], function: Callable[[Any], Any]) -> None:
        async def awaited(request: Request) -> Any:
            obj = await client.get_or_none(kind, request)
            return None if obj is None else await function(obj)

        def plain(request: Request) -> Any:
            obj = blocking(client.get_or_none(kind, request))
            return None if obj is None else function(obj)

        self.reconcile: Callable[[Request], Any] = awaited if is_async(function) else plain


def requeue_of(error: BaseException) -> Result | None:
    """Return the result that a RequeueAfter means; None for other errors.

    A group of only RequeueAfters, at any depth, means the shortest one: one of several tasks has something to do then.
    """
    if isinstance(error, RequeueAfter):
        return Result(requeue_after=error.seconds, reason=error.reason)
    if not isinstance(error, BaseExceptionGroup):
        return None
    results = [requeue_of(each) for each in cast("BaseExceptionGroup[BaseException]", error).exceptions]
    found = [each for each in results if each is not None]
    return min(found, key=lambda each: each.requeue_after) if len(found) == len(results) else None


def reconcile_of(reconciler: Any) -> Callable[[Any], Any]:
    """Return the function to call with a request.

    Raises: TypeError if it is not a reconciler.
    """
    method = getattr(reconciler, "reconcile", None)
    function = method if callable(method) else reconciler
    if isinstance(reconciler, type) or not callable(function):
        what = (
            f"the class {reconciler.__name__}: make an instance" if isinstance(reconciler, type) else repr(reconciler)
        )
        raise TypeError(
            f"a reconciler is an object with a method reconcile(request), or a function of one request; got {what}"
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise TypeError(f"{name_of(function)} is called with one argument, the request: {error}") from error
    except ValueError:
        pass  # some callables have no signature to look at
    return cast("Callable[[Any], Any]", function)


def checked(outcome: object, reconcile: Callable[..., Any]) -> Result | None:
    """Return the result of a reconcile.

    Raises: TypeError if it is neither None nor a Result.
    """
    if outcome is None or isinstance(outcome, Result):
        return outcome
    raise TypeError(
        f"{name_of(reconcile)} returned {outcome!r}: return None when done, Result(requeue_after=seconds) to reconcile again "
        "later, or raise an exception to retry with backoff"
    )
