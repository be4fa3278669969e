import gzip
import json
from datetime import UTC, datetime

import pytest

from ctrlruntime.apiserver.tables import cells, columns
from ctrlruntime.data import open_data

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
CREATED = "2026-01-01T11:58:00Z"  # 2m before
RECORDED = json.loads(gzip.decompress(open_data("kubernetes-1.36/table-columns.json.gz")))


def meta(name="x", **more):
    return {"name": name, "creationTimestamp": CREATED, **more}


def row(group, resource, version="v1", **document):
    """One row as {column: cell}."""
    document.setdefault("metadata", meta())
    names = [column["name"] for column in columns(group, version, resource)]
    found = cells(group, version, resource, document, NOW)
    assert len(found) == len(names)
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("key", sorted(RECORDED))
def test_bare_object_of_every_kind_has_a_cell_for_each_column(key):
    *group, version, resource = key.split("/")
    document = {"metadata": meta()}

    found = cells("".join(group), version, resource, document, NOW)

    surplus = resource == "ipaddresses"  # upstream has no column for their age
    assert len(found) == len(columns("".join(group), version, resource)) + surplus
    assert "x" in found
    json.dumps(found)


def test_unknown_kind_has_name_and_age():
    assert row("x.io", "things") == {"Name": "x", "Age": "2m"}


def test_returned_columns_are_the_callers():
    columns("", "v1", "pods")[0]["name"] = "changed"

    assert columns("", "v1", "pods")[0]["name"] == "Name"


def container(ready=True, restarts=0, state=None, **more):
    return {"name": "c", "ready": ready, "restartCount": restarts, "state": state or {"running": {}}, **more}


def pod_row(status, **spec):
    spec.setdefault("containers", [{"name": "c"}])
    metadata = spec.pop("metadata", meta())
    return row("", "pods", metadata=metadata, spec=spec, status=status)


def test_running_pod():
    found = pod_row(
        {"phase": "Running", "containerStatuses": [container()], "podIPs": [{"ip": "10.0.0.9"}]}, nodeName="n1"
    )

    assert found == {
        "Name": "x",
        "Ready": "1/1",
        "Status": "Running",
        "Restarts": "0",
        "Age": "2m",
        "IP": "10.0.0.9",
        "Node": "n1",
        "Nominated Node": "<none>",
        "Readiness Gates": "<none>",
    }


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        (
            {
                "phase": "Running",
                "containerStatuses": [container(False, state={"waiting": {"reason": "CrashLoopBackOff"}})],
            },
            "CrashLoopBackOff",
        ),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [container(False, state={"terminated": {"reason": "Completed"}})],
            },
            "Completed",
        ),
        (
            {"phase": "Failed", "containerStatuses": [container(False, state={"terminated": {"exitCode": 3}})]},
            "ExitCode:3",
        ),
        ({"phase": "Failed", "containerStatuses": [container(False, state={"terminated": {"signal": 9}})]}, "Signal:9"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
        ),
    ],
)
def test_pod_status_is_the_containers_reason(status, text):
    assert pod_row(status)["Status"] == text


def test_pod_that_is_being_deleted_is_terminating():
    leaving = meta(deletionTimestamp=CREATED)

    assert pod_row({"phase": "Running"}, metadata=leaving)["Status"] == "Terminating"
    assert pod_row({"phase": "Succeeded"}, metadata=leaving)["Status"] == "Succeeded"


def test_pod_with_init_containers_shows_how_far_it_is():
    status = {
        "phase": "Pending",
        "initContainerStatuses": [container(state={"terminated": {"exitCode": 0}}), container(False)],
    }

    assert pod_row(status, initContainers=[{"name": "a"}, {"name": "b"}])["Status"] == "Init:1/2"
    failed = {
        "phase": "Pending",
        "initContainerStatuses": [container(False, state={"terminated": {"exitCode": 2, "reason": "Error"}})],
    }
    assert pod_row(failed, initContainers=[{"name": "a"}])["Status"] == "Init:Error"


def test_restarts_say_when_the_last_one_was():
    ended = {"terminated": {"finishedAt": "2026-01-01T11:59:30Z"}}
    status = {"phase": "Running", "containerStatuses": [container(restarts=2, lastState=ended)]}

    assert pod_row(status)["Restarts"] == "2 (30s ago)"


def test_deployment():
    found = row(
        "apps",
        "deployments",
        spec={
            "replicas": 3,
            "selector": {"matchLabels": {"b": "2", "a": "1"}},
            "template": {"spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j"}]}},
        },
        status={"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
    )

    assert list(found.values()) == ["x", "1/3", 2, 1, "2m", "c,d", "i:1,j", "a=1,b=2"]


def test_selector_with_expressions():
    selector = {
        "matchLabels": {"a": "1"},
        "matchExpressions": [
            {"key": "t", "operator": "In", "values": ["z", "y"]},
            {"key": "u", "operator": "DoesNotExist"},
        ],
    }

    found = row("apps", "replicasets", kind="ReplicaSet", spec={"replicas": 0, "selector": selector})

    assert found["Selector"] == "a=1,t in (y,z),!u"


@pytest.mark.parametrize(
    ("spec", "status", "ip", "external", "ports"),
    [
        (
            {"type": "ClusterIP", "clusterIPs": ["10.0.0.5"], "ports": [{"port": 80, "protocol": "TCP"}]},
            {},
            "10.0.0.5",
            "<none>",
            "80/TCP",
        ),
        (
            {
                "type": "NodePort",
                "clusterIPs": ["10.0.0.5"],
                "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
            },
            {},
            "10.0.0.5",
            "<none>",
            "80:30080/TCP",
        ),
        ({"type": "LoadBalancer", "clusterIPs": ["10.0.0.5"]}, {}, "10.0.0.5", "<pending>", "<none>"),
        (
            {"type": "LoadBalancer", "clusterIP": "10.0.0.5"},
            {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
            "10.0.0.5",
            "1.2.3.4",
            "<none>",
        ),
        ({"type": "ExternalName", "externalName": "a.b"}, {}, "<none>", "a.b", "<none>"),
        ({"type": "ClusterIP", "clusterIPs": ["None"]}, {}, "None", "<none>", "<none>"),
    ],
)
def test_services(spec, status, ip, external, ports):
    found = row("", "services", spec=spec, status=status)

    assert (found["Cluster-IP"], found["External-IP"], found["Port(s)"]) == (ip, external, ports)
    assert found["Selector"] == "<none>"


def test_nodes():
    found = row(
        "",
        "nodes",
        metadata=meta(labels={"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "edge"}),
        spec={"unschedulable": True},
        status={
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.1"},
        },
    )

    assert found["Status"] == "Ready,SchedulingDisabled"
    assert found["Roles"] == "control-plane,edge"
    assert (found["Version"], found["Internal-IP"], found["External-IP"]) == ("v1.36.1", "10.1.1.1", "<none>")


@pytest.mark.parametrize(
    ("group", "document"),
    [
        (
            "",
            {
                "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
                "message": " hello ",
                "firstTimestamp": "2026-01-01T11:50:00Z",
                "lastTimestamp": CREATED,
                "count": 4,
                "source": {"component": "kubelet", "host": "n1"},
            },
        ),
        (
            "events.k8s.io",
            {
                "regarding": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
                "note": "hello",
                "deprecatedFirstTimestamp": "2026-01-01T11:50:00Z",
                "series": {"count": 4, "lastObservedTime": "2026-01-01T11:58:00.000000Z"},
                "reportingController": "kubelet",
                "reportingInstance": "n1",
            },
        ),
    ],
)
def test_events_of_both_groups_print_alike(group, document):
    found = row(group, "events", type="Normal", reason="Started", **document)

    assert list(found.values()) == ["2m", "Normal", "Started", "pod/p", "spec", "kubelet, n1", "hello", "10m", 4, "x"]


@pytest.mark.parametrize(
    ("status", "text", "took"),
    [
        ({"startTime": "2026-01-01T11:59:00Z"}, "Running", "60s"),
        (
            {
                "startTime": "2026-01-01T11:59:00Z",
                "completionTime": "2026-01-01T11:59:05Z",
                "conditions": [{"type": "Complete", "status": "True"}],
            },
            "Complete",
            "5s",
        ),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, "Failed", ""),
        ({"conditions": [{"type": "Suspended", "status": "True"}]}, "Suspended", ""),
    ],
)
def test_jobs(status, text, took):
    found = row("batch", "jobs", spec={"completions": 2}, status={"succeeded": 1, **status})

    assert (found["Status"], found["Completions"], found["Duration"]) == (text, "1/2", took)


def test_small_kinds():
    assert row("", "configmaps", data={"a": "1"}, binaryData={"b": ""})["Data"] == 2
    assert row("", "secrets", type="Opaque", data={"a": ""})["Data"] == 1
    assert row("", "namespaces", status={"phase": "Active"})["Status"] == "Active"
    assert row("coordination.k8s.io", "leases", spec={"holderIdentity": "me"})["Holder"] == "me"
    assert row("apiextensions.k8s.io", "customresourcedefinitions")["Created At"] == CREATED
    assert row("", "serviceaccounts") == {"Name": "x", "Age": "2m"}
    assert row("admissionregistration.k8s.io", "validatingwebhookconfigurations", webhooks=[{}, {}])["Webhooks"] == 2


def test_ingress_shows_three_hosts_and_counts_the_rest():
    hosts = [{"host": f"{n}.example.com"} for n in "abcde"]

    found = row("networking.k8s.io", "ingresses", spec={"rules": hosts, "tls": [{}]})

    assert found["Hosts"] == "a.example.com,b.example.com,c.example.com + 2 more..."
    assert (found["Class"], found["Ports"]) == ("<none>", "80, 443")


def test_role_bindings_list_their_subjects():
    found = row(
        "rbac.authorization.k8s.io",
        "rolebindings",
        roleRef={"kind": "ClusterRole", "name": "view"},
        subjects=[
            {"kind": "User", "name": "a"},
            {"kind": "User", "name": "b"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
        ],
    )

    assert list(found.values()) == ["x", "ClusterRole/view", "2m", "a, b", "", "n/s"]


def test_missing_age_is_unknown():
    assert row("", "namespaces", metadata={"name": "x"})["Age"] == "<unknown>"
