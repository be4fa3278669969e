"""`metrics.k8s.io`: what Pods use, as annotations say it."""

import shutil
import subprocess

import pytest

from ctrlruntime.apiserver import Options
from ctrlruntime.apiserver.usage import IDLE, UsageError, measured, usage_of
from ctrlruntime.errors import ConfigError

METRICS = "/apis/metrics.k8s.io/v1beta1"
USAGE = "simulation.ctrlruntime.dev/usage"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@pytest.fixture(scope="module")
def server_options():
    return Options(metrics=True)


def _pod(annotations=None, **status):
    return {"metadata": {"name": "p", "annotations": annotations or {}}, "status": status}


@pytest.mark.parametrize(
    ("annotations", "found"),
    [
        ({}, IDLE),
        ({USAGE: "cpu=250m,memory=64Mi"}, {"cpu": "250m", "memory": "64Mi"}),
        ({USAGE: " cpu = 0.5 , "}, {"cpu": "500m", "memory": IDLE["memory"]}),
        ({USAGE: "cpu=2", f"{USAGE}.c": "memory=1Gi"}, {"cpu": "2", "memory": "1Gi"}),
        ({USAGE: "cpu=2", f"{USAGE}.other": "cpu=3"}, {"cpu": "2", "memory": IDLE["memory"]}),
        ({USAGE: "cpu=0"}, {"cpu": "0", "memory": IDLE["memory"]}),
    ],
)
def test_usage_is_what_the_annotations_say(annotations, found):
    assert usage_of(_pod(annotations), "c") == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cpu=much", "'much' is not a quantity"),
        ("cpu", "'' is not a quantity"),
        ("cpu=-1", "-1 is below 0"),
        ("disk=1Gi", "'disk=1Gi' is not of cpu or memory"),
    ],
)
def test_usage_that_cannot_be_read_says_what_is_wrong(text, problem):
    with pytest.raises(UsageError) as error:
        usage_of(_pod({USAGE: text}), "c")
    assert str(error.value) == f"cannot read the annotation {USAGE}: {problem}. Write it as cpu=250m,memory=64Mi"


def test_only_running_containers_of_running_pods_are_measured():
    runs = {"name": "a", "state": {"running": {}}}
    waits = {"name": "b", "state": {"waiting": {}}}

    assert [name for name, _ in measured(_pod(phase="Running", containerStatuses=[runs, waits]))] == ["a"]
    assert [*measured(_pod(phase="Pending", containerStatuses=[runs]))] == []


@pytest.mark.parametrize("without", [{"nodes": False}, {"workloads": False}, {"controllers": ["deployment"]}])
def test_metrics_need_pods_that_run(without):
    with pytest.raises(ConfigError, match="no Pod runs"):
        Options(metrics=True, **without)


# On a server


@pytest.fixture
def pods(api, ns):
    """Two running Pods, `idle` and `busy`; the value is the path below a group version."""
    path = f"/api/v1/{ns}/pods"
    for name, annotations in (("idle", {}), ("busy", {USAGE: "cpu=250m,memory=64Mi"})):
        containers = [{"name": each, "image": "i"} for each in ("a", "b")]
        metadata = {"name": name, "labels": {"app": name}, "annotations": annotations}
        with api.watch(path, fieldSelector=f"metadata.name={name}") as frames:
            api.made(path, {"metadata": metadata, "spec": {"containers": containers}})
            while frames.next()["object"]["status"].get("phase") != "Running":
                pass
    return f"{ns}/pods"


def test_metrics_of_a_pod_name_its_containers(api, pods):
    found = api.get(f"{METRICS}/{pods}/busy").body

    usage = {"cpu": "250m", "memory": "64Mi"}
    assert (found["kind"], found["apiVersion"]) == ("PodMetrics", "metrics.k8s.io/v1beta1")
    assert found["metadata"]["labels"] == {"app": "busy"}
    assert found["containers"] == [{"name": "a", "usage": usage}, {"name": "b", "usage": usage}]
    assert found["timestamp"] == found["metadata"]["creationTimestamp"]


def test_a_changed_annotation_takes_effect_at_once(api, ns, pods):
    api.patch(f"/api/v1/{ns}/pods/busy", {"metadata": {"annotations": {f"{USAGE}.a": "cpu=2"}}})

    containers = api.get(f"{METRICS}/{pods}/busy").body["containers"]
    assert [each["usage"]["cpu"] for each in containers] == ["2", "250m"]


def test_lists_take_selectors_and_are_shown_as_tables(api, pods):
    listed = api.get(f"{METRICS}/{pods}").body
    assert listed["kind"] == "PodMetricsList"
    assert [item["metadata"]["name"] for item in listed["items"]] == ["busy", "idle"]
    assert "kind" not in listed["items"][0]

    for query in ({"labelSelector": "app=busy"}, {"fieldSelector": "metadata.name=busy"}):
        table = api.get(f"{METRICS}/{pods}", headers=TABLE, **query).body
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
        assert [row["cells"] for row in table["rows"]] == [["busy", "500m", "128Mi", "0s"]]


def test_a_node_uses_what_its_pods_use(api, pods):
    before = api.get(f"{METRICS}/nodes/node-1").body["usage"]
    api.delete(f"/api/v1/{pods}/idle", gracePeriodSeconds=0)
    after = api.get(f"{METRICS}/nodes").body["items"][0]["usage"]

    assert int(before["cpu"][:-1]) - int(after["cpu"][:-1]) == 2


def test_usage_that_cannot_be_read_is_a_warning(api, ns, pods):
    api.patch(f"/api/v1/{ns}/pods/busy", {"metadata": {"annotations": {USAGE: "cpu=x"}}})

    listed, one = api.get(f"{METRICS}/{pods}"), api.get(f"{METRICS}/{pods}/busy")
    assert [item["metadata"]["name"] for item in listed.body["items"]] == ["idle"]
    assert all("'x' is not a quantity" in answer.warnings[0] for answer in (listed, one))
    name = ns.removeprefix("namespaces/")
    assert (one.code, one.message) == (404, f'podmetrics.metrics.k8s.io "{name}/busy" not found')


def test_metrics_are_read_and_not_written(api, pods):
    assert api.get(f"{METRICS}/{pods}/nope").message == 'pods "nope" not found'
    assert api.get(f"{METRICS}/nodes/nope").message == 'nodes "nope" not found'
    assert api.delete(f"{METRICS}/{pods}/busy").code == 405
    assert api.post(f"{METRICS}/{pods}", {}).code == 405
    assert api.get(f"{METRICS}/{pods}", watch=1).code == 405


def test_the_group_is_in_discovery_and_openapi(api):
    assert [one["verbs"] for one in api.get(METRICS).body["resources"]] == [["get", "list"]] * 2
    groups = api.get("/apis").body["groups"]
    assert "metrics.k8s.io" in {group["name"] for group in groups}
    document = api.get("/openapi/v3/apis/metrics.k8s.io/v1beta1").body
    assert set(document["paths"][f"{METRICS}/namespaces/{{namespace}}/pods/{{name}}"]) == {"get", "parameters"}


def test_viewers_may_read_metrics(api, ns, pods):
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    api.made(
        f"/apis/rbac.authorization.k8s.io/v1/{ns}/rolebindings",
        {"metadata": {"name": "v"}, "roleRef": role, "subjects": [{"kind": "User", "name": "alice"}]},
    )
    alice = {"Impersonate-User": "alice"}
    assert api.get(f"{METRICS}/{pods}", headers=alice).code == 200
    assert api.get(f"{METRICS}/nodes", headers=alice).code == 403


def test_the_group_is_there_after_a_reset(api, thread):
    thread.reset()
    assert api.get(f"{METRICS}/pods").code == 200


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_top(thread, ns, pods, tmp_path):
    thread.server.write_kubeconfig(tmp_path / "config")

    def lines(*command):
        everything = ["kubectl", "--kubeconfig", str(tmp_path / "config"), f"--cache-dir={tmp_path}", *command]
        text = subprocess.run(everything, capture_output=True, text=True, timeout=60, check=True).stdout
        return [line.split() for line in text.splitlines()]

    namespace = ns.removeprefix("namespaces/")
    header = ["CPU(cores)", "MEMORY(bytes)"]
    assert lines("-n", namespace, "top", "pods") == [
        ["NAME", *header],
        ["busy", "500m", "128Mi"],
        ["idle", "2m", "16Mi"],
    ]
    assert lines("-n", namespace, "top", "pods", "busy", "--containers")[1:] == [
        ["busy", "a", "250m", "64Mi"],
        ["busy", "b", "250m", "64Mi"],
    ]
    assert lines("top", "nodes")[1][0] == "node-1"
