"""What OLM refuses of webhooks, whoever wrote them. What each refusal is made of, the cases of `ctrl bundle validate` have."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlruntime.olm.refusals import CONVERSION, LONGEST_NAME, Refusal, refused_webhooks

MUTATING, VALIDATING = "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"


def refused(*webhooks: dict[str, Any]) -> list[tuple[int, Refusal, str]]:
    return [(index, which, path) for index, which, path, _ in refused_webhooks(webhooks)]


def webhook(name: str = "v.kb.io", kind: str = VALIDATING, **more: Any) -> dict[str, Any]:
    return {"generateName": name, "type": kind, **more}


def test_a_name_is_free_once_whatever_the_type():
    found = refused(
        webhook(), webhook("m.kb.io"), webhook(kind=MUTATING), webhook(kind=CONVERSION, conversionCRDs=["a"])
    )

    assert found == [(2, Refusal.TWICE, "generateName"), (3, Refusal.TWICE, "generateName")]


def test_a_name_for_admission_fits_a_label_and_one_for_conversion_needs_not():
    longest, longer = "v" * LONGEST_NAME, "w" * (LONGEST_NAME + 1)

    assert refused(webhook(longest)) == []
    assert refused(webhook(longer)) == [(0, Refusal.NAME, "generateName")]
    assert refused(webhook(longer, CONVERSION, conversionCRDs=["a"])) == []


def test_every_rule_is_looked_at():
    rules = [{"apiGroups": ["a"]}, {"apiGroups": ["a", "*", "operators.coreos.com"]}]

    assert refused(webhook(rules=rules)) == [(0, Refusal.RULE, "rules[1].apiGroups")] * 2


@pytest.mark.parametrize(
    ("group", "resources", "is_refused"),
    [
        ("admissionregistration.k8s.io", ["*"], True),
        ("admissionregistration.k8s.io", ["a", "ValidatingWebhookConfiguration"], True),
        ("admissionregistration.k8s.io", ["mutatingWebhookConfigurations"], True),
        ("admissionregistration.k8s.io", ["validatingadmissionpolicies"], False),
        ("example.com", ["*", "mutatingwebhookconfigurations"], False),
    ],
)
def test_configurations_are_kept_from_webhooks(group: str, resources: list[str], *, is_refused: bool):
    found = refused(webhook(rules=[{"apiGroups": [group], "resources": resources}]))

    assert found == ([(0, Refusal.RULE, "rules[0].resources")] if is_refused else [])


@pytest.mark.parametrize("value", [None, 1, "a", [1], [None], {"a": 1}, [{"apiGroups": "*", "resources": 1}]], ids=repr)
def test_what_is_of_the_wrong_type_is_passed_over(value: Any):
    assert (
        refused({"generateName": ["v"], "type": value, "rules": value, "conversionCRDs": value}, {"rules": value}) == []
    )


def test_texts_are_one_line_and_say_what_to_do():
    webhooks = [webhook("a\nb"), webhook("a\nb", CONVERSION), webhook("v" * 70, rules=[{"apiGroups": ["*"]}])]
    texts = [text for *_, text in refused_webhooks(webhooks)]

    assert len(texts) == 4
    assert all("\n" not in text and ". " in text for text in texts)
