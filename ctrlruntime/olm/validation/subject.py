"""The input of validators, and how they make findings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeAlias

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_text
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.bundle import Bundle, BundleObject
from ctrlruntime.olm.finding import Finding
from ctrlruntime.olm.release import csv_of
from ctrlruntime.olm.validation.checks import CHECKS

__all__ = ["Problem", "Run", "Subject", "about", "of_csv", "read_json"]


@dataclass(frozen=True)
class Subject:
    """A bundle under validation.

    `values` are those of `--optional-values`: `k8s-version` (the newest Kubernetes the bundle must run on) and others that a
    validator reads.
    """

    bundle: Bundle
    values: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def csv(self) -> ClusterServiceVersion | None:
        """The ClusterServiceVersion, decoded as OLM does: a field that is missing is empty.

        None without one, or if it cannot be decoded; other checks report that.
        """
        return csv_of(self.bundle)


def read_json(path: str, setting: str) -> Any:
    """Return the JSON in the file of a setting. Raises: ConfigError if the file cannot be read, or is not JSON."""
    where = f"{path}, set in {setting}"
    text = read_text(Path(path), where)
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{where}, is not JSON: {error}") from error


Run: TypeAlias = Callable[[Subject], Iterator[Finding]]

Problem: TypeAlias = tuple[str, str, str]
"""A finding without its file and object: the code of the check, the field and the text."""


def about(code: str, place: BundleObject | str | None, text: str, path: str = "") -> Finding:
    """Return a finding about an object, about a file, or about the bundle as a whole."""
    file, owner = (place.file, str(place)) if isinstance(place, BundleObject) else (place or "", "")
    return Finding(check=CHECKS[code], text=text, file=file, object=owner, path=path)


def of_csv(problems: Callable[[ClusterServiceVersion, Subject], Iterator[Problem | Finding]]) -> Run:
    """Make a validator of a function that yields the problems of a ClusterServiceVersion that can be decoded.

    A finding, which is about something else, is yielded unchanged.
    """

    @wraps(problems)
    def run(subject: Subject) -> Iterator[Finding]:
        if subject.csv is None:
            return
        for each in problems(subject.csv, subject):
            if isinstance(each, Finding):
                yield each
            else:
                code, path, text = each
                yield about(code, subject.bundle.csv, text, path)

    return run
