"""The deprecated validator `operatorhub`: `operatorhubv2`, `capabilities` and `categories` in one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from os import environ as process_environ
from typing import Final

from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.optional import capabilities, categories, hub
from ctrlruntime.olm.validation.validator import Subject, Validator

__all__ = ["validator"]

_NAME: Final = "operatorhub"
_DEPRECATED: Final = Check(
    code="operatorhub-deprecated",
    level=Level.WARNING,
    type="DeprecatedValidator",
    suite=_NAME,
    summary="the deprecated validator operatorhub is selected",
)


def validator(environ: Mapping[str, str] = process_environ) -> Validator:
    """Return the validator; its findings are those of its replacements, and a warning."""
    parts = (hub.VALIDATOR, capabilities.VALIDATOR, categories.validator(environ))

    def run(subject: Subject) -> Iterator[Finding]:
        text = (
            "operatorhub is deprecated. Select suite=operatorframework, or operatorhubv2, capabilities and categories"
        )
        yield Finding(check=_DEPRECATED, text=text)
        yield from chain.from_iterable(part.run(subject) for part in parts)

    return Validator(
        name=_NAME,
        summary=f"deprecated: {', '.join(part.name for part in parts)} in one",
        checks=(_DEPRECATED, *chain.from_iterable(part.checks for part in parts)),
        run=run,
    )
