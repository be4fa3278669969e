"""The algebra of apply on JSON trees: what changed between two objects, what a configuration names, and merge.

Pure functions of a `Type` and trees. Null and absent differ here: a null is a value that the field had.
"""

from __future__ import annotations

from typing import Any

from ctrlruntime.apiserver.apply.fieldsets import SELF, FieldSet
from ctrlruntime.apiserver.apply.types import ItemKeyError, Type, UnfitError
from ctrlruntime.schema.trees import encode_sorted

ABSENT: Any = object()


# What changed


def compare_fields(
    kind: Type,
    old: dict[str, Any],
    new: dict[str, Any],
    changed: FieldSet,
    removed: FieldSet,
    apart: frozenset[str] = frozenset(),
) -> None:
    """Add to `changed` the paths that `new` has and `old` has not or has otherwise, to `removed` those that only `old` has.

    Fields in `apart` are not looked at.
    """
    fields, extra = kind.fields, kind.extra
    for name, value in new.items():
        before = old.get(name, ABSENT)
        if name in apart or _is_equal(before, value):
            continue
        child = fields.get(name) or extra
        if child is None:
            continue
        if before is ABSENT:
            changed[f"f:{name}"] = everything(child, value)
        else:
            compare(child, before, value, f"f:{name}", changed, removed)
    if not old.keys() <= new.keys():
        for name, value in old.items():
            if name not in new and name not in apart:
                child = fields.get(name) or extra
                if child is not None:
                    removed[f"f:{name}"] = everything(child, value)


def _is_equal(before: Any, value: Any) -> bool:
    """Tell whether values are equal for kube-apiserver, to which true is not 1; that 1.0 is, comes out at the numbers."""
    if before != value:
        return False
    if (type(value) is dict or type(value) is list) and encode_sorted(before) == encode_sorted(value):
        return True
    return _is_alike(before, value)


def _is_alike(before: Any, value: Any) -> bool:
    """Tell whether of two values that Python calls equal the same are booleans."""
    if type(value) is dict:
        return all(_is_alike(before[name], each) for name, each in value.items())
    if type(value) is list:
        return all(map(_is_alike, before, value))
    return (type(before) is bool) == (type(value) is bool)


def compare(kind: Type, old: Any, new: Any, step: str, changed: FieldSet, removed: FieldSet) -> None:
    """Compare two values that differ."""
    inside: FieldSet = {}
    gone: FieldSet = {}
    if kind.has_fields and _are(dict, old, new):
        compare_fields(kind, old or {}, new or {}, inside, gone)
    elif kind.has_items and _are(list, old, new):
        _compare_items(kind, old or [], new or [], inside, gone)
    else:
        changed[step] = everything(kind, new)
        gone = everything(kind, old)
        gone.pop(SELF, None)
        if gone:
            removed[step] = gone
        return
    if inside:
        changed[step] = inside
    if gone:
        removed[step] = gone


def _are(form: type, old: Any, new: Any) -> bool:
    """Tell whether the values are of this form, or one of them null, and not both without content."""
    old_form, new_form = type(old), type(new)
    if old_form is form:
        return (new_form is form or new is None) and bool(old or new)
    return old is None and new_form is form and bool(new)


def _compare_items(kind: Type, old: list[Any], new: list[Any], changed: FieldSet, removed: FieldSet) -> None:
    item = kind.item
    assert item is not None
    before, after = _by_step(kind, old), _by_step(kind, new)
    for step, values in after.items():
        olds = before.get(step)
        if olds is None:
            changed[step] = _all_of(item, values)
        elif len(olds) == 1 and len(values) == 1:
            if olds[0] != values[0]:
                compare(item, olds[0], values[0], step, changed, removed)
        elif olds != values:
            changed[step] = _all_of(item, values)
            if len(olds) == 1 or len(values) == 1:
                removed[step] = _all_of(item, olds)
    for step, values in before.items():
        if step not in after:
            removed[step] = _all_of(item, values)


def _all_of(item: Type, values: list[Any]) -> FieldSet:
    """Return the node of a list item; one that stands there twice is a field as a whole."""
    return everything(item, values[0]) if len(values) == 1 else {}


def _by_step(kind: Type, items: list[Any]) -> dict[str, list[Any]]:
    """Return the items by their steps. Raises: UnfitError for one without a key."""
    found: dict[str, list[Any]] = {}
    for item in items:
        try:
            found.setdefault(kind.step(item), []).append(item)
        except ItemKeyError as error:
            raise UnfitError(str(error)) from None
    return found


def everything(kind: Type, value: Any) -> FieldSet:
    """Return the node of a value that came or went as a whole: its own path and all below it."""
    if type(value) is dict:
        if not kind.has_fields or not value:
            return {}
        node: FieldSet = {SELF: {}}
        fields, extra = kind.fields, kind.extra
        for name, inner in value.items():
            child = fields.get(name) or extra
            if child is not None:
                node[f"f:{name}"] = everything(child, inner)
        return node if len(node) > 1 else {}
    if type(value) is list:
        if not kind.has_items or not value:
            return {}
        item = kind.item
        assert item is not None
        node = {SELF: {}}
        for step, values in _by_step(kind, value).items():
            node[step] = _all_of(item, values)
        return node if len(node) > 1 else {}
    return {}


# What a configuration names


def named_fields(kind: Type, value: Any) -> FieldSet | None:
    """Return the node of the fields that a value names, None when it names none (an empty list of items)."""
    if type(value) is dict and kind.has_fields:
        return _named_in_map(kind, value)
    if type(value) is list and kind.has_items:
        item = kind.item
        assert item is not None
        node: FieldSet = {}
        for step, values in _by_step(kind, value).items():
            below = named_fields(item, values[0]) if len(values) == 1 else None
            node[step] = _with_self(below)
        return node or None
    if value is None and (kind.has_fields or kind.has_items):
        return None
    return {}


def _named_in_map(kind: Type, value: dict[str, Any]) -> FieldSet | None:
    node: FieldSet = {}
    fields, extra = kind.fields, kind.extra
    for name, inner in value.items():
        child = fields.get(name)
        is_declared = child is not None
        child = child or extra
        if child is None:
            continue
        below = named_fields(child, inner)
        if not is_declared or inner is None or inner == {}:
            node[f"f:{name}"] = _with_self(below)
        elif below is not None:
            node[f"f:{name}"] = below
    return node or None


def _with_self(node: FieldSet | None) -> FieldSet:
    if not node:
        return {}
    return node if SELF in node else {SELF: {}, **node}


def with_declared(kind: Type | None, fields: FieldSet) -> FieldSet:
    """Return the set with the declared fields on the way to its paths as members: they go when all below them goes."""
    result: FieldSet = {}
    for step, node in fields.items():
        if not node or kind is None:
            result[step] = node
            continue
        is_declared = step[0] == "f" and kind.is_map and step[2:] in kind.fields
        below = with_declared(_child_at(kind, step), node)
        result[step] = _with_self(below) if is_declared else below
    return result


def settled(kind: Type, fields: FieldSet) -> FieldSet:
    """Return the set as the type has it now: what has become one value has one owner, and no paths below it."""
    result: FieldSet = {}
    is_same = True
    for step, node in fields.items():
        child = _child_at(kind, step) if node else None
        left = node if child is None else {} if _is_one_value(child, node) else settled(child, node)
        is_same = is_same and left is node
        result[step] = left
    return fields if is_same else result


def _child_at(kind: Type, step: str) -> Type | None:
    if step[0] == "f":
        return kind.child(step[2:]) if kind.is_map else None
    return kind.item if step[0] == "k" else None


def _is_one_value(kind: Type, node: FieldSet) -> bool:
    """Tell whether the paths below a node lie in something that has one owner."""
    if any(step[0] == "f" for step in node):
        return kind.is_map and not kind.has_fields
    return any(step != SELF for step in node) and bool(kind.list_mode) and not kind.has_items


# Merge


def merge(kind: Type, live: Any, config: Any) -> Any:
    """Return the live value with the configuration laid over it. Nothing is copied; the inputs stay as they are."""
    if live is ABSENT:
        return config
    if kind.has_fields and _are(dict, live, config):
        return _merge_maps(kind, live or {}, config or {})
    if kind.has_items and _are(list, live, config):
        return _merge_lists(kind, live or [], config or [])
    return config


def _merge_maps(kind: Type, live: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    result = dict(live)
    for name, value in config.items():
        child = kind.child(name)
        result[name] = value if child is None else merge(child, live.get(name, ABSENT), value)
    return result


def _merge_lists(kind: Type, live: list[Any], config: list[Any]) -> list[Any]:
    """Merge items: those of the configuration keep their order, those that only the live list has stay near their neighbours."""
    item = kind.item
    assert item is not None
    present, wanted = _steps(kind, live), _steps(kind, config)
    olds, news = _by_step(kind, live), _by_step(kind, config)
    shared = [step for step in wanted if step in olds]
    shared.reverse()  # the next one to come stands last
    result: list[Any] = []
    placed: set[str] = set()
    i = j = 0

    def place(step: str) -> None:
        before = olds.get(step, ())
        result.append(merge(item, before[0] if len(before) == 1 else ABSENT, news[step][0]))
        placed.add(step)
        if shared and shared[-1] == step:
            shared.pop()

    while i < len(present) or j < len(wanted):
        if i < len(present):
            step = present[i]
            if step not in news:
                result.append(live[i])
                i += 1
                continue
            if j < len(wanted):
                if step == wanted[j]:
                    place(step)
                    i, j = i + 1, j + 1
                    continue
                if shared and shared[-1] != step:  # its turn comes with the configuration's order
                    i += 1
                    continue
            if step in placed:
                i += 1
        if j < len(wanted):
            place(wanted[j])
            j += 1
    return result


def _steps(kind: Type, items: list[Any]) -> list[str]:
    return [kind.step(item) for item in items]
