"""Validators: their input, their checks and their findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.bundle import Bundle, BundleObject
from ctrlruntime.olm.finding import Check, Finding
from ctrlruntime.olm.release import csv_of

__all__ = ["Run", "Subject", "Validator", "about"]


@dataclass(frozen=True)
class Subject:
    """A bundle under validation.

    `values` are those of `--optional-values`: `k8s-version` (the newest Kubernetes the bundle must run on) and others that a
    validator reads.
    """

    bundle: Bundle
    values: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def csv_object(self) -> BundleObject | None:
        """The ClusterServiceVersion as written; None without one, or with more than one."""
        return self.bundle.csv

    @cached_property
    def csv(self) -> ClusterServiceVersion | None:
        """The ClusterServiceVersion, decoded as OLM does: a field that is missing is empty.

        None without one, or if it cannot be decoded; other checks report that.
        """
        return csv_of(self.bundle)


Run: TypeAlias = Callable[[Subject], Iterator[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """A set of checks that run together."""

    name: str
    """The NAME of `--select-optional name=NAME`."""

    summary: str
    checks: tuple[Check, ...]
    run: Run
    suite: str = ""
    """The SUITE of `--select-optional suite=SUITE`; empty for a validator that has no suite, or always runs."""


def about(check: Check, found: BundleObject | None, text: str, path: str = "") -> Finding:
    """Return a finding for an object, or for the bundle as a whole."""
    if found is None:
        return Finding(check=check, text=text, path=path)
    return Finding(check=check, text=text, file=found.file, object=str(found), path=path)
