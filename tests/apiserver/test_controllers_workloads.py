import asyncio

from controllers_cluster import cluster, deployment, is_ready, pod

from ctrlruntime.apiserver.controllers import OUTCOME_ANNOTATION
from ctrlruntime.errors import Forbidden

REVISION = "deployment.kubernetes.io/revision"


def status(c, name="web"):
    return c.deployment(name)["status"]


def condition(obj, kind):
    return next((x for x in obj["status"]["conditions"] if x["type"] == kind), None)


def image_patch(image):
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}


def events(c, reason):
    return [e["message"] for e in c.api.list("", "events", "default") if e["reason"] == reason]


async def test_deployment_gets_ready_replicas_within_a_second():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=3))

        await c.until(lambda: status(c).get("readyReplicas") == 3, seconds=1)

        assert len(c.ready()) == 3


async def test_finished_deployment_has_the_status_of_the_real_controller():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=2))
        await c.settle()

        web = c.deployment()
        [replica_set] = c.replica_sets()
        name = replica_set["metadata"]["name"]
        counts = {k: v for k, v in web["status"].items() if k != "conditions"}
        assert counts == {
            "observedGeneration": web["metadata"]["generation"],
            "replicas": 2,
            "updatedReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "terminatingReplicas": 0,
        }
        assert web["metadata"]["annotations"] == {REVISION: "1"}
        assert condition(web, "Available")["reason"] == "MinimumReplicasAvailable"
        progressing = condition(web, "Progressing")
        assert progressing["reason"] == "NewReplicaSetAvailable"
        assert progressing["message"] == f'ReplicaSet "{name}" has successfully progressed.'
        assert events(c, "ScalingReplicaSet") == [f"Scaled up replica set {name} from 0 to 2"]
        assert len(events(c, "SuccessfulCreate")) == 2


async def test_replica_set_carries_hash_revision_and_owner():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=2))
        await c.settle()

        [replica_set] = c.replica_sets()
        meta = replica_set["metadata"]
        template_hash = meta["labels"]["pod-template-hash"]
        assert meta["name"] == f"web-{template_hash}"
        assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": template_hash}
        assert meta["annotations"] == {
            REVISION: "1",
            "deployment.kubernetes.io/desired-replicas": "2",
            "deployment.kubernetes.io/max-replicas": "3",
        }
        assert meta["ownerReferences"][0]["controller"] is True
        assert all(p["metadata"]["name"].startswith(f"{meta['name']}-") for p in c.pods())


async def test_scaling_up_and_down_follows_the_spec():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=1))
        await c.settle()

        await c.api.merge_patch("apps", "deployments", "default", "web", {"spec": {"replicas": 5}})
        await c.until(lambda: status(c).get("readyReplicas") == 5)
        await c.api.merge_patch("apps", "deployments", "default", "web", {"spec": {"replicas": 2}})
        await c.settle()

        assert len(c.pods()) == 2
        assert status(c)["replicas"] == 2
        assert len(c.replica_sets()) == 1


async def test_scaling_to_zero_removes_every_pod():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=2))
        await c.settle()

        await c.api.merge_patch("apps", "deployments", "default", "web", {"spec": {"replicas": 0}})
        await c.settle()

        assert c.pods() == []
        assert "replicas" not in status(c)


async def test_rolling_update_replaces_every_pod_and_keeps_the_minimum_available():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=4))
        await c.settle()
        lowest, most = 4, 4

        async def observe():
            nonlocal lowest, most
            async for _, resource, _ in c.api.watch_all():
                if resource == "pods":
                    lowest, most = min(lowest, len(c.ready())), max(most, len(c.pods()))

        task = asyncio.create_task(observe())
        await c.api.merge_patch("apps", "deployments", "default", "web", image_patch("web:2"))
        await c.settle()
        task.cancel()

        assert {p["spec"]["containers"][0]["image"] for p in c.pods()} == {"web:2"}
        assert len(c.ready()) == 4
        assert lowest >= 3
        assert most <= 6  # one surge pod, and one that is going
        assert c.deployment()["metadata"]["annotations"][REVISION] == "2"
        assert sorted(r["spec"]["replicas"] for r in c.replica_sets()) == [0, 4]


async def test_rolling_back_uses_the_old_replica_set_with_a_new_revision():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=1))
        await c.settle()
        [first] = c.replica_sets()
        await c.api.merge_patch("apps", "deployments", "default", "web", image_patch("web:2"))
        await c.settle()

        await c.api.merge_patch("apps", "deployments", "default", "web", image_patch("web:1"))
        await c.settle()

        again = c.api.get("apps", "replicasets", "default", first["metadata"]["name"])
        assert again["spec"]["replicas"] == 1
        assert again["metadata"]["annotations"][REVISION] == "3"
        assert len(c.replica_sets()) == 2


async def test_rollout_to_pods_that_never_become_ready_keeps_the_old_ones():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=4))
        await c.settle()

        patch = image_patch("web:2")
        patch["spec"]["template"]["metadata"] = {"annotations": {OUTCOME_ANNOTATION: "never-ready"}}
        await c.api.merge_patch("apps", "deployments", "default", "web", patch)
        await c.settle()

        assert len(c.ready()) == 3
        assert condition(c.deployment(), "Progressing")["reason"] == "ReplicaSetUpdated"
        assert condition(c.deployment(), "Available")["status"] == "True"


async def test_recreate_removes_all_old_pods_before_it_makes_new_ones():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=3, strategy={"type": "Recreate"}))
        await c.settle()
        mixed = []

        async def observe():
            async for _, resource, _ in c.api.watch_all():
                if resource == "pods":
                    mixed.append(len({p["spec"]["containers"][0]["image"] for p in c.pods()}) > 1)

        task = asyncio.create_task(observe())
        await c.api.merge_patch("apps", "deployments", "default", "web", image_patch("web:2"))
        await c.settle()
        task.cancel()

        assert len(c.ready()) == 3
        assert not any(mixed)


async def test_paused_deployment_does_not_roll_out():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=1))
        await c.settle()
        await c.api.merge_patch("apps", "deployments", "default", "web", {"spec": {"paused": True}})

        await c.api.merge_patch("apps", "deployments", "default", "web", image_patch("web:2"))
        await c.settle()
        assert [p["spec"]["containers"][0]["image"] for p in c.pods()] == ["web:1"]
        assert condition(c.deployment(), "Progressing")["reason"] == "DeploymentPaused"

        await c.api.merge_patch("apps", "deployments", "default", "web", {"spec": {"paused": None}})
        await c.settle()
        assert [p["spec"]["containers"][0]["image"] for p in c.pods()] == ["web:2"]
        assert condition(c.deployment(), "Progressing")["reason"] == "NewReplicaSetAvailable"


async def test_old_replica_sets_beyond_the_history_limit_are_deleted():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=1, revisionHistoryLimit=1))
        await c.settle()

        for image in ("web:2", "web:3", "web:4"):
            await c.api.merge_patch("apps", "deployments", "default", "web", image_patch(image))
            await c.settle()

        assert len(c.replica_sets()) == 2


async def test_deleted_deployment_takes_its_replica_sets_and_pods_with_it():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=3))
        await c.settle()

        await c.api.delete("apps", "deployments", "default", "web")
        await c.settle()

        assert c.pods() == []
        assert c.replica_sets() == []


async def test_deployment_created_again_gets_new_pods_while_the_old_ones_go():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=3))
        await c.settle()
        before = {p["metadata"]["uid"] for p in c.pods()}

        await c.api.delete("apps", "deployments", "default", "web")
        await c.create("apps", "deployments", deployment(replicas=3))
        await c.settle()

        assert len(c.ready()) == 3
        assert before.isdisjoint(p["metadata"]["uid"] for p in c.pods())


async def test_deleted_pod_is_replaced():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=2))
        await c.settle()
        victim = c.pods()[0]["metadata"]

        await c.api.delete("", "pods", "default", victim["name"])
        await c.settle()

        assert len(c.ready()) == 2
        assert victim["uid"] not in {p["metadata"]["uid"] for p in c.pods()}


async def test_matching_orphan_pod_is_adopted_and_an_unlabelled_one_released():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=1))
        await c.settle()
        [mine] = c.pods()

        await c.api.merge_patch(
            "", "pods", "default", mine["metadata"]["name"], {"metadata": {"labels": {"app": "debug"}}}
        )
        await c.settle()

        released = c.api.get("", "pods", "default", mine["metadata"]["name"])
        assert "ownerReferences" not in released["metadata"]
        assert len(c.pods()) == 2
        await c.api.merge_patch(
            "", "pods", "default", mine["metadata"]["name"], {"metadata": {"labels": {"app": "web"}}}
        )
        await c.settle()
        assert len(c.pods()) == 1  # adopted, and one too many


async def test_pods_wait_for_the_ready_delay():
    now = 0.0
    async with cluster(pod_ready_delay=30.0, clock=lambda: now) as c:
        await c.create("", "pods", pod())
        await c.settle()
        waiting = c.pods()[0]["status"]
        assert waiting["phase"] == "Pending"
        assert waiting["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}

        now = 30.0
        await c.api.merge_patch("", "pods", "default", "p", {"metadata": {"labels": {"poke": "it"}}})
        await c.settle()

        assert is_ready(c.pods()[0])


async def test_running_pod_has_address_node_and_container_status():
    async with cluster() as c:
        await c.create("", "pods", pod("a"))
        await c.create("", "pods", pod("b"))
        await c.settle()

        a, b = c.pods()
        assert a["spec"]["nodeName"] == "node-1"
        assert a["status"]["podIP"] != b["status"]["podIP"]
        assert a["status"]["podIPs"] == [{"ip": a["status"]["podIP"]}]
        assert a["status"]["startTime"]
        assert [x["type"] for x in a["status"]["conditions"]] == [
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled",
        ]
        [container] = a["status"]["containerStatuses"]
        assert (container["name"], container["ready"], container["started"], container["restartCount"]) == (
            "c",
            True,
            True,
            0,
        )


async def test_annotation_decides_the_fate_of_a_pod():
    async with cluster() as c:
        for outcome in ("fail", "succeed", "never-ready", "crash-loop", "pending", "image-pull-error"):
            document = pod(outcome, restartPolicy="Never")
            document["metadata"]["annotations"] = {OUTCOME_ANNOTATION: outcome}
            await c.create("", "pods", document)
        await c.settle()

        found = {p["metadata"]["name"]: p for p in c.pods()}
        assert {name: p["status"]["phase"] for name, p in found.items()} == {
            "fail": "Failed",
            "succeed": "Succeeded",
            "never-ready": "Running",
            "crash-loop": "Running",
            "pending": "Pending",
            "image-pull-error": "Pending",
        }
        assert not any(is_ready(p) for p in found.values())
        assert found["fail"]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1
        assert found["crash-loop"]["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"


async def test_pod_runs_once_the_node_that_it_is_bound_to_is_there():
    async with cluster() as c:
        await c.create("", "pods", pod("bound", schedulerName="mine", nodeName="node-7"))
        await c.settle()
        [waiting] = c.pods()
        assert waiting["status"]["phase"] == "Pending"

        await c.create("", "nodes", {"metadata": {"name": "node-7"}})
        await c.settle()

        [running] = c.pods()
        assert running["status"]["phase"] == "Running"


async def test_pod_of_another_scheduler_or_with_gates_stays_pending():
    async with cluster() as c:
        await c.create("", "pods", pod("other", schedulerName="mine"))
        await c.create("", "pods", pod("gated", schedulingGates=[{"name": "wait"}]))
        await c.create("", "pods", pod("bound", schedulerName="mine", nodeName="node-1"))
        await c.settle()

        assert {p["metadata"]["name"]: p["status"]["phase"] for p in c.pods()} == {
            "other": "Pending",
            "gated": "Pending",
            "bound": "Running",
        }


async def test_pod_with_readiness_gate_is_ready_when_the_gate_opens():
    async with cluster() as c:
        await c.create("", "pods", pod(readinessGates=[{"conditionType": "my/gate"}]))
        await c.settle()
        [waiting] = c.pods()
        assert not is_ready(waiting)

        waiting["status"]["conditions"].append({"type": "my/gate", "status": "True"})
        await c.api.update("", "pods", waiting, subresource="status")
        await c.settle()

        assert is_ready(c.pods()[0])


async def test_without_nodes_pods_stay_pending():
    async with cluster(nodes=False) as c:
        await c.create("apps", "deployments", deployment(replicas=2))
        await c.settle()

        assert [p["status"]["phase"] for p in c.pods()] == ["Pending", "Pending"]
        assert c.api.list("", "nodes") == []
        assert status(c)["unavailableReplicas"] == 2
        assert condition(c.deployment(), "Available")["status"] == "False"


async def test_deleted_node_is_registered_again_ready_and_without_taints():
    async with cluster() as c:
        await c.until(lambda: c.api.list("", "nodes"))
        await c.settle()

        await c.api.delete("", "nodes", "", "node-1")
        await c.settle()

        [node] = c.api.list("", "nodes")
        assert condition(node, "Ready")["status"] == "True"
        assert "taints" not in node["spec"]


async def test_deployment_that_makes_no_progress_in_time_says_so():
    from datetime import UTC, datetime, timedelta

    moment = datetime(2026, 1, 1, tzinfo=UTC)
    async with cluster(nodes=False, now=lambda: moment) as c:
        await c.create("apps", "deployments", deployment(replicas=1, progressDeadlineSeconds=60))
        await c.settle()

        moment += timedelta(seconds=61)
        await c.api.merge_patch("apps", "deployments", "default", "web", {"metadata": {"labels": {"poke": "it"}}})
        await c.settle()

        progressing = condition(c.deployment(), "Progressing")
        assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")


async def test_pods_count_as_available_after_min_ready_seconds():
    from datetime import UTC, datetime, timedelta

    moment = datetime(2026, 1, 1, tzinfo=UTC)
    async with cluster(now=lambda: moment) as c:
        await c.create("apps", "deployments", deployment(replicas=1, minReadySeconds=20))
        await c.settle()
        assert (status(c)["readyReplicas"], status(c).get("availableReplicas", 0)) == (1, 0)

        moment += timedelta(seconds=20)
        await c.api.merge_patch(
            "", "pods", "default", c.pods()[0]["metadata"]["name"], {"metadata": {"labels": {"x": "y"}}}
        )
        await c.settle()

        assert status(c)["availableReplicas"] == 1


async def test_refused_pod_is_reported_on_the_replica_set():
    async with cluster() as c:
        await c.create("apps", "deployments", deployment(replicas=1))
        await c.settle()
        create, refused = c.api.create, 0

        async def refuse(group, resource, namespace, document):
            nonlocal refused
            if resource == "pods":
                refused += 1
                raise Forbidden(f"pod {refused} is forbidden today")
            return await create(group, resource, namespace, document)

        c.api.create = refuse
        await c.api.merge_patch("apps", "deployments", "default", "web", {"spec": {"replicas": 2}})
        await c.until(lambda: refused > 2)

        # The first message stays: a write at each refusal would be a reason to try again at once.
        [failure] = c.replica_sets()[0]["status"]["conditions"]
        assert (failure["type"], failure["reason"], failure["message"]) == (
            "ReplicaFailure",
            "FailedCreate",
            "pod 1 is forbidden today",
        )
        c.api.create = create
        await c.until(lambda: len(c.ready()) == 2)
        await c.until(lambda: "conditions" not in c.replica_sets()[0]["status"])
