"""The keys of dicts: what their type allows, as rules on the map, which is the one place where a schema can speak of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from ctrlruntime import cel
from ctrlruntime.api.annotations import Annotation
from ctrlruntime.cel.structural import declare
from ctrlruntime.generate.options import Place
from ctrlruntime.generate.rules import RULE_LIMIT

__all__ = ["is_affordable", "key_choices", "key_rules"]

_SIZES = {"min_length": ">=", "max_length": "<="}


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
    for limit in key.limits:
        if limit.kind in _SIZES:
            sign = _SIZES[limit.kind]
            yield f"self.all(key, size(key) {sign} {limit.value})", f"the keys must have a length {sign} {limit.value}"
        elif limit.kind == "pattern":
            yield f"self.all(key, key.matches({_text(limit.value)}))", f"the keys must match {limit.value}"
        else:
            raise place.error(f"{limit.kind}={limit.value!r} is for numbers, and the keys of a JSON object are text")


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
