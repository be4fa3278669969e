"""CronJobs, disruption budgets, protection of claims, revisions, and the age of Events."""

from datetime import UTC, datetime, timedelta

from controllers_cluster import cluster, deployment, pod

from ctrlruntime.apiserver.controllers import OUTCOME_ANNOTATION


class Clock:
    def __init__(self):
        self.moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def now(self):
        return self.moment


def cron_job(outcome="succeed", **spec):
    template = {
        "metadata": {"annotations": {OUTCOME_ANNOTATION: outcome}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "restartPolicy": "Never"},
    }
    job = {"metadata": {"labels": {"from": "cron"}}, "spec": {"template": template, "backoffLimit": 0}}
    # The stored creation time is that of the machine; the clock of these tests begins after it.
    return {"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *", "jobTemplate": job, **spec}}


class Cron:
    """A CronJob, a clock, and the minutes that pass."""

    def __init__(self, c, clock):
        self._c, self._clock = c, clock
        clock.moment = datetime.now(UTC).replace(second=30, microsecond=0)

    async def create(self, **spec):
        self._clock.moment += timedelta(minutes=1)
        await self._c.create("batch", "cronjobs", cron_job(**spec))
        await self.pass_minutes(0)

    async def pass_minutes(self, minutes):
        self._clock.moment += timedelta(minutes=minutes)
        label = {"metadata": {"labels": {"t": str(self._clock.moment.timestamp())}}}
        await self._c.api.merge_patch("batch", "cronjobs", "default", "tick", label)
        await self._c.settle()

    @property
    def jobs(self):
        return self._c.api.list("batch", "jobs", "default")

    @property
    def status(self):
        return self._c.api.get("batch", "cronjobs", "default", "tick").get("status") or {}

    def reasons(self):
        events = self._c.api.list("", "events", "default")
        return {e["reason"] for e in events if e["involvedObject"]["kind"] == "CronJob"}


async def test_cron_job_makes_a_job_at_its_time_and_remembers_it():
    clock = Clock()
    async with cluster(now=clock.now) as c:
        cron = Cron(c, clock)
        await cron.create()

        (job,) = cron.jobs
        minute = clock.moment.replace(second=0)
        assert job["metadata"]["name"] == f"tick-{int(minute.timestamp()) // 60}"
        assert job["metadata"]["labels"]["from"] == "cron"
        assert job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] == minute.strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
        assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
        assert cron.status["lastScheduleTime"] == minute.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert cron.status["lastSuccessfulTime"]
        assert "active" not in cron.status
        assert cron.reasons() >= {"SuccessfulCreate", "SawCompletedJob"}


async def test_running_jobs_are_listed_as_active():
    clock = Clock()
    async with cluster(now=clock.now) as c:
        cron = Cron(c, clock)
        await cron.create(outcome="ready")
        await cron.pass_minutes(1)

        assert len(cron.jobs) == 2
        assert sorted(ref["name"] for ref in cron.status["active"]) == [j["metadata"]["name"] for j in cron.jobs]


async def test_forbid_waits_for_the_job_before():
    clock = Clock()
    async with cluster(now=clock.now) as c:
        cron = Cron(c, clock)
        await cron.create(outcome="ready", concurrencyPolicy="Forbid")
        await cron.pass_minutes(1)

        assert len(cron.jobs) == 1
        assert "JobAlreadyActive" in cron.reasons()


async def test_replace_deletes_the_job_before():
    clock = Clock()
    async with cluster(now=clock.now) as c:
        cron = Cron(c, clock)
        await cron.create(outcome="ready", concurrencyPolicy="Replace")
        (before,) = cron.jobs
        await cron.pass_minutes(1)

        (after,) = cron.jobs
        assert after["metadata"]["name"] != before["metadata"]["name"]
        assert [ref["name"] for ref in cron.status["active"]] == [after["metadata"]["name"]]


async def test_suspended_cron_job_starts_nothing():
    clock = Clock()
    async with cluster(now=clock.now) as c:
        cron = Cron(c, clock)
        await cron.create(suspend=True)
        await cron.pass_minutes(3)

        assert cron.jobs == []


async def test_only_the_last_of_several_missed_times_is_made_up_for():
    clock = Clock()
    async with cluster(now=clock.now) as c:
        cron = Cron(c, clock)
        await cron.create()
        await cron.pass_minutes(5)

        assert len(cron.jobs) == 2


async def test_time_missed_by_more_than_the_deadline_is_left_out():
    clock = Clock()
    async with cluster(now=clock.now) as c:
        cron = Cron(c, clock)
        await cron.create(schedule="0 0 1 1 *", startingDeadlineSeconds=10)

        assert cron.jobs == []


async def test_history_keeps_the_latest_jobs():
    clock = Clock()
    async with cluster(now=clock.now) as c:
        cron = Cron(c, clock)
        await cron.create(successfulJobsHistoryLimit=2)
        for _ in range(3):
            await cron.pass_minutes(1)

        assert len(cron.jobs) == 2
        assert cron.jobs[-1]["metadata"]["name"] == f"tick-{int(clock.moment.timestamp()) // 60}"


def budget(**spec):
    return {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}


async def budget_status(c, **spec):
    await c.create("policy", "poddisruptionbudgets", budget(**spec))
    await c.settle()
    status = c.api.get("policy", "poddisruptionbudgets", "default", "b")["status"]
    (condition,) = status["conditions"]
    numbers = [status[k] for k in ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")]
    return numbers, condition["status"], condition["reason"]


async def test_budget_counts_the_pods_of_a_deployment():
    for spec, expected in (
        ({"minAvailable": 2}, [3, 3, 2, 1]),
        ({"minAvailable": "50%"}, [3, 3, 2, 1]),
        ({"maxUnavailable": 1}, [3, 3, 2, 1]),
        ({"maxUnavailable": "34%"}, [3, 3, 1, 2]),
        ({"minAvailable": 1, "selector": {}}, [3, 3, 1, 2]),
    ):
        async with cluster() as c:
            await c.create("apps", "deployments", deployment(replicas=3))
            assert await budget_status(c, **spec) == (expected, "True", "SufficientPods")


async def test_budget_without_pods_allows_nothing():
    async with cluster() as c:
        assert await budget_status(c, minAvailable=1) == ([0, 0, 1, 0], "False", "InsufficientPods")


async def test_claim_in_use_is_held_until_its_pod_has_gone():
    async with cluster() as c:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await c.create("", "persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": spec})
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
        await c.create("", "pods", pod("p", volumes=[volume]))
        await c.settle()

        await c.api.delete("", "persistentvolumeclaims", "default", "data")
        await c.settle()
        assert c.api.get("", "persistentvolumeclaims", "default", "data")["metadata"]["deletionTimestamp"]

        await c.api.delete("", "pods", "default", "p")
        await c.settle()
        assert c.api.get("", "persistentvolumeclaims", "default", "data") is None


async def test_stateful_set_keeps_its_templates_as_revisions_and_uses_the_old_one_below_the_partition():
    async with cluster() as c:
        document = deployment("db", replicas=2, serviceName="db", updateStrategy={"rollingUpdate": {"partition": 1}})
        await c.create("apps", "statefulsets", {**document, "kind": "StatefulSet"})
        await c.settle()
        image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "web:2"}]}}}}
        await c.api.merge_patch("apps", "statefulsets", "default", "db", image)
        await c.settle()
        await c.api.delete("", "pods", "default", "db-0")
        await c.settle()

        images = {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in c.pods()}
        assert images == {"db-0": "web:1", "db-1": "web:2"}
        revisions = c.api.list("apps", "controllerrevisions", "default")
        assert sorted(r["revision"] for r in revisions) == [1, 2]
        status = c.api.get("apps", "statefulsets", "default", "db")["status"]
        assert {status["currentRevision"], status["updateRevision"]} == {r["metadata"]["name"] for r in revisions}


async def test_template_that_comes_back_makes_its_revision_the_newest():
    async with cluster() as c:
        document = deployment("db", replicas=1, serviceName="db")
        await c.create("apps", "statefulsets", {**document, "kind": "StatefulSet"})
        await c.settle()
        for tag in ("web:2", "web:1"):
            image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": tag}]}}}}
            await c.api.merge_patch("apps", "statefulsets", "default", "db", image)
            await c.settle()

        assert sorted(r["revision"] for r in c.api.list("apps", "controllerrevisions", "default")) == [2, 3]


async def test_replication_controller_keeps_its_pods():
    async with cluster() as c:
        template = deployment()["spec"]["template"]
        await c.create(
            "", "replicationcontrollers", {"metadata": {"name": "r"}, "spec": {"replicas": 2, "template": template}}
        )
        await c.settle()

        status = c.api.get("", "replicationcontrollers", "default", "r")["status"]
        assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (2, 2, 2)


async def test_service_has_an_endpoints_object_too():
    async with cluster() as c:
        await c.create("", "pods", {**pod("p"), "metadata": {"name": "p", "labels": {"a": "b"}}})
        spec = {"selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": 8080}]}
        await c.create("", "services", {"metadata": {"name": "s"}, "spec": spec})
        await c.settle()

        (subset,) = c.api.get("", "endpoints", "default", "s")["subsets"]
        assert subset["addresses"][0]["targetRef"]["name"] == "p"
        assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]
        await c.api.delete("", "services", "default", "s")
        await c.settle()
        assert c.api.get("", "endpoints", "default", "s") is None


async def test_event_goes_when_its_time_is_over():
    async with cluster(["event-ttl"], event_ttl=0.3) as c:
        about = {"kind": "Pod", "namespace": "default", "name": "p"}
        await c.create("", "events", {"metadata": {"name": "e"}, "involvedObject": about})

        assert await c.until(lambda: c.api.get("", "events", "default", "e") is None)
