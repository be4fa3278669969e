"""The keys of dicts: their type as rules on the map, because a schema has no other place for keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Literal, get_args, get_origin
from uuid import UUID

from ctrlruntime import cel
from ctrlruntime.api.annotations import Annotation
from ctrlruntime.cel.schema_types import declare
from ctrlruntime.generate.options import Place
from ctrlruntime.schema.rule_checks import RULE_LIMIT

__all__ = ["is_affordable", "is_key", "key_choices", "key_rules"]

_HEX = "[0-9a-f]"
# One spelling of each value: another would be written back as this one, and so be another key.
_TEXT_KEYS: Mapping[type[Any], tuple[str, str]] = {
    UUID: (f"key.matches('^{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}$')", "UUIDs in lower case and with hyphens"),
    IPv4Address: ("isIP(key) && ip(key).family() == 4", "IPv4 addresses"),
    IPv6Address: ("isIP(key) && ip(key).family() == 6 && ip.isCanonical(key)", "IPv6 addresses in their shortest form"),
    IPv4Network: (
        "isCIDR(key) && cidr(key).ip().family() == 4 && string(cidr(key).masked()) == key",
        "IPv4 networks with a prefix length and no bits beyond it",
    ),
    IPv6Network: (
        "isCIDR(key) && cidr(key).ip().family() == 6 && string(cidr(key).masked()) == key",
        "IPv6 networks in their shortest form, with a prefix length and no bits beyond it",
    ),
}
"""Classes of text for keys, other than str: the rule for a `key`, and its name in words."""

_SIZES = {"min_length": ">=", "max_length": "<="}


def is_key(key: Any) -> bool:
    """Whether the keys of a dict may be of this type."""
    return key_choices(key) is not None or key in _TEXT_KEYS or (isinstance(key, type) and issubclass(key, str))


def key_choices(key: Any) -> Sequence[str] | None:
    """Return the keys there may be, of a Literal or an enum of texts; None for a type without a list of them."""
    values: Sequence[Any] = ()
    if get_origin(key) is Literal:
        values = get_args(key)
    elif isinstance(key, type) and issubclass(key, Enum):
        values = [member.value for member in key]
    plain = [value.value if isinstance(value, Enum) else value for value in values]
    return [str(value) for value in plain] if plain and all(isinstance(value, str) for value in plain) else None


def key_rules(key: Annotation, place: Place) -> Iterator[tuple[str, str]]:
    """Yield (rule, message) for what the type of a dict's keys demands. Raises: GenerateError for a limit that is not for text."""
    choices = key_choices(key.bare)
    if choices is not None:
        listed = ", ".join(_text(one) for one in choices)
        yield f"self.all(key, key in [{listed}])", f"the keys must be among {', '.join(choices)}"
    if isinstance(key.bare, type) and key.bare in _TEXT_KEYS:
        rule, words = _TEXT_KEYS[key.bare]
        yield f"self.all(key, {rule})", f"the keys must be {words}"
    for limit in key.limits:
        if limit.kind in _SIZES:
            sign = _SIZES[limit.kind]
            yield f"self.all(key, size(key) {sign} {limit.value})", f"the keys must have a length {sign} {limit.value}"
        elif limit.kind == "pattern":
            yield f"self.all(key, key.matches({_text(limit.value)}))", f"the keys must match {limit.value}"
        else:
            raise place.error(f"{limit.kind}={limit.value!r} is for numbers, but the keys of a JSON object are strings")


def is_affordable(rule: str, schema: Mapping[str, Any]) -> bool:
    """Tell whether the server allows what a rule on a schema may cost."""
    declared = declare(schema, is_resource=False)
    if declared is None:
        return False
    try:
        return cel.compile(rule, variables={"self": declared}).cost().most <= RULE_LIMIT
    except cel.MissingLibraryError:
        return True


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
