"""Schedules of CronJobs: the five fields of cron, its macros and `@every`.

A schedule says which minutes it names; the caller brings the time zone. The registry validates with it and the
simulated CronJob controller runs by it. The messages are those of kube-apiserver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = {
    name: n
    for n, name in enumerate(("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1)
}
_DAYS: Final = {name: n for n, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: Final[tuple[tuple[int, int, Mapping[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_HORIZON: Final = timedelta(days=5 * 366)
"""A schedule that names no minute in five years (30 February) never runs."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The minutes that a schedule names, or the seconds between two runs of an `@every`."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = False
    any_weekday: bool = False
    every: float = 0.0

    def after(self, moment: datetime) -> datetime | None:
        """Return the first time after `moment` (in its zone); None if there is nothing within five years."""
        if self.every:
            return moment.replace(microsecond=0) + timedelta(seconds=max(1.0, self.every))
        found = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        last = moment + _HORIZON
        while found < last:
            if found.month not in self.months:
                found = (found.replace(day=1, hour=0, minute=0) + timedelta(days=32)).replace(day=1)
            elif not self._is_day(found):
                found = found.replace(hour=0, minute=0) + timedelta(days=1)
            elif found.hour not in self.hours:
                found = found.replace(minute=0) + timedelta(hours=1)
            elif found.minute not in self.minutes:
                found += timedelta(minutes=1)
            else:
                return found
        return None

    def _is_day(self, moment: datetime) -> bool:
        """With both day fields given, either will do; a star in one leaves it to the other."""
        by_month, by_week = moment.day in self.days, (moment.weekday() + 1) % 7 in self.weekdays
        return by_month and by_week if self.any_day or self.any_weekday else by_month or by_week


def parse(text: str) -> Schedule:
    """Read a schedule; a time zone before it is read over. Raises: ValueError with kube-apiserver's words."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, space, text = text.partition("=")[2].partition(" ")
        if not space:  # robfig/cron takes a slice up to what is not there, and panics
            raise ValueError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        if not has_zone(zone):
            raise ValueError(f"provided bad location {zone}: unknown time zone {zone}")
        text = text.strip()
    if text.startswith("@every "):
        return Schedule(every=_duration(text))
    if text.startswith("@"):
        if text not in _MACROS:
            raise ValueError(f"unrecognized descriptor: {text}")
        text = _MACROS[text]
    fields = text.split()
    if len(fields) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, hours, days, months, weekdays = [
        _field(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    ]
    stars = [any(part[0] in "*?" for part in field.split(",") if part) for field in fields]
    return Schedule(minutes, hours, days, months, weekdays, any_day=stars[2], any_weekday=stars[4])


def has_zone(name: str) -> bool:
    """Tell whether Go knows a time zone (time.LoadLocation)."""
    if name in {"", "UTC", "Local"}:
        return True
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return False
    return True


def _field(text: str, least: int, most: int, names: Mapping[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in (part for part in text.split(",") if part):
        found.update(_range(part, least, most, names))
    return frozenset(found)


def _range(text: str, least: int, most: int, names: Mapping[str, int]) -> range:
    span, *steps = text.split("/")
    ends = span.split("-")
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    if ends[0] in {"*", "?"}:
        first, last = least, most
    elif len(ends) > 2:
        raise ValueError(f"too many hyphens: {text}")
    else:
        first = _number(ends[0], names)
        last = _number(ends[1], names) if len(ends) == 2 else most if steps else first
    step = _integer(steps[0]) if steps else 1
    if first < least:
        raise ValueError(f"beginning of range ({first}) below minimum ({least}): {text}")
    if last > most:
        raise ValueError(f"end of range ({last}) above maximum ({most}): {text}")
    if first > last:
        raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")
    return range(first, last + 1, step)


def _number(text: str, names: Mapping[str, int]) -> int:
    return names[text.lower()] if text.lower() in names else _integer(text)


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise ValueError(f"negative number ({number}) not allowed: {text}")
    return number


def _duration(text: str) -> float:
    """Return the seconds of `@every 1h30m`."""
    value = text.removeprefix("@every ")
    parts = _DURATION.findall(value)
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise ValueError(f'failed to parse duration {text}: time: invalid duration "{value}"')
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
