"""String formats of OpenAPI schemas, as kube-openapi's strfmt checks them. An unknown format accepts everything."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime
from urllib.parse import urlsplit

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:?\d\d)\Z")
_DURATION = re.compile(r"([+-]?(\d+(\.\d*)?|\.\d+)\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?"
                       r"|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)\s*)+\Z")  # fmt: skip
_HOSTNAME = re.compile(
    r"(?=.{1,255}\Z)[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)*\.?\Z"
)
_EMAIL = re.compile(r"[^@\s<>]+@[^@\s<>]+\Z")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_MAC = re.compile(r"([0-9A-Fa-f]{2}[:-]){5}([0-9A-Fa-f]{2})\Z")


def is_valid(format: str, value: str) -> bool:
    """Tell whether the string has the format."""
    check = _CHECKS.get(format)
    return check is None or check(value)


def _date_time(value: str) -> bool:
    if not _DATE_TIME.match(value):
        return False
    try:
        datetime.fromisoformat(value.upper())
    except ValueError:
        return False
    return True


def _date(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _address(kind: Callable[[str], object]) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        try:
            kind(value)
        except ValueError:
            return False
        return True

    return check


def _cidr(value: str) -> bool:
    if "/" not in value:
        return False
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return False
    return True


def _uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme) or value.startswith("/")


def _uuid(version: int | None) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        try:
            parsed = uuid.UUID(value)
        except ValueError:
            return False
        return version is None or parsed.version == version

    return check


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "date-time": _date_time,
    "datetime": _date_time,
    "date": _date,
    "byte": _base64,
    "duration": lambda value: bool(_DURATION.match(value.strip())),
    "hostname": lambda value: bool(_HOSTNAME.match(value)),
    "email": lambda value: bool(_EMAIL.match(value)),
    "ipv4": _address(ipaddress.IPv4Address),
    "ipv6": _address(ipaddress.IPv6Address),
    "cidr": _cidr,
    "mac": lambda value: bool(_MAC.match(value)),
    "uri": _uri,
    "uuid": _uuid(None),
    "uuid3": _uuid(3),
    "uuid4": _uuid(4),
    "uuid5": _uuid(5),
    "k8s-short-name": lambda value: bool(_LABEL.match(value)),
}
