"""A `WebhookRule` refuses what both servers refuse in a webhook configuration; expressions in CEL are left to the server."""

from __future__ import annotations

import pytest
from webhook_bench import ADMISSION

from ctrlruntime.errors import APIStatusError, ConfigError
from ctrlruntime.webhook import MatchCondition, WebhookRule

FIELDS = {"mutating": True, "name": "a.b.c", "groups": ["g.io"], "versions": ["v1"], "resources": ["things"]}
SELECTORS = (
    {},
    {"matchLabels": {"a": "b"}},
    {"matchLabels": {"a b": "b"}},
    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
    {"matchExpressions": [{"key": "a", "operator": "In"}]},
    {"matchExpressions": [{"key": "a", "operator": "Is", "values": ["b"]}]},
    {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
)
TRUE = "true"
VALUES = {
    "name": (
        "a.b", "a.b.c.d", "A.b.c", "a_.b.c", "-a.b.c", "a..b.c", ".a.b.c", "a.b.c.", "1.2.3", f"{'a' * 64}.b.c",
        f"a.{'b' * 249}.c", f"a.{'b' * 250}.c",
    ),
    "groups": (["*"], ["*", "g.io"], [""], ["", "g.io"], ["G"], ["g.io", "g.io"]),
    "versions": (["*"], ["*", "v1"], [""], ["V 1"], ["v1", "v1"]),
    "resources": (
        ["*"], ["*/*"], ["*", "things"], ["*/*", "things"], ["*", "*/*"], ["*", "*/status"], ["*", "things/status"],
        ["things/*"], ["things/*", "things/status"], ["things/status", "things/*"], ["things", "things/status"],
        ["*/status"], ["*/status", "things/status"], ["things/status", "*/status"], ["things", "things"],
        ["things/*", "things/*"], ["*/*", "*/*"], ["*", "*"], [""], ["/status"], ["things/"], ["a/b/c"], ["Things"],
    ),
    "operations": (["*"], ["*", "CREATE"], ["CREATE", "CREATE"], ["CONNECT"], ["DELETE"]),
    "scope": ("*", "Namespaced", "Cluster"),
    "timeout_seconds": (0, 1, 30, 31),
    "admission_review_versions": (
        ["v1"], ["v2", "v1"], ["v2"], ["v1", "v1"], ["v1beta1"], ["V1"], ["v1", ""], ["v1", "a b"], ["v1", "a" * 63],
        ["v1", "a" * 64], ["A" * 64], ["v2", "V1"], ["v2", "v2"], ["V1", "V1"],
    ),
    "namespace_selector": SELECTORS,
    "object_selector": SELECTORS,
    "match_conditions": (
        [MatchCondition("a", TRUE), MatchCondition("b", "false")],
        [MatchCondition("a", TRUE), MatchCondition("a", "false")],
        *([MatchCondition(name, TRUE)] for name in ("", "a b", "x.io/a", "X/a", "a" * 63, "a" * 64)),
        *([MatchCondition("a", expression)] for expression in ("", " ", f" {TRUE} ")),
        *([MatchCondition(f"a{number}", TRUE) for number in range(many)] for many in (64, 65)),
    ),
    "reinvocation_policy": ("Never", "IfNeeded"),
}  # fmt: skip


@pytest.mark.parametrize("field", VALUES)
def test_a_rule_takes_what_both_servers_take(field, embedded_server, real_server):
    def is_made(value):
        try:
            return bool(WebhookRule(**{**FIELDS, field: value}))
        except ConfigError:
            return False

    def refusal(server, value):
        entry = unchecked({**FIELDS, field: value}).to_webhook({"url": "https://127.0.0.1:9/hook"})
        body = {"metadata": {"name": "rules.example.com"}, "webhooks": [entry]}
        try:
            server.connection.request("POST", f"{ADMISSION}/mutatingwebhookconfigurations?dryRun=All", body)
        except APIStatusError as error:
            return str(error)
        return ""

    refusals = [refusal(real_server, value) for value in VALUES[field]]

    assert [refusal(embedded_server, value) for value in VALUES[field]] == refusals
    assert [is_made(value) for value in VALUES[field]] == [not each for each in refusals]


def unchecked(fields):
    rule = WebhookRule(**FIELDS)
    for name, value in fields.items():
        object.__setattr__(rule, name, value)
    return rule
