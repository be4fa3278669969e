"""What the simulated containers use of CPU and memory, said by annotations on the Pod (or in the template it is made from).

| annotation `simulation.ctrlruntime.dev/…` | value |
|---|---|
| `usage` | what each container uses: `cpu=250m,memory=64Mi` |
| `usage.CONTAINER` | what one container uses; it goes before `usage` |

What neither of them names is that of a container that has nothing to do (IDLE).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from ctrlruntime.apiserver.behaviour import PREFIX
from ctrlruntime.quantities import canonical, parse
from ctrlruntime.schema.trees import Document

Usage: TypeAlias = dict[str, str]
USAGE_ANNOTATION: Final = f"{PREFIX}usage"
IDLE: Final[Mapping[str, str]] = {"cpu": "1m", "memory": "8Mi"}
"""What a container uses without an annotation. Its keys are the resources that are measured."""


class UsageError(ValueError):
    """An annotation that cannot be read; the text says which, and what it should be."""


def usage_of(pod: Document, container: str) -> Usage:
    """Return what a container uses. Raises: UsageError."""
    annotations: Document = pod["metadata"].get("annotations") or {}
    found = dict(IDLE)
    for name in (USAGE_ANNOTATION, f"{USAGE_ANNOTATION}.{container}"):
        if name in annotations:
            found.update(_read(name, str(annotations[name])))
    return found


def measured(pod: Document) -> Iterator[tuple[str, Usage]]:
    """Yield the running containers of a Pod and what they use; only a running Pod has some. Raises: UsageError."""
    status: Document = pod.get("status") or {}
    if status.get("phase") != "Running":
        return
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if (each.get("state") or {}).get("running") is not None:
            yield str(each["name"]), usage_of(pod, str(each["name"]))


def _read(name: str, text: str) -> Usage:
    found: Usage = {}
    for part in filter(None, map(str.strip, text.split(","))):
        resource, _, amount = (piece.strip() for piece in part.partition("="))
        if resource not in IDLE:
            raise UsageError(_problem(name, f"{part!r} is not of {' or '.join(IDLE)}"))
        try:
            found[resource] = canonical(amount)
            is_negative = parse(amount) < 0
        except ValueError:
            raise UsageError(_problem(name, f"{amount!r} is not a quantity")) from None
        if is_negative:
            raise UsageError(_problem(name, f"{amount} is below 0"))
    return found


def _problem(name: str, what: str) -> str:
    return f"cannot read the annotation {name}: {what}. Write it as cpu=250m,memory=64Mi"


__all__ = ["IDLE", "USAGE_ANNOTATION", "Usage", "UsageError", "measured", "usage_of"]
