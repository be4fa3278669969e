from controllers_cluster import cluster

from ctrlruntime.apiserver.controllers import OUTCOME_ANNOTATION


def workload(kind, name="db", replicas=None, image="db:1", **spec):
    labels = {"app": name}
    if replicas is not None:
        spec["replicas"] = replicas
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def image_patch(image):
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}


def names(c):
    return [p["metadata"]["name"] for p in c.pods()]


def images(c):
    return {p["spec"]["containers"][0]["image"] for p in c.pods()}


async def test_stateful_set_makes_pods_in_order_with_stable_names():
    async with cluster() as c:
        await c.create("apps", "statefulsets", workload("StatefulSet", replicas=3, serviceName="db"))
        for ordinal in range(3):
            await c.until(lambda: len(c.pods()) > ordinal)  # noqa: B023 - asked in this turn of the loop only
            assert len(c.ready()) >= ordinal
        await c.settle()

        assert names(c) == ["db-0", "db-1", "db-2"]
        stored = c.api.get("apps", "statefulsets", "default", "db")
        assert (stored["status"]["readyReplicas"], stored["status"]["updatedReplicas"]) == (3, 3)
        assert stored["status"]["currentRevision"] == stored["status"]["updateRevision"]
        assert (c.pods()[0]["spec"]["hostname"], c.pods()[0]["spec"]["subdomain"]) == ("db-0", "db")


async def test_stateful_set_waits_for_a_pod_that_is_not_ready():
    async with cluster() as c:
        document = workload("StatefulSet", replicas=3)
        document["spec"]["template"]["metadata"]["annotations"] = {OUTCOME_ANNOTATION: "never-ready"}

        await c.create("apps", "statefulsets", document)
        await c.settle()

        assert names(c) == ["db-0"]


async def test_stateful_set_scales_down_from_the_highest_and_rolls_every_pod():
    async with cluster() as c:
        await c.create("apps", "statefulsets", workload("StatefulSet", replicas=3))
        await c.settle()

        await c.api.merge_patch("apps", "statefulsets", "default", "db", {"spec": {"replicas": 2}})
        await c.settle()
        assert names(c) == ["db-0", "db-1"]

        await c.api.merge_patch("apps", "statefulsets", "default", "db", image_patch("db:2"))
        await c.settle()
        assert images(c) == {"db:2"}
        assert len(c.ready()) == 2


async def test_stateful_set_claims_volumes_and_keeps_them():
    async with cluster() as c:
        claim = {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        await c.create("apps", "statefulsets", workload("StatefulSet", replicas=1, volumeClaimTemplates=[claim]))
        await c.settle()

        assert c.pods()[0]["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
        await c.api.delete("apps", "statefulsets", "default", "db")
        await c.settle()
        assert c.pods() == []
        assert c.api.get("", "persistentvolumeclaims", "default", "data-db-0")


async def test_daemon_set_runs_on_every_node_and_is_updated():
    async with cluster() as c:
        await c.api.create("", "nodes", "", {"metadata": {"name": "node-2", "labels": {"disk": "ssd"}}})
        await c.create("apps", "daemonsets", workload("DaemonSet"))
        await c.settle()

        assert sorted(p["spec"]["nodeName"] for p in c.pods()) == ["node-1", "node-2"]
        status = c.api.get("apps", "daemonsets", "default", "db")["status"]
        assert (status["desiredNumberScheduled"], status["numberReady"], status["numberAvailable"]) == (2, 2, 2)

        await c.api.merge_patch("apps", "daemonsets", "default", "db", image_patch("db:2"))
        await c.settle()
        assert images(c) == {"db:2"}
        assert len(c.pods()) == 2

        patch = {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}}
        await c.api.merge_patch("apps", "daemonsets", "default", "db", patch)
        await c.settle()
        assert [p["spec"]["nodeName"] for p in c.pods()] == ["node-2"]


def job(name="work", annotations=None, **spec):
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "restartPolicy": "Never"},
    }
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": template, **spec}}


def conditions(c, name="work"):
    found = c.api.get("batch", "jobs", "default", name)["status"].get("conditions") or ()
    return {x["type"]: (x["status"], x["reason"]) for x in found}


async def test_job_completes_when_enough_pods_have_succeeded():
    async with cluster() as c:
        await c.create("batch", "jobs", job(completions=3, parallelism=2))
        await c.settle()

        status = c.api.get("batch", "jobs", "default", "work")["status"]
        assert status["succeeded"] == 3
        assert "active" not in status
        assert status["completionTime"]
        assert conditions(c)["Complete"] == ("True", "CompletionsReached")
        assert len(c.pods()) == 3


async def test_job_fails_when_the_backoff_limit_is_exceeded():
    async with cluster() as c:
        await c.create("batch", "jobs", job(annotations={OUTCOME_ANNOTATION: "fail"}, backoffLimit=2))
        await c.settle()

        assert c.api.get("batch", "jobs", "default", "work")["status"]["failed"] == 3
        assert conditions(c)["Failed"] == ("True", "BackoffLimitExceeded")


async def test_suspended_job_starts_when_it_is_resumed():
    async with cluster() as c:
        await c.create("batch", "jobs", job(suspend=True))
        await c.settle()
        assert c.pods() == []
        assert conditions(c)["Suspended"] == ("True", "JobSuspended")

        await c.api.merge_patch("batch", "jobs", "default", "work", {"spec": {"suspend": False}})
        await c.settle()
        assert conditions(c)["Complete"][0] == "True"


async def test_indexed_job_gives_each_pod_its_index():
    async with cluster() as c:
        await c.create("batch", "jobs", job(completions=3, parallelism=2, completionMode="Indexed"))
        await c.settle()

        key = "batch.kubernetes.io/job-completion-index"
        assert sorted(p["metadata"]["annotations"][key] for p in c.pods()) == ["0", "1", "2"]


async def test_finished_job_is_deleted_after_its_time_to_live():
    async with cluster() as c:
        await c.create("batch", "jobs", job(ttlSecondsAfterFinished=0))
        await c.settle()

        assert c.api.list("batch", "jobs", "default") == []
        assert c.pods() == []
