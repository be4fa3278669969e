"""The triggers of a reconcile, as a log line tells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctrlruntime.changes import changed_paths
from ctrlruntime.journal import Trigger

_PATHS_TOLD: Final = 8  # changed fields of a trigger that are named


def summary(triggers: Sequence[object], omitted: int) -> list[str]:
    """Return the triggers as texts; those whose objects' bytes are at hand name the fields that changed."""
    texts: list[str] = []
    for trigger in triggers:
        try:
            text = str(trigger)
        except Exception as error:  # noqa: BLE001 - a source of the user's may give any object
            text = f"{type(trigger).__name__} ({error!r})"
        if isinstance(trigger, Trigger) and trigger.old is not None and trigger.new is not None:
            paths = changed_paths(trigger.old, trigger.new, limit=_PATHS_TOLD)
            text += f" ({', '.join(paths)})" if paths else ""
        texts.append(text)
    return [*texts, f"and {omitted} more"] if omitted else texts
