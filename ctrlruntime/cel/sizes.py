"""Ranges of costs and sizes, and the sizes of the arguments of a call, for the cost rules of functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ctrlruntime.cel.functions import Overload
from ctrlruntime.cel.syntax import Node
from ctrlruntime.cel.types import UNBOUNDED, Type


class CostRange(NamedTuple):
    """The least and the most: of a cost, or of a size. Numbers saturate at 2**64-1."""

    least: int
    most: int

    def plus(self, other: CostRange) -> CostRange:
        return CostRange(cut(self.least + other.least), cut(self.most + other.most))

    def times(self, other: CostRange) -> CostRange:
        return CostRange(cut(self.least * other.least), cut(self.most * other.most))

    def scaled(self, factor: float) -> CostRange:
        return CostRange(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: CostRange) -> CostRange:
        return CostRange(min(self.least, other.least), max(self.most, other.most))


ONE = CostRange(1, 1)
NONE = CostRange(0, 0)
ANY = CostRange(0, UNBOUNDED)


def cut(value: int) -> int:
    """Return the value, or the largest number if it is larger."""
    return min(value, UNBOUNDED)


def _scaled(value: int, factor: float) -> int:
    return UNBOUNDED if value >= UNBOUNDED else cut(math.ceil(value * factor))


def total(ranges: Sequence[CostRange]) -> CostRange:
    """Return the sum."""
    result = NONE
    for part in ranges:
        result = result.plus(part)
    return result


class Sized(NamedTuple):
    """The cost of a call without its arguments, and the size of its result (None: unknown)."""

    cost: CostRange
    size: CostRange | None = None


class Operand(NamedTuple):
    """A value that goes into a call: its node (None for elements of a list), its type and where it comes from."""

    node: Node | None
    type: Type
    path: tuple[str, ...] | None


class Sizes(Protocol):
    """The interface for the maximum sizes of values."""

    def size(self, operand: Operand, *, scalars: bool = True) -> CostRange:
        """Return the size; with `scalars` a number counts as one when nothing is known of it."""
        ...

    def element(self, operand: Operand) -> Operand | None:
        """Return the items of a list as an operand; None when it is not a list."""
        ...


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of one overload."""

    sizes: Sizes
    overload: Overload
    target: Operand | None
    arguments: Sequence[Operand]

    def subject(self) -> Operand:
        """Return the target, or the first argument of a function that is not a member."""
        return self.target if self.target is not None else self.arguments[0]

    def size(self, index: int, *, scalars: bool = True) -> CostRange:
        """Return the size of an argument."""
        return self.sizes.size(self.arguments[index], scalars=scalars)

    def subject_size(self, *, scalars: bool = False) -> CostRange:
        """Return the size of the subject."""
        return self.sizes.size(self.subject(), scalars=scalars)
