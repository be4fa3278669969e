"""Durations and ages in kubectl's words: 29s, 70m, 3h5m, 2d, 1y4d."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

UNKNOWN = "<unknown>"
INVALID = "<invalid>"


def duration(seconds: float) -> str:
    """Return a duration in two units at most, coarser the longer it is; two seconds of clock skew are forgiven."""
    whole = int(seconds)
    if whole < -1:
        return INVALID
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{max(whole, 0)}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def age(timestamp: Any, now: datetime) -> str:
    """Return the time from an RFC 3339 timestamp to `now`; `<unknown>` without one, `<invalid>` when it cannot
    be read.
    """
    if not timestamp:
        return UNKNOWN
    moment = moment_of(timestamp)
    return INVALID if moment is None else duration((now - moment).total_seconds())


def moment_of(timestamp: Any) -> datetime | None:
    """Return the moment of an RFC 3339 timestamp, or None if it is invalid."""
    if not isinstance(timestamp, str) or "T" not in timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
