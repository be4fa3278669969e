"""Protection of claims and attribute classes: what was made a moment ago keeps them, too."""

from __future__ import annotations

import pytest
from controllers_cluster import cluster, pod

from ctrlruntime.apiserver.controllers.claims import AttributesClassProtection, ClaimProtection

CLAIMS = ("", "persistentvolumeclaims")
CLASSES = ("storage.k8s.io", "volumeattributesclasses")
MOUNT = {"name": "v", "persistentVolumeClaim": {"claimName": "a"}}


def claim(name, **spec):
    asked = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c"}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {**asked, **spec}}


def attributes_class(name):
    return {"metadata": {"name": name}, "driverName": "d.example.com", "parameters": {"a": "b"}}


@pytest.mark.parametrize("is_used", [True, False])
async def test_a_claim_is_kept_by_a_pod_of_which_the_watch_has_not_told_yet(is_used):
    async with cluster([]) as c:
        await c.create(*CLAIMS, claim("a"))
        if is_used:
            await c.create("", "pods", pod("p", nodeName="n", volumes=[MOUNT]))
        await c.api.delete(*CLAIMS, "default", "a")

        await ClaimProtection().reconcile(c.api, ("default", "a"))

        assert (c.api.get(*CLAIMS, "default", "a") is not None) == is_used


@pytest.mark.parametrize("is_used", [True, False])
async def test_an_attributes_class_is_kept_by_a_claim_of_which_the_watch_has_not_told_yet(is_used):
    async with cluster([]) as c:
        await c.create(*CLASSES, attributes_class("a"), namespace="")
        await c.create(*CLAIMS, claim("a", volumeAttributesClassName="a" if is_used else "b"))
        await c.api.delete(*CLASSES, "", "a")

        await AttributesClassProtection().reconcile(c.api, ("", "a"))

        assert (c.api.get(*CLASSES, "", "a") is not None) == is_used
