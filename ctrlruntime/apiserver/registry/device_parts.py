"""What claims, their statuses and slices of devices have in common (pkg/apis/resource/validation)."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from ctrlruntime.apiserver.registry.volume_sources import driver_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, invalid_value, not_supported, quoted, required, too_long, too_many
from ctrlruntime.schema.trees import Document, encode
from ctrlruntime.schema.values import qualified_name_causes, subdomain_causes
from ctrlruntime.selector import label_value_problems, utf8_length

_T = TypeVar("_T")
_OPERATORS: Final = ("Equal", "Exists")
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_LONGEST_NAME: Final = 32
_LONGEST_POOL: Final = 253
_LARGEST_PARAMETERS: Final = 10 * 1024
_MOST_CONDITIONS: Final = 4
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_IDENTIFIER: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' "
    "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_HEX: Final = "[0-9A-Fa-f]"
_UUID: Final = re.compile(f"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}")
_NOT_NORMAL: Final = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"

# Lists


def listed_causes(
    found: Sequence[_T], path: str, most: int, rule: Callable[[_T, str], Iterator[StatusCause]]
) -> Iterator[StatusCause]:
    """Yield what is wrong with each item; of a list that is too long, only that (validateSlice)."""
    if len(found) > most:
        yield too_many(path, len(found), most)
        return
    for index, item in enumerate(found):
        yield from rule(item, f"{path}[{index}]")


def set_causes(
    found: Sequence[_T],
    path: str,
    most: int,
    rule: Callable[[_T, str], Iterator[StatusCause]],
    key: Callable[[_T], Hashable],
) -> Iterator[StatusCause]:
    """Yield the same, and after it what is there twice (validateSet)."""
    yield from listed_causes(found, path, most, rule)
    if len(found) <= most:
        yield from duplicate_causes([key(item) for item in found], path)


def duplicate_causes(
    keys: Sequence[Any], path: str, shown: Callable[[Any], Any] = lambda key: key
) -> Iterator[StatusCause]:
    seen: set[Hashable] = set()
    for index, key in enumerate(keys):
        if key in seen:
            yield duplicate(f"{path}[{index}]", shown(key))
        seen.add(key)


def name_of(item: Document | None) -> str:
    return str((item or {}).get("name") or "")


# Names


def required_driver_causes(driver: str, path: str) -> Iterator[StatusCause]:
    return driver_causes(driver, path) if driver else iter((required(path),))


def pool_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    """The name of a pool: subdomains between slashes (validatePoolName)."""
    if not name:
        yield required(path)
        return
    if utf8_length(name) > _LONGEST_POOL:
        yield too_long(path, _LONGEST_POOL)
    for part in name.split("/"):
        yield from subdomain_causes(part, path)


def attribute_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    """The name of an attribute of a device: a C identifier, after a domain or not.

    A name with more than one slash is let through (validateQualifiedName).
    """
    parts = name.split("/")
    if len(parts) > 2:
        return
    if len(parts) == 2:
        domain = parts[0]
        yield from driver_causes(domain, path) if domain else (invalid_value(path, "", "the domain must not be empty"),)
        if not parts[1]:
            yield invalid_value(path, "", "the name must not be empty")
            return
    last = parts[-1]
    if utf8_length(last) > _LONGEST_NAME:
        yield too_long(path, _LONGEST_NAME)
    if not _IDENTIFIER.fullmatch(last):
        yield invalid_value(path, last, _NO_IDENTIFIER)


def full_attribute_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    yield from attribute_name_causes(name, path)
    if "/" not in name:
        yield invalid_value(path, name, "a fully qualified name must be a domain and a name separated by a slash")


def share_causes(uid: Any, path: str) -> Iterator[StatusCause]:
    """The id of a share of a device (validateUID)."""
    if uid is None:
        return
    problem = _uuid_problem(uid)
    if problem:
        yield invalid_value(path, uid, f"error validating uid: {problem}")
    elif not _UUID.fullmatch(uid) or uid != uid.lower():
        yield invalid_value(path, uid, _NOT_NORMAL)


def _uuid_problem(uid: str) -> str:
    """Return what Validate of github.com/google/uuid says of the forms that it knows."""
    match utf8_length(uid):
        case 36:
            inner = uid
        case 45:
            if uid[:9].lower() != "urn:uuid:":
                return f"invalid urn prefix: {quoted(uid[:9])}"
            inner = uid[9:]
        case 38:
            if not (uid.startswith("{") and uid.endswith("}")):
                return "invalid bracketed UUID format"
            inner = uid[1:-1]
        case 32:
            return "" if re.fullmatch(f"{_HEX}{{32}}", uid) else "invalid UUID format"
        case length:
            return f"invalid UUID length: {length}"
    return "" if _UUID.fullmatch(inner) else "invalid UUID format"


# Parts


def parameters_causes(parameters: Any, path: str, *, is_stored: bool = False) -> Iterator[StatusCause]:
    """What only a driver understands: an object that is not too large (validateRawExtension).

    The size is that of compact JSON; upstream counts the bytes as they were sent.
    """
    if parameters is None:
        yield required(path)
    elif not is_stored and len(encode(parameters)) > _LARGEST_PARAMETERS:
        yield too_long(path, _LARGEST_PARAMETERS)
    elif not isinstance(parameters, dict):
        yield invalid_value(path, "<value omitted>", "must be a valid JSON object")


def configuration_causes(config: Document | None, path: str, *, is_stored: bool = False) -> Iterator[StatusCause]:
    opaque = (config or {}).get("opaque")
    if opaque is None:
        yield required(f"{path}.opaque")
        return
    yield from required_driver_causes(opaque.get("driver") or "", f"{path}.opaque.driver")
    yield from parameters_causes(opaque.get("parameters"), f"{path}.opaque.parameters", is_stored=is_stored)


def toleration_causes(toleration: Document | None, path: str) -> Iterator[StatusCause]:
    toleration = toleration or {}
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if toleration.get("key"):
        yield from qualified_name_causes(toleration["key"], f"{path}.key")
    match toleration.get("operator") or "":
        case "Exists":
            if value:
                yield invalid_value(f"{path}.value", value, "must be empty for operator `Exists`")
        case "Equal":
            yield from _label_value_causes(value, f"{path}.value")
        case operator:
            yield not_supported(f"{path}.operator", operator, _OPERATORS)
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)


def taint_causes(taint: Document | None, path: str) -> Iterator[StatusCause]:
    taint = taint or {}
    yield from qualified_name_causes(taint.get("key") or "", f"{path}.key")
    yield from _label_value_causes(taint.get("value") or "", f"{path}.value")
    effect = taint.get("effect") or ""
    if not effect:
        yield required(f"{path}.effect")
    elif effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)


def _label_value_causes(value: str, path: str) -> Iterator[StatusCause]:
    yield from (invalid_value(path, value, text) for text in label_value_problems(value))


def binding_causes(device: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    """Conditions that a device needs before a Pod is bound (validateDeviceBindingParameters)."""
    good, bad = ("bindingConditions", "bindingFailureConditions")
    conditions, failures = device.get(good) or [], device.get(bad) or []
    yield from listed_causes(conditions, f"{path}.{good}", _MOST_CONDITIONS, qualified_name_causes)
    yield from listed_causes(failures, f"{path}.{bad}", _MOST_CONDITIONS, qualified_name_causes)
    yield from duplicate_causes(conditions, f"{path}.{good}")
    seen: set[str] = set()
    for index, failure in enumerate(failures):
        where = f"{path}.{bad}[{index}]"
        if failure in seen:
            yield duplicate(where, failure)
        seen.add(failure)
        if failure in conditions:
            yield invalid_value(where, failure, f"{bad} must not overlap with {good}")
    if failures and not conditions:
        yield invalid_value(f"{path}.{good}", device.get(good), f"{good} are required to use {bad}")
    if conditions and not failures:
        yield invalid_value(f"{path}.{bad}", device.get(bad), f"{bad} are required to use {good}")


__all__ = [
    "attribute_name_causes",
    "binding_causes",
    "configuration_causes",
    "duplicate_causes",
    "full_attribute_name_causes",
    "listed_causes",
    "name_of",
    "parameters_causes",
    "pool_name_causes",
    "required_driver_causes",
    "set_causes",
    "share_causes",
    "taint_causes",
    "toleration_causes",
]
