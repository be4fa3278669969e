"""All validators, the selection of some of them, and their run."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.finding import Finding, Level
from ctrlruntime.olm.validation import (
    annotations,
    content,
    csv,
    definitions,
    dependencies,
    examples,
    fields,
    installation,
    layout,
    manifests,
    optional,
    webhooks,
)
from ctrlruntime.olm.validation.validator import Subject, Validator
from ctrlruntime.selector import LabelSelector, parse_labels
from ctrlruntime.spelling import did_you_mean

__all__ = ["ALWAYS", "OPTIONAL", "VALIDATORS", "VALUES", "select", "validate"]

ALWAYS: Final[tuple[Validator, ...]] = (
    layout.VALIDATOR,
    annotations.VALIDATOR,
    dependencies.VALIDATOR,
    manifests.VALIDATOR,
    definitions.VALIDATOR,
    definitions.CONTENT,
    content.VALIDATOR,
    fields.VALIDATOR,
    csv.VALIDATOR,
    examples.VALIDATOR,
    installation.VALIDATOR,
    webhooks.VALIDATOR,
)
OPTIONAL: Final[tuple[Validator, ...]] = optional.VALIDATORS
VALIDATORS: Final = ALWAYS + OPTIONAL
VALUES: Final = ("image-platforms", "k8s-version")
"""The names of the values for optional validators."""

_LABELS: Final = ("name", "suite")
_ADVICE: Final = "Write name=NAME, suite=SUITE, or 'name in (NAME, NAME)'"


def validate(bundle: Bundle, *, optional: Iterable[str] = (), values: Mapping[str, str] | None = None) -> list[Finding]:
    """Return the problems of a bundle, errors first.

    `optional` has selectors of additional validators: `name=NAME` or `suite=SUITE`, or another selector of these labels. `values` has their
    options, such as `{"k8s-version": "1.36"}`. Raises: ConfigError for a selector that matches no validator, and for a value whose name
    is not in VALUES.
    """
    for name in values or {}:
        if name not in VALUES:
            raise ConfigError(f"unknown value {name!r} in --optional-values{did_you_mean(name, VALUES)}")
    subject = Subject(bundle, values or {})
    found = [finding for validator in (*ALWAYS, *select(optional)) for finding in validator.run(subject)]
    # Two validators may share a check, and each yields what it finds.
    distinct = dict.fromkeys(map(_in_one_line, found))
    return sorted(distinct, key=lambda finding: finding.level is not Level.ERROR)


def _in_one_line(finding: Finding) -> Finding:
    """Return the finding without line breaks, which may come from values of the bundle."""
    if "\n" not in str(finding):
        return finding
    text, owner, path = (" ".join(part.split()) for part in (finding.text, finding.object, finding.path))
    return dataclasses.replace(finding, text=text, object=owner, path=path)


def select(selectors: Iterable[str]) -> tuple[Validator, ...]:
    """Return the optional validators that one of the selectors matches, each once.

    The labels are name and suite. Raises: ConfigError for an invalid selector, or one that matches no validator.
    """
    asked = [(text, _asked(text)) for text in selectors]
    for text, selector in asked:
        if not any(selector.matches(_labels(each)) for each in OPTIONAL):
            raise ConfigError(f"{text!r} selects no validator. {_ADVICE}")
    return tuple(each for each in OPTIONAL if any(selector.matches(_labels(each)) for _, selector in asked))


def _asked(text: str) -> LabelSelector:
    try:
        selector = parse_labels(text)
    except ValueError as error:
        raise ConfigError(f"{text!r} is not a selector: {error}. {_ADVICE}") from error
    if selector.is_everything:
        raise ConfigError(f"{text!r} selects no validator. {_ADVICE}")
    for requirement in selector.requirements:
        if requirement.key not in _LABELS:
            raise ConfigError(f"{text!r} selects no validator. {_ADVICE}")
        known = sorted({labels[requirement.key] for labels in map(_labels, OPTIONAL) if requirement.key in labels})
        for name in requirement.values:
            if name not in known:
                raise ConfigError(f"unknown optional validator: {requirement.key} {name!r}{did_you_mean(name, known)}")
    return selector


def _labels(validator: Validator) -> dict[str, str]:
    return {"name": validator.name} | ({"suite": validator.suite} if validator.suite else {})
