"""What keeps a Pod from a node or its containers from starting, and what changes while it runs."""

import pytest
from controllers_cluster import cluster, is_ready, pod
from test_controllers_behaviour import Clock, nudge, only, state

MAP = {"metadata": {"name": "a"}, "data": {"k": "v"}}
SECRET = {"metadata": {"name": "a"}, "data": {"k": "dg=="}}


def container(**fields):
    return {"name": "c", "image": "web:1", **fields}


def with_env(source, **reference):
    return {"containers": [container(env=[{"name": "E", "valueFrom": {source: {"name": "a", **reference}}}])]}


def with_env_from(source, **reference):
    return {"containers": [container(envFrom=[{source: {"name": "a", **reference}}])]}


def with_volume(**source):
    return {"volumes": [{"name": "v", **source}]}


def reasons(c, kind="Warning"):
    return [
        (event["reason"], event["message"]) for event in c.api.list("", "events", "default") if event["type"] == kind
    ]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (with_env("configMapKeyRef", key="k"), 'configmap "a" not found'),
        (with_env("secretKeyRef", key="k"), 'secret "a" not found'),
        (with_env_from("configMapRef"), 'configmap "a" not found'),
        (with_env_from("secretRef"), 'secret "a" not found'),
    ],
)
async def test_container_is_not_created_before_its_environment_is_there(spec, text):
    async with cluster() as c:
        await c.create("", "pods", pod(**spec))
        await c.settle()

        waiting = state(c)["state"]["waiting"]
        assert (waiting["reason"], waiting["message"]) == ("CreateContainerConfigError", text)
        assert only(c)["status"]["phase"] == "Pending"
        assert reasons(c) == [("Failed", f"Error: {text}")]

        await c.create("", "configmaps" if "configmap" in text else "secrets", MAP if "configmap" in text else SECRET)
        await c.settle()
        assert is_ready(only(c))


@pytest.mark.parametrize(
    ("source", "resource", "text"),
    [
        ("configMapKeyRef", "configmaps", "couldn't find key x in ConfigMap default/a"),
        ("secretKeyRef", "secrets", "couldn't find key x in Secret default/a"),
    ],
)
async def test_container_is_not_created_before_its_key_is_there(source, resource, text):
    async with cluster() as c:
        await c.create("", resource, MAP if resource == "configmaps" else SECRET)
        await c.create("", "pods", pod(**with_env(source, key="x")))
        await c.settle()
        assert state(c)["state"]["waiting"]["message"] == text

        await c.api.merge_patch("", resource, "default", "a", {"data": {"x": "dg=="}})
        await c.settle()
        assert is_ready(only(c))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"configMap": {"name": "a"}}, 'configmap "a" not found'),
        ({"secret": {"secretName": "a"}}, 'secret "a" not found'),
        ({"projected": {"sources": [{"configMap": {"name": "a"}}]}}, 'configmap "a" not found'),
        ({"projected": {"sources": [{"secret": {"name": "b"}}]}}, 'secret "b" not found'),
        (
            {"configMap": {"name": "there", "items": [{"key": "x", "path": "x"}]}},
            "configmap references non-existent config key: x",
        ),
        (
            {"secret": {"secretName": "there", "items": [{"key": "x", "path": "x"}]}},
            "references non-existent secret key: x",
        ),
    ],
)
async def test_no_container_starts_before_the_volumes_are_there(source, text):
    async with cluster() as c:
        for resource in ("configmaps", "secrets"):
            await c.create("", resource, {"metadata": {"name": "there"}})
        await c.create("", "pods", pod(**with_volume(**source)))
        await c.settle()

        assert state(c)["state"]["waiting"] == {"reason": "ContainerCreating"}
        assert reasons(c) == [("FailedMount", f'MountVolume.SetUp failed for volume "v" : {text}')]


@pytest.mark.parametrize(
    "spec",
    [
        with_env("configMapKeyRef", key="k", optional=True),
        with_env_from("secretRef", optional=True),
        with_volume(configMap={"name": "a", "optional": True}),
        with_volume(projected={"sources": [{"secret": {"name": "a", "optional": True}}]}),
    ],
)
async def test_what_is_optional_may_be_missing(spec):
    async with cluster() as c:
        await c.create("", "pods", pod(**spec))
        await c.settle()

        assert is_ready(only(c))


async def test_other_containers_run_while_one_waits_and_all_wait_for_an_init_container():
    async with cluster() as c:
        waits = {**with_env("secretKeyRef", key="k")["containers"][0], "name": "waits"}
        await c.create("", "pods", pod("one", containers=[waits, container()]))
        await c.create("", "pods", pod("two", initContainers=[{**container(), "name": "first"}, waits]))
        await c.settle()

        one, two = (c.api.get("", "pods", "default", name)["status"] for name in ("one", "two"))
        assert [next(iter(s["state"])) for s in one["containerStatuses"]] == ["waiting", "running"]
        assert one["phase"] == two["phase"] == "Pending"
        assert [next(iter(s["state"])) for s in two["initContainerStatuses"]] == ["terminated", "waiting"]
        assert two["containerStatuses"][0]["state"]["waiting"] == {"reason": "PodInitializing"}

        await c.create("", "secrets", SECRET)
        await c.settle()
        assert len(c.ready()) == 2
        done = c.api.get("", "pods", "default", "two")["status"]["initContainerStatuses"]
        assert [s["state"]["terminated"]["reason"] for s in done] == ["Completed", "Completed"]


async def test_pod_fails_at_its_active_deadline():
    clock = Clock()
    async with cluster(now=clock.now, clock=clock.monotonic) as c:
        await c.create("", "pods", pod(activeDeadlineSeconds=30))
        await c.settle()
        await nudge(c, clock, 29)
        assert is_ready(only(c))

        await nudge(c, clock, 1)

        status = only(c)["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


def asking(name, **requests):
    limits = {key: value for key, value in requests.items() if "/" in key}
    return pod(name, containers=[container(resources={"requests": requests, "limits": limits})])


async def test_pod_waits_for_room_on_the_node():
    async with cluster() as c:
        await c.create("", "pods", asking("large", cpu="40", memory="1Gi"))
        await c.create("", "pods", asking("second", cpu="24500m"))
        await c.create("", "pods", asking("gpu", **{"example.com/gpu": "1"}))
        await c.settle()

        messages = {p["metadata"]["name"]: p["status"]["conditions"][-1].get("message") for p in c.pods()}
        assert messages == {
            "large": None,
            "second": "0/1 nodes are available: 1 Insufficient cpu.",
            "gpu": "0/1 nodes are available: 1 Insufficient example.com/gpu.",
        }

        await c.api.delete("", "pods", "default", "large", grace_period_seconds=0)
        await c.settle()
        assert [p["metadata"]["name"] for p in c.ready()] == ["second"]

        node = c.api.get("", "nodes", "", "node-1")
        node = {
            **node,
            "status": {**node["status"], "allocatable": {**node["status"]["allocatable"], "example.com/gpu": "2"}},
        }
        await c.api.update("", "nodes", node, subresource="status")
        await c.settle()
        assert {p["metadata"]["name"] for p in c.ready()} == {"second", "gpu"}


async def test_many_pods_never_ask_for_more_than_the_node_has():
    async with cluster() as c:
        for number in range(20):
            await c.create("", "pods", asking(f"p{number}", cpu="10"))
        await c.settle()

        assert len(c.ready()) == 6  # of 64 cores


async def test_closed_node_takes_only_pods_that_tolerate_it():
    async with cluster() as c:
        await c.settle()
        await c.api.merge_patch("", "nodes", "", "node-1", {"spec": {"unschedulable": True}})
        await c.create("", "pods", pod("no"))
        closed = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
        await c.create("", "pods", pod("yes", tolerations=[closed]))
        await c.settle()

        assert [p["metadata"]["name"] for p in c.ready()] == ["yes"]


@pytest.mark.parametrize(("given", "phase"), [("true", "Bound"), ("false", "Pending")])
async def test_class_can_be_left_to_another_provisioner(given, phase):
    async with cluster() as c:
        annotations = {"simulation.ctrlruntime.dev/provision": given}
        made = {"metadata": {"name": "own", "annotations": annotations}, "provisioner": "example.com"}
        await c.create("storage.k8s.io", "storageclasses", made, "")
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await c.create(
            "", "persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": {**asked, "storageClassName": "own"}}
        )
        await c.settle()

        claim = c.api.get("", "persistentvolumeclaims", "default", "c")
        assert claim["status"]["phase"] == phase
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] == "example.com"
        assert len(c.api.list("", "persistentvolumes")) == (phase == "Bound")


async def test_resized_container_has_its_new_resources_at_once():
    async with cluster() as c:
        await c.create("", "pods", asking("p", cpu="1"))
        await c.settle()
        assert state(c)["allocatedResources"] == {"cpu": "1"}

        found = only(c)
        found["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
        await c.api.update("", "pods", found, subresource="resize")
        await c.settle()

        assert state(c)["resources"] == {"requests": {"cpu": "2"}}
        assert only(c)["status"]["observedGeneration"] == only(c)["metadata"]["generation"]
        assert state(c)["restartCount"] == 0


async def test_ephemeral_container_runs():
    async with cluster() as c:
        await c.create("", "pods", pod("p"))
        await c.settle()

        found = only(c)
        found["spec"]["ephemeralContainers"] = [{"name": "debugger", "image": "busybox"}]
        await c.api.update("", "pods", found, subresource="ephemeralcontainers")
        await c.settle()

        (added,) = only(c)["status"]["ephemeralContainerStatuses"]
        assert added["name"] == "debugger"
        assert "running" in added["state"]
        assert is_ready(only(c))


async def test_node_has_a_lease_which_comes_again():
    key = ("coordination.k8s.io", "leases", "kube-node-lease", "node-1")
    async with cluster(["node"]) as c:
        await c.create("", "namespaces", {"metadata": {"name": "kube-node-lease"}}, namespace="")
        await c.until(lambda: c.api.get("", "nodes", "", "node-1"))
        await c.api.merge_patch("", "nodes", "", "node-1", {"metadata": {"labels": {"a": "b"}}})
        lease = await c.until(lambda: c.api.get(*key))

        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == ("node-1", 40)
        owner = lease["metadata"]["ownerReferences"][0]
        assert owner["uid"] == c.api.get("", "nodes", "", "node-1")["metadata"]["uid"]
        await c.api.delete(*key)
        again = await c.until(lambda: c.api.get(*key))
        assert again["metadata"]["uid"] != lease["metadata"]["uid"]
