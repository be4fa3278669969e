"""Webhooks of a ClusterServiceVersion: three types, who answers, and what has no place there."""

from __future__ import annotations

import pytest
from csv_objects import HOME, LABELS, configuration, definition, deployment, service, thing, webhook

from ctrlruntime.errors import GenerateError
from ctrlruntime.olm.csv.objects import Objects, told
from ctrlruntime.olm.csv.webhooks import warn_of_refusals, webhooks

OWN = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [HOME]}]}


@pytest.fixture
def warnings() -> list[str]:
    return []


def made(warnings, *documents):
    objects = Objects([deployment(), *documents])
    found = webhooks(objects, warnings.append)
    return found, [told(each) for each in objects.documents[1:]]


def test_a_webhook_for_admission_has_all_that_is_said_and_defaults_for_the_rest(warnings):
    full = webhook(
        failurePolicy="Ignore",
        matchPolicy="Exact",
        objectSelector={"matchLabels": {"a": "b"}},
        sideEffects="NoneOnDryRun",
        timeoutSeconds=5,
        reinvocationPolicy="IfNeeded",
        admissionReviewVersions=["v1", "v1beta1"],
    )

    found, left = made(
        warnings, service(), configuration(full), configuration(webhook("vcart.kb.io", "/validate"), kind="Validating")
    )

    assert found == [
        {
            "type": "MutatingAdmissionWebhook",
            "generateName": "mcart.kb.io",
            "deploymentName": "shop-controller-manager",
            "containerPort": 443,
            "targetPort": 9443,
            "webhookPath": "/mutate",
            "rules": [{"resources": ["carts"]}],
            "failurePolicy": "Ignore",
            "matchPolicy": "Exact",
            "objectSelector": {"matchLabels": {"a": "b"}},
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": 5,
            "reinvocationPolicy": "IfNeeded",
            "admissionReviewVersions": ["v1", "v1beta1"],
        },
        {
            "type": "ValidatingAdmissionWebhook",
            "generateName": "vcart.kb.io",
            "deploymentName": "shop-controller-manager",
            "containerPort": 443,
            "targetPort": 9443,
            "webhookPath": "/validate",
            "rules": [{"resources": ["carts"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        },
    ]
    assert (left, warnings) == ([], [])


def test_webhooks_stand_by_name(warnings):
    names = ["b.kb.io", "c.kb.io", "a.kb.io"]

    found, _ = made(warnings, service(), configuration(*(webhook(each) for each in names)))

    assert [each["generateName"] for each in found] == sorted(names)


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        pytest.param([service()], ("shop-controller-manager", 443, 9443), id="by the selector"),
        pytest.param([service(target="webhooks")], ("shop-controller-manager", 443, "webhooks"), id="a named port"),
        pytest.param([], ("shop-controller-manager", 443, 443), id="the only Deployment, without a Service"),
        pytest.param(
            [deployment(name="shop-webhook", labels={"a": "b"})], ("shop-webhook", 443, 443), id="by the Service's name"
        ),
        pytest.param(
            [
                deployment(name="other", labels=LABELS | {"a": "b"}),
                service() | {"spec": {"ports": [{"port": 443}], "selector": {"a": "b"}}},
            ],
            ("other", 443, 443),
            id="a Service without a target",
        ),
    ],
)
def test_the_deployment_behind_the_service_answers(warnings, documents, expected):
    found, _ = made(warnings, *documents, configuration(webhook()))

    assert [(each["deploymentName"], each["containerPort"], each["targetPort"]) for each in found] == [expected]


def test_the_port_of_the_client_config_picks_that_of_the_service(warnings):
    asked = webhook()
    asked["clientConfig"]["service"]["port"] = 8443

    found, left = made(warnings, service(more=8443), configuration(asked))

    assert (found[0]["containerPort"], found[0]["targetPort"]) == (8443, 8443)
    assert left == ["Service/shop-webhook-service"]  # its other port is somebody else's


def test_a_webhook_nobody_answers_is_refused(warnings):
    elsewhere = service() | {"spec": {"ports": [{"port": 443}], "selector": {"app": "other"}}}

    with pytest.raises(
        GenerateError,
        match=r"webhook mcart\.kb\.io: no Deployment matches the selector of the Service shop-webhook-service",
    ):
        made(warnings, elsewhere, configuration(webhook()))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"matchConditions": [{"name": "a", "expression": "true"}]}, "has matchConditions"),
        ({"namespaceSelector": {"matchLabels": {"a": "b"}}}, "has a namespaceSelector, which is left out"),
        ({"namespaceSelector": OWN | {"matchLabels": {"a": "b"}}}, "has a namespaceSelector, which is left out"),
        ({"namespaceSelector": OWN}, "If no Pod of the operator runs, the webhook blocks new ones"),
    ],
)
def test_what_narrows_a_webhook_and_cannot_be_said_is_a_warning(warnings, said, message):
    found, _ = made(warnings, service(), configuration(webhook(**said)))

    assert not {"namespaceSelector", "matchConditions"} & found[0].keys()
    assert len(warnings) == 1
    assert warnings[0].startswith("MutatingWebhookConfiguration/")
    assert message in warnings[0]


@pytest.mark.parametrize(
    "said",
    [{"failurePolicy": "Ignore"}, {"objectSelector": {"matchLabels": {"sidecars": "yes"}}}, {"namespaceSelector": {}}],
)
def test_a_webhook_that_cannot_keep_the_operator_down_is_no_warning(warnings, said):
    made(warnings, service(), configuration(webhook(**{"namespaceSelector": OWN, **said})))

    assert warnings == []


ADMISSION = "admissionregistration.k8s.io"


def rule(group, resource="carts"):
    return {"apiGroups": [group], "resources": [resource]}


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ([webhook("m" * 64)], "generateName"),
        ([webhook("m.kb.io"), webhook("m.kb.io", "/other")], "generateName"),
        ([webhook("m.kb.io", rules=[rule("*")])], "rules[0].apiGroups"),
        ([webhook("m.kb.io", rules=[rule("x.io"), rule("operators.coreos.com")])], "rules[1].apiGroups"),
        ([webhook("m.kb.io", rules=[rule(ADMISSION, "*")])], "rules[0].resources"),
        ([webhook("m.kb.io", rules=[rule(ADMISSION, "validatingwebhookconfigurations")])], "rules[0].resources"),
    ],
)
def test_what_is_never_installed_is_a_warning(warnings, asked, place):
    found, _ = made(warnings, service(), configuration(*asked))
    assert warnings == []

    warn_of_refusals(found, warnings.append)

    name = asked[0]["name"]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"the webhook {name} (MutatingAdmissionWebhook) cannot be installed: {place}: ")


def test_one_name_for_two_types_is_a_warning(warnings):
    both = [configuration(webhook("x.io")), configuration(webhook("x.io", "/validate"), kind="Validating")]

    found, _ = made(warnings, service(), *both)
    warn_of_refusals(found, warnings.append)

    assert len(warnings) == 1
    assert warnings[0].startswith("the webhook x.io (ValidatingAdmissionWebhook) cannot be installed: generateName: ")


@pytest.mark.parametrize("said", [rule(ADMISSION, "validatingadmissionpolicies"), rule("x.io", "*")])
def test_other_rules_are_no_warning(warnings, said):
    found, _ = made(warnings, service(), configuration(webhook(rules=[said])))

    warn_of_refusals(found, warnings.append)

    assert warnings == []


def test_a_webhook_called_by_url_is_left_out_with_a_warning(warnings):
    found, left = made(warnings, configuration({"name": "m.kb.io", "clientConfig": {"url": "https://x.io"}}))

    assert (found, left) == ([], [])
    assert "webhook m.kb.io is left out: it is called by URL" in warnings[0]


def test_definitions_converted_at_one_path_are_one_webhook(warnings):
    found, left = made(
        warnings,
        service(),
        definition("Shelf", "v1", "v2", path="/convert"),
        definition("Cart", "v1", "v2", path="/convert"),
        definition("Other", "v1", "v2", path="/convert-others"),
    )

    assert [(each["generateName"], each["conversionCRDs"], each["webhookPath"]) for each in found] == [
        ("ccartsshelfs.kb.io", ["carts.x.io", "shelfs.x.io"], "/convert"),
        ("cothers.kb.io", ["others.x.io"], "/convert-others"),
    ]
    assert found[0] == found[0] | {
        "type": "ConversionWebhook",
        "deploymentName": "shop-controller-manager",
        "containerPort": 443,
        "targetPort": 9443,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    assert "Service/shop-webhook-service" not in left


def in_group(group, path):
    """The same plural in another group."""
    made = definition("Cart", "v1", "v2", path=path)
    made["metadata"]["name"], made["spec"]["group"] = f"carts.{group}", group
    return made


def test_conversions_of_one_plural_in_several_groups_have_names_of_their_own(warnings):
    both = [in_group("b.io", "/convert-b"), in_group("a.io", "/convert-a")]

    names = [
        [(each["generateName"], each["conversionCRDs"]) for each in made(warnings, service(), *order)[0]]
        for order in (both, both[::-1])
    ]

    assert names == [[("ccarts.b.io.kb.io", ["carts.b.io"]), ("ccarts.kb.io", ["carts.a.io"])]] * 2


def test_a_definition_never_converts_by_doing_nothing():
    objects = Objects([deployment(name="shop.manager"), service(), definition("Cart", "v1", "v2", path="/convert")])

    webhooks(objects, pytest.fail)

    assert objects.definitions[0]["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "service": {"name": "shop-manager-service", "namespace": HOME, "path": "/convert", "port": 443}
            },
            "conversionReviewVersions": ["v1"],
        },
    }


def test_a_conversion_by_url_is_nobodys_but_the_definitions(warnings):
    converted = definition("Cart", "v1", "v2")
    converted["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x.io"}}}

    found, left = made(warnings, converted)

    assert (found, left, warnings) == ([], ["CustomResourceDefinition/carts.x.io"], [])


def test_a_service_no_webhook_uses_stays(warnings):
    _, left = made(warnings, service("metrics"), service(), configuration(webhook()), thing("v1", "ConfigMap", "c"))

    assert left == ["Service/metrics", "ConfigMap/c"]
