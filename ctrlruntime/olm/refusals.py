"""Webhooks of a ClusterServiceVersion that the Operator Lifecycle Manager rejects, although kube-apiserver would accept them.

OLM checks all of `spec.webhookdefinitions` before it installs any webhook. One rejected webhook fails the whole version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

from ctrlruntime.olm.trees import listed, mapping

__all__ = ["CONVERSION", "LONGEST_NAME", "Refusal", "Refused", "refused_webhooks"]

CONVERSION: Final = "ConversionWebhook"
"""The type of a conversion webhook; all others are for admission."""

LONGEST_NAME: Final = 63
"""The maximum characters of the generateName of an admission webhook, which becomes a label value."""

_OWN_GROUP: Final = "operators.coreos.com"
_ADMISSION_GROUP: Final = "admissionregistration.k8s.io"
_CONFIGURATIONS: Final = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


class Refusal(StrEnum):
    """Why a webhook is rejected."""

    TWICE = "twice"
    """Another webhook, of any type, has the same generateName."""

    RULE = "rule"
    """A rule is for all groups, for OLM's own group, or for webhook configurations."""

    NAME = "name"
    """The generateName is too long."""

    NOTHING_CONVERTED = "nothing-converted"
    """It is a conversion webhook without CRDs."""


Refused: TypeAlias = tuple[int, Refusal, str, str]
"""A rejected webhook: its place in the list, the reason, the field below it, and the message in one line."""


def refused_webhooks(webhooks: Sequence[Mapping[str, Any]]) -> Iterator[Refused]:
    """Yield the rejected webhooks in their order. Values of a wrong type are skipped."""
    names: set[str] = set()
    for index, webhook in enumerate(webhooks):
        for which, path, text in (*_name(webhook, names), *_rules(webhook), *_converted(webhook)):
            yield index, which, path, text


def _name(webhook: Mapping[str, Any], names: set[str]) -> Iterator[tuple[Refusal, str, str]]:
    name = webhook.get("generateName") or ""
    if not isinstance(name, str):
        return
    if name in names:
        text = f"{name!r} is also the name of another webhook, but OLM requires unique names. Rename one of them"
        yield Refusal.TWICE, "generateName", text
    names.add(name)
    # Only what is made for admission has labels: converting is written into definitions.
    if webhook.get("type") != CONVERSION and len(name) > LONGEST_NAME:
        text = f"{name!r} has {len(name)} characters, but OLM uses it as a label value. Use at most {LONGEST_NAME}"
        yield Refusal.NAME, "generateName", text


def _rules(webhook: Mapping[str, Any]) -> Iterator[tuple[Refusal, str, str]]:
    for index, rule in enumerate(map(mapping, listed(webhook.get("rules")))):
        groups = listed(rule.get("apiGroups"))
        for group in ("*", _OWN_GROUP):
            if group in groups:
                text = f"OLM does not allow webhooks for the API group {group!r}. Remove it, and list the groups that the webhook needs"
                yield Refusal.RULE, f"rules[{index}].apiGroups", text
        if _ADMISSION_GROUP in groups and (named := _kept(rule)):
            text = f"OLM does not allow webhooks for {named[0]!r} of {_ADMISSION_GROUP}. Remove it"
            yield Refusal.RULE, f"rules[{index}].resources", text


def _kept(rule: Mapping[str, Any]) -> list[str]:
    """Return the resources of a rule that stand for configurations: by their kind, as OLM itself has it, or by their plural."""
    resources = [each for each in listed(rule.get("resources")) if isinstance(each, str)]
    return [each for each in resources if each == "*" or each.lower().removesuffix("s") in _CONFIGURATIONS]


def _converted(webhook: Mapping[str, Any]) -> Iterator[tuple[Refusal, str, str]]:
    if webhook.get("type") == CONVERSION and not webhook.get("conversionCRDs"):
        text = "has no CRD, so OLM cannot install the webhook. List the CRDs that it converts, or remove the webhook"
        yield Refusal.NOTHING_CONVERTED, "conversionCRDs", text
