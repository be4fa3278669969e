"""What users give a controller to run, and what that returns: both are checked here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

from ctrlruntime.reconcile import Result


def reconcile_of(reconciler: Any) -> Callable[[Any], Any]:
    """Return the function to call with a request. Raises: TypeError for what is no reconciler."""
    method = getattr(reconciler, "reconcile", None)
    function = method if callable(method) else reconciler
    if isinstance(reconciler, type) or not callable(function):
        what = (
            f"the class {reconciler.__name__}: make an instance" if isinstance(reconciler, type) else repr(reconciler)
        )
        raise TypeError(
            f"a controller needs a reconciler, an object with a method reconcile(request) or a function of one request; got {what}"
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(f"{name} is called with one argument, the request: {error}") from error
    except ValueError:
        pass  # some callables have no signature to look at
    return cast("Callable[[Any], Any]", function)


def checked(outcome: object, reconcile: Callable[..., Any]) -> Result | None:
    """Return what a reconcile returned. Raises: TypeError for what is neither None nor a Result."""
    if outcome is None or isinstance(outcome, Result):
        return outcome
    name = getattr(reconcile, "__qualname__", repr(reconcile))
    raise TypeError(
        f"{name} returned {outcome!r}: return None when all is done, Result(requeue_after=seconds) to be called again after a time, "
        "and raise an exception to be called again with back-off"
    )
