"""Claims and volumes: which are bound, what a claim waits for, and Pods that wait for their claims, on both servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from servers import LONGEST_WAIT
from test_controllers import Room

from ctrlruntime.errors import NotFound
from ctrlruntime.testing import Environment, eventually

pytestmark = pytest.mark.usefixtures("nodes")

CLAIMS, VOLUMES, CLASSES = (
    "v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/storage.k8s.io/v1/storageclasses",
)
MERGE = "application/merge-patch+json"


class Storage(Room):
    """A namespace, with volumes and classes of its own: their names begin with its name."""

    async def claim(self, name: str, size: str = "1Gi", of: str = "own", **spec: Any) -> dict[str, Any]:
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return await self.create(CLAIMS, name, spec={**asked, "storageClassName": self.own(of), **spec})

    async def volume(self, name: str, size: str = "1Gi", **spec: Any) -> None:
        given = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
        spec = {**given, "storageClassName": self.own("own"), **spec}
        labels = {"is": name}
        await self.call("POST", VOLUMES, {"metadata": {"name": self.own(name), "labels": labels}, "spec": spec})
        await self.until_volume(name, lambda o: o["status"].get("phase") == "Available")

    async def add_class(self, name: str, provisioner: str = "disks.example.com", **more: Any) -> None:
        await self.call("POST", CLASSES, {"metadata": {"name": self.own(name)}, "provisioner": provisioner, **more})

    def own(self, name: str) -> str:
        return f"{self.namespace}-{name}" if name else ""

    async def until_volume(self, name: str, is_met: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            found = await self.call("GET", f"{VOLUMES}/{self.own(name)}")
            return found if is_met(found) else None

        return await eventually(look, timeout=LONGEST_WAIT)

    async def until_bound(self, name: str) -> dict[str, Any]:
        return await self.until(CLAIMS, name, lambda o: o["status"]["phase"] == "Bound")

    async def until_told(self, *expected: tuple[str, str, str]) -> None:
        async def look() -> bool:
            events = await self.list("v1/events")
            return set(expected) <= {(event["type"], event["reason"], event["message"]) for event in events}

        await eventually(look, timeout=LONGEST_WAIT)


@pytest.fixture
def storage(server: Environment, namespace: str) -> Iterator[Storage]:
    yield Storage(server, namespace)
    for path in (VOLUMES, CLASSES):
        for found in server.connection.request("GET", path)["items"]:
            if (
                found["metadata"]["name"].startswith(namespace)
                or (found.get("spec", {}).get("claimRef") or {}).get("namespace") == namespace
            ):
                one = f"{path}/{found['metadata']['name']}"
                try:
                    server.connection.request("PATCH", one, {"metadata": {"finalizers": None}}, content_type=MERGE)
                    server.connection.request("DELETE", one)
                except NotFound:
                    pass  # it went by itself


async def test_claim_gets_the_smallest_volume_that_fits(storage):
    await storage.volume("large", "9Gi")
    await storage.volume("fits", "2Gi")
    await storage.volume("small", "1Gi")
    await storage.volume("block", "2Gi", volumeMode="Block")
    await storage.volume("shared", "2Gi", accessModes=["ReadOnlyMany"])

    await storage.claim("c", "1500Mi")

    claim = await storage.until_bound("c")
    assert claim["spec"]["volumeName"] == storage.own("fits")
    assert claim["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    assert claim["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    volume = await storage.until_volume("fits", lambda o: o["status"]["phase"] == "Bound")
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]

    await storage.claim("b", volumeMode="Block")
    assert (await storage.until_bound("b"))["spec"]["volumeName"] == storage.own("block")
    await storage.claim("l", selector={"matchLabels": {"is": "large"}})
    assert (await storage.until_bound("l"))["spec"]["volumeName"] == storage.own("large")


async def test_claim_and_volume_that_name_each_other_are_bound(storage):
    await storage.volume("first", claimRef={"namespace": storage.namespace, "name": "named"})
    await storage.volume("second")
    await storage.claim("names", volumeName=storage.own("second"))
    await storage.claim("named")

    assert (await storage.until_bound("named"))["spec"]["volumeName"] == storage.own("first")
    bound = await storage.until_bound("names")
    assert bound["metadata"]["annotations"] == {"pv.kubernetes.io/bind-completed": "yes"}
    await storage.claim("late", volumeName=storage.own("second"))
    await storage.claim("large", "2Gi", volumeName=storage.own("first"))
    text = f'volume "{storage.own("second")}" already bound to a different claim.'
    await storage.until_told(("Warning", "FailedBinding", text))
    assert (await storage.get(CLAIMS, "late"))["status"]["phase"] == "Pending"


async def test_claim_says_what_it_waits_for(storage):
    await storage.add_class("late", volumeBindingMode="WaitForFirstConsumer")
    await storage.add_class("none", "kubernetes.io/no-provisioner")
    await storage.volume("small")
    for name in ("", "missing", "late", "none"):
        await storage.claim(f"c-{name}".strip("-"), of=name)
    await storage.claim("large", "2Gi", volumeName=storage.own("small"))

    await storage.until_told(
        ("Normal", "FailedBinding", "no persistent volumes available for this claim and no storage class is set"),
        ("Warning", "ProvisioningFailed", f'storageclass.storage.k8s.io "{storage.own("missing")}" not found'),
        ("Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
        ("Warning", "ProvisioningFailed", "no volume plugin matched name: kubernetes.io/no-provisioner"),
        (
            "Warning",
            "VolumeMismatch",
            f'Cannot bind to requested volume "{storage.own("small")}": requested PV is too small',
        ),
    )
    assert {claim["status"]["phase"] for claim in await storage.list(CLAIMS)} == {"Pending"}


async def test_volume_is_kept_when_its_claim_goes_and_a_claim_is_lost_without_its_volume(storage):
    for name in ("kept", "lost"):
        await storage.volume(name)
        await storage.claim(name, volumeName=storage.own(name))
        await storage.until_bound(name)

    await storage.delete(CLAIMS, "kept")
    volume = await storage.until_volume("kept", lambda o: o["status"]["phase"] == "Released")
    await storage.call("PATCH", f"{VOLUMES}/{volume['metadata']['name']}", {"spec": {"claimRef": None}}, MERGE)
    await storage.until_volume("kept", lambda o: o["status"]["phase"] == "Available")

    path = f"{VOLUMES}/{storage.own('lost')}"
    await storage.call("DELETE", path)
    await storage.call("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    await storage.until(CLAIMS, "lost", lambda o: o["status"] == {"phase": "Lost"})


def pod_with(*volumes: dict[str, Any]) -> dict[str, Any]:
    named = [{"name": f"v{number}", **volume} for number, volume in enumerate(volumes)]
    return {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i:1"}], "volumes": named}


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
async def test_stateful_set_runs_on_claims_that_are_provisioned(storage, mode):
    await storage.add_class("own", volumeBindingMode=mode, allowVolumeExpansion=True)
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    spec = {
        "replicas": 2,
        "serviceName": "db",
        "selector": {"matchLabels": {"a": "b"}},
        "template": template,
        "volumeClaimTemplates": [
            {"metadata": {"name": "data"}, "spec": {**asked, "storageClassName": storage.own("own")}}
        ],
    }
    await storage.create("apps/v1/statefulsets", "db", spec=spec)

    await storage.until("apps/v1/statefulsets", "db", lambda o: o["status"].get("readyReplicas") == 2)

    claims = await storage.list(CLAIMS)
    assert [(c["metadata"]["name"], c["status"]["phase"]) for c in claims] == [
        ("data-db-0", "Bound"),
        ("data-db-1", "Bound"),
    ]
    volume = await storage.call("GET", f"{VOLUMES}/{claims[0]['spec']['volumeName']}")
    assert volume["metadata"]["name"] == f"pvc-{claims[0]['metadata']['uid']}"
    assert volume["spec"]["csi"]["driver"] == "disks.example.com"

    await storage.patch(CLAIMS, "data-db-0", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
    await storage.until(CLAIMS, "data-db-0", lambda o: o["status"]["capacity"] == {"storage": "3Gi"})
    await storage.patch("apps/v1/statefulsets", "db", {"spec": {"replicas": 0}})
    await storage.until_count("v1/pods", 0)
    await storage.delete(CLAIMS, "data-db-0")

    async def is_gone() -> bool:
        listed = (await storage.call("GET", VOLUMES))["items"]
        return volume["metadata"]["name"] not in {one["metadata"]["name"] for one in listed}

    await eventually(is_gone, timeout=LONGEST_WAIT)


async def test_pod_waits_for_its_claims(storage):
    await storage.add_class("own", "example.com/folders")
    source = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage.own("own"),
    }
    await storage.create("v1/pods", "own", spec=pod_with({"ephemeral": {"volumeClaimTemplate": {"spec": source}}}))
    await storage.create("v1/pods", "waits", spec=pod_with({"persistentVolumeClaim": {"claimName": "late"}}))

    waits = await storage.until("v1/pods", "waits", lambda o: o["status"].get("conditions"))
    assert (
        waits["status"]["conditions"][0]["message"]
        == '0/1 nodes are available: persistentvolumeclaim "late" not found.'
    )
    own = await storage.until("v1/pods", "own", lambda o: o["status"]["phase"] == "Running")
    claim = await storage.get(CLAIMS, "own-v0")
    assert claim["metadata"]["ownerReferences"][0]["uid"] == own["metadata"]["uid"]

    await storage.claim("late", of="missing")
    text = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    await storage.until("v1/pods", "waits", lambda o: o["status"]["conditions"][0].get("message") == text)
