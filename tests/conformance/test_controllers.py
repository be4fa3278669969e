"""What controllers make of objects: garbage collection, namespaces and workloads come to the same end on both servers.

The real server has kube-controller-manager, and the embedded server's own node.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.apiserver.behaviour import PREFIX
from ctrlruntime.errors import APIStatusError, NotFound, TooManyRequests
from ctrlruntime.testing import Environment, eventually

pytestmark = pytest.mark.usefixtures("nodes")


class Room:
    """One namespace of a server."""

    def __init__(self, server: Environment, namespace: str) -> None:
        self.server, self.namespace = server, namespace

    async def call(self, method: str, path: str, body: Any = None, content_type: str = "") -> dict[str, Any]:
        request = self.server.connection.request
        return await asyncio.to_thread(request, method, path, body, content_type=content_type)

    def path(self, kind: str, name: str = "") -> str:
        group, _, plural = kind.rpartition("/")
        root = "/api" if group == "v1" else "/apis"
        return f"{root}/{group}/namespaces/{self.namespace}/{plural}{f'/{name}' if name else ''}"

    async def create(self, kind: str, name: str, **body: Any) -> dict[str, Any]:
        meta = {"name": name, **body.pop("meta", {})}
        return await self.call("POST", self.path(kind), {"metadata": meta, **body})

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        return await self.call("GET", self.path(kind, name))

    async def list(self, kind: str) -> list[dict[str, Any]]:
        return (await self.call("GET", self.path(kind)))["items"]

    async def patch(self, kind: str, name: str, patch: Any) -> dict[str, Any]:
        return await self.call("PATCH", self.path(kind, name), patch, "application/merge-patch+json")

    async def delete(
        self, kind: str, name: str, policy: str = "Background", grace: int | None = None
    ) -> dict[str, Any]:
        options = {"propagationPolicy": policy, **({"gracePeriodSeconds": grace} if grace is not None else {})}
        return await self.call("DELETE", self.path(kind, name), options)

    async def until(self, kind: str, name: str, is_met: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The object, once the condition holds for it."""

        async def look() -> dict[str, Any] | None:
            found = await self.get(kind, name)
            return found if is_met(found) else None

        return await eventually(look, timeout=LONGEST_WAIT)

    async def until_gone(self, kind: str, name: str) -> None:
        async def is_gone() -> bool:
            try:
                await self.get(kind, name)
            except NotFound:
                return True
            return False

        await eventually(is_gone, timeout=LONGEST_WAIT)

    async def until_count(self, kind: str, count: int) -> list[dict[str, Any]]:
        async def look() -> list[dict[str, Any]] | None:
            found = await self.list(kind)
            return (found or [{}]) if len(found) == count else None

        return await eventually(look, timeout=LONGEST_WAIT)

    async def told(self, kind: str) -> set[tuple[str, str, str]]:
        """Type, reason and message of the events about objects of a kind; random suffixes are `*`."""
        events = [e for e in await self.list("v1/events") if e["involvedObject"]["kind"] == kind]
        return {(e["type"], e["reason"], re.sub(r"(?<=-)[a-z0-9]{5}\b", "*", e["message"])) for e in events}


@pytest.fixture
def room(server: Environment, namespace: str) -> Room:
    return Room(server, namespace)


def template(restart: str = "Always", labels: dict[str, str] | None = None, **behaviour: str) -> dict[str, Any]:
    annotations = {PREFIX + key.replace("_", "-"): value for key, value in behaviour.items()}
    spec = {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "i:1"}],
    }
    return {"metadata": {"labels": labels or {"a": "b"}, "annotations": annotations}, "spec": spec}


def workload(replicas: int = 2, **spec: Any) -> dict[str, Any]:
    return {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template(), **spec}


def owner(document: dict[str, Any], **more: Any) -> dict[str, Any]:
    meta = document["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"], **more}


def conditions(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(c["type"], c["status"], c["reason"]) for c in document["status"].get("conditions", [])]


def is_finished(job: dict[str, Any]) -> bool:
    return any(kind in {"Complete", "Failed"} for kind, _, _ in conditions(job))


def without_times(status: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in status.items() if not name.endswith("Time")}
    return {**kept, "conditions": [(c["type"], c["status"], c["reason"], c["message"]) for c in status["conditions"]]}


# --- garbage collection and namespaces


async def test_dependent_goes_with_its_owner_and_not_with_one_of_two(room):
    first, second = [await room.create("v1/configmaps", name) for name in ("first", "second")]
    await room.create("v1/configmaps", "child", meta={"ownerReferences": [owner(first)]})
    await room.create("v1/configmaps", "shared", meta={"ownerReferences": [owner(first), owner(second)]})

    await room.delete("v1/configmaps", "first")

    await room.until_gone("v1/configmaps", "child")
    shared = await room.until("v1/configmaps", "shared", lambda o: len(o["metadata"]["ownerReferences"]) == 1)
    assert shared["metadata"]["ownerReferences"][0]["name"] == "second"


async def test_dependent_of_an_owner_that_never_was_goes(room):
    ghost = {"metadata": {"name": "ghost", "uid": "00000000-0000-4000-8000-000000000000"}}
    await room.create("v1/configmaps", "child", meta={"ownerReferences": [owner(ghost)]})

    await room.until_gone("v1/configmaps", "child")


async def test_orphans_stay_without_the_reference(room):
    parent = await room.create("v1/configmaps", "parent")
    await room.create("v1/configmaps", "child", meta={"ownerReferences": [owner(parent)]})
    await eventually(lambda: room.get("v1/configmaps", "child"), timeout=LONGEST_WAIT)

    await room.delete("v1/configmaps", "parent", "Orphan")

    await room.until_gone("v1/configmaps", "parent")
    child = await room.until("v1/configmaps", "child", lambda o: "ownerReferences" not in o["metadata"])
    assert "deletionTimestamp" not in child["metadata"]


async def test_foreground_owner_waits_for_the_dependent_that_blocks_it(room):
    parent = await room.create("v1/configmaps", "parent")
    meta = {"ownerReferences": [owner(parent, blockOwnerDeletion=True)], "finalizers": ["example.com/hold"]}
    await room.create("v1/configmaps", "child", meta=meta)

    await room.delete("v1/configmaps", "parent", "Foreground")

    await room.until("v1/configmaps", "child", lambda o: o["metadata"].get("deletionTimestamp"))
    held = await room.get("v1/configmaps", "parent")
    assert held["metadata"]["finalizers"] == ["foregroundDeletion"]
    await room.patch("v1/configmaps", "child", {"metadata": {"finalizers": None}})
    await room.until_gone("v1/configmaps", "parent")


async def test_namespace_waits_for_what_is_held_in_it_and_takes_nothing_new(room):
    name = await asyncio.to_thread(room.server.create_namespace)
    other = Room(room.server, name)
    await other.create("v1/configmaps", "held", meta={"finalizers": ["example.com/hold"]})
    await room.call("DELETE", f"/api/v1/namespaces/{name}")

    async def remains() -> dict[str, Any] | None:
        found = await room.call("GET", f"/api/v1/namespaces/{name}")
        return found if ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain") in conditions(found) else None

    terminating = await eventually(remains, timeout=LONGEST_WAIT)
    assert terminating["status"]["phase"] == "Terminating"
    texts = {c["type"]: c["message"] for c in terminating["status"]["conditions"]}
    assert texts["NamespaceFinalizersRemaining"] == (
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    )
    assert texts["NamespaceContentRemaining"] == "Some resources are remaining: configmaps. has 1 resource instances"
    with pytest.raises(APIStatusError, match="because it is being terminated"):
        await other.create("v1/configmaps", "late")
    await other.patch("v1/configmaps", "held", {"metadata": {"finalizers": None}})

    async def is_gone() -> bool:
        try:
            await room.call("GET", f"/api/v1/namespaces/{name}")
        except NotFound:
            return True
        return False

    await eventually(is_gone, timeout=LONGEST_WAIT)


async def test_default_service_account_and_root_ca_come_back(room):
    await room.until("v1/serviceaccounts", "default", bool)
    before = await room.until("v1/configmaps", "kube-root-ca.crt", bool)
    for kind, name in (("v1/serviceaccounts", "default"), ("v1/configmaps", "kube-root-ca.crt")):
        await room.delete(kind, name)

    await eventually(lambda: _present(room, "v1/serviceaccounts", "default"), timeout=LONGEST_WAIT)
    after = await eventually(lambda: _present(room, "v1/configmaps", "kube-root-ca.crt"), timeout=LONGEST_WAIT)
    assert after["data"] == before["data"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def _present(room: Room, kind: str, name: str) -> dict[str, Any] | None:
    try:
        return await room.get(kind, name)
    except NotFound:
        return None


async def test_claim_in_use_goes_after_its_pod(room):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await room.create("v1/persistentvolumeclaims", "data", spec=spec)
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    await room.create("v1/pods", "p", spec={**template()["spec"], "volumes": volumes})
    await room.until("v1/pods", "p", lambda o: o["spec"].get("nodeName"))

    deleted = await room.delete("v1/persistentvolumeclaims", "data")

    assert deleted["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert (await room.get("v1/persistentvolumeclaims", "data"))["metadata"]["deletionTimestamp"]
    await room.delete("v1/pods", "p")
    await room.until_gone("v1/persistentvolumeclaims", "data")


# --- Jobs

REACHED = "Reached expected number of succeeded pods"
IDLE = {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}


async def run_job(room: Room, restart: str = "Never", behaviour: dict[str, str] | None = None, **spec: Any) -> Any:
    await room.create("batch/v1/jobs", "j", spec={"template": template(restart, **(behaviour or {})), **spec})
    return await room.until("batch/v1/jobs", "j", is_finished)


async def test_job_completes(room):
    job = await run_job(room, completions=3, parallelism=2)

    assert without_times(job["status"]) == {
        **IDLE,
        "succeeded": 3,
        "conditions": [
            ("SuccessCriteriaMet", "True", "CompletionsReached", REACHED),
            ("Complete", "True", "CompletionsReached", REACHED),
        ],
    }
    assert job["status"]["completionTime"]
    pods = await room.list("v1/pods")
    assert len(pods) == 3
    assert all("finalizers" not in pod["metadata"] for pod in pods)
    told = {("Normal", "SuccessfulCreate", "Created pod: j-*"), ("Normal", "Completed", "Job completed")}
    assert await room.told("Job") == told


async def test_job_fails_at_its_backoff_limit(room):
    job = await run_job(room, behaviour={"outcome": "fail", "exit_code": "3"}, backoffLimit=0)

    text = "Job has reached the specified backoff limit"
    assert without_times(job["status"]) == {
        **IDLE,
        "failed": 1,
        "conditions": [(kind, "True", "BackoffLimitExceeded", text) for kind in ("FailureTarget", "Failed")],
    }
    assert ("Warning", "BackoffLimitExceeded", text) in await room.told("Job")


async def test_job_whose_containers_restart_counts_the_restarts(room):
    behaviour = {"outcome": "fail", "restart_delay": "200ms"}
    job = await run_job(room, "OnFailure", behaviour, backoffLimit=1)

    assert conditions(job)[-1] == ("Failed", "True", "BackoffLimitExceeded")
    assert job["status"]["failed"] == 1
    await room.until_count("v1/pods", 0)


async def test_indexed_job_gives_each_pod_its_index(room):
    job = await run_job(room, completions=3, parallelism=2, completionMode="Indexed")

    assert job["status"]["completedIndexes"] == "0-2"
    label = "batch.kubernetes.io/job-completion-index"
    pods = sorted(await room.list("v1/pods"), key=lambda pod: pod["metadata"]["annotations"][label])
    assert [pod["metadata"]["labels"][label] for pod in pods] == ["0", "1", "2"]
    assert [pod["spec"]["hostname"] for pod in pods] == ["j-0", "j-1", "j-2"]
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{label}']"}}
    assert pods[0]["spec"]["containers"][0]["env"] == [{"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]


async def test_indexed_job_fails_index_by_index(room):
    behaviour = {"outcome": "fail"}
    job = await run_job(
        room, behaviour=behaviour, completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=0
    )

    assert job["status"]["failedIndexes"] == "0,1"
    assert conditions(job) == [(kind, "True", "FailedIndexes") for kind in ("FailureTarget", "Failed")]


async def test_job_over_its_deadline_is_ended(room):
    job = await run_job(room, behaviour={"outcome": "never-ready"}, activeDeadlineSeconds=1)

    assert conditions(job) == [(kind, "True", "DeadlineExceeded") for kind in ("FailureTarget", "Failed")]
    assert job["status"]["failed"] == 1
    await room.until_count("v1/pods", 0)


async def test_job_is_suspended_and_resumed(room):
    spec = {"template": template("Never"), "suspend": True}
    await room.create("batch/v1/jobs", "j", spec=spec)
    job = await room.until("batch/v1/jobs", "j", conditions)
    assert without_times(job["status"]) == {
        **IDLE,
        "conditions": [("Suspended", "True", "JobSuspended", "Job suspended")],
    }
    assert "startTime" not in job["status"]

    await room.patch("batch/v1/jobs", "j", {"spec": {"suspend": False}})

    job = await room.until("batch/v1/jobs", "j", is_finished)
    assert conditions(job)[0] == ("Suspended", "False", "JobResumed")
    assert job["status"]["succeeded"] == 1
    assert {reason for _, reason, _ in await room.told("Job")} >= {"Suspended", "Resumed", "Completed"}


async def test_pod_failure_policy_ends_the_job(room):
    codes = {"operator": "In", "values": [42]}
    policy = {"rules": [{"action": "FailJob", "onExitCodes": codes}]}
    job = await run_job(room, behaviour={"outcome": "fail", "exit_code": "42"}, podFailurePolicy=policy)

    assert conditions(job) == [(kind, "True", "PodFailurePolicy") for kind in ("FailureTarget", "Failed")]
    text = re.sub(r"pod \S+", "pod *", job["status"]["conditions"][0]["message"])
    assert text == "Container c for pod * failed with exit code 42 matching FailJob rule at index 0"


async def test_success_policy_completes_the_job(room):
    policy = {"rules": [{"succeededIndexes": "0"}]}
    job = await run_job(room, completions=3, parallelism=1, completionMode="Indexed", successPolicy=policy)

    assert conditions(job) == [(kind, "True", "SuccessPolicy") for kind in ("SuccessCriteriaMet", "Complete")]
    assert job["status"]["completedIndexes"] == "0"


async def test_finished_job_goes_after_its_time_to_live(room):
    await room.create("batch/v1/jobs", "j", spec={"template": template("Never"), "ttlSecondsAfterFinished": 1})

    await room.until_gone("batch/v1/jobs", "j")
    await room.until_count("v1/pods", 0)


# --- Deployments and sets


async def test_deployment_becomes_available_scales_and_misses_its_deadline(room):
    kind = "apps/v1/deployments"
    await room.create(kind, "d", spec=workload())
    done = await room.until(kind, "d", lambda o: ("Progressing", "True", "NewReplicaSetAvailable") in conditions(o))
    assert {k: v for k, v in done["status"].items() if k != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
    }
    assert conditions(done)[0] == ("Available", "True", "MinimumReplicasAvailable")

    await room.patch(kind, "d", {"spec": {"replicas": 1}})
    await room.until(kind, "d", lambda o: o["status"].get("availableReplicas") == 1 and o["status"]["replicas"] == 1)

    crashing = {"metadata": {"annotations": {f"{PREFIX}outcome": "crash-loop"}}}
    await room.patch(kind, "d", {"spec": {"progressDeadlineSeconds": 2, "template": crashing}})
    late = await room.until(kind, "d", lambda o: ("Progressing", "False", "ProgressDeadlineExceeded") in conditions(o))
    assert ("Available", "True", "MinimumReplicasAvailable") in conditions(late)
    assert late["status"]["unavailableReplicas"] == 1


async def test_deleted_pod_and_drifted_replica_set_are_restored(room):
    await room.create("apps/v1/deployments", "d", spec=workload())
    await room.until("apps/v1/deployments", "d", lambda o: o["status"].get("readyReplicas") == 2)
    (replica_set,) = await room.list("apps/v1/replicasets")
    pod = (await room.list("v1/pods"))[0]["metadata"]["name"]

    await room.delete("v1/pods", pod)
    await room.patch("apps/v1/replicasets", replica_set["metadata"]["name"], {"spec": {"replicas": 0}})

    await room.until_gone("v1/pods", pod)
    restored = await room.until(
        "apps/v1/replicasets",
        replica_set["metadata"]["name"],
        lambda o: o["spec"]["replicas"] == 2 and o["status"].get("readyReplicas") == 2,
    )
    assert restored["metadata"]["uid"] == replica_set["metadata"]["uid"]


async def test_stateful_set_rolls_down_to_its_partition(room):
    kind = "apps/v1/statefulsets"
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": claim}]
    await room.create(kind, "s", spec=workload(serviceName="svc", volumeClaimTemplates=claims))
    first = await room.until(kind, "s", lambda o: o["status"].get("availableReplicas") == 2)
    pod = await room.get("v1/pods", "s-0")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("s-0", "svc")
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"
    assert pod["metadata"]["labels"]["controller-revision-hash"] == first["status"]["currentRevision"]
    assert sorted(c["metadata"]["name"] for c in await room.list("v1/persistentvolumeclaims")) == [
        "data-s-0",
        "data-s-1",
    ]

    update = {"updateStrategy": {"rollingUpdate": {"partition": 1}}}
    image = {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}
    await room.patch(kind, "s", {"spec": {**update, **image}})
    await room.until(
        kind, "s", lambda o: o["status"].get("updatedReplicas") == 1 and o["status"].get("availableReplicas") == 2
    )

    images = {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in await room.list("v1/pods")}
    assert images == {"s-0": "i:1", "s-1": "i:2"}
    revisions = await room.list("apps/v1/controllerrevisions")
    assert sorted(r["revision"] for r in revisions) == [1, 2]
    assert ("Normal", "SuccessfulCreate", "Create Claim data-s-0 Pod s-0 in StatefulSet s success") in await room.told(
        "StatefulSet"
    )


async def test_daemon_set_runs_on_the_node_and_is_updated(room):
    kind = "apps/v1/daemonsets"
    await room.create(kind, "ds", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template()})
    await room.until(kind, "ds", lambda o: o["status"].get("numberAvailable") == 1)
    (pod,) = await room.list("v1/pods")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    needed = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert needed == {"nodeSelectorTerms": [term]}
    assert pod["metadata"]["labels"]["pod-template-generation"] == "1"

    await room.patch(kind, "ds", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}})

    await room.until(
        kind,
        "ds",
        lambda o: (
            o["status"]["observedGeneration"] == 2
            and o["status"].get("updatedNumberScheduled") == 1
            and o["status"].get("numberAvailable") == 1
        ),
    )
    assert [p["metadata"]["labels"]["pod-template-generation"] for p in await room.list("v1/pods")] == ["2"]


async def test_replication_controller_keeps_its_pods(room):
    spec = {"replicas": 2, "template": template()}
    await room.create("v1/replicationcontrollers", "r", spec=spec)

    found = await room.until("v1/replicationcontrollers", "r", lambda o: o["status"].get("availableReplicas") == 2)

    assert found["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
    }


# --- Services and budgets


async def test_service_gets_a_slice_and_endpoints(room):
    container = {"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 8080}]}
    await room.create("v1/pods", "p", meta={"labels": {"a": "b"}}, spec={"containers": [container]})
    ports = [{"name": "web", "port": 80, "targetPort": "http"}]
    await room.create("v1/services", "s", meta={"labels": {"q": "r"}}, spec={"selector": {"a": "b"}, "ports": ports})

    async def ready() -> dict[str, Any] | None:
        slices = await room.list("discovery.k8s.io/v1/endpointslices")
        found = [s for s in slices if s.get("endpoints") and s["endpoints"][0]["conditions"]["ready"]]
        return found[0] if found else None

    found = await eventually(ready, timeout=LONGEST_WAIT)
    assert found["metadata"]["labels"] == {
        "q": "r",
        "kubernetes.io/service-name": "s",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert found["ports"] == [{"name": "web", "port": 8080, "protocol": "TCP"}]
    address = found["endpoints"][0]["addresses"][0]
    endpoints = await room.until("v1/endpoints", "s", lambda o: o.get("subsets") and "addresses" in o["subsets"][0])
    (subset,) = endpoints["subsets"]
    assert subset["addresses"][0]["ip"] == address
    assert subset["ports"] == found["ports"]


async def test_eviction_asks_the_budget(room):
    await room.create("apps/v1/deployments", "d", spec=workload(replicas=2))
    kind = "policy/v1/poddisruptionbudgets"
    selector = {"matchLabels": {"a": "b"}}
    await room.create(kind, "b", spec={"maxUnavailable": 1, "selector": selector})
    budget = await room.until(kind, "b", lambda o: o["status"].get("disruptionsAllowed") == 1)
    assert {k: v for k, v in budget["status"].items() if k != "conditions"} == {
        "observedGeneration": 1,
        "expectedPods": 2,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "disruptionsAllowed": 1,
    }
    assert conditions(budget) == [("DisruptionAllowed", "True", "SufficientPods")]
    await room.patch(kind, "b", {"spec": {"maxUnavailable": 0}})
    await room.until(
        kind, "b", lambda o: o["status"]["disruptionsAllowed"] == 0 and o["status"]["observedGeneration"] == 2
    )
    pod = (await room.list("v1/pods"))[0]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}

    with pytest.raises(TooManyRequests) as refused:
        await room.call("POST", f"{room.path('v1/pods', pod)}/eviction", eviction)
    assert refused.value.status["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused.value.status["details"] == {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget b needs 2 healthy pods and has 2 currently",
            }
        ]
    }

    await room.patch(kind, "b", {"spec": {"maxUnavailable": 1}})
    await room.until(kind, "b", lambda o: o["status"]["disruptionsAllowed"] == 1)
    assert (await room.call("POST", f"{room.path('v1/pods', pod)}/eviction", eviction))["status"] == "Success"
    await room.until_gone("v1/pods", pod)
    await room.until(kind, "b", lambda o: o["status"]["disruptionsAllowed"] == 1)


async def test_two_budgets_of_one_pod_are_an_error_of_the_eviction(room):
    await room.create("v1/pods", "p", meta={"labels": {"a": "b"}}, spec=template()["spec"])
    await room.until("v1/pods", "p", lambda o: o["status"]["phase"] == "Running")
    for name in ("b1", "b2"):
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
        await room.create("policy/v1/poddisruptionbudgets", name, spec=spec)

    with pytest.raises(APIStatusError, match="This pod has more than one PodDisruptionBudget") as refused:
        await room.call("POST", f"{room.path('v1/pods', 'p')}/eviction", {"metadata": {"name": "p"}})
    assert refused.value.code == 500


# --- Pods that wait


async def test_pod_waits_for_its_secret_and_for_room(room):
    container = {"name": "c", "image": "i:1"}
    await room.create(
        "v1/pods", "large", spec={"containers": [{**container, "resources": {"requests": {"cpu": "1k"}}}]}
    )
    await room.create(
        "v1/pods", "early", spec={"containers": [{**container, "envFrom": [{"secretRef": {"name": "s"}}]}]}
    )

    large = await room.until("v1/pods", "large", lambda o: o["status"].get("conditions"))
    assert large["status"]["conditions"][0]["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    early = await room.until("v1/pods", "early", lambda o: o["status"].get("containerStatuses"))
    state = early["status"]["containerStatuses"][0]["state"]
    assert state == {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}}

    await room.create("v1/secrets", "s")
    await room.until("v1/pods", "early", lambda o: o["status"]["phase"] == "Running")
