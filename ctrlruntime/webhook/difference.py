"""The patch of an admission webhook: the changes of the code, applied to the JSON of the API server.

The object in the code may have less than the JSON: a class can have only metadata, and has its own defaults. So the difference of the
object before and after is applied to the JSON, and the rest of the JSON stays.
"""

from __future__ import annotations

from typing import Any

from ctrlruntime.patch import create_json_patch, equal

__all__ = ["laid_over", "patch_of"]


def patch_of(raw: Any, before: Any, after: Any) -> list[dict[str, Any]]:
    """Return the JSON patch that applies the change from `before` to `after` to `raw`; all three are JSON documents."""
    return create_json_patch(raw, laid_over(raw, before, after))


def laid_over(raw: Any, before: Any, after: Any) -> Any:
    """Return `raw` with the change from `before` to `after`; it shares unchanged parts with its arguments."""
    if equal(before, after):
        return raw
    if isinstance(raw, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _objects(raw, before, after)
    if isinstance(raw, list) and isinstance(before, list) and isinstance(after, list) and len(raw) == len(before):
        return _lists(raw, before, after)
    return after


def _objects(raw: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    # What `before` does not have is not the code's: it was never shown to it.
    result = {name: value for name, value in raw.items() if name in after or name not in before}
    for name, value in after.items():
        if name not in before:
            result[name] = value
        elif name in raw:
            result[name] = laid_over(raw[name], before[name], value)
        elif not equal(before[name], value):
            result[name] = value
    return result


def _lists(raw: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    if len(before) == len(after):
        return [laid_over(*each) for each in zip(raw, before, after, strict=True)]
    # Equal ends stay as they came. What lies between is the code's: which item became which is not known.
    most = min(len(before), len(after))
    head = 0
    while head < most and equal(before[head], after[head]):
        head += 1
    tail = 0
    while tail < most - head and equal(before[-1 - tail], after[-1 - tail]):
        tail += 1
    return [*raw[:head], *after[head : len(after) - tail], *raw[len(raw) - tail :]]
