"""Rules of webhooks, field errors, and the configurations made of them."""

from __future__ import annotations

import pytest
from webhook_reviews import Game

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.errors import ConfigError
from ctrlruntime.webhook import MatchCondition, Registration, default_path, default_rule
from ctrlruntime.webhook.configurations import (
    CustomResourceDefinition,
    Mutating,
    Validating,
    inject_bundle,
    webhook_configuration,
)

GOOD = {"mutating": True, "name": "a.b.c", "groups": ["apps"], "versions": ["v1"], "resources": ["deployments"]}


def test_paths_and_names_are_kubebuilders():
    assert default_path(Game, mutating=True) == "/mutate-games-example-com-v1-game"
    assert default_path(Game, mutating=False) == "/validate-games-example-com-v1-game"
    assert default_path(core.Pod, mutating=True) == "/mutate--v1-pod"
    rule = default_rule(Game, mutating=False, failure_policy="Ignore", timeout_seconds=None)
    assert (rule.name, rule.groups, rule.versions, rule.resources, rule.failure_policy) == (
        "vgame-v1.kb.io",
        ("games.example.com",),
        ("v1",),
        ("games",),
        "Ignore",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "game"}, "at least three lower-case labels"),
        ({"name": "A.b.c"}, "at least three lower-case labels"),
        ({"side_effects": "Some"}, "side_effects is 'Some'"),
        ({"failure_policy": "Never"}, "failure_policy"),
        ({"match_policy": "Roughly"}, "match_policy"),
        ({"timeout_seconds": 0}, "between 1 and 30"),
        ({"timeout_seconds": 31}, "between 1 and 30"),
        ({"operations": ["PEEK"]}, "operation .?PEEK.? does not exist"),
        ({"operations": []}, "operations is"),
        ({"resources": "pods"}, "give a list"),
        ({"admission_review_versions": ["v2"]}, "v1 and v1beta1 are supported"),
        ({"mutating": False, "reinvocation_policy": "IfNeeded"}, "for mutating webhooks"),
        ({"name": f"a.{'b' * 250}.c"}, "at most 253 characters"),
        ({"groups": ["*", "apps"]}, r"groups are \('\*', 'apps'\); give '\*' alone"),
        ({"operations": ["*", "CREATE"]}, "operations are .* alone"),
        ({"versions": [""]}, "versions are .* none may be empty"),
        ({"resources": ["*", "pods"]}, "only with subresources"),
        ({"resources": ["pods/*", "pods/status"]}, r"pods/\* has pods/status in it"),
        ({"admission_review_versions": ["v1", "v1"]}, "each once"),
        ({"namespace_selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, "namespace_selector: .*Is"),
        ({"match_conditions": [MatchCondition("a", "true")] * 2}, "named a, a; rename one of them"),
        ({"match_conditions": [MatchCondition("a b", "true")]}, "'a b' cannot have this name"),
        ({"match_conditions": [MatchCondition("a", " ")]}, "'a' has no expression"),
    ],
)
def test_a_rule_no_api_server_takes_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        ctrl.webhook.WebhookRule(**{**GOOD, **options})


def test_a_rule_becomes_an_entry_without_what_was_not_said():
    entry = ctrl.webhook.WebhookRule(**GOOD).to_webhook({"url": "https://x"})

    assert entry == {
        "name": "a.b.c",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://x"},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "rules": [
            {
                "apiGroups": ["apps"],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["deployments"],
            }
        ],
    }


def test_a_rule_with_everything_becomes_an_entry_with_everything():
    entry = ctrl.webhook.WebhookRule(
        **GOOD,
        scope="Namespaced",
        match_policy="Exact",
        timeout_seconds=5,
        reinvocation_policy="IfNeeded",
        namespace_selector={"matchLabels": {"a": "b"}},
        object_selector={"matchLabels": {}},
        match_conditions=[ctrl.webhook.MatchCondition("mine", "true")],
    ).to_webhook({})

    assert entry["rules"][0]["scope"] == "Namespaced"
    assert (entry["matchPolicy"], entry["timeoutSeconds"], entry["reinvocationPolicy"]) == ("Exact", 5, "IfNeeded")
    assert entry["namespaceSelector"] == {"matchLabels": {"a": "b"}}
    assert entry["objectSelector"] == {"matchLabels": {}}
    assert entry["matchConditions"] == [{"name": "mine", "expression": "true"}]


def registration(name: str, *, mutating: bool = True, path: str = "/p") -> Registration:
    rule = ctrl.webhook.WebhookRule(**{**GOOD, "name": name, "mutating": mutating})
    return Registration(path=path, kind="admission", rule=rule)


def test_a_configuration_holds_the_webhooks_of_its_kind_by_name():
    registrations = [registration("z.b.c"), registration("a.b.c"), registration("v.b.c", mutating=False)]
    mutating = webhook_configuration(Mutating, "m", registrations, lambda path: {"url": path})
    validating = webhook_configuration(Validating, "v", registrations, lambda path: {"url": path})

    assert [entry["name"] for entry in mutating["webhooks"]] == ["a.b.c", "z.b.c"]
    assert [entry["name"] for entry in validating["webhooks"]] == ["v.b.c"]
    assert webhook_configuration(Validating, "v", registrations[:2], lambda path: {}) is None


def test_two_webhooks_of_one_name_are_refused():
    registrations = [registration("a.b.c", path="/one"), registration("a.b.c", path="/two")]
    with pytest.raises(ConfigError, match=r"two webhooks are named a\.b\.c: /one and /two"):
        webhook_configuration(Mutating, "m", registrations, lambda path: {})


def test_a_bundle_is_injected_where_it_is_not():
    obj = Mutating.from_dict({"metadata": {"name": "m"}, "webhooks": [{"name": "a", "clientConfig": {"url": "u"}}, {}]})
    assert inject_bundle(obj, b"ca")
    assert [webhook["clientConfig"]["caBundle"] for webhook in obj["webhooks"]] == ["Y2E=", "Y2E="]
    assert not inject_bundle(obj, b"ca")

    plain = CustomResourceDefinition.from_dict(
        {"metadata": {"name": "d"}, "spec": {"conversion": {"strategy": "None"}}}
    )
    assert not inject_bundle(plain, b"ca")
    plain["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": {}}}
    assert inject_bundle(plain, b"ca")


def test_field_errors_have_kubernetes_words():
    error = ctrl.webhook.FieldError
    texts = [
        error.required("a"),
        error.required("a", "why"),
        error.invalid("a[0].b", "x", "must be y"),
        error.invalid("a", None, "must be y"),
        error.invalid("a", {"b": 1}, "must be y"),
        error.not_supported("a", 1, ["x", True]),
        error.forbidden("a", "may not change"),
        error.duplicate("a", "x"),
        error.not_found("a", "x"),
        error.too_long("a", 5),
        error.too_many("a", 6, 5),
        error.internal("a", "no answer"),
    ]

    assert [str(one) for one in texts] == [
        "a: Required value",
        "a: Required value: why",
        'a[0].b: Invalid value: "x": must be y',
        "a: Invalid value: null: must be y",
        'a: Invalid value: {"b":1}: must be y',
        'a: Unsupported value: 1: supported values: "x", true',
        "a: Forbidden: may not change",
        'a: Duplicate value: "x"',
        'a: Not found: "x"',
        "a: Too long: may not be more than 5 bytes",
        "a: Too many: 6: must have at most 5 items",
        "a: Internal error: no answer",
    ]


def test_several_field_errors_are_listed_each_once():
    required = ctrl.webhook.FieldError.required("a")
    error = ctrl.webhook.invalid(Game, "g", [required, required, ctrl.webhook.FieldError.forbidden("b", "no")])

    assert str(error) == 'Game.games.example.com "g" is invalid: [a: Required value, b: Forbidden: no]'
    assert len(error.causes) == 3
    assert error.code == 422
    assert str(ctrl.webhook.invalid(core.Pod, "p", [required])) == 'Pod "p" is invalid: a: Required value'
    with pytest.raises(ValueError, match="no field errors"):
        ctrl.webhook.invalid(Game, "g", [])
