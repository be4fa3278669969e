"""Definitions as they are once their conversion webhook is installed."""

from __future__ import annotations

import pytest

from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.conversion import installed_definition

DEFINITION = {"metadata": {"name": "carts.x.io"}, "spec": {"group": "x.io", "conversion": {"strategy": "None"}}}


def version(**webhook):
    said = {
        "type": "ConversionWebhook",
        "generateName": "ccarts.kb.io",
        "deploymentName": "shop.manager",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "conversionCRDs": ["carts.x.io"],
    }
    return ClusterServiceVersion.from_dict(
        {"metadata": {"name": "shop.v1.0.0"}, "spec": {"webhookdefinitions": [said | webhook]}}
    )


@pytest.mark.parametrize(
    ("said", "path", "port"),
    [({}, "/", 443), ({"webhookPath": "/convert", "containerPort": 8443, "targetPort": 9443}, "/convert", 8443)],
)
def test_the_service_is_named_after_the_deployment(said, path, port):
    found = installed_definition(DEFINITION, version(**said), namespace="shop")

    assert found["spec"] == {
        "group": "x.io",
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {
                    "service": {"name": "shop-manager-service", "namespace": "shop", "path": path, "port": port}
                },
                "conversionReviewVersions": ["v1"],
            },
        },
    }
    assert DEFINITION["spec"]["conversion"] == {"strategy": "None"}


@pytest.mark.parametrize("said", [{"conversionCRDs": ["shelves.x.io"]}, {"type": "MutatingAdmissionWebhook"}])
def test_a_definition_that_no_webhook_converts_stays(said):
    assert installed_definition(DEFINITION, version(**said)) is DEFINITION
