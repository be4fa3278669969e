"""The functions of the validators, the selection of optional validators, and the run."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.finding import Finding, Level
from ctrlruntime.olm.validation import (
    content,
    csv,
    dependencies,
    examples,
    fields,
    files,
    hub,
    installation,
    manifests,
    multiarch,
    practices,
    removed,
)
from ctrlruntime.olm.validation.checks import ALWAYS, OPTIONAL, Validator
from ctrlruntime.olm.validation.subject import Run, Subject
from ctrlruntime.selector import LabelSelector, parse_labels
from ctrlruntime.spelling import did_you_mean

__all__ = ["RUNS", "VALUES", "select", "validate"]

RUNS: Final[Mapping[str, Run]] = {
    "layout": files.layout,
    "annotations": files.metadata,
    "dependencies": dependencies.run,
    "manifests": manifests.objects,
    "definitions": manifests.definitions,
    "owned-definitions": manifests.owned_definitions,
    "content": content.run,
    "csv-fields": fields.run,
    "csv": csv.run,
    "examples": examples.run,
    "installation": installation.run,
    "webhooks": installation.webhooks,
    "operatorhubv2": hub.run,
    "capabilities": hub.capabilities,
    "categories": hub.categories,
    "alpha-deprecated-apis": removed.run,
    "good-practices": practices.run,
    "multiarch": multiarch.run,
    "object": practices.objects,
}
"""The function of each validator, by its name."""

VALUES: Final = ("image-platforms", "k8s-version")
"""The names of the values for optional validators."""

_GONE: Final = {
    "operatorhub": ". Select suite=operatorframework",
    "package-manifest": ". OLM replaced package manifests by bundles",
}
"""The validators that upstream has deprecated, and what to do instead."""

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
    found = [finding for validator in (*ALWAYS, *select(optional)) for finding in RUNS[validator.name](subject)]
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
                advice = _GONE.get(name) or did_you_mean(name, known)
                raise ConfigError(f"unknown optional validator: {requirement.key} {name!r}{advice}")
    return selector


def _labels(validator: Validator) -> dict[str, str]:
    return {"name": validator.name} | ({"suite": validator.suite} if validator.suite else {})
