"""A defaulter of a kind whose fields have limits: the API server refuses what breaks them, with its own causes, on both servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.api import meta
from ctrlruntime.generate.crd import crds
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import eventually

GROUP = "plans.limits.example.com"


class PlanSpec(ctrl.Model):
    mode: Literal["fast", "slow"]
    replicas: int = Field(1, ge=1, le=3)
    host: str = Field("", max_length=5)
    code: str | None = Field(None, pattern="^[a-z]+$")
    image: str = ""


class Plan(ctrl.Object, group=GROUP, version="v1"):
    spec: PlanSpec


class PlanDefaulter:
    async def default(self, plan: Plan) -> None:
        plan.spec.image = plan.spec.image or "default"


@pytest.fixture
async def mgr(server, namespace) -> AsyncIterator[ctrl.Manager]:
    await asyncio.to_thread(server.install_crds, crds([Plan]))
    mgr = ctrl.new_manager(
        ctrl.get_config(str(server.kubeconfig_path)),
        scheme=ctrl.Scheme(Plan),
        metrics_bind_address="0",
        webhook=ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode()),
    )
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    builder = ctrl.new_webhook_managed_by(mgr).for_(Plan)
    builder.with_defaulter(PlanDefaulter(), namespace_selector=here).complete()
    async with running(mgr):
        probe = Plan(metadata=meta.ObjectMeta(namespace=namespace, name="probe"), spec=PlanSpec(mode="fast"))

        async def is_asked() -> bool:
            return (await mgr.client.create(probe.deep_copy(), dry_run=True)).spec.image == "default"

        await eventually(is_asked)
        yield mgr


async def refusal(server, namespace: str, spec: Any) -> dict[str, Any]:
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Plan", "metadata": {"name": "p"}, "spec": spec}
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/plans"
    with pytest.raises(ctrl.errors.APIStatusError) as failed:
        await asyncio.to_thread(server.connection.request, "POST", path, body)
    return failed.value.status


async def test_every_broken_limit_is_a_cause_of_the_api_servers_422(mgr, server, namespace):
    status = await refusal(server, namespace, {"mode": "lazy", "replicas": 9, "host": "too long", "code": "A1"})

    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert {cause["field"] for cause in status["details"]["causes"]} == {
        "spec.mode",
        "spec.replicas",
        "spec.host",
        "spec.code",
    }
    assert "admission webhook" not in status["message"]


async def test_a_missing_field_is_a_cause_of_the_api_servers_422(mgr, server, namespace):
    status = await refusal(server, namespace, {"replicas": 9})

    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert {(cause["field"], cause["reason"]) for cause in status["details"]["causes"]} >= {
        ("spec.mode", "FieldValueRequired"),
        ("spec.replicas", "FieldValueInvalid"),
    }


async def test_what_cannot_be_decoded_is_the_webhooks_400(mgr, server, namespace):
    status = await refusal(server, namespace, {"mode": "fast", "replicas": "many"})

    assert status["code"] == 400
    assert 'admission webhook "mplan-v1.kb.io" denied the request' in status["message"]
    assert "spec.replicas" in status["message"]
