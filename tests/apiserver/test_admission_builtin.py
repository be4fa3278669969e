"""The built-in admission plugins by themselves; what they say on both servers is in conformance/test_admission_plugins.py."""

from __future__ import annotations

import base64
from random import Random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from ctrlruntime.apiserver import Options, ServerThread
from ctrlruntime.apiserver.admission.plugins.default_classes import DefaultClass
from ctrlruntime.apiserver.admission.plugins.limit_ranger import claim_problems, pod_problems, set_defaults
from ctrlruntime.apiserver.admission.plugins.pod_security import LevelVersion, policy_of, violations
from ctrlruntime.apiserver.admission.plugins.pod_security_checks import LATEST, findings
from ctrlruntime.apiserver.admission.plugins.quota_usage import (
    CLAIMS,
    evaluator_of,
    is_in_scope,
    kinds_of,
    total_usage,
    unspecified,
)
from ctrlruntime.apiserver.interfaces import PODS
from ctrlruntime.apiserver.registry import Registry
from ctrlruntime.apiserver.registry.services import SERVICES
from ctrlruntime.apiserver.storage import Store

LABEL = "pod-security.kubernetes.io/"


def container(name="c", requests=None, limits=None, **fields):
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


def pod(*containers, name="p", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": list(containers) or [container()], **spec}}


# Default classes


async def test_the_default_class_is_the_newest_and_follows_the_classes():
    moment = [1_000_000.0]
    registry = Registry(Store(), now=lambda: moment[0], rng=Random(1))
    default = DefaultClass(registry.store.table("storage.k8s.io", "storageclasses"), ("a.io/default", "b.io/default"))
    found = []
    for name, key, seconds in (
        ("old", "a.io/default", 0),
        ("new-b", "b.io/default", 60),
        ("new-a", "a.io/default", 60),
    ):
        moment[0] = 1_000_000.0 + seconds
        metadata = {"name": name, "annotations": {key: "true"}}
        await registry.create("storage.k8s.io", "storageclasses", "", {"metadata": metadata, "provisioner": "p"})
        found.append(default.name)
    for name in ("new-a", "old"):
        await registry.delete("storage.k8s.io", "storageclasses", "", name)
        found.append(default.name)
    other = {"metadata": {"annotations": {"b.io/default": "false"}}}
    await registry.merge_patch("storage.k8s.io", "storageclasses", "", "new-b", other)

    assert found == ["old", "new-b", "new-a", "new-b", "new-b"]
    assert default.name is None


# LimitRanger


def test_defaults_are_set_for_what_is_missing_alone_and_said():
    made = pod(container("a", {"cpu": "1"}), container("b", None, {"memory": "1Gi"}), initContainers=[container("i")])

    set_defaults(
        made,
        [
            {"type": "Container", "default": {"memory": "2Gi"}, "defaultRequest": {"cpu": "2", "memory": "3"}},
            {"type": "Pod", "default": {"cpu": "9"}},
        ],
    )

    assert [one["resources"] for one in made["spec"]["containers"]] == [
        {"requests": {"cpu": "1", "memory": "3"}, "limits": {"memory": "2Gi"}},
        {"requests": {"cpu": "2", "memory": "3"}, "limits": {"memory": "1Gi"}},
    ]
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: memory request for container a; memory limit for container a; "
        "cpu, memory request for container b; cpu, memory request for init container i; memory limit for init container i"
    )


@pytest.mark.parametrize(
    ("limit", "amounts", "problem"),
    [
        ({"min": {"cpu": "1m"}}, ({"cpu": "0.0001"}, {}), ""),  # rounded up to a thousandth
        ({"min": {"cpu": "2m"}}, ({"cpu": "0.001"}, {}), "minimum cpu usage per Container is 2m, but request is 1m"),
        ({"max": {"a.io/b": "9P"}}, ({}, {"a.io/b": "9000T"}), ""),
        (
            {"max": {"a.io/b": "10P"}},
            ({}, {"a.io/b": "10000000000000000001m"}),
            "maximum a.io/b usage per Container is 10P, but limit is 10000000000000000001m",
        ),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, ({"cpu": "1"}, {"cpu": "2"}), ""),
        (
            {"maxLimitRequestRatio": {"cpu": "1.5"}},
            ({"cpu": "3"}, {"cpu": "5"}),
            "cpu max limit to request ratio per Container is 1500m, but provided ratio is 1.666667",
        ),
    ],
)
def test_limits_of_containers(limit, amounts, problem):
    assert list(pod_problems(pod(container("c", *amounts))["spec"], [{"type": "Container", **limit}])) == (
        [problem] if problem else []
    )


def test_a_claim_is_measured_by_its_request():
    limits = [{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}]

    assert list(claim_problems({"resources": {"requests": {"storage": "1536Mi"}}}, limits)) == []
    assert list(claim_problems({}, limits)) == [
        "minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified",
        "maximum storage usage per PersistentVolumeClaim is 2Gi.  No request is specified",
    ]


# ResourceQuota


@pytest.mark.parametrize(
    ("status", "metadata", "is_charged"),
    [
        ({}, {}, True),
        ({"phase": "Running"}, {}, True),
        ({"phase": "Succeeded"}, {}, False),
        ({"phase": "Failed"}, {}, False),
        ({}, {"deletionTimestamp": "1970-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30}, True),
        ({}, {"deletionTimestamp": "1970-01-01T00:00:50Z", "deletionGracePeriodSeconds": 30}, False),
        ({}, {"deletionTimestamp": "1970-01-01T00:00:50Z"}, True),
    ],
)
def test_a_pod_that_has_ended_counts_as_an_object_alone(status, metadata, is_charged):
    made = {**pod(container("c", {"cpu": "1"})), "status": status, "metadata": {"name": "p", **metadata}}

    usage = evaluator_of(PODS).usage(made, 85.0)

    running = {"pods": "1", "cpu": "1", "requests.cpu": "1"}
    assert usage == {"count/pods": "1", **(running if is_charged else {})}


def test_a_pod_uses_what_it_asks_for_itself_and_its_overhead():
    made = pod(
        container("c", {"cpu": "1", "memory": "1Gi"}, {"memory": "2Gi"}),
        resources={"requests": {"cpu": "3"}},
        overhead={"cpu": "100m", "memory": "1Mi"},
    )

    assert evaluator_of(PODS).usage(made, 0.0) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "3100m",
        "requests.cpu": "3100m",
        "memory": "1025Mi",
        "requests.memory": "1025Mi",
        "limits.memory": "2049Mi",
    }
    assert unspecified(["cpu", "limits.cpu"], made) == ""


@pytest.mark.parametrize(
    ("name", "spec", "usage"),
    [
        (SERVICES, {"type": "ClusterIP", "ports": [{}]}, {"services.nodeports": "0", "services.loadbalancers": "0"}),
        (SERVICES, {"type": "NodePort", "ports": [{}, {}]}, {"services.nodeports": "2", "services.loadbalancers": "0"}),
        (
            SERVICES,
            {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [{"nodePort": 1}, {}]},
            {"services.nodeports": "1", "services.loadbalancers": "1"},
        ),
        (
            CLAIMS,
            {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}},
            {
                "persistentvolumeclaims": "1",
                "requests.storage": "2",
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                "gold.storageclass.storage.k8s.io/requests.storage": "2",
            },
        ),
    ],
)
def test_what_services_and_claims_use(name, spec, usage):
    of_kind = "services" if name == SERVICES else "persistentvolumeclaims"

    found = evaluator_of(name).usage({"metadata": {"name": "x"}, "spec": spec}, 0.0)

    assert found == {f"count/{of_kind}": "1", of_kind: "1", **usage}


def test_a_claim_that_could_not_grow_counts_what_was_set_aside_for_it():
    claim = {
        "metadata": {},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
        "status": {"allocatedResources": {"storage": "3Gi"}},
    }

    assert evaluator_of(CLAIMS).usage(claim, 0.0)["requests.storage"] == "3Gi"


def selector(operator, *values, scope="VolumeAttributesClass"):
    expression = {"scopeName": scope, "operator": operator, "values": list(values)}
    return {"spec": {"scopeSelector": {"matchExpressions": [expression]}}}


@pytest.mark.parametrize(
    ("quota", "matching"),
    [
        (selector("Exists"), ["silver", "changing"]),
        (selector("DoesNotExist"), ["none"]),
        (selector("In", "gold"), ["changing"]),
        (selector("NotIn", "silver"), ["none", "changing"]),
        (selector("Exists", scope="PriorityClass"), []),
        ({"spec": {"scopes": ["VolumeAttributesClass"]}}, ["silver", "changing"]),
        ({"spec": {}}, ["none", "silver", "changing"]),
    ],
)
def test_claims_in_the_scope_of_attributes_classes(quota, matching):
    claims = {
        "none": {},
        "silver": {"spec": {"volumeAttributesClassName": "silver"}},
        "changing": {
            "spec": {"volumeAttributesClassName": "silver"},
            "status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}},
        },
    }

    assert [name for name, claim in claims.items() if is_in_scope(evaluator_of(CLAIMS), quota, claim)] == matching


def test_a_quota_is_counted_by_the_kinds_that_are_there():
    hard = {
        "count/jobs.batch": "1",
        "count/none.example.com": "1",
        "secrets": "1",
        "count/events": "1",
        "limits.cpu": "1",
    }
    known = [PODS, ("", "secrets"), ("", "events"), ("batch", "jobs"), ("apps", "deployments")]
    objects = {PODS: [pod(container("c", None, {"cpu": "1"}))] * 2, ("batch", "jobs"): [{"metadata": {}}]}

    kinds = kinds_of(hard, known)

    assert kinds == [PODS, ("", "secrets"), ("batch", "jobs")]
    assert total_usage({"spec": {"hard": hard}}, kinds, lambda name: objects.get(name, []), 0.0) == {
        "limits.cpu": "2",
        "secrets": "0",
        "count/jobs.batch": "1",
    }


# PodSecurity

BASE = ["allowPrivilegeEscalation != false", "runAsNonRoot != true"]


@pytest.mark.parametrize(
    ("version", "reasons"),
    [
        (0, BASE[1:]),
        (7, BASE[1:]),
        (8, BASE),
        (18, BASE),
        (19, [*BASE, "seccompProfile"]),
        (22, [BASE[0], "unrestricted capabilities", BASE[1], "seccompProfile"]),
        (LATEST, [BASE[0], "unrestricted capabilities", BASE[1], "seccompProfile"]),
        (999, [BASE[0], "unrestricted capabilities", BASE[1], "seccompProfile"]),
        (None, [BASE[0], "unrestricted capabilities", BASE[1], "seccompProfile"]),
    ],
)
def test_what_restricted_says_of_a_plain_pod(version, reasons):
    made = pod()

    assert [reason for reason, _ in findings("restricted", version, made["metadata"], made["spec"])] == reasons
    assert findings("baseline", version, made["metadata"], made["spec"]) == []
    assert findings("privileged", version, made["metadata"], pod(hostPID=True)["spec"]) == []


@pytest.mark.parametrize(("version", "is_allowed"), [(24, False), (25, True)])
def test_windows_has_no_capabilities(version, is_allowed):
    safe = {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}}
    spec = pod(os={"name": "windows"}, securityContext=safe)["spec"]

    assert (findings("restricted", version, {}, spec) == []) is is_allowed


@pytest.mark.parametrize(
    ("given", "enforce", "warn", "wrong"),
    [
        ({}, "privileged:latest", "privileged:latest", 0),
        ({"enforce": "baseline", "enforce-version": "v1.20"}, "baseline:v1.20", "baseline:v1.20", 0),
        ({"enforce": "baseline", "warn-version": "v1.3"}, "baseline:latest", "baseline:v1.3", 0),
        ({"enforce": "restricted", "warn": "privileged"}, "restricted:latest", "privileged:latest", 0),
        ({"enforce": "none"}, "restricted:latest", "privileged:latest", 1),
        (
            {"warn": "none", "audit": "none", "audit-version": "1", "warn-version": "v1.01"},
            "privileged:latest",
            "privileged:latest",
            4,
        ),
    ],
)
def test_the_labels_of_a_namespace_are_read(given, enforce, warn, wrong):
    policy, causes = policy_of({f"{LABEL}{name}": value for name, value in given.items()})

    assert (str(policy.enforce), str(policy.warn), len(causes)) == (enforce, warn, wrong)


def test_pods_with_the_same_reasons_are_told_together():
    pods = [pod(name=name, hostPID=True) for name in "cab"] + [pod(name="d", hostNetwork=True, volumes=[])]
    pods += [pod(name=name, volumes=[{"name": "v", "hostPath": {}}]) for name in "fe"]

    assert violations("n", LevelVersion("baseline"), pods) == [
        'existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 3 other pods): host namespaces",
        "e (and 1 other pod): hostPath volumes",
    ]
    assert violations("n", LevelVersion("baseline"), [pod()] * 3001) == [
        "new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods"
    ]


# In the server

SPEC = {"containers": [{"name": "c", "image": "i"}]}
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def test_plugins_that_are_off_do_nothing(make):
    off = [
        "Priority",
        "DefaultTolerationSeconds",
        "RuntimeClass",
        "TaintNodesByCondition",
        "StorageObjectInUseProtection",
        "PodSecurity",
        "CertificateSubjectRestriction",
    ]
    key = ed25519.Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters")])
    asked = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, None).public_bytes(Encoding.PEM)
    request = {
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
        "request": base64.b64encode(asked).decode(),
    }
    with ServerThread(Options(controllers=[], disabled_admission=off)) as thread:
        api = make.client(thread)
        labels = {f"{LABEL}enforce": "nothing"}
        api.made("/api/v1/namespaces", {"metadata": {"name": "n", "labels": labels}})
        wanted = {**SPEC, "runtimeClassName": "none", "priorityClassName": "none"}
        made = api.made("/api/v1/namespaces/n/pods", {"metadata": {"name": "p"}, "spec": wanted})
        node = api.made("/api/v1/nodes", {"metadata": {"name": "n"}})
        claim = api.made("/api/v1/namespaces/n/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": CLAIM})
        signing = api.made(REQUESTS, {"metadata": {"name": "masters"}, "spec": request})
        api.close()

    assert signing["spec"]["signerName"] == request["signerName"]
    assert not made["spec"].keys() & {"tolerations", "priority", "preemptionPolicy"}
    assert "taints" not in node["spec"]
    assert "finalizers" not in claim["metadata"]


def test_a_create_that_fails_is_not_charged_and_a_reset_forgets_quotas(make):
    with ServerThread(Options(controllers=[])) as thread:
        api = make.client(thread)
        quotas, maps = (f"/api/v1/namespaces/default/{plural}" for plural in ("resourcequotas", "configmaps"))
        api.made(maps, make.config_map("a"))
        api.made(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "2"}}})
        status = {"hard": {"configmaps": "2"}, "used": {"configmaps": "1"}}
        assert api.patch(f"{quotas}/q/status", {"status": status}).code == 200
        assert api.post(maps, make.config_map("a")).code == 409
        assert api.post(maps, {**make.config_map("b"), "data": {"not a key": ""}}).code == 422
        api.made(maps, make.config_map("b"))
        assert api.post(maps, make.config_map("c")).code == 403
        assert api.get(f"{quotas}/q").body["status"]["used"] == {"configmaps": "2"}
        thread.reset()
        assert [api.post(maps, make.config_map(name)).code for name in "abc"] == [201, 201, 201]
        api.close()
