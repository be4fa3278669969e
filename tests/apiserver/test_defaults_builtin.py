import ipaddress
import random

import pytest
from controllers_cluster import cluster, deployment, pod

from ctrlruntime.apiserver.options import ACTING_PLUGINS
from ctrlruntime.apiserver.registry.assignment import assign
from ctrlruntime.apiserver.registry.defaults import default
from ctrlruntime.apiserver.registry.pod_amounts import qos_class
from ctrlruntime.apiserver.registry.services import DEFAULT_NETWORK, NODE_PORTS, ServiceAddresses
from ctrlruntime.errors import APIStatusError, Forbidden, Invalid
from ctrlruntime.quantities import canonical, comparable, is_whole, parse, units


@pytest.fixture
async def api():
    async with cluster(()) as running:
        yield running.api


def defaulted(group, kind, /, **document):
    document.setdefault("metadata", {"name": "x", "namespace": "default"})
    default(group, kind, document)
    once = repr(document)
    default(group, kind, document)
    assert repr(document) == once, "a second pass changes nothing"
    return document


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0.5", "500m"),
        (0.5, "500m"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("100m", "100m"),
        ("0", "0"),
        ("0.0001", "100u"),
        ("0.5Ki", "512"),
        ("1.1Gi", "1181116006400m"),
        ("1e3", "1e3"),
        ("5E", "5E"),
        ("-0.5", "-500m"),
        ("1Ei", "1Ei"),
        (3, "3"),
    ],
)
def test_quantities_are_written_canonically(text, written):
    assert canonical(text) == written
    assert canonical(written) == written


@pytest.mark.parametrize(
    ("text", "whole", "in_units", "in_thousandths"),
    [
        ("1", True, 1, 1000),
        ("1500m", False, 2, 1500),
        ("-1500m", False, -1, -1500),
        ("1.0001", False, 2, 1001),
        ("123e-2", False, 2, 1230),
        ("9e15", True, 9 * 10**15, 9 * 10**18),
        ("1e16", True, 10**16, 0),
        ("1e30", True, 0, 0),
        ("-1e999", True, 0, 0),
        ("1.5e999", True, 0, 0),
    ],
)
def test_quantities_are_counted_in_64_bits(text, whole, in_units, in_thousandths):
    assert is_whole(text) is whole
    assert (units(text), units(text, 1000)) == (in_units, in_thousandths)


def test_quantities_are_compared_in_thousandths_unless_one_is_too_large():
    assert comparable("1500m", "2") == ([1500, 2000], 1000)
    assert comparable("1500m", "1e16") == ([2, 10**16], 1)


@pytest.mark.parametrize("text", ["--1", "1ee", "1mm"])
def test_a_suffix_that_is_none_is_named(text):
    with pytest.raises(ValueError, match="unable to parse quantity's suffix"):
        canonical(text)


@pytest.mark.parametrize("text", ["u", ".", "-", "Ki", "000"])
def test_a_quantity_without_digits_is_zero(text):
    assert canonical(text) == "0"


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1KiB", "1.2.3", None, True, [1]])
def test_what_is_no_quantity_is_a_value_error(text):
    with pytest.raises(ValueError, match="quantities must match"):
        parse(text)


def test_deployment_and_its_pod_template():
    spec = defaulted(
        "apps", "Deployment", spec={"template": {"spec": {"containers": [{"name": "c", "image": "a/b:1"}]}}}
    )["spec"]

    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["template"]["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "a/b:1",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }


def test_given_values_are_kept_zero_included():
    spec = defaulted(
        "apps", "Deployment", spec={"replicas": 0, "revisionHistoryLimit": 0, "strategy": {"type": "Recreate"}}
    )["spec"]

    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["strategy"]) == (0, 0, {"type": "Recreate"})


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.2", "IfNotPresent"),
        ("host:5000/nginx", "Always"),
        ("host:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:abc", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image, policy):
    spec = defaulted("", "Pod", spec={"containers": [{"name": "c", "image": image}]})["spec"]

    assert spec["containers"][0]["imagePullPolicy"] == policy


def test_container_details():
    container = {
        "name": "c",
        "image": "i:1",
        "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"port": 80}},
        "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
        "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
    }

    document = defaulted("", "Pod", spec={"containers": [container], "hostNetwork": True})
    found = document["spec"]["containers"][0]

    assert found["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert found["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert found["lifecycle"]["preStop"]["httpGet"]["scheme"] == "HTTP"
    assert found["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert found["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert document["spec"]["enableServiceLinks"] is True


def test_volumes():
    volumes = [
        {"name": "a", "configMap": {"name": "m"}},
        {"name": "b", "secret": {"secretName": "s"}},
        {"name": "c", "hostPath": {"path": "/x"}},
        {"name": "d", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "e"},
    ]

    a, b, c, d, e = defaulted("", "Pod", spec={"containers": [], "volumes": volumes})["spec"]["volumes"]

    assert a["configMap"]["defaultMode"] == b["secret"]["defaultMode"] == d["projected"]["defaultMode"] == 420
    assert c["hostPath"]["type"] == ""
    assert d["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600
    assert e["emptyDir"] == {}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}, "Guaranteed"),
    ],
)
def test_quality_of_service(resources, expected):
    document = defaulted("", "Pod", spec={"containers": [{"name": "c", "image": "i", "resources": resources}]})

    assert qos_class(document["spec"]) == expected


def test_service_account_name_has_two_spellings():
    spec = defaulted("", "Pod", spec={"containers": [], "serviceAccount": "robot"})["spec"]

    assert spec["serviceAccountName"] == spec["serviceAccount"] == "robot"


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        ("apps", "ReplicaSet", {"replicas": 1}),
        (
            "apps",
            "StatefulSet",
            {
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "replicas": 1,
                "revisionHistoryLimit": 10,
            },
        ),
        (
            "apps",
            "DaemonSet",
            {
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
                "revisionHistoryLimit": 10,
            },
        ),
        (
            "batch",
            "Job",
            {
                "completions": 1,
                "parallelism": 1,
                "backoffLimit": 6,
                "completionMode": "NonIndexed",
                "suspend": False,
                "manualSelector": False,
                "podReplacementPolicy": "TerminatingOrFailed",
            },
        ),
        (
            "batch",
            "CronJob",
            {
                "concurrencyPolicy": "Allow",
                "suspend": False,
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1,
            },
        ),
        ("autoscaling", "HorizontalPodAutoscaler", {"minReplicas": 1, "targetCPUUtilizationPercentage": 80}),
        ("networking.k8s.io", "NetworkPolicy", {"policyTypes": ["Ingress"]}),
        ("", "PersistentVolumeClaim", {"volumeMode": "Filesystem"}),
        ("", "Service", {"sessionAffinity": "None", "type": "ClusterIP", "internalTrafficPolicy": "Cluster"}),
    ],
)
def test_empty_spec(group, kind, expected):
    assert defaulted(group, kind, spec={})["spec"] == expected


def test_secret_folds_string_data():
    document = defaulted("", "Secret", data={"a": "eA=="}, stringData={"b": "yé"})

    assert document["data"] == {"a": "eA==", "b": "ecOp"}
    assert document["type"] == "Opaque"
    assert "stringData" not in document


def test_namespace_has_its_label_and_phase():
    document = defaulted("", "Namespace")

    assert document["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert document["status"] == {"phase": "Active"}


def test_role_binding_names_the_api_group():
    document = defaulted(
        "rbac.authorization.k8s.io",
        "RoleBinding",
        roleRef={"kind": "Role", "name": "r"},
        subjects=[{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
    )

    assert document["roleRef"]["apiGroup"] == document["subjects"][0]["apiGroup"] == "rbac.authorization.k8s.io"
    assert "apiGroup" not in document["subjects"][1]


def test_webhooks():
    webhook = {"name": "w", "clientConfig": {"service": {"name": "s"}}, "rules": [{"resources": ["pods"]}]}
    group = "admissionregistration.k8s.io"
    document = defaulted(group, "MutatingWebhookConfiguration", kind="MutatingWebhookConfiguration", webhooks=[webhook])
    found = document["webhooks"][0]

    assert (found["failurePolicy"], found["matchPolicy"], found["timeoutSeconds"]) == ("Fail", "Equivalent", 10)
    assert found["reinvocationPolicy"] == "Never"
    assert found["rules"][0]["scope"] == "*"
    assert found["clientConfig"]["service"]["port"] == 443


def test_custom_resource_definition_names():
    spec = {"names": {"kind": "Memcached", "plural": "memcacheds"}}
    found = defaulted("apiextensions.k8s.io", "CustomResourceDefinition", spec=spec)["spec"]

    assert (found["names"]["singular"], found["names"]["listKind"]) == ("memcached", "MemcachedList")
    assert found["conversion"] == {"strategy": "None"}


def test_custom_kinds_are_left_alone():
    assert defaulted("x.io", "Pod", spec={}) == {"spec": {}, "metadata": {"name": "x", "namespace": "default"}}


async def test_created_objects_hold_their_defaults(api):
    stored = await api.create("apps", "deployments", "default", deployment())

    assert stored["spec"]["template"]["spec"]["containers"][0]["resources"] == {}
    assert stored["status"] == {}


async def service(api, name, **spec):
    spec.setdefault("ports", [{"port": 80}])
    return (await api.create("", "services", "default", {"metadata": {"name": name}, "spec": spec}))["spec"]


async def test_services_get_distinct_addresses_of_the_service_network(api):
    found = [await service(api, f"s{n}") for n in range(20)]

    addresses = {spec["clusterIP"] for spec in found}
    assert len(addresses) == 20
    assert all(DEFAULT_NETWORK.network_address < type(DEFAULT_NETWORK.network_address)(a) for a in addresses)
    assert found[0]["clusterIPs"] == [found[0]["clusterIP"]]
    assert (found[0]["ipFamilies"], found[0]["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


async def test_a_small_network_is_used_up_and_says_so(api):
    addresses = ServiceAddresses(ipaddress.IPv4Network("10.9.0.0/29"), rng=random.Random(1))
    api.extensions.addresses = addresses

    found = {(await service(api, f"s{n}"))["clusterIP"] for n in range(5)}

    assert found == {f"10.9.0.{n}" for n in range(2, 7)}
    with pytest.raises(APIStatusError, match="range is full"):
        await service(api, "one-too-many")


async def test_an_address_given_out_before_webhooks_are_asked_is_not_given_twice(api):
    rng = random.Random(1)
    addresses = api.extensions.addresses = ServiceAddresses(ipaddress.IPv4Network("10.9.0.0/29"), rng=rng)
    services = api.store.table("", "services").records
    waiting = {"metadata": {"namespace": "default", "name": "waiting"}, "spec": {"ports": [{"port": 80}]}}
    chosen = {"metadata": {"namespace": "default", "name": "chosen"}, "spec": {"ports": [{"port": 80}]}}
    last_steps, refused = [], []

    addresses.begin(waiting, services, last_steps)
    taken = waiting["spec"]["clusterIP"]
    chosen["spec"] |= {"clusterIP": taken, "clusterIPs": [taken]}
    addresses.begin(chosen, services, refused)
    rng.seed(1)
    quick = await service(api, "quick")
    for step in last_steps:
        step()

    assert quick["clusterIP"] == taken
    assert waiting["spec"]["clusterIP"] != taken
    with pytest.raises(Invalid, match="provided IP is already allocated"):
        refused[0]()


async def test_an_address_that_is_taken_or_outside_is_refused(api):
    await service(api, "first", clusterIP="10.0.0.200")

    with pytest.raises(Invalid, match="provided IP is already allocated"):
        await service(api, "second", clusterIP="10.0.0.200")
    with pytest.raises(Invalid, match="the provided network does not match the current range"):
        await service(api, "third", clusterIP="10.1.0.1")
    with pytest.raises(Invalid, match="The range of valid ports is 30000-32767"):
        await service(api, "fourth", type="NodePort", ports=[{"port": 80, "nodePort": 80}])


async def test_a_service_that_stops_being_a_node_port_loses_what_belonged_to_it(api):
    await service(api, "s", type="NodePort")

    now = (await api.merge_patch("", "services", "default", "s", {"spec": {"type": "ClusterIP"}}))["spec"]

    assert "externalTrafficPolicy" not in now
    assert "nodePort" not in now["ports"][0]


async def test_headless_and_external_services_get_no_address(api):
    headless = await service(api, "h", clusterIP="None", selector={"a": "b"})
    external = await service(api, "e", type="ExternalName", externalName="a.b")

    assert headless["clusterIPs"] == ["None"]
    assert "clusterIP" not in external


async def test_node_ports_are_given_once_and_kept(api):
    one = await service(api, "one", type="NodePort", ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}])
    two = await service(api, "two", type="LoadBalancer")

    ports = [port["nodePort"] for port in (*one["ports"], *two["ports"])]
    assert len(set(ports)) == 3
    assert all(port in NODE_PORTS for port in ports)
    stored = api.get("", "services", "default", "one")
    del stored["spec"]["clusterIP"], stored["spec"]["clusterIPs"]
    for port in stored["spec"]["ports"]:
        del port["nodePort"]
    again = await api.update("", "services", stored)
    assert again["spec"]["clusterIP"] == one["clusterIP"]
    assert again["spec"]["ports"] == one["ports"]


async def test_created_pod_has_what_admission_adds(api):
    await api.create("scheduling.k8s.io", "priorityclasses", "", {"metadata": {"name": "high"}, "value": 7})

    plain = (await api.create("", "pods", "default", pod()))["spec"]
    high = (await api.create("", "pods", "default", pod("high", priorityClassName="high")))["spec"]

    assert (plain["priority"], plain["preemptionPolicy"], high["priority"]) == (0, "PreemptLowerPriority", 7)
    assert [t["tolerationSeconds"] for t in plain["tolerations"]] == [300, 300]


async def test_pod_that_tolerates_everything_gets_no_more_tolerations(api):
    spec = (await api.create("", "pods", "default", pod(tolerations=[{"operator": "Exists"}])))["spec"]

    assert spec["tolerations"] == [{"operator": "Exists"}]


async def test_job_gets_a_selector_from_its_uid(api):
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    job = await api.create("batch", "jobs", "default", {"metadata": {"name": "j"}, "spec": {"template": template}})

    uid = job["metadata"]["uid"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert job["spec"]["template"]["metadata"]["labels"] == labels


async def test_new_node_is_tainted_and_new_namespace_has_its_finalizer(api):
    node = await api.create("", "nodes", "", {"metadata": {"name": "n"}})
    namespace = await api.create("", "namespaces", "", {"metadata": {"name": "n"}})

    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert namespace["spec"]["finalizers"] == ["kubernetes"]


async def test_update_does_not_bring_back_what_create_gave(api):
    document = {"metadata": {"name": "n"}, "spec": {}}

    assign("", "Node", document, api, ACTING_PLUGINS, old={"spec": {}})

    assert document["spec"] == {}


async def test_a_pod_needs_its_account_when_the_plugin_is_on(api):
    api.extensions.plugins |= {"ServiceAccount"}
    wanted = {"containers": [{"name": "c", "image": "i"}]}

    with pytest.raises(Forbidden, match='error looking up service account default/default: serviceaccount "default"'):
        await api.create("", "pods", "default", {"metadata": {"name": "p"}, "spec": wanted})

    await api.create("", "serviceaccounts", "default", {"metadata": {"name": "default"}})
    made = await api.create("", "pods", "default", {"metadata": {"name": "p"}, "spec": wanted})
    assert made["spec"]["serviceAccountName"] == "default"
