"""The costs of functions by name, without the costs of the arguments, and the sizes of their results. Other functions cost 1.

The numbers are the API server's: a tenth for each character read, a quarter for each character of a pattern, ten for a new list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ctrlruntime.cel.sizes import ANY, ONE, CostRange, Invocation, Operand, Sized, cut
from ctrlruntime.cel.syntax import Literal, Node

_STRING, _REGEX = 0.1, 0.25
_LONGEST_FORMAT = 128  # the longest pattern among the named formats, as upstream assumes it
_AUTHORIZATION = CostRange(350_000, 350_000)
_NEW_LIST = CostRange(11, 11)  # ten for the list, one for the call
_TEXTS = frozenset({"string", "bytes"})

Rule: TypeAlias = Callable[[Invocation], Sized | None]


# Operators


def _differ(call: Invocation) -> Sized | None:
    if call.arguments[0].type.name == "optional_type":
        return Sized(ONE)
    most = min(call.size(0).most, call.size(1).most)
    return Sized(CostRange(1 if most else 0, most).scaled(_STRING))


def _equal(call: Invocation) -> Sized | None:
    compared = call.arguments[0].type
    return Sized(ONE) if compared.kind == "opaque" and compared.name != "kubernetes.URL" else _differ(call)


def _order(call: Invocation) -> Sized | None:
    return _differ(call) if call.overload.parameters[0].kind in _TEXTS else None


def _add(call: Invocation) -> Sized | None:
    kind = call.overload.parameters[0].kind
    if kind not in {*_TEXTS, "list"}:
        return None
    size = call.size(0).plus(call.size(1))
    return Sized(ONE if kind == "list" else size.scaled(_STRING), size)


def _contained(call: Invocation) -> Sized | None:
    return Sized(call.size(1)) if call.overload.parameters[1].kind == "list" else None


# Strings


def _ends(call: Invocation) -> Sized | None:
    return Sized(call.size(0).scaled(_STRING))


def _contains(call: Invocation) -> Sized | None:
    return Sized(call.subject_size(scalars=True).scaled(_STRING).times(call.size(0).scaled(_STRING)))


def _matches(call: Invocation) -> Sized | None:
    read = call.subject_size(scalars=True).plus(ONE).scaled(_STRING)
    return Sized(read.times(call.size(-1).scaled(_REGEX)))


def _find(call: Invocation) -> Sized | None:
    size = call.subject_size()
    read = size.plus(ONE).scaled(_STRING)
    return Sized(read.times(call.size(0, scalars=False).scaled(_REGEX)), size)


def _to_bytes(call: Invocation) -> Sized | None:
    if call.overload.parameters[0].kind != "string":
        return None
    size = call.size(0)
    return Sized(size.scaled(_STRING), CostRange(size.least, cut(size.most * 4)))


def _to_text(call: Invocation) -> Sized | None:
    if call.overload.parameters[0].kind != "bytes":
        return None
    size = call.size(0)
    return Sized(size.scaled(_STRING), CostRange(size.least // 4, size.most))


def _quote(call: Invocation) -> Sized | None:
    size = call.size(0)
    return Sized(size.scaled(_STRING), CostRange(size.least + 2, cut(size.most * 2 + 2)))


def _format(call: Invocation) -> Sized | None:
    return Sized(call.subject_size(scalars=True).scaled(_STRING))


def _reread(call: Invocation) -> Sized | None:
    """Functions that read their subject once, and give no more."""
    size = call.subject_size()
    return Sized(size.scaled(_STRING), size)


def _replace(call: Invocation) -> Sized | None:
    size, old, new = call.subject_size(), call.size(0, scalars=False), call.size(1, scalars=False)
    if old.least == 0:
        most = cut(cut(size.most + 1) * new.most + size.most)
    elif new.most <= old.least:
        most = size.most
    else:
        most = cut(math.ceil(size.most / old.least) * new.most)
    return Sized(size.scaled(2 * _STRING), CostRange(0, most))


def _split(call: Invocation) -> Sized | None:
    size = call.subject_size()
    limit = _literal_int(call.arguments[1].node) if len(call.arguments) > 1 else None
    most = size.most if limit is None or limit < 0 else limit
    return Sized(size.scaled(2 * _STRING), CostRange(0, most))


def _join(call: Invocation) -> Sized | None:
    count = call.subject_size()
    element = call.sizes.element(call.subject())
    size = CostRange(0, 0) if element is None else count.times(call.sizes.size(element, scalars=False))
    if call.arguments:
        between = CostRange(max(0, count.least - 1), max(0, count.most - 1))
        size = size.plus(call.size(0, scalars=False).times(between))
    return Sized(size.scaled(_STRING), size)


# What Kubernetes adds


def _read(call: Invocation) -> Sized | None:
    """Functions that read their argument once."""
    return Sized(call.size(0, scalars=False).scaled(_STRING))


def _address(call: Invocation) -> Sized | None:
    return None if call.overload.is_member else _read(call)


def _canonical(call: Invocation) -> Sized | None:
    return Sized(call.size(0, scalars=False).scaled(2 * _STRING))


def _contains_address(call: Invocation) -> Sized | None:
    cost = CostRange(8, 32).scaled(_STRING)  # two addresses of four or sixteen bytes
    if call.overload.parameters[1].kind == "string":
        cost = cost.plus(call.size(0, scalars=False).scaled(_STRING))
    return Sized(cost)


def _contains_network(call: Invocation) -> Sized | None:
    sized = _contains_address(call)
    return None if sized is None else Sized(sized.cost.plus(CostRange(4, 16).scaled(_STRING)).plus(ONE))


def _validate(call: Invocation) -> Sized | None:
    pattern = CostRange(_LONGEST_FORMAT, _LONGEST_FORMAT).scaled(_REGEX)
    return Sized(call.size(0, scalars=False).scaled(_STRING).times(pattern))


def _authorize(_call: Invocation) -> Sized | None:
    return Sized(_AUTHORIZATION)


# Lists


def _scan(call: Invocation) -> Sized | None:
    """Functions that look at each item of a list, or each character of a string."""
    size = call.subject_size()
    element = call.sizes.element(call.subject())
    if element is None:
        return Sized(size.scaled(_STRING))
    each = ONE
    if element.type.kind in _TEXTS:
        each = each.plus(call.sizes.size(element, scalars=False).scaled(_STRING))
    return Sized(size.times(each))


def _copied(call: Invocation) -> Sized | None:
    size = call.subject_size()
    return Sized(size.plus(_NEW_LIST), size)


def _slice(call: Invocation) -> Sized | None:
    start, end = (_literal_int(argument.node) for argument in call.arguments)
    end = call.subject_size().most if end is None else end
    count = (end - (start or 0)) % 2**64  # upstream's unsigned numbers wrap around
    return Sized(CostRange(count, count).plus(_NEW_LIST), CostRange(count, count))


def _distinct(call: Invocation) -> Sized | None:
    return _pairs(call, None)


def _sort(call: Invocation) -> Sized | None:
    return _pairs(call, call.subject())


def _sort_by(call: Invocation) -> Sized | None:
    return _pairs(call, call.arguments[0])


def _pairs(call: Invocation, compared: Operand | None) -> Sized:
    """Functions that compare every item with every other."""
    size = call.subject_size()
    pairs = size.times(size)
    cost = pairs.plus(pairs)
    element = None if compared is None else call.sizes.element(compared)
    if element is not None and element.type.kind in _TEXTS:
        cost = cost.plus(pairs.scaled(_STRING))
    return Sized(cost.plus(_NEW_LIST), pairs)


def _range(call: Invocation) -> Sized | None:
    count = _literal_int(call.arguments[0].node)
    size = ANY if count is None else CostRange(count, count)
    return Sized(size.plus(_NEW_LIST), size)


def _sets(factor: int) -> Rule:
    def rule(call: Invocation) -> Sized | None:
        pairs = call.size(0).times(call.size(1))
        return Sized(CostRange(pairs.least, cut(pairs.most * factor)).plus(ONE))

    return rule


def _literal_int(node: Node | None) -> int | None:
    return int(node.value) if isinstance(node, Literal) and type(node.value) is int else None


RULES: Mapping[str, Rule] = {
    "_==_": _equal,
    "_!=_": _differ,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    "_+_": _add,
    "@in": _contained,
    "startsWith": _ends,
    "endsWith": _ends,
    "contains": _contains,
    "matches": _matches,
    "find": _find,
    "findAll": _find,
    "bytes": _to_bytes,
    "string": _to_text,
    "strings.quote": _quote,
    "format": _format,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim", "url"), _reread),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("isIP", "isCIDR", "cidr", "quantity", "isQuantity", "semver", "isSemver"), _read),
    "ip": _address,
    "ip.isCanonical": _canonical,
    "containsIP": _contains_address,
    "containsCIDR": _contains_network,
    "validate": _validate,
    "check": _authorize,
    **dict.fromkeys(("isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"), _scan),
    "reverse": _copied,
    "flatten": _copied,
    "slice": _slice,
    "distinct": _distinct,
    "sort": _sort,
    "@sortByAssociatedKeys": _sort_by,
    "lists.range": _range,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
}
"""By the name of a function; a rule that returns None leaves the cost at one."""
