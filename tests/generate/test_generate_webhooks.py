"""Webhook configurations. The goldens are what controller-gen made of the markers in tests/peers/crdgen/webhook."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from controller_gen import regenerated

from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.text import dump_all
from ctrlruntime.generate.webhooks import Service, webhook_configurations
from ctrlruntime.webhook.registration import MatchCondition, WebhookRule

MARKERS = Path(__file__).parents[1] / "peers" / "crdgen" / "webhook"
GOLDEN = Path(__file__).parent / "golden" / "webhook"
MARKER = "// +kubebuilder:webhook:"
NAMES = "// +kubebuilder:webhookconfiguration:"
PART = re.compile(r'(\w+)=(`[^`]*`|"[^"]*"|[^,]*)')


def camel(name):
    return re.sub("[A-Z]", lambda match: "_" + match[0].lower(), name)


def webhook(marker: str) -> tuple[WebhookRule, dict[str, object]]:
    """Return the rule a marker speaks of, and where the webhook is."""
    said = {camel(name): value.strip('"`') for name, value in PART.findall(marker.removeprefix(MARKER))}
    service = {name: said.pop(f"service_{name}") for name in ("name", "namespace", "port") if f"service_{name}" in said}
    if "port" in service:
        service["port"] = int(service["port"])
    path, url = said.pop("path", ""), said.pop("url", "")
    patch = {camel(name): value for name, value in json.loads(said.pop("patch", "{}")).items()}
    if "match_conditions" in patch:
        patch["match_conditions"] = [MatchCondition(**condition) for condition in patch["match_conditions"]]
    for name in ("groups", "resources", "versions", "verbs", "admission_review_versions"):
        said[name] = said[name].split(";")
    said["groups"] = ["" if group == "core" else group for group in said["groups"]]
    said["operations"] = [verb.upper() for verb in said.pop("verbs")]
    said["failure_policy"] = said["failure_policy"].capitalize()
    said["mutating"] = said["mutating"] == "true"
    if "timeout_seconds" in said:
        said["timeout_seconds"] = int(said["timeout_seconds"])
    return WebhookRule(**said, **patch), {"url": url} if url else Service(**service).client_config(path)


def configuration_names(lines: list[str]) -> dict[str, str]:
    names = {}
    for line in lines:
        if line.startswith(NAMES):
            said = dict(PART.findall(line.removeprefix(NAMES)))
            names["mutating_name" if said["mutating"] == "true" else "validating_name"] = said["name"]
    return names


@pytest.mark.parametrize("name", sorted(path.name for path in MARKERS.iterdir()))
def test_configurations_are_the_bytes_controller_gen_writes(name):
    lines = (MARKERS / name / "doc.go").read_text().splitlines()
    webhooks = [webhook(line) for line in lines if line.startswith(MARKER)]

    text = dump_all(webhook_configurations(webhooks, **configuration_names(lines)))

    assert text == (GOLDEN / f"{name}.yaml").read_text()


def example(**changes) -> WebhookRule:
    said = {
        "name": "vgame-v1.kb.io",
        "mutating": False,
        "groups": ["g.example.com"],
        "resources": ["games"],
        "versions": ["v1"],
        "operations": ["CREATE"],
    }
    return WebhookRule(**{**said, **changes})


HERE = Service().client_config("/here")
THERE = {"url": "https://example.com/there"}


@pytest.mark.slow
def test_controller_gen_still_writes_the_goldens_of_webhooks():
    assert regenerated("webhook", "webhook") == {path.name: path.read_text() for path in GOLDEN.iterdir()}


def test_no_webhooks_make_no_configuration():
    assert webhook_configurations([]) == []


def test_an_empty_selector_is_said_too():
    (configuration,) = webhook_configurations([(example(object_selector={}), HERE)])

    assert configuration["webhooks"][0]["objectSelector"] == {}


def test_two_webhooks_of_one_name_are_refused_with_both_places():
    with pytest.raises(GenerateError, match=r"registered twice, at /here and at https://example\.com/there"):
        webhook_configurations([(example(), HERE), (example(), THERE)])


def test_a_defaulter_and_a_validator_may_share_a_name():
    documents = webhook_configurations([(example(), HERE), (example(mutating=True), HERE)])

    assert [document["kind"] for document in documents] == [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]
