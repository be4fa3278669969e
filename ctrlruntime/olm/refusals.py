"""What the Operator Lifecycle Manager refuses of the webhooks of a ClusterServiceVersion, though kube-apiserver would take them.

It looks at `spec.webhookdefinitions` as a whole before it installs any; one that is refused fails the version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

from ctrlruntime.olm.trees import listed, mapping

__all__ = ["CONVERSION", "LONGEST_NAME", "Refusal", "Refused", "refused_webhooks"]

CONVERSION: Final = "ConversionWebhook"
"""The type of a webhook that converts; all others are for admission."""

LONGEST_NAME: Final = 63
"""Characters of a generateName for admission: it becomes the value of a label."""

_OWN_GROUP: Final = "operators.coreos.com"
_ADMISSION_GROUP: Final = "admissionregistration.k8s.io"
_CONFIGURATIONS: Final = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


class Refusal(StrEnum):
    """Why a webhook is refused."""

    TWICE = "twice"
    """Another has its generateName, whatever the type."""

    RULE = "rule"
    """A rule is for all groups, for OLM's own, or for the configurations of webhooks."""

    NAME = "name"
    """The generateName is too long."""

    NOTHING_CONVERTED = "nothing-converted"
    """It converts, and names no definition."""


Refused: TypeAlias = tuple[int, Refusal, str, str]
"""A webhook that is refused: its place in the list, why, the field below it, and what to do in one line."""


def refused_webhooks(webhooks: Sequence[Mapping[str, Any]]) -> Iterator[Refused]:
    """Yield what is refused, in their order. What is of the wrong type is passed over."""
    names: set[str] = set()
    for index, webhook in enumerate(webhooks):
        for which, path, text in (*_name(webhook, names), *_rules(webhook), *_converted(webhook)):
            yield index, which, path, text


def _name(webhook: Mapping[str, Any], names: set[str]) -> Iterator[tuple[Refusal, str, str]]:
    name = webhook.get("generateName") or ""
    if not isinstance(name, str):
        return
    if name in names:
        text = f"{name!r} is the name of another webhook already, and OLM takes a name once; give it another"
        yield Refusal.TWICE, "generateName", text
    names.add(name)
    # Only what is made for admission has labels: converting is written into definitions.
    if webhook.get("type") != CONVERSION and len(name) > LONGEST_NAME:
        text = f"{name!r} has {len(name)} characters, and OLM makes a label of it; use {LONGEST_NAME} at most"
        yield Refusal.NAME, "generateName", text


def _rules(webhook: Mapping[str, Any]) -> Iterator[tuple[Refusal, str, str]]:
    for index, rule in enumerate(map(mapping, listed(webhook.get("rules")))):
        groups = listed(rule.get("apiGroups"))
        for group in ("*", _OWN_GROUP):
            if group in groups:
                text = f"OLM allows no webhook for the API group {group!r}; name the groups it is for"
                yield Refusal.RULE, f"rules[{index}].apiGroups", text
        if _ADMISSION_GROUP in groups and (named := _kept(rule)):
            text = f"OLM allows no webhook for {named[0]!r} of {_ADMISSION_GROUP}; take it out"
            yield Refusal.RULE, f"rules[{index}].resources", text


def _kept(rule: Mapping[str, Any]) -> list[str]:
    """Return the resources of a rule that stand for configurations: by their kind, as OLM itself has it, or by their plural."""
    resources = [each for each in listed(rule.get("resources")) if isinstance(each, str)]
    return [each for each in resources if each == "*" or each.lower().removesuffix("s") in _CONFIGURATIONS]


def _converted(webhook: Mapping[str, Any]) -> Iterator[tuple[Refusal, str, str]]:
    if webhook.get("type") == CONVERSION and not webhook.get("conversionCRDs"):
        text = "names no definition, and OLM fails to install it; name those it converts, or take the webhook out"
        yield Refusal.NOTHING_CONVERTED, "conversionCRDs", text
