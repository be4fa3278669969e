"""The annotation `categories`: categories of a catalog, separated by commas.

A catalog with its own categories lists them in a JSON file, `{"categories": ["…"]}`. The variable OPERATOR_BUNDLE_CATEGORIES has its path.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.optional.suite import INVALID_CSV, OPERATOR_FRAMEWORK
from ctrlruntime.olm.validation.validator import Subject, Validator, about
from ctrlruntime.spelling import did_you_mean

__all__ = ["CATEGORIES", "VARIABLE", "validator"]

VARIABLE: Final = "OPERATOR_BUNDLE_CATEGORIES"

CATEGORIES: Final = (
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Database",
    "Developer Tools",
    "Integration & Delivery",
    "Logging & Tracing",
    "Modernization & Migration",
    "Monitoring",
    "Networking",
    "Observability",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
)

_ANNOTATION: Final = "categories"
_UNKNOWN: Final = Check(
    code="category-unknown",
    level=Level.ERROR,
    type=INVALID_CSV,
    suite="categories",
    summary=f"a category is neither a standard one nor in the file of {VARIABLE}",
)


def validator(environ: Mapping[str, str] = os.environ) -> Validator:
    """Return the validator, which reads the variable when it runs. Its run raises ConfigError if the file cannot be used."""

    def run(subject: Subject) -> Iterator[Finding]:
        annotation = subject.csv.metadata.annotations.get(_ANNOTATION) if subject.csv else None
        if annotation is None:
            return
        known = _known(environ.get(VARIABLE, ""))
        for name in (part.strip() for part in annotation.split(",")):
            if name not in known:
                text = f"{name!r} is not a category{did_you_mean(name, known)}"
                yield about(_UNKNOWN, subject.csv_object, text, f"metadata.annotations.{_ANNOTATION}")

    return Validator(
        name="categories",
        suite=OPERATOR_FRAMEWORK,
        summary=f"the annotation categories, if any, has only standard categories, or those in the file of {VARIABLE}",
        checks=(_UNKNOWN,),
        run=run,
    )


def _known(path: str) -> tuple[str, ...]:
    if not path:
        return CATEGORIES
    try:
        tree: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(f"{path}, set in {VARIABLE}", error) from error
    except ValueError as error:
        raise ConfigError(f"{path}, set in {VARIABLE}, is not JSON: {error}") from error
    match tree:
        case {"categories": [*names]} if all(isinstance(name, str) for name in names):
            return tuple(map(str, names))
        case _:
            raise ConfigError(f'{path}, set in {VARIABLE}, must be {{"categories": ["NAME", …]}}')
