"""Objects of the built-in kinds, good and bad, to be sent to both servers: the table behind `test_builtin_kinds.py`.

A path is `GROUP/VERSION/PLURAL` (`v1/pods`); one that begins with `/` is of a kind without namespaces.
"""

from __future__ import annotations

import base64
from typing import Any

from builtin_case import Case, Document, named
from device_cases import DEVICE_CASES
from less_common_cases import LESS_COMMON

LABELS = {"app": "a"}
REQUEST = """-----BEGIN CERTIFICATE REQUEST-----
MIHMMHUCAQAwEzERMA8GA1UEAwwIZGlmZnRlc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAR5CSJm8ucy6lxhyYAfnWLKZywNb5kf/JXn13mtcG59U+NQOo/og5An
lsMg0O8Y2PiK5o3o/nKmLjO3OVb34ux+oAAwCgYIKoZIzj0EAwIDRwAwRAIgQ0Yc
WFzto/KAcq/bWPABdgpw2spNCHk87vw3265L56kCIDuZFKc+PwhZ7lWk3FUDbHFv
bbaMoKvcQNh2Y+bSk+rH
-----END CERTIFICATE REQUEST-----
"""
"""A certificate signing request that OpenSSL made; its key is gone."""
CONTAINER = {"name": "c", "image": "nginx:1"}
POD = {"schedulerName": "nobody", "containers": [CONTAINER]}


def pod(**spec: Any) -> Document:
    return named(spec={**POD, **spec})


def container(**fields: Any) -> Document:
    return pod(containers=[{**CONTAINER, **fields}])


def template(**spec: Any) -> Document:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER], **spec}}


def workload(**spec: Any) -> Document:
    return named(spec={"selector": {"matchLabels": LABELS}, "template": template(), **spec})


def job(restart: str = "Never", **spec: Any) -> Document:
    return named(spec={"template": {"spec": {"containers": [CONTAINER], "restartPolicy": restart}}, **spec})


def cron_job(schedule: str = "*/5 * * * *", **spec: Any) -> Document:
    return named(spec={"schedule": schedule, "jobTemplate": {"spec": job()["spec"]}, **spec})


def service(*ports: Document, **spec: Any) -> Document:
    return named(spec={"ports": list(ports or ({"port": 80},)), **spec})


def ingress(**rule: Any) -> Document:
    return named(spec={"rules": [{"host": "a.example.com", **rule}]})


def ingress_path(**path: Any) -> Document:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    return ingress(http={"paths": [{"path": "/", "pathType": "Prefix", "backend": backend, **path}]})


def budget(**spec: Any) -> Document:
    return named(spec={"selector": {"matchLabels": LABELS}, **spec})


def claim(**spec: Any) -> Document:
    return named(spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec})


def volume(**spec: Any) -> Document:
    base = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}}
    # With a class, since a volume without one is bound to a claim of any other test that waits for one.
    return named("difftest", spec={**base, "storageClassName": "difftest", **spec})


def autoscaler(**spec: Any) -> Document:
    return named(spec={"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, **spec})


def full_autoscaler(**spec: Any) -> Document:
    return autoscaler(scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, **spec)


def signing_request() -> Document:
    request = base64.b64encode(REQUEST.encode()).decode()
    return named("difftest", spec={"signerName": "example.com/s", "usages": ["client auth"], "request": request})


def event(**fields: Any) -> Document:
    return named(involvedObject={"kind": "Pod", "name": "p", "namespace": "NAMESPACE"}, **fields)


def new_event(**fields: Any) -> Document:
    base = {
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "action": "Doing",
        "reason": "Because",
        "type": "Normal",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "NAMESPACE"},
    }
    return named(**{**base, **fields})


def webhook(**fields: Any) -> Document:
    base = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nothings"]}],
    }
    return named("difftest", webhooks=[{**base, **fields}])


def binding(kind: str = "Role", name: str = "r", subject: Document | None = None, **ref: Any) -> Document:
    who = {"kind": "ServiceAccount", "name": "default", "namespace": "default"} if subject is None else subject
    group = "rbac.authorization.k8s.io"
    return named(roleRef={"apiGroup": group, "kind": kind, "name": name, **ref}, subjects=[who])


SUFFIXED = {"limits": {"cpu": "0.5", "memory": "1.5Gi"}}

MINIMAL = [
    Case("namespace", "/v1/namespaces", named("difftest")),
    Case("pod", "v1/pods", pod()),
    Case("config map", "v1/configmaps", named()),
    Case("secret", "v1/secrets", named(stringData={"a": "b"})),
    Case("service account", "v1/serviceaccounts", named()),
    Case("service", "v1/services", service()),
    Case("endpoints", "v1/endpoints", named(subsets=[{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}])),
    Case("persistent volume claim", "v1/persistentvolumeclaims", claim()),
    Case("persistent volume", "/v1/persistentvolumes", volume()),
    Case("replication controller", "v1/replicationcontrollers", named(spec={"template": template()})),
    Case("pod template", "v1/podtemplates", named(template=template())),
    Case("resource quota", "v1/resourcequotas", named(spec={"hard": {"pods": "10", "requests.cpu": "0.5"}})),
    Case("limit range", "v1/limitranges", named(spec={"limits": [{"type": "Container", "max": {"cpu": "1"}}]})),
    Case("event", "v1/events", event(message="hello", reason="Because", type="Normal")),
    Case("node", "/v1/nodes", named("difftest")),
    Case("deployment", "apps/v1/deployments", workload()),
    Case("replica set", "apps/v1/replicasets", workload()),
    Case("stateful set", "apps/v1/statefulsets", workload(serviceName="s")),
    Case("daemon set", "apps/v1/daemonsets", workload()),
    Case("controller revision", "apps/v1/controllerrevisions", named(revision=1, data={"a": 1})),
    Case("job", "batch/v1/jobs", job()),
    Case("cron job", "batch/v1/cronjobs", cron_job()),
    Case("ingress", "networking.k8s.io/v1/ingresses", ingress_path()),
    Case("ingress class", "/networking.k8s.io/v1/ingressclasses", named("difftest", spec={"controller": "e.com/c"})),
    Case("network policy", "networking.k8s.io/v1/networkpolicies", named(spec={"podSelector": {}})),
    Case("role", "rbac.authorization.k8s.io/v1/roles", named(rules=[])),
    Case("cluster role", "/rbac.authorization.k8s.io/v1/clusterroles", named("difftest")),
    Case("role binding", "rbac.authorization.k8s.io/v1/rolebindings", binding()),
    Case(
        "cluster role binding",
        "/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {**binding("ClusterRole"), "metadata": {"name": "difftest"}},
    ),
    Case("lease", "coordination.k8s.io/v1/leases", named()),
    Case("event of events.k8s.io", "events.k8s.io/v1/events", new_event()),
    Case(
        "endpoint slice",
        "discovery.k8s.io/v1/endpointslices",
        named(addressType="IPv4", endpoints=[{"addresses": ["10.1.2.3"]}], ports=[{"port": 80}]),
    ),
    Case("disruption budget", "policy/v1/poddisruptionbudgets", budget(minAvailable=1)),
    Case("autoscaler v2", "autoscaling/v2/horizontalpodautoscalers", autoscaler()),
    Case(
        "autoscaler v1",
        "autoscaling/v1/horizontalpodautoscalers",
        autoscaler(targetCPUUtilizationPercentage=50),
    ),
    Case("priority class", "/scheduling.k8s.io/v1/priorityclasses", named("difftest", value=10)),
    Case("storage class", "/storage.k8s.io/v1/storageclasses", named("difftest", provisioner="e.com/p")),
    Case("csi driver", "/storage.k8s.io/v1/csidrivers", named("difftest.example.com", spec={})),
    Case("csi node", "/storage.k8s.io/v1/csinodes", named("difftest", spec={"drivers": []})),
    Case(
        "volume attachment",
        "/storage.k8s.io/v1/volumeattachments",
        named("difftest", spec={"attacher": "e.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}),
    ),
    Case("runtime class", "/node.k8s.io/v1/runtimeclasses", named("difftest", handler="h")),
    Case(
        "certificate signing request without a request",
        "/certificates.k8s.io/v1/certificatesigningrequests",
        named("difftest", spec={"signerName": "e.com/s", "usages": ["client auth"]}),
    ),
    Case("validating webhook", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook()),
    Case("mutating webhook", "/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", webhook()),
    Case(
        "validating policy",
        "/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        named(
            "difftest",
            spec={
                "matchConstraints": {
                    "resourceRules": [
                        {"operations": ["CREATE"], "apiGroups": ["e.com"], "apiVersions": ["v1"], "resources": ["xs"]}
                    ]
                },
                "validations": [{"expression": "true"}],
            },
        ),
    ),
    Case(
        "validating policy binding",
        "/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        named("difftest", spec={"policyName": "p", "validationActions": ["Deny"]}),
    ),
    Case(
        "api service",
        "/apiregistration.k8s.io/v1/apiservices",
        named(
            "v1.difftest.example.com",
            spec={
                "group": "difftest.example.com",
                "version": "v1",
                "groupPriorityMinimum": 1000,
                "versionPriority": 10,
                "insecureSkipTLSVerify": True,
                "service": {"name": "s", "namespace": "default"},
            },
        ),
    ),
    Case("flow schema", "/flowcontrol.apiserver.k8s.io/v1/flowschemas", named(
        "difftest", spec={"priorityLevelConfiguration": {"name": "catch-all"}})),
    Case("priority level", "/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", named(
        "difftest", spec={"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}})),
]  # fmt: skip

PODS = [
    Case("pod without containers", "v1/pods", named(spec={"containers": []})),
    Case("pod without a spec", "v1/pods", named()),
    Case("pod with a bad name", "v1/pods", {**pod(), "metadata": {"name": "Bad_Name"}}),
    Case("container without a name", "v1/pods", pod(containers=[{"image": "a"}])),
    Case("container without an image", "v1/pods", pod(containers=[{"name": "a"}])),
    Case("container with a bad name", "v1/pods", container(name="Bad_Name")),
    Case("two containers of one name", "v1/pods", pod(containers=[CONTAINER, CONTAINER])),
    Case("container with a spaced image", "v1/pods", container(image=" nginx ")),
    Case("image without a tag", "v1/pods", container(image="nginx")),
    Case("image of a digest", "v1/pods", container(image="nginx@sha256:" + "a" * 64)),
    Case("bad pull policy", "v1/pods", container(imagePullPolicy="Sometimes")),
    Case("container port out of range", "v1/pods", container(ports=[{"containerPort": 70000}])),
    Case("container port of zero", "v1/pods", container(ports=[{"containerPort": 0}])),
    Case("container port with bad names", "v1/pods", container(ports=[
        {"containerPort": 80, "name": "a-name-that-is-too-long"}, {"containerPort": 81, "name": "Ab"},
        {"containerPort": 82, "name": "80"}, {"containerPort": 83, "name": "a--b"}, {"containerPort": 84, "name": "-a"}])),
    Case("two ports of one name", "v1/pods", container(ports=[
        {"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}])),
    Case("bad protocol", "v1/pods", container(ports=[{"containerPort": 80, "protocol": "ICMP"}])),
    Case("host ports that differ", "v1/pods", pod(hostNetwork=True, containers=[
        {**CONTAINER, "ports": [{"containerPort": 80, "hostPort": 81}]}])),
    Case("host network", "v1/pods", pod(hostNetwork=True, containers=[{**CONTAINER, "ports": [{"containerPort": 80}]}])),
    Case("env without a name", "v1/pods", container(env=[{"value": "a"}])),
    Case("env with a bad name", "v1/pods", container(env=[{"name": "a=b", "value": "a"}])),
    Case("env of two values", "v1/pods", container(env=[
        {"name": "a", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])),
    Case("env of a bad field", "v1/pods", container(env=[
        {"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.bogus"}}}])),
    Case("env of fields, keys and resources", "v1/pods", container(env=[
        {"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "b", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "c", "valueFrom": {"secretKeyRef": {"name": "c", "key": "k"}}},
        {"name": "d", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}], envFrom=[
        {"configMapRef": {"name": "c"}}, {"prefix": "P_", "secretRef": {"name": "s"}}])),
    Case("env of nothing", "v1/pods", container(env=[{"name": "a", "valueFrom": {}}], envFrom=[{}])),
    Case("mount of no volume", "v1/pods", container(volumeMounts=[{"name": "v", "mountPath": "/v"}])),
    Case("mount without a path", "v1/pods", pod(volumes=[{"name": "v"}], containers=[
        {**CONTAINER, "volumeMounts": [{"name": "v"}]}])),
    Case("two mounts of one path", "v1/pods", pod(volumes=[{"name": "v"}], containers=[
        {**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}]}])),
    Case("volumes of many sorts", "v1/pods", pod(volumes=[
        {"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "c"}}, {"name": "c", "secret": {"secretName": "s"}},
        {"name": "d", "hostPath": {"path": "/tmp"}}, {"name": "e", "persistentVolumeClaim": {"claimName": "p"}},
        {"name": "f", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "g", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "h", "ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}},
        {"name": "i", "csi": {"driver": "e.com"}}, {"name": "j", "nfs": {"server": "s", "path": "/"}}])),
    Case("pod volume of two sources", "v1/pods", pod(volumes=[{"name": "a", "emptyDir": {}, "configMap": {"name": "c"}}])),
    Case("pod volume without parts", "v1/pods", pod(volumes=[
        {"name": "a", "configMap": {}}, {"name": "b", "secret": {}}, {"name": "c", "persistentVolumeClaim": {}},
        {"name": "d", "hostPath": {}}])),
    Case("two volumes of one name", "v1/pods", pod(volumes=[{"name": "a"}, {"name": "a"}])),
    Case("requests over limits", "v1/pods", container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}})),
    Case("negative request", "v1/pods", container(resources={"requests": {"cpu": "-1"}})),
    Case("unreadable quantity", "v1/pods", container(resources={"requests": {"cpu": "lots"}})),
    Case("resource of a bad name", "v1/pods", container(resources={"limits": {"bogus": "1"}})),
    Case("extended resource", "v1/pods", container(resources={"limits": {"example.com/gpu": "1"}})),
    Case("quantities in canonical form", "v1/pods", container(resources=SUFFIXED)),
    Case("guaranteed pod", "v1/pods", container(resources={
        "limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}})),
    Case("probes and hooks", "v1/pods", container(
        livenessProbe={"httpGet": {"port": 80}}, readinessProbe={"tcpSocket": {"port": "web"}},
        startupProbe={"grpc": {"port": 80}}, lifecycle={"preStop": {"httpGet": {"port": 1}}})),
    Case("probe without a handler", "v1/pods", container(livenessProbe={})),
    Case("probe of two handlers", "v1/pods", container(livenessProbe={
        "httpGet": {"port": 80}, "tcpSocket": {"port": 80}})),
    Case("liveness with many successes", "v1/pods", container(livenessProbe={"tcpSocket": {"port": 80}, "successThreshold": 2})),
    Case("probe with negative numbers", "v1/pods", container(livenessProbe={
        "httpGet": {"port": 0}, "periodSeconds": -1, "timeoutSeconds": -1})),
    Case("bad restart policy", "v1/pods", pod(restartPolicy="Sometimes")),
    Case("bad dns policy", "v1/pods", pod(dnsPolicy="Sometimes")),
    Case("dns policy none without servers", "v1/pods", pod(dnsPolicy="None")),
    Case("active deadline of zero", "v1/pods", pod(activeDeadlineSeconds=0)),
    Case("negative grace", "v1/pods", pod(terminationGracePeriodSeconds=-1)),
    Case("init containers", "v1/pods", pod(initContainers=[
        {"name": "i", "image": "i"}, {"name": "s", "image": "s", "restartPolicy": "Always"}])),
    Case("init container of a container's name", "v1/pods", pod(initContainers=[CONTAINER])),
    Case("tolerations", "v1/pods", pod(tolerations=[{"operator": "Exists"}, {"key": "a", "value": "b"}])),
    Case("bad tolerations", "v1/pods", pod(tolerations=[
        {"operator": "Exists", "key": "a", "value": "b"}, {"key": "a", "effect": "Never"}, {"operator": "Maybe", "key": "a"},
        {"value": "b"}])),
    Case("bad node selector", "v1/pods", pod(nodeSelector={"a b": "c d"})),
    Case("bad host name", "v1/pods", pod(hostname="Bad_Name", subdomain="Bad_Name")),
    Case("bad service account", "v1/pods", pod(serviceAccountName="Bad_Name")),
    Case("pod of a service account", "v1/pods", pod(serviceAccountName="worker")),
    Case("unknown priority class", "v1/pods", pod(priorityClassName="bogus")),
    Case("known priority class", "v1/pods", pod(priorityClassName="system-cluster-critical")),
    Case("priority without a class", "v1/pods", pod(priority=7)),
    Case("affinity", "v1/pods", pod(affinity={
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": LABELS}}]},
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}}})),
    Case("affinity without parts", "v1/pods", pod(affinity={
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]},
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}})),
    Case("topology spread", "v1/pods", pod(topologySpreadConstraints=[
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}])),
    Case("bad topology spread", "v1/pods", pod(topologySpreadConstraints=[
        {"maxSkew": 0, "whenUnsatisfiable": "Maybe"}])),
    Case("security contexts", "v1/pods", pod(securityContext={"runAsUser": 0, "fsGroup": 1}, containers=[
        {**CONTAINER, "securityContext": {"privileged": True, "capabilities": {"add": ["NET_ADMIN"]}}}])),
    Case("negative user", "v1/pods", pod(securityContext={"runAsUser": -1, "fsGroup": -1}, containers=[
        {**CONTAINER, "securityContext": {"runAsUser": -1, "privileged": True, "allowPrivilegeEscalation": False}}])),
    Case("image pull secrets", "v1/pods", pod(imagePullSecrets=[{"name": "s"}, {}])),
    Case("host aliases", "v1/pods", pod(hostAliases=[{"ip": "bad", "hostnames": ["Bad_Name"]}])),
    Case("scheduling gates", "v1/pods", pod(schedulingGates=[{"name": "e.com/g"}])),
    Case("bad labels", "v1/pods", {**pod(), "metadata": {"name": "x", "labels": {"a b": "c d"}, "annotations": {"a b": "c"}}}),
    Case("pod of a node", "v1/pods", pod(nodeName="nowhere")),
    Case("pod change of image", "v1/pods", pod(), {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}),
    Case("pod change of command", "v1/pods", pod(), {"spec": {"containers": [{**CONTAINER, "command": ["a"]}]}}),
    Case("pod change of a container more", "v1/pods", pod(), {"spec": {"containers": [CONTAINER, {"name": "d", "image": "d"}]}}),
    Case("pod change of an empty image", "v1/pods", pod(), {"spec": {"containers": [{"name": "c", "image": ""}]}}),
    Case("pod change of the deadline", "v1/pods", pod(), {"spec": {"activeDeadlineSeconds": 5}}),
    Case("pod change of tolerations", "v1/pods", pod(), {"spec": {"tolerations": []}}),
    Case("pod change of the node", "v1/pods", pod(), {"spec": {"nodeName": "n"}}),
    Case("pod change of labels", "v1/pods", pod(), {"metadata": {"labels": {"a": "b"}}}),
    Case("pod change of owners", "v1/pods", pod(), {"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b", "controller": True},
        {"apiVersion": "v1", "kind": "Pod", "name": "c", "uid": "d", "controller": True}]}}),
    Case("pod change of the owner's parts", "v1/pods", pod(), {"metadata": {"ownerReferences": [{"apiVersion": ""}]}}),
    Case("pod status", "v1/pods", pod(), {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}}, "status"),
]  # fmt: skip

WORKLOADS = [
    Case("deployment without a selector", "apps/v1/deployments", named(spec={"template": template()})),
    Case("deployment without anything", "apps/v1/deployments", named()),
    Case("deployment with an empty selector", "apps/v1/deployments", workload(selector={})),
    Case("deployment of another selector", "apps/v1/deployments", workload(selector={"matchLabels": {"b": "b"}})),
    Case("deployment with bad expressions", "apps/v1/deployments", workload(selector={"matchExpressions": [
        {"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["a"]}, {"key": "a", "operator": "Maybe"}]})),
    Case("deployment with bad numbers", "apps/v1/deployments", workload(
        replicas=-1, minReadySeconds=-1, revisionHistoryLimit=-1, progressDeadlineSeconds=-1)),
    Case("deployment with a bad strategy", "apps/v1/deployments", workload(strategy={"type": "Maybe"})),
    Case("recreate with parameters", "apps/v1/deployments", workload(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})),
    Case("recreate", "apps/v1/deployments", workload(strategy={"type": "Recreate"})),
    Case("rolling update that stands still", "apps/v1/deployments", workload(strategy={
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
    Case("rolling update with bad shares", "apps/v1/deployments", workload(strategy={
        "rollingUpdate": {"maxSurge": "x", "maxUnavailable": "200%"}})),
    Case("rolling update with negative numbers", "apps/v1/deployments", workload(strategy={
        "rollingUpdate": {"maxSurge": -1, "maxUnavailable": -1}})),
    Case("deadline within readiness", "apps/v1/deployments", workload(minReadySeconds=700)),
    Case("deployment that never restarts", "apps/v1/deployments", workload(template=template(restartPolicy="Never"))),
    Case("deployment with a deadline for pods", "apps/v1/deployments", workload(template=template(activeDeadlineSeconds=5))),
    Case("deployment with template faults", "apps/v1/deployments", workload(template={
        "metadata": {"labels": {"app": "a b"}, "annotations": {"a b": "c"}}, "spec": {"containers": [{"name": "c"}]}})),
    Case("deployment change of selector", "apps/v1/deployments", workload(replicas=0), {
        "spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}}),
    Case("deployment change of annotations", "apps/v1/deployments", workload(replicas=0), {"metadata": {"annotations": {"a": "b"}}}),
    Case("deployment change of labels", "apps/v1/deployments", workload(replicas=0), {"metadata": {"labels": {"a": "b"}}}),
    Case("deployment change of replicas", "apps/v1/deployments", workload(replicas=0), {"spec": {"replicas": 1}}),
    Case("deployment status", "apps/v1/deployments", workload(replicas=0), {
        "metadata": {"annotations": {"a": "b"}, "labels": {"a": "b"}}, "spec": {"replicas": 5}}, "status"),
    Case("deployment status with bad numbers", "apps/v1/deployments", workload(replicas=0), {
        "status": {"replicas": -1, "readyReplicas": 3, "availableReplicas": 4}}, "status"),
    Case("replica set of another selector", "apps/v1/replicasets", workload(selector={"matchLabels": {"b": "b"}})),
    Case("replica set with bad numbers", "apps/v1/replicasets", workload(replicas=-1, minReadySeconds=-1)),
    Case("replica set change of selector", "apps/v1/replicasets", workload(replicas=0), {
        "spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}}),
    Case("stateful set without anything", "apps/v1/statefulsets", named()),
    Case("stateful set with a bad policy", "apps/v1/statefulsets", workload(
        podManagementPolicy="Maybe", updateStrategy={"type": "Maybe"}, replicas=-1)),
    Case("stateful set on delete with parameters", "apps/v1/statefulsets", workload(
        updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}})),
    Case("stateful set with a negative partition", "apps/v1/statefulsets", workload(
        updateStrategy={"rollingUpdate": {"partition": -1}})),
    Case("stateful set with claims", "apps/v1/statefulsets", workload(volumeClaimTemplates=[
        {"metadata": {"name": "data"}, "spec": claim()["spec"]}])),
    Case("stateful set with bad retention", "apps/v1/statefulsets", workload(
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Maybe"})),
    Case("stateful set that never restarts", "apps/v1/statefulsets", workload(template=template(restartPolicy="Never"))),
    Case("stateful set change of service", "apps/v1/statefulsets", workload(replicas=0), {"spec": {"serviceName": "b"}}),
    Case("stateful set change of replicas", "apps/v1/statefulsets", workload(replicas=0), {"spec": {"replicas": 1}}),
    Case("daemon set without anything", "apps/v1/daemonsets", named()),
    Case("daemon set that stands still", "apps/v1/daemonsets", workload(updateStrategy={
        "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
    Case("daemon set with both limits", "apps/v1/daemonsets", workload(updateStrategy={
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})),
    Case("daemon set with a bad strategy", "apps/v1/daemonsets", workload(updateStrategy={"type": "Maybe"})),
    Case("daemon set change of selector", "apps/v1/daemonsets", workload(template=template(nodeSelector={"no": "where"})), {
        "spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}}),
    Case("job without a template", "batch/v1/jobs", named(spec={})),
    Case("job that always restarts", "batch/v1/jobs", job("Always")),
    Case("job without a restart policy", "batch/v1/jobs", named(spec={"template": {"spec": {"containers": [CONTAINER]}}})),
    Case("job with bad numbers", "batch/v1/jobs", job(
        parallelism=-1, completions=-1, backoffLimit=-1, ttlSecondsAfterFinished=-1, activeDeadlineSeconds=-1)),
    Case("job with a selector", "batch/v1/jobs", job(selector={"matchLabels": {"a": "b"}})),
    Case("job with its own selector", "batch/v1/jobs", named(spec={
        "manualSelector": True, "selector": {"matchLabels": LABELS}, "template": template(restartPolicy="Never")})),
    Case("indexed job", "batch/v1/jobs", job(completionMode="Indexed", completions=3, parallelism=2)),
    Case("indexed job without completions", "batch/v1/jobs", job(completionMode="Indexed", parallelism=2)),
    Case("job of a bad mode", "batch/v1/jobs", job(completionMode="Maybe")),
    Case("job with a limit for each index", "batch/v1/jobs", job(
        completionMode="Indexed", completions=2, backoffLimitPerIndex=1)),
    Case("job with a limit for each index, not indexed", "batch/v1/jobs", job(backoffLimitPerIndex=1, maxFailedIndexes=1)),
    Case("job with a failure policy", "batch/v1/jobs", job(podFailurePolicy={"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]})),
    Case("job work queue", "batch/v1/jobs", job(parallelism=3)),
    Case("job of another manager", "batch/v1/jobs", job(managedBy="example.com/m")),
    # Of another manager: the answer depends on whether the Job controller has marked the Job as suspended.
    Case("job change of template", "batch/v1/jobs", job(suspend=True, managedBy="example.com/m"), {
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}),
    Case("job change of completions", "batch/v1/jobs", job(suspend=True), {"spec": {"completions": 2}}),
    Case("job change of parallelism", "batch/v1/jobs", job(suspend=True), {"spec": {"parallelism": 2}}),
    Case("job change of selector", "batch/v1/jobs", job(suspend=True), {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
    Case("cron job without a schedule", "batch/v1/cronjobs", cron_job("")),
    Case("cron job of words", "batch/v1/cronjobs", cron_job("every day")),
    Case("cron job of four fields", "batch/v1/cronjobs", cron_job("* * * *")),
    Case("cron job of the 61st minute", "batch/v1/cronjobs", cron_job("61 * * * *")),
    Case("cron job of month zero", "batch/v1/cronjobs", cron_job("* * * 0 *")),
    Case("cron job of a falling range", "batch/v1/cronjobs", cron_job("30-10 * * * *")),
    Case("cron job of a step of zero", "batch/v1/cronjobs", cron_job("*/0 * * * *")),
    Case("cron job of names", "batch/v1/cronjobs", cron_job("0 12 * JAN-mar mon,FRI")),
    Case("cron job of a bad name", "batch/v1/cronjobs", cron_job("0 12 * foo *")),
    Case("cron job of a macro", "batch/v1/cronjobs", cron_job("@hourly")),
    Case("cron job of a bad macro", "batch/v1/cronjobs", cron_job("@sometimes")),
    Case("cron job of every", "batch/v1/cronjobs", cron_job("@every 90m")),
    Case("cron job of a bad every", "batch/v1/cronjobs", cron_job("@every day")),
    Case("cron job of day seven", "batch/v1/cronjobs", cron_job("0 0 * * 7")),
    Case("cron job with its zone in the schedule", "batch/v1/cronjobs", cron_job("TZ=UTC 0 0 * * *")),
    Case("cron job of a zone", "batch/v1/cronjobs", cron_job(timeZone="Europe/Berlin")),
    Case("cron job of a bad zone", "batch/v1/cronjobs", cron_job(timeZone="Nowhere/City")),
    Case("cron job of an empty zone", "batch/v1/cronjobs", cron_job(timeZone="")),
    Case("cron job of the local zone", "batch/v1/cronjobs", cron_job(timeZone="Local")),
    Case("cron job of a bad policy", "batch/v1/cronjobs", cron_job(concurrencyPolicy="Maybe")),
    Case("cron job with negative numbers", "batch/v1/cronjobs", cron_job(
        startingDeadlineSeconds=-1, successfulJobsHistoryLimit=-1, failedJobsHistoryLimit=-1)),
    Case("cron job that always restarts", "batch/v1/cronjobs", named(spec={
        "schedule": "@daily", "jobTemplate": {"spec": job("Always")["spec"]}})),
    Case("cron job with a long name", "batch/v1/cronjobs", {**cron_job(), "metadata": {"name": "a" * 53}}),
    Case("cron job change of template", "batch/v1/cronjobs", cron_job(suspend=True), {
        "spec": {"jobTemplate": {"spec": {"completions": 2}}}}),
]  # fmt: skip

SERVICES = [
    Case("service without ports", "v1/services", named(spec={})),
    Case("service of a bad name", "v1/services", {**service(), "metadata": {"name": "1a"}}),
    Case("service of a bad port", "v1/services", service({"port": 0})),
    Case("service of a port too high", "v1/services", service({"port": 65536})),
    Case("service of ports without names", "v1/services", service({"port": 80}, {"port": 81})),
    Case("service of ports of one name", "v1/services", service({"port": 80, "name": "a"}, {"port": 81, "name": "a"})),
    Case("service of one port twice", "v1/services", service({"port": 80, "name": "a"}, {"port": 80, "name": "b"})),
    Case("service of a bad protocol", "v1/services", service({"port": 80, "protocol": "ICMP"})),
    Case("service of a named target", "v1/services", service({"port": 80, "targetPort": "web"})),
    Case("service of a bad target", "v1/services", service({"port": 80, "targetPort": 70000})),
    Case("service of a badly named target", "v1/services", service({"port": 80, "targetPort": "Bad_Name"})),
    Case("service of a bad type", "v1/services", service(type="Maybe")),
    Case("headless service", "v1/services", service(clusterIP="None", selector=LABELS)),
    Case("headless service without ports", "v1/services", named(spec={"clusterIP": "None", "selector": LABELS})),
    Case("headless service without a selector", "v1/services", service(clusterIP="None")),
    Case("external name", "v1/services", named(spec={"type": "ExternalName", "externalName": "a.example.com"})),
    Case("external name without one", "v1/services", named(spec={"type": "ExternalName"})),
    Case("external name of a bad host", "v1/services", named(spec={"type": "ExternalName", "externalName": "Bad_Name"})),
    Case("external name with an address", "v1/services", named(spec={
        "type": "ExternalName", "externalName": "a.example.com", "clusterIP": "10.0.0.77"})),
    Case("address of its own", "v1/services", service(clusterIP="10.0.0.12")),
    Case("address outside the range", "v1/services", service(clusterIP="10.1.0.1")),
    Case("address that is none", "v1/services", service(clusterIP="bogus")),
    Case("address of somebody else", "v1/services", service(clusterIP="10.0.0.1"), is_stored=True),
    Case("address outside the range, stored", "v1/services", service(clusterIP="10.1.0.1"), is_stored=True),
    Case("address of the network", "v1/services", service(clusterIP="10.0.0.0")),
    Case("address of the network, stored", "v1/services", service(clusterIP="10.0.0.0"), is_stored=True),
    Case("outer address", "v1/services", service(externalIPs=["1.2.3.4"])),
    Case("address of the sixth version", "v1/services", service(clusterIP="fd00::1")),
    Case("two addresses that differ", "v1/services", service(clusterIP="10.0.0.50", clusterIPs=["10.0.0.51"])),
    Case("source ranges", "v1/services", service(loadBalancerSourceRanges=["x"])),
    Case("load balancer parts of another type", "v1/services", service(
        loadBalancerClass="e.com/x", allocateLoadBalancerNodePorts=True, healthCheckNodePort=5)),
    Case("family six", "v1/services", service(ipFamilies=["IPv6"])),
    Case("bad families", "v1/services", service(ipFamilies=["X"], ipFamilyPolicy="Maybe")),
    Case("two families of one stack", "v1/services", service(ipFamilies=["IPv4", "IPv6"])),
    Case("outer addresses", "v1/services", service(externalIPs=["127.0.0.1", "0.0.0.0", "169.254.1.1", "224.0.0.1"])),
    Case("headless node port", "v1/services", service(clusterIP="None", type="NodePort")),
    Case("headless with outer addresses", "v1/services", service(clusterIP="None", selector=LABELS, externalIPs=["1.2.3.4"])),
    Case("external name that is not asked for", "v1/services", service(externalName="a.example.com")),
    Case("traffic distribution", "v1/services", service(trafficDistribution="Maybe")),
    Case("node port", "v1/services", service(type="NodePort")),
    Case("node port of its own", "v1/services", service({"port": 80, "nodePort": 30999}, type="NodePort")),
    Case("node port out of range", "v1/services", service({"port": 80, "nodePort": 80}, type="NodePort"), is_stored=True),
    Case("one node port of two protocols", "v1/services", service(
        {"port": 80, "nodePort": 30996, "name": "a"}, {"port": 80, "protocol": "UDP", "nodePort": 30996, "name": "b"},
        type="NodePort")),
    Case("one node port twice", "v1/services", service(
        {"port": 80, "nodePort": 30998, "name": "a"}, {"port": 81, "nodePort": 30998, "name": "b"}, type="NodePort")),
    Case("node port of a cluster address", "v1/services", service({"port": 80, "nodePort": 30997})),
    Case("load balancer", "v1/services", service(type="LoadBalancer")),
    Case("load balancer without node ports", "v1/services", service(type="LoadBalancer", allocateLoadBalancerNodePorts=False)),
    Case("local traffic", "v1/services", service(type="LoadBalancer", externalTrafficPolicy="Local")),
    Case("external traffic of a cluster address", "v1/services", service(externalTrafficPolicy="Local")),
    Case("bad traffic policies", "v1/services", service(
        type="NodePort", externalTrafficPolicy="Maybe", internalTrafficPolicy="Maybe", sessionAffinity="Maybe")),
    Case("client affinity", "v1/services", service(sessionAffinity="ClientIP")),
    Case("bad affinity seconds", "v1/services", service(
        sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}})),
    Case("external addresses", "v1/services", service(externalIPs=["1.2.3.4", "bogus"])),
    Case("two families", "v1/services", service(ipFamilyPolicy="PreferDualStack")),
    Case("two families required", "v1/services", service(ipFamilyPolicy="RequireDualStack")),
    Case("bad selector", "v1/services", service(selector={"a b": "c d"})),
    Case("service change of address", "v1/services", service(), {"spec": {"clusterIP": "10.0.0.11", "clusterIPs": ["10.0.0.11"]}}),
    Case("service change without an address", "v1/services", service(), {"spec": {"clusterIP": None, "clusterIPs": None}}),
    Case("service change to a node port", "v1/services", service(), {"spec": {"type": "NodePort"}}),
    Case("service change from a node port", "v1/services", service(type="NodePort"), {
        "spec": {"type": "ClusterIP", "externalTrafficPolicy": None, "ports": [{"port": 80}]}}),
    Case("service change to an external name", "v1/services", service(), {
        "spec": {"type": "ExternalName", "externalName": "a.example.com", "clusterIP": None, "clusterIPs": None}}),
    Case("service change to headless", "v1/services", service(), {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
    Case("service change of ports", "v1/services", service(), {"spec": {"ports": [{"port": 81}]}}),
    Case("ingress without rules", "networking.k8s.io/v1/ingresses", named(spec={})),
    Case("ingress of an address", "networking.k8s.io/v1/ingresses", ingress(host="1.2.3.4")),
    Case("ingress of a bad host", "networking.k8s.io/v1/ingresses", ingress(host="Bad_Host")),
    Case("ingress of a wildcard", "networking.k8s.io/v1/ingresses", ingress(host="*.example.com")),
    Case("ingress of a bad wildcard", "networking.k8s.io/v1/ingresses", ingress(host="a.*.example.com")),
    Case("ingress of no paths", "networking.k8s.io/v1/ingresses", ingress(http={"paths": []})),
    Case("ingress path without a type", "networking.k8s.io/v1/ingresses", ingress_path(pathType=None)),
    Case("ingress path of a bad type", "networking.k8s.io/v1/ingresses", ingress_path(pathType="Maybe")),
    Case("ingress path that is relative", "networking.k8s.io/v1/ingresses", ingress_path(path="a")),
    Case("ingress path with dots", "networking.k8s.io/v1/ingresses", ingress_path(path="/a/../b")),
    Case("ingress path without a backend", "networking.k8s.io/v1/ingresses", ingress_path(backend={})),
    Case("ingress path of two backends", "networking.k8s.io/v1/ingresses", ingress_path(backend={
        "service": {"name": "s", "port": {"number": 1}}, "resource": {"kind": "A", "name": "b"}})),
    Case("ingress service without a port", "networking.k8s.io/v1/ingresses", ingress_path(backend={"service": {"name": "s"}})),
    Case("ingress service of two ports", "networking.k8s.io/v1/ingresses", ingress_path(backend={
        "service": {"name": "s", "port": {"number": 1, "name": "a"}}})),
    Case("ingress with a default backend", "networking.k8s.io/v1/ingresses", named(spec={
        "ingressClassName": "c", "tls": [{"hosts": ["a.example.com"], "secretName": "s"}],
        "defaultBackend": {"service": {"name": "s", "port": {"name": "web"}}}})),
    Case("ingress with bad tls", "networking.k8s.io/v1/ingresses", {"metadata": {"name": "x"}, "spec": {
        **ingress()["spec"], "tls": [{"hosts": ["Bad_Host"]}], "ingressClassName": "Bad_Name"}}),
    Case("network policy with ports", "networking.k8s.io/v1/networkpolicies", named(spec={
        "podSelector": {}, "ingress": [{"ports": [{"port": 80}]}], "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]})),
    Case("network policy with faults", "networking.k8s.io/v1/networkpolicies", named(spec={
        "podSelector": {"matchLabels": {"a b": "c"}}, "policyTypes": ["Maybe"],
        "ingress": [{"ports": [{"port": 70000, "protocol": "ICMP"}], "from": [{}, {"ipBlock": {"cidr": "bogus"}}]}]})),
    Case("endpoint slice with faults", "discovery.k8s.io/v1/endpointslices", named(
        addressType="IPv5", endpoints=[{"addresses": []}], ports=[{"port": 70000, "protocol": "ICMP"}])),
    Case("endpoint slice of a bad address", "discovery.k8s.io/v1/endpointslices", named(
        addressType="IPv4", endpoints=[{"addresses": ["bogus"]}])),
    Case("endpoints with faults", "v1/endpoints", named(subsets=[
        {"addresses": [{"ip": "bogus"}], "ports": [{"port": 0}]}, {}])),
    Case("ingress class without a controller", "/networking.k8s.io/v1/ingressclasses", named("difftest", spec={})),
]  # fmt: skip

CONFIGURATION = [
    Case("config map of a bad key", "v1/configmaps", named(data={"a b": "c"})),
    Case("config map of dots", "v1/configmaps", named(data={"..": "c"})),
    Case("config map of a dot", "v1/configmaps", named(data={".": "c"})),
    Case("config map of a dotted key", "v1/configmaps", named(data={"..a": "c"})),
    Case("config map of one key twice", "v1/configmaps", named(data={"a": "b"}, binaryData={"a": "Yg=="})),
    Case("config map of bad base64", "v1/configmaps", named(binaryData={"a": "!"})),
    Case("config map of a number", "v1/configmaps", named(data={"a": 1})),
    Case("config map too large", "v1/configmaps", named(data={"a": "x" * 1_100_000})),
    Case("config map change of a sealed one", "v1/configmaps", named(immutable=True, data={"a": "b"}), {"data": {"a": "c"}}),
    Case("config map change of the seal", "v1/configmaps", named(immutable=True, data={"a": "b"}), {"immutable": None}),
    Case("secret of bad base64", "v1/secrets", named(data={"a": "!"})),
    Case("secret of a bad key", "v1/secrets", named(stringData={"a b": "c"})),
    Case("tls secret without keys", "v1/secrets", named(type="kubernetes.io/tls")),
    Case("tls secret", "v1/secrets", named(type="kubernetes.io/tls", stringData={"tls.crt": "", "tls.key": ""})),
    Case("docker secret without a key", "v1/secrets", named(type="kubernetes.io/dockerconfigjson")),
    Case("docker secret of no json", "v1/secrets", named(
        type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "x"})),
    Case("old docker secret without a key", "v1/secrets", named(type="kubernetes.io/dockercfg")),
    Case("basic auth secret without keys", "v1/secrets", named(type="kubernetes.io/basic-auth")),
    Case("ssh secret without a key", "v1/secrets", named(type="kubernetes.io/ssh-auth")),
    Case("token secret without an account", "v1/secrets", named(type="kubernetes.io/service-account-token")),
    Case("secret too large", "v1/secrets", named(stringData={"a": "x" * 1_100_000})),
    Case("secret change of type", "v1/secrets", named(stringData={"a": "b"}), {"type": "e.com/t"}),
    Case("secret change of a sealed one", "v1/secrets", named(immutable=True, stringData={"a": "b"}), {"data": {"a": "Yw=="}}),
    Case("namespace of a bad name", "/v1/namespaces", named("Bad_Name")),
    Case("namespace of a long name", "/v1/namespaces", named("a" * 64)),
    Case("namespace of a dotted name", "/v1/namespaces", named("a.b")),
    Case("service account with secrets", "v1/serviceaccounts", named(secrets=[{"name": "s"}], automountServiceAccountToken=False)),
    Case("quota of a bad resource", "v1/resourcequotas", named(spec={"hard": {"bogus name": "1"}})),
    Case("quota change", "v1/resourcequotas", named(spec={"hard": {"pods": "1"}}), {"spec": {"hard": {"pods": "2"}}}),
    Case("limit range with faults", "v1/limitranges", named(spec={"limits": [
        {"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]})),
    Case("claim without modes", "v1/persistentvolumeclaims", claim(accessModes=[])),
    Case("claim without a size", "v1/persistentvolumeclaims", claim(resources={})),
    Case("claim of a bad mode", "v1/persistentvolumeclaims", claim(accessModes=["Maybe"])),
    Case("claim of size zero", "v1/persistentvolumeclaims", claim(resources={"requests": {"storage": "0"}})),
    Case("claim change of size", "v1/persistentvolumeclaims", claim(), {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}),
    Case("claim change of class", "v1/persistentvolumeclaims", claim(storageClassName="a"), {"spec": {"storageClassName": "b"}}),
    Case("volume without parts", "/v1/persistentvolumes", named("difftest", spec={})),
    Case("volume of two sources", "/v1/persistentvolumes", volume(nfs={"server": "s", "path": "/"})),
    Case("volume of a bad policy", "/v1/persistentvolumes", volume(persistentVolumeReclaimPolicy="Maybe")),
    Case("volume of odd Secrets", "/v1/persistentvolumes", named("difftest", spec={
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "a/b", "controllerExpandSecretRef": {}, "nodeStageSecretRef": {},
                "controllerPublishSecretRef": {"name": "A", "namespace": "b_"}}})),
    Case("volume change of source", "/v1/persistentvolumes", volume(), {"spec": {"hostPath": {"path": "/var"}}}),
    Case("storage class without a provisioner", "/storage.k8s.io/v1/storageclasses", named("difftest")),
    Case("storage class with bad policies", "/storage.k8s.io/v1/storageclasses", named(
        "difftest", provisioner="e.com/p", reclaimPolicy="Maybe", volumeBindingMode="Maybe")),
    Case("storage class change of parameters", "/storage.k8s.io/v1/storageclasses", named(
        "difftest", provisioner="e.com/p"), {"parameters": {"a": "b"}, "provisioner": "e.com/q", "reclaimPolicy": "Retain"}),
    Case("priority class too high", "/scheduling.k8s.io/v1/priorityclasses", named("difftest", value=2_000_000_000)),
    Case("priority class of the system", "/scheduling.k8s.io/v1/priorityclasses", named("system-difftest", value=1)),
    Case("priority class of a bad policy", "/scheduling.k8s.io/v1/priorityclasses", named("difftest", value=1, preemptionPolicy="Maybe")),
    Case("priority class change of value", "/scheduling.k8s.io/v1/priorityclasses", named("difftest", value=1), {"value": 2}),
    Case("runtime class without a handler", "/node.k8s.io/v1/runtimeclasses", named("difftest")),
    Case("runtime class of a bad handler", "/node.k8s.io/v1/runtimeclasses", named("difftest", handler="Bad_Name")),
    Case("runtime class change of handler", "/node.k8s.io/v1/runtimeclasses", named("difftest", handler="a"), {"handler": "b"}),
    Case("node with a capacity", "/v1/nodes", named("difftest", status={"capacity": {"cpu": "1"}})),
    Case("node with taints", "/v1/nodes", named("difftest", spec={"taints": [{"key": "a", "effect": "Maybe"}, {"effect": "NoSchedule"}]})),
    Case("node change of pod ranges", "/v1/nodes", named("difftest", spec={"podCIDR": "10.2.0.0/24"}), {
        "spec": {"podCIDR": "10.3.0.0/24", "podCIDRs": ["10.3.0.0/24"]}}),
    Case("lease of no seconds", "coordination.k8s.io/v1/leases", named(spec={
        "leaseDurationSeconds": 0, "leaseTransitions": -1, "holderIdentity": ""})),
    Case("lease of whole seconds", "coordination.k8s.io/v1/leases", named(spec={"renewTime": "2026-01-02T03:04:05Z"})),
    Case("lease of micro seconds", "coordination.k8s.io/v1/leases", named(spec={
        "holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z",
        "acquireTime": "2026-01-02T03:04:05.000000Z", "leaseTransitions": 0})),
    Case("lease change of holder", "coordination.k8s.io/v1/leases", named(spec={"holderIdentity": "a"}), {"spec": {"holderIdentity": "b"}}),
    Case("event of another namespace", "v1/events", named(involvedObject={"kind": "Pod", "namespace": "other"})),
    Case("event of nothing", "v1/events", named()),
    Case("event of a node", "v1/events", named(involvedObject={"kind": "Node", "name": "n"})),
    Case("event with a time", "v1/events", event(eventTime="2026-01-02T03:04:05.000006Z", reason="a")),
    Case("new event without parts", "events.k8s.io/v1/events", named()),
    Case("new event of a bad type", "events.k8s.io/v1/events", new_event(type="Maybe")),
    Case("new event of whole seconds", "events.k8s.io/v1/events", new_event(eventTime="2026-01-02T03:04:05Z")),
    Case("new event with old fields", "events.k8s.io/v1/events", new_event(
        deprecatedCount=3, deprecatedSource={"component": "a"}, note="n")),
    Case("new event with a series", "events.k8s.io/v1/events", new_event(
        series={"count": 1, "lastObservedTime": "2026-01-02T03:04:05.000006Z"})),
    Case("new event with long texts", "events.k8s.io/v1/events", new_event(
        note="x" * 1025, reason="x" * 129, action="x" * 129, reportingInstance="x" * 129, reportingController="bad name")),
    Case("new event change of reason", "events.k8s.io/v1/events", new_event(), {"reason": "Other", "note": "n"}),
    Case("event change of message", "v1/events", event(message="a"), {"message": "b"}),
    Case("budget of both", "policy/v1/poddisruptionbudgets", budget(minAvailable=1, maxUnavailable=1)),
    Case("budget of bad shares", "policy/v1/poddisruptionbudgets", budget(minAvailable="x", unhealthyPodEvictionPolicy="Maybe")),
    Case("budget of a negative number", "policy/v1/poddisruptionbudgets", budget(maxUnavailable=-1)),
    Case("budget over the whole", "policy/v1/poddisruptionbudgets", budget(maxUnavailable="150%")),
    Case("budget of nothing", "policy/v1/poddisruptionbudgets", named(spec={})),
    Case("budget change", "policy/v1/poddisruptionbudgets", budget(minAvailable=1), {"spec": {"minAvailable": 2}}),
    Case("autoscaler without a target", "autoscaling/v2/horizontalpodautoscalers", named(spec={"maxReplicas": 1})),
    Case("autoscaler of zero", "autoscaling/v2/horizontalpodautoscalers", autoscaler(maxReplicas=0)),
    Case("autoscaler of min over max", "autoscaling/v2/horizontalpodautoscalers", autoscaler(minReplicas=5)),
    Case("autoscaler of min zero", "autoscaling/v2/horizontalpodautoscalers", autoscaler(minReplicas=0)),
    Case("autoscaler of metrics", "autoscaling/v2/horizontalpodautoscalers", autoscaler(metrics=[
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}}])),
    Case("autoscaler of bad metrics", "autoscaling/v2/horizontalpodautoscalers", autoscaler(metrics=[
        {"type": "Maybe"}, {"type": "Resource"}, {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Value"}}}])),
    Case("autoscaler of behaviour", "autoscaling/v2/horizontalpodautoscalers", autoscaler(
        behavior={"scaleDown": {"stabilizationWindowSeconds": 60}})),
    Case("autoscaler v1 of a negative share", "autoscaling/v1/horizontalpodautoscalers", autoscaler(targetCPUUtilizationPercentage=-1)),
    Case("role of bad rules", "rbac.authorization.k8s.io/v1/roles", named(rules=[
        {}, {"verbs": ["get"], "nonResourceURLs": ["/x"]}, {"verbs": ["get"], "apiGroups": [""]}])),
    Case("role of a bad name", "rbac.authorization.k8s.io/v1/roles", named("a/b")),
    Case("role of a colon", "rbac.authorization.k8s.io/v1/roles", named("system:x")),
    Case("cluster role of aggregation", "/rbac.authorization.k8s.io/v1/clusterroles", named(
        "difftest", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})),
    Case("cluster role of paths", "/rbac.authorization.k8s.io/v1/clusterroles", named(
        "difftest", rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}])),
    Case("cluster role of both", "/rbac.authorization.k8s.io/v1/clusterroles", named("difftest", rules=[
        {"verbs": ["get"], "nonResourceURLs": ["/x"], "apiGroups": [""], "resources": ["pods"]}])),
    Case("binding of a bad role", "rbac.authorization.k8s.io/v1/rolebindings", binding("Maybe", "")),
    Case("binding of another group", "rbac.authorization.k8s.io/v1/rolebindings", binding(apiGroup="e.com")),
    Case("binding of an account without a namespace", "rbac.authorization.k8s.io/v1/rolebindings", binding(
        subject={"kind": "ServiceAccount", "name": "a"})),
    Case("binding of a user", "rbac.authorization.k8s.io/v1/rolebindings", binding(subject={"kind": "User", "name": "a"})),
    Case("binding of a bad subject", "rbac.authorization.k8s.io/v1/rolebindings", binding(subject={"kind": "Maybe"})),
    Case("binding change of role", "rbac.authorization.k8s.io/v1/rolebindings", binding(), {"roleRef": {"name": "s"}}),
    Case("binding change of subjects", "rbac.authorization.k8s.io/v1/rolebindings", binding(), {"subjects": []}),
    Case("cluster binding of a role", "/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        **binding("Role"), "metadata": {"name": "difftest"}}),
    Case("webhook of a short name", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook(name="a")),
    Case("webhook without side effects", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook(sideEffects=None)),
    Case("webhook of bad side effects", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook(sideEffects="Some")),
    Case("webhook without versions", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook(admissionReviewVersions=[])),
    Case("webhook of an unknown version", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook(
        admissionReviewVersions=["v9"])),
    Case("webhook of no address", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook(clientConfig={})),
    Case("webhook of a plain address", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook(
        clientConfig={"url": "http://a/b?c=d#e"})),
    Case("webhook of a service", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook(
        clientConfig={"service": {"name": "s", "namespace": "n"}})),
    Case("webhook with bad policies", "/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", webhook(
        failurePolicy="Maybe", matchPolicy="Maybe", timeoutSeconds=31, reinvocationPolicy="Maybe")),
    Case("webhook with bad rules", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook(rules=[
        {}, {"operations": ["*", "CREATE"], "apiGroups": ["*", "a"], "apiVersions": ["*", "a"], "resources": ["*", "a"]},
        {"operations": ["MAYBE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["a"], "scope": "Maybe"}])),
    Case("webhook with conditions", "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", webhook(
        matchConditions=[{"name": "a", "expression": "true"}])),
    Case("webhook change of the timeout", "/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", webhook(), {
        "webhooks": webhook(timeoutSeconds=5)["webhooks"]}),
    Case("signing request of a bad signer", "/certificates.k8s.io/v1/certificatesigningrequests", named(
        "difftest", spec={"signerName": "bad", "request": "YQ==", "usages": []})),
    Case("name and generate name", "v1/configmaps", {"metadata": {"name": "x", "generateName": "y-"}}),
    Case("neither name nor generate name", "v1/configmaps", {"metadata": {}}),
    Case("finalizer without a domain", "v1/configmaps", named(meta={"finalizers": ["abc"]})),
    Case("finalizer of bad letters", "v1/configmaps", named(meta={"finalizers": ["a b/c"]})),
    Case("quota of less than nothing", "v1/resourcequotas", named(spec={"hard": {"pods": "-1"}})),
    Case("quota of half a Pod", "v1/resourcequotas", named(spec={"hard": {"pods": "1.5"}})),
    Case("labels of bad letters", "v1/configmaps", named(meta={"labels": {"a/b/c": "x"}})),
    Case("label without a name", "v1/configmaps", named(meta={"labels": {"": "x"}})),
    Case("label of a long value", "v1/configmaps", named(meta={"labels": {"k": "z" * 64}})),
    Case("label of a long key", "v1/configmaps", named(meta={"labels": {"k" * 64: "z"}})),
    Case("label of a bad prefix", "v1/configmaps", named(meta={"labels": {"A_b/c": "z"}})),
    Case("annotation of a bad key", "v1/configmaps", named(meta={"annotations": {"a/b/c": "z"}})),
    Case("annotations too large", "v1/configmaps", named(meta={"annotations": {"a": "x" * 262_145}})),
    Case("namespace of another", "v1/configmaps", named(meta={"namespace": "other"})),
    Case("version at birth", "v1/configmaps", named(meta={"resourceVersion": "5"}), is_stored=True),
    Case("owners of one uid", "v1/configmaps", named(meta={"ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}, {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}]})),
    Case("owner that is an event", "v1/configmaps", named(meta={"ownerReferences": [
        {"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "b"}]})),
    Case("change of the uid", "v1/configmaps", named(), {"metadata": {"uid": "other"}}),
    Case("change of the name", "v1/configmaps", named(), {"metadata": {"name": "other"}}),
    Case("change of generation", "v1/configmaps", named(), {"metadata": {"generation": 7}}),
]  # fmt: skip

_MARKS = {"labels": {"a": "b"}, "annotations": {"a": "b"}}

FULL = [
    Case("full autoscaler v2", "autoscaling/v2/horizontalpodautoscalers", full_autoscaler()),
    Case("full autoscaler v1", "autoscaling/v1/horizontalpodautoscalers", full_autoscaler(targetCPUUtilizationPercentage=50)),
    Case("full autoscaler of metrics", "autoscaling/v2/horizontalpodautoscalers", full_autoscaler(metrics=[
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}}])),
    Case("full autoscaler of behaviour", "autoscaling/v2/horizontalpodautoscalers", full_autoscaler(
        behavior={"scaleDown": {"stabilizationWindowSeconds": 60}, "scaleUp": {"policies": [
            {"type": "Pods", "value": 1, "periodSeconds": 5}]}})),
    Case("full autoscaler of bad behaviour", "autoscaling/v2/horizontalpodautoscalers", full_autoscaler(behavior={
        "scaleUp": {"stabilizationWindowSeconds": -1, "selectPolicy": "Maybe", "policies": [
            {"type": "Maybe", "value": 0, "periodSeconds": 0}]},
        "scaleDown": {"stabilizationWindowSeconds": 5000}})),
    Case("full autoscaler v2 change", "autoscaling/v2/horizontalpodautoscalers", full_autoscaler(), {"spec": {"maxReplicas": 5}}),
    Case("ingress change", "networking.k8s.io/v1/ingresses", ingress_path(), {"spec": {"ingressClassName": "c"}}),
    Case("network policy change", "networking.k8s.io/v1/networkpolicies", named(spec={"podSelector": {}}), {
        "spec": {"policyTypes": ["Egress"]}}),
    Case("daemon set change of template", "apps/v1/daemonsets", workload(template=template(nodeSelector={"no": "where"})), {
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}),
    Case("stateful set change of template", "apps/v1/statefulsets", workload(replicas=0), {
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}),
    Case("replica set change of replicas", "apps/v1/replicasets", workload(replicas=0), {"spec": {"replicas": 1}}),
    Case("replication controller change of replicas", "v1/replicationcontrollers", named(
        spec={"replicas": 0, "template": template()}), {"spec": {"replicas": 1}}),
    Case("pod template change", "v1/podtemplates", named(template=template()), {"template": {"spec": {"hostNetwork": True}}}),
    Case("endpoint slice change", "discovery.k8s.io/v1/endpointslices", named(
        addressType="IPv4", endpoints=[{"addresses": ["10.1.2.3"]}]), {"endpoints": [{"addresses": ["10.1.2.4"]}]}),
    Case("namespace change of finalizers", "/v1/namespaces", named("difftest-finalizers"), {"spec": {"finalizers": []}}),
    Case("service account change", "v1/serviceaccounts", named(), {"imagePullSecrets": [{"name": "s"}]}),
    Case("storage class change of expansion", "/storage.k8s.io/v1/storageclasses", named(
        "difftest", provisioner="e.com/p"), {"allowVolumeExpansion": True}),
    Case("signing request", "/certificates.k8s.io/v1/certificatesigningrequests", signing_request()),
    Case("signing request change of spec", "/certificates.k8s.io/v1/certificatesigningrequests", signing_request(), {
        "spec": {"signerName": "other.example.com/s"}}),
    Case("signing request approved", "/certificates.k8s.io/v1/certificatesigningrequests", signing_request(), {
        "metadata": {"labels": {"a": "b"}}, "status": {"conditions": [
            {"type": "Approved", "status": "True", "reason": "Because", "message": "m"}], "certificate": "YQ=="}}, "approval"),
    Case("signing request approved and denied", "/certificates.k8s.io/v1/certificatesigningrequests", signing_request(), {
        "status": {"conditions": [
            {"type": "Approved", "status": "True", "reason": "Because"}, {"type": "Denied", "status": "True", "reason": "No"}]}},
        "approval"),
    Case("signing request approved through its status", "/certificates.k8s.io/v1/certificatesigningrequests", signing_request(), {
        "status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Because"}]}}, "status"),
    Case("pod ephemeral container", "v1/pods", pod(), {"spec": {"ephemeralContainers": [{"name": "e", "image": "busybox"}]}},
        "ephemeralcontainers"),
    Case("pod resize", "v1/pods", pod(), {"spec": {"containers": [
        {**CONTAINER, "resources": {"requests": {"cpu": "1"}}}]}}, "resize"),
    Case("pod resize of an image", "v1/pods", container(resources={"requests": {"cpu": "1"}}), {"spec": {"containers": [
        {**CONTAINER, "image": "nginx:2", "resources": {"requests": {"cpu": "2"}}}]}}, "resize"),
    Case("pod resize that removes a request", "v1/pods", container(resources={"requests": {"cpu": "1", "memory": "1Gi"}}), {
        "spec": {"containers": [{**CONTAINER, "resources": {"requests": {"memory": "1Gi"}}}]}}, "resize"),
    Case("pod resize of the quality of service", "v1/pods", container(resources={"requests": {"cpu": "1"}}), {
        "spec": {"containers": [CONTAINER]}}, "resize"),
    Case("pod resize of another resource", "v1/pods", container(resources={"requests": {"cpu": "1"}}), {"spec": {"containers": [
        {**CONTAINER, "resources": {"requests": {"cpu": "1", "e.com/x": "1"}, "limits": {"e.com/x": "1"}}}]}}, "resize"),
    Case("pod toleration removed", "v1/pods", pod(tolerations=[{"key": "a", "operator": "Exists"}]), {"spec": {"tolerations": []}}),
    Case("pod toleration of admission removed", "v1/pods", pod(), {"spec": {"tolerations": []}}),
    Case("pod deadline removed", "v1/pods", pod(activeDeadlineSeconds=5), {"spec": {"activeDeadlineSeconds": None}}),
    Case("pod deadline raised", "v1/pods", pod(activeDeadlineSeconds=5), {"spec": {"activeDeadlineSeconds": 6}}),
    Case("pod grace period changed", "v1/pods", pod(), {"spec": {"terminationGracePeriodSeconds": 3}}),
    Case("pod ephemeral container through the object", "v1/pods", pod(), {
        "spec": {"ephemeralContainers": [{"name": "e", "image": "busybox"}]}}),
    Case("pod status with owners", "v1/pods", pod(), {"metadata": {**_MARKS, "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]}, "status": {"message": "m"}}, "status"),
    Case("service without its affinity", "v1/services", named(spec={"clusterIP": "None", "ports": [{"port": 80}],
        "sessionAffinity": "ClientIP"}), {"spec": {"sessionAffinity": "None"}}),
    Case("service status without a balancer", "v1/services", named(spec={"clusterIP": "None", "ports": [{"port": 80}]}), {
        "metadata": _MARKS, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}, "status"),
    *[Case(f"service status with a bad address {number}", "v1/services", named(spec={"type": "LoadBalancer",
        "allocateLoadBalancerNodePorts": False, "ports": [{"port": 80}]}), {
        "status": {"loadBalancer": {"ingress": [address]}}}, "status")
      for number, address in enumerate([
        {"ip": "1"}, {"ip": "1.2.3.4", "ipMode": "X"}, {"hostname": "a", "ipMode": "VIP"}, {"hostname": "A_"},
        {"hostname": "1.2.3.4"}])],
    Case("priority level status", "/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", named("marked", spec={
        "type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}), {"metadata": _MARKS}, "status"),
    Case("volume attachment status", "/storage.k8s.io/v1/volumeattachments", named("marked", spec={
        "attacher": "e.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}), {"metadata": _MARKS}, "status"),
    Case("autoscaler v1 without a target", "autoscaling/v1/horizontalpodautoscalers", named(spec={
        "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "x"}})),
    *[
        Case(
            f"cluster role that aggregates by a bad selector {number}",
            "/rbac.authorization.k8s.io/v1/clusterroles",
            named("aggregates", aggregationRule={"clusterRoleSelectors": [selector]}),
        )
        for number, selector in enumerate(
            [
                {"matchLabels": {"a b": "c"}},
                {"matchLabels": {"a": "c d"}},
                {"matchExpressions": [{"key": "a", "operator": "In"}]},
            ]
        )
    ],
    Case("namespace finalize", "/v1/namespaces", named("difftest-finalize"), {"spec": {"finalizers": ["e.com/f"]}}, "finalize"),
    Case("scale of nothing", "apps/v1/deployments", workload(replicas=0), {"spec": {"paused": True}}),
]  # fmt: skip

_NOT_STORED = {"api service", "autoscaler v1", "autoscaler v2", "certificate signing request without a request"}
"""An APIService without a server behind it would make discovery on the real server fail; the others are refused."""

LABELLED = [
    Case(f"{case.name}, labelled", case.path, case.body, {"metadata": {"labels": {"now": "labelled"}}})
    for case in MINIMAL
    if case.name not in {*_NOT_STORED, "node"}  # the real server's controllers annotate a node at once
]
DELETED = [
    Case(f"{case.name}, deleted", case.path, case.body, is_stored=True, is_deleted=True)
    for case in MINIMAL
    if case.name not in {*_NOT_STORED, "namespace"}
]

_ADMISSION = "/admissionregistration.k8s.io/v1"
_MATCH = {"resourceRules": [
    {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]}  # fmt: skip
_DEFINITION = {
    "group": "x.k8s.io",
    "scope": "Namespaced",
    "names": {"plural": "as", "kind": "A"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
}


def policy(**spec: Any) -> Document:
    return named(spec={"matchConstraints": _MATCH, "validations": [{"expression": "true"}], **spec})


def mutating_policy(**spec: Any) -> Document:
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
    return named(spec={"matchConstraints": _MATCH, "reinvocationPolicy": "Never", "mutations": [mutation], **spec})


def binding(**spec: Any) -> Document:
    return named(spec={"policyName": "p", "validationActions": ["Deny"], **spec})


def mutating_binding(**spec: Any) -> Document:
    return named(spec={"policyName": "p", **spec})


def devices(**request: Any) -> Document:
    return {"devices": {"requests": [{"name": "a", **request}]}}


def exactly(**request: Any) -> Document:
    return devices(exactly={"deviceClassName": "c", **request})


def scaler(**annotations: str) -> Document:
    target = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}
    return named(meta={"annotations": annotations}, spec={"maxReplicas": 3, "scaleTargetRef": target})


def old_volume(**source: Any) -> Document:
    return named(spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source})


_CONDITIONS = {"autoscaling.alpha.kubernetes.io/conditions": '[{"type":"AbleToScale","status":"True"}]'}
_SMALL_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}


def _listed(path: str, **bodies: Document) -> list[Case]:
    kind = "/".join(path.split("/")[-2:])
    return [Case(f"{kind} {name.replace('_', ' ')}", path, body) for name, body in bodies.items()]


def _counted(count: str) -> Document:
    """A DaemonSet with the old count of its templates."""
    annotations = {"deprecated.daemonset.template.generation": count}
    spec = {"selector": {"matchLabels": LABELS}, "template": template(nodeSelector={"no": "node"})}
    return named(meta={"annotations": annotations}, spec=spec)


_RELABELLED = {"spec": {"template": {"metadata": {"labels": {"c": "d"}}}}}
POLICIES = [
    *_listed(
        f"{_ADMISSION}/validatingadmissionpolicybindings",
        of_rules=binding(matchResources=_MATCH),
        of_everything=binding(matchResources={}),
        alone=binding(),
        with_half_a_parameter=binding(paramRef={"name": "a"}),
        with_a_parameter=binding(paramRef={"name": "a", "parameterNotFoundAction": "Deny"}),
        with_two_parameters=binding(paramRef={"name": "a", "selector": {}, "parameterNotFoundAction": "X"}),
        without_actions=named(spec={"policyName": "p"}),
        that_says_it_twice=binding(validationActions=["Deny", "Warn"]),
        twice=binding(validationActions=["Audit", "Audit"]),
        without_a_policy=binding(policyName=""),
        with_an_unknown_action=binding(validationActions=["X"]),
    ),
    *_listed(
        f"{_ADMISSION}/validatingadmissionpolicies",
        of_rules=policy(),
        that_excludes=policy(matchConstraints={**_MATCH, "excludeResourceRules": _MATCH["resourceRules"]}),
        of_nothing=named(spec={}),
        without_validations=policy(validations=[]),
        without_rules=policy(matchConstraints={}),
        that_fails_oddly=policy(failurePolicy="X"),
        with_an_unknown_reason=policy(validations=[{"expression": "true", "reason": "X"}]),
        with_half_a_kind=policy(paramKind={"kind": "X"}),
        without_an_expression=policy(validations=[{"expression": "", "message": " "}]),
        that_audits=policy(auditAnnotations=[{"key": "a", "valueExpression": "'x'"}]),
        that_audits_twice=policy(auditAnnotations=[{"key": "a", "valueExpression": "'x'"}] * 2),
        with_an_empty_variable=policy(variables=[{"name": "", "expression": ""}]),
    ),
    *_listed(
        f"{_ADMISSION}/mutatingadmissionpolicies",
        of_rules=mutating_policy(),
        without_reinvocation=mutating_policy(reinvocationPolicy=None),
        of_nothing=named(spec={}),
        with_half_a_patch=mutating_policy(mutations=[{"patchType": "JSONPatch"}]),
        with_an_unknown_patch=mutating_policy(mutations=[{"patchType": "X"}]),
        that_ignores_failures=mutating_policy(failurePolicy="Ignore"),
        of_deletes=mutating_policy(
            matchConstraints={"resourceRules": [{**_MATCH["resourceRules"][0], "operations": ["DELETE"]}]}
        ),
    ),
    *_listed(
        f"{_ADMISSION}/mutatingadmissionpolicybindings",
        of_rules=mutating_binding(matchResources=_MATCH),
        alone=mutating_binding(),
        with_half_a_parameter=mutating_binding(paramRef={"name": "a"}),
    ),
]
DEVICES = [
    *_listed(
        "resource.k8s.io/v1/resourceclaims",
        of_one=named(spec=exactly()),
        of_two=named(spec=exactly(count=2)),
        of_all=named(spec=exactly(allocationMode="All")),
        of_what_others_use=named(spec=exactly(adminAccess=True)),
        of_its_own=named(spec=exactly(adminAccess=False)),
        of_nothing=named(spec={}),
        of_the_first=named(spec=devices(firstAvailable=[{"name": "b", "deviceClassName": "c"}])),
        of_the_first_of_all=named(
            spec=devices(firstAvailable=[{"name": "b", "deviceClassName": "c", "allocationMode": "All"}])
        ),
        that_tolerates=named(spec=exactly(tolerations=[{"key": "a", "effect": "NoExecute"}])),
        without_a_class=named(spec=devices(exactly={})),
        without_a_request=named(spec=devices()),
        of_both=named(spec=devices(exactly={"deviceClassName": "c"}, firstAvailable=[{"name": "b"}])),
    ),
    *_listed(
        "resource.k8s.io/v1/resourceclaimtemplates",
        of_one=named(spec={"spec": exactly()}),
        of_what_others_use=named(spec={"spec": exactly(adminAccess=True)}),
        without_a_class=named(spec={"spec": devices(exactly={})}),
    ),
    *_listed(
        "/resource.k8s.io/v1/deviceclasses",
        of_nothing=named(spec={}),
        of_an_expression=named(spec={"selectors": [{"cel": {"expression": "true"}}]}),
    ),
]
OLD_AND_SMALL = [
    *_listed(
        "/v1/persistentvolumes",
        of_azure=old_volume(azureDisk={"diskName": "d", "diskURI": "https://a.blob.core.windows.net/b/c.vhd"}),
        of_iscsi=old_volume(iscsi={"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}),
        of_rbd=old_volume(rbd={"monitors": ["a"], "image": "i"}),
        of_scale_io=old_volume(
            scaleIO={
                "gateway": "g",
                "system": "s",
                "secretRef": {"name": "s", "namespace": "n"},
                "volumeName": "v",
            }
        ),
    ),
    *_listed("v1/persistentvolumeclaims", of_parts_of_bytes=named(spec=_SMALL_CLAIM)),
    *_listed(
        "apps/v1/statefulsets",
        with_all_revisions=workload(revisionHistoryLimit=-1),
        of_parts_of_bytes=workload(volumeClaimTemplates=[{**named("d"), "spec": _SMALL_CLAIM}]),
        with_a_dotted_name={**workload(), "metadata": {"name": "a.b"}},
    ),
    *_listed("apps/v1/daemonsets", with_a_dotted_name={**workload(), "metadata": {"name": "a.b"}}),
    *_listed(
        "/storage.k8s.io/v1/volumeattributesclasses",
        with_parameters=named(driverName="d", parameters={"a": "b"}),
        without_parameters=named(driverName="d"),
    ),
    *_listed(
        "/networking.k8s.io/v1/ingressclasses",
        with_a_bad_group=named(
            spec={"controller": "a.b/c", "parameters": {"apiGroup": "G_", "kind": "K", "name": "n"}}
        ),
    ),
    *_listed(
        "autoscaling/v1/horizontalpodautoscalers",
        with_conditions=scaler(**_CONDITIONS),
        with_metrics=scaler(**{"autoscaling.alpha.kubernetes.io/current-metrics": "[]"}),
    ),
    *_listed("autoscaling/v2/horizontalpodautoscalers", with_conditions=scaler(**_CONDITIONS)),
    *_listed(
        "/v1/nodes",
        with_one_range=named(spec={"podCIDR": "10.9.8.0/24"}),
        with_ranges=named(spec={"podCIDRs": ["10.9.7.0/24", "fd00::/64"]}),
        with_another_first_range=named(spec={"podCIDR": "10.9.8.0/24", "podCIDRs": ["10.9.7.0/24", "fd00::/64"]}),
    ),
    *(
        case
        for count in ("3", "0", "-1")
        for case in _listed("apps/v1/daemonsets", **{f"counted_{count}": _counted(count)})
    ),
    Case("a counted daemonset with another template", "apps/v1/daemonsets", _counted("3"), _RELABELLED),
    Case("a counted daemonset with a label", "apps/v1/daemonsets", _counted("3"), {"metadata": {"labels": {"a": "b"}}}),
    *_listed(
        "/apiextensions.k8s.io/v1/customresourcedefinitions",
        without_an_approval=named("as.x.k8s.io", spec=_DEFINITION),
        with_an_approval=named(
            "as.x.k8s.io", meta={"annotations": {"api-approved.kubernetes.io": "https://a.b/1"}}, spec=_DEFINITION
        ),
    ),
]
_OTHER_GROUP = {"apiGroup": "x.example.com", "kind": "X", "name": "a"}
_OTHER_CLAIM = {"kind": "PersistentVolumeClaim", "name": "a"}
_ANNOTATED = {**pod(), "metadata": {"name": "annotated", "annotations": {
    "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
    "controller.kubernetes.io/pod-deletion-cost": "5",
}}}  # fmt: skip
_DEBUGGED = {**pod(), "metadata": {"name": "debugged"}}


def _debugged(name: str, /, **fields: Any) -> Case:
    """A Pod that gets an ephemeral container."""
    added = {"name": "d", "image": "d:1", **fields}
    return Case(
        name, "v1/pods", _DEBUGGED, {"spec": {"ephemeralContainers": [added]}}, subresource="ephemeralcontainers"
    )


def _annotation(name: str, key: str, value: str | None) -> Case:
    return Case(name, "v1/pods", _ANNOTATED, {"metadata": {"annotations": {key: value}}})


DISABLED = [
    Case("a new event about another namespace", "events.k8s.io/v1/events", {
        **new_event(), "regarding": {"kind": "Pod", "name": "p", "namespace": "elsewhere"}}),
    Case("a new event about no namespace", "events.k8s.io/v1/events", {
        **new_event(), "regarding": {"kind": "Node", "name": "n"}}),
    Case("an event about another namespace", "v1/events", named(
        involvedObject={"kind": "Pod", "name": "p", "namespace": "elsewhere"}, reason="R", message="m")),
    Case("a timed event about another namespace", "v1/events", named(
        involvedObject={"kind": "Pod", "name": "p", "namespace": "elsewhere"}, reason="R" * 129, message="m" * 1025,
        eventTime="2020-01-01T00:00:00.000000Z", reportingComponent="a", action="A")),
    Case("a timed event changed", "v1/events", named(
        "timed", involvedObject={"kind": "Pod", "name": "p", "namespace": "elsewhere"}, reason="R", message="m",
        eventTime="2020-01-01T00:00:00.000000Z", reportingComponent="a", reportingInstance="a", action="A"),
        {"reason": "", "type": "Other"}),
    Case("a lease with a strategy", "coordination.k8s.io/v1/leases", named(
        spec={"strategy": "OldestEmulationVersion", "preferredHolder": "a", "holderIdentity": "b"})),
    Case("a csi driver that prevents scheduling", "/storage.k8s.io/v1/csidrivers", named(
        "as.example.com", spec={"preventPodSchedulingIfMissing": True, "tokenRequests": [{"audience": "a"}]})),
    Case("a node with a source of its configuration", "/v1/nodes", named(
        "as", spec={"configSource": {"configMap": {"name": "a", "namespace": "b"}}, "externalID": "x"})),
    Case("an endpoint slice with a topology of old", "discovery.k8s.io/v1/endpointslices", named(
        addressType="FQDN", endpoints=[{"addresses": ["a.b"], "deprecatedTopology": {"k": "v"}}])),
    Case("a stateful set that may miss Pods", "apps/v1/statefulsets", named(spec={
        "selector": {"matchLabels": LABELS}, "template": template(lifecycle={}), "serviceName": "x",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}})),
    Case("a claim of another group in the old field", "v1/persistentvolumeclaims", claim(dataSource=_OTHER_GROUP)),
    Case("a claim of another group", "v1/persistentvolumeclaims", claim(dataSourceRef=_OTHER_GROUP)),
    Case("a claim of another claim", "v1/persistentvolumeclaims", claim(dataSource=_OTHER_CLAIM)),
    Case("a claim of another namespace", "v1/persistentvolumeclaims", claim(
        dataSourceRef={**_OTHER_CLAIM, "namespace": "b"})),
    Case("a claim of two claims", "v1/persistentvolumeclaims", claim(
        dataSource=_OTHER_CLAIM, dataSourceRef={**_OTHER_CLAIM, "name": "b"})),
    Case("a claim of nothing", "v1/persistentvolumeclaims", claim(dataSourceRef={"kind": "X", "name": ""})),
    Case("a runtime class of odd things", "/node.k8s.io/v1/runtimeclasses", named("as", handler="a", overhead={
        "podFixed": {"cpu": "-1"}}, scheduling={"tolerations": [{"operator": "X"}]})),
    Case("a runtime class of an odd resource", "/node.k8s.io/v1/runtimeclasses", named("as", handler="a", overhead={
        "podFixed": {"x": "1"}})),
    Case("a volume near odd nodes", "/v1/persistentvolumes", named("as", spec={
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"},
        "volumeAttributesClassName": "a",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]}}})),
]  # fmt: skip
"""Fields that the server drops, and the rules that were found while looking for them."""
CHANGED_PODS = [
    _annotation("AppArmor annotation removed", "container.apparmor.security.beta.kubernetes.io/c", None),
    _annotation("AppArmor annotation changed", "container.apparmor.security.beta.kubernetes.io/c", "runtime/default"),
    _annotation("AppArmor annotation added", "container.apparmor.security.beta.kubernetes.io/d", "runtime/default"),
    _annotation("mirror annotation added", "kubernetes.io/config.mirror", "x"),
    _annotation("deletion cost in words", "controller.kubernetes.io/pod-deletion-cost", "x"),
    _annotation("seccomp annotation added", "seccomp.security.alpha.kubernetes.io/pod", "x"),
    Case(
        "a signal added",
        "v1/pods",
        _DEBUGGED,
        {"spec": {"containers": [{**CONTAINER, "lifecycle": {"stopSignal": "SIGTERM"}}]}},
    ),
    _debugged("debugged"),
    _debugged("debugged with a target", targetContainerName="c"),
    _debugged("debugged with an unknown target", targetContainerName="q"),
    _debugged("debugged under the same name", name="c"),
    _debugged("debugged without a name", name="", image=""),
    _debugged("debugged as an odd user", securityContext={"runAsUser": -1}),
    _debugged("debugged with a mount", volumeMounts=[{"name": "z", "mountPath": "/a", "subPath": "b"}]),
    _debugged(
        "debugged by a server",
        image=" d",
        ports=[{"containerPort": 80}],
        resources={"limits": {"cpu": "1"}},
        livenessProbe={"exec": {"command": ["a"]}},
        lifecycle={"preStop": {"exec": {"command": ["a"]}}},
    ),
]

_CASES = [
    *MINIMAL,
    *PODS,
    *WORKLOADS,
    *SERVICES,
    *CONFIGURATION,
    *POLICIES,
    *DEVICES,
    *OLD_AND_SMALL,
    *FULL,
    *LABELLED,
    *DELETED,
    *DISABLED,
    *CHANGED_PODS,
]

_ROLE_BINDING = named(
    roleRef={"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
    subjects=[{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}],
)
_CAPACITY = named(storageClassName="x", nodeTopology={"matchLabels": {"a": "b"}}, capacity="1Gi")
_ADDRESS = named("10.1.2.3", spec={"parentRef": {"resource": "services", "name": "s", "namespace": "n"}})
RARE = [
    Case("capacity", "storage.k8s.io/v1/csistoragecapacities", _CAPACITY),
    Case("capacity of no class", "storage.k8s.io/v1/csistoragecapacities", named(capacity="-1")),
    Case("capacity of odd things", "storage.k8s.io/v1/csistoragecapacities", named(
        storageClassName="A b", nodeTopology={"matchLabels": {"a b": "c"}, "matchExpressions": [{"key": "a", "operator": "X"}]})),
    Case("capacity that grows", "storage.k8s.io/v1/csistoragecapacities", _CAPACITY, {"capacity": "2Gi", "maximumVolumeSize": "1Gi"}),
    Case("capacity of another class", "storage.k8s.io/v1/csistoragecapacities", _CAPACITY, {
        "storageClassName": "y", "nodeTopology": {"matchLabels": {"a": "c"}}, "capacity": "-2"}),
    Case("address", "/networking.k8s.io/v1/ipaddresses", _ADDRESS),
    Case("address of nothing", "/networking.k8s.io/v1/ipaddresses", named("10.1.2.3", spec={})),
    Case("address of an odd thing", "/networking.k8s.io/v1/ipaddresses", named("10.1.2.3", spec={
        "parentRef": {"group": "A b", "resource": "a/b", "name": "..", "namespace": "a%b"}})),
    Case("address with half a parent", "/networking.k8s.io/v1/ipaddresses", named("10.1.2.3", spec={"parentRef": {"group": "a"}})),
    *(Case(f"address {name}", "/networking.k8s.io/v1/ipaddresses", {**_ADDRESS, "metadata": {"name": name}})
      for name in ("x", "010.1.2.3", "::1", "::ffff:1.2.3.4", "2001:DB8::1", "1.2.3", "1.2.3.4/8")),
    Case("address of another thing", "/networking.k8s.io/v1/ipaddresses", _ADDRESS, {"spec": {"parentRef": {"name": "t"}}}),
    Case("address of no thing any more", "/networking.k8s.io/v1/ipaddresses", _ADDRESS, {"spec": {"parentRef": None}}),
]  # fmt: skip
_ANOTHER_SELECTOR: Document = {
    "spec": {
        "selector": {"matchLabels": {"b": "c"}},
        "template": {"spec": {"restartPolicy": "Never"}},
        "minReadySeconds": -1,
    }
}
CHANGED_TWICE = [
    Case(
        "secret of another type and without a key",
        "v1/secrets",
        named(type="Opaque", data={"a": "YQ=="}),
        {"type": "kubernetes.io/tls", "immutable": False},
    ),
    Case(
        "sealed secret changed",
        "v1/secrets",
        named(data={"a": "YQ=="}, immutable=True),
        {"data": {"a b": "YQ=="}, "type": "kubernetes.io/tls", "immutable": None},
    ),
    Case(
        "sealed config map changed",
        "v1/configmaps",
        named(data={"a": "b"}, immutable=True),
        {"data": {"a b": "c"}, "binaryData": {"a b": "YQ=="}, "immutable": None},
    ),
    Case(
        "ingress class with another and bad controller",
        "/networking.k8s.io/v1/ingressclasses",
        named(spec={"controller": "a.b/c"}),
        {"spec": {"controller": "a b"}},
    ),
    Case(
        "priority class with another and too large value",
        "/scheduling.k8s.io/v1/priorityclasses",
        named(value=1),
        {"value": 2_000_000_000, "preemptionPolicy": "Never"},
    ),
    Case(
        "daemon set with another selector and a bad template",
        "apps/v1/daemonsets",
        workload(),
        _ANOTHER_SELECTOR,
    ),
    Case(
        "deployment with another selector and a bad template",
        "apps/v1/deployments",
        workload(),
        _ANOTHER_SELECTOR,
    ),
    Case(
        "stateful set with another service and a bad template",
        "apps/v1/statefulsets",
        workload(serviceName="x"),
        {"spec": {"serviceName": "Y", "template": {"spec": {"restartPolicy": "Never"}}, "minReadySeconds": -1}},
    ),
    Case(
        "job with another selector and a bad template",
        "batch/v1/jobs",
        job(),
        {"spec": {"completions": -1, "completionMode": "Indexed", "parallelism": -1}},
    ),
    Case(
        "service with another class and a bad port",
        "v1/services",
        service({"port": 80}, type="LoadBalancer"),
        {"spec": {"loadBalancerClass": "a.b/c", "ports": [{"port": 0}], "sessionAffinity": "x"}},
    ),
    Case(
        "service with another address and a bad port",
        "v1/services",
        service({"port": 80}),
        {"spec": {"clusterIP": "10.0.0.77", "clusterIPs": ["10.0.0.77"], "ports": [{"port": 0}]}},
    ),
    Case(
        "service with a node port out of range and a bad name",
        "v1/services",
        service({"port": 80}),
        {"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80, "name": "A_B"}]}},
    ),
    Case(
        "storage class changed",
        "/storage.k8s.io/v1/storageclasses",
        named(provisioner="a.b/c"),
        {"provisioner": "a b", "reclaimPolicy": "Recycle", "parameters": {"": "x"}},
    ),
    Case(
        "volume attributes class changed",
        "/storage.k8s.io/v1/volumeattributesclasses",
        named(driverName="a.b", parameters={"a": "b"}),
        {"driverName": "a b", "parameters": None},
    ),
    Case(
        "role binding changed",
        "rbac.authorization.k8s.io/v1/rolebindings",
        _ROLE_BINDING,
        {
            "roleRef": {"kind": "ClusterRole", "name": "x"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io"}],
        },
    ),
    Case(
        "quota changed",
        "v1/resourcequotas",
        named(spec={"hard": {"pods": "1"}}),
        {"spec": {"hard": {"pods": "-1"}, "scopes": ["BestEffort"]}},
    ),
    Case(
        "claim changed",
        "v1/persistentvolumeclaims",
        claim(),
        {"spec": {"accessModes": ["x"], "storageClassName": "other", "resources": {"requests": {"storage": "-1"}}}},
    ),
    Case(
        "volume changed",
        "/v1/persistentvolumes",
        volume(hostPath={"path": "/a"}),
        {"spec": {"hostPath": {"path": "/../a"}, "capacity": {"storage": "0"}}},
    ),
    Case(
        "budget changed",
        "policy/v1/poddisruptionbudgets",
        budget(minAvailable=1),
        {"spec": {"minAvailable": -1, "maxUnavailable": "x", "selector": {"matchLabels": {"a b": "c"}}}},
    ),
    Case(
        "pod with volumes that are wrong",
        "v1/pods",
        pod(
            volumes=[
                {"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}, "configMap": {"name": "c"}},
                {"name": "v"},
                {"name": "v"},
                {
                    "name": "e" * 60,
                    "ephemeral": {
                        "volumeClaimTemplate": {
                            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
                        }
                    },
                },
                {"name": "p", "persistentVolumeClaim": {"claimName": "x-" + "e" * 60}},
            ],
            containers=[
                {**CONTAINER, "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in ("v", "p", "q")]}
            ],
        ),
    ),
]
_ODD_METADATA: Document = {"metadata": {
    "labels": {"a b": "x"},
    "annotations": {"a b": "x"},
    "finalizers": ["a", "example.com", "a b/x", "a.b/c"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "s"}],
}}  # fmt: skip


def _with_odd_metadata() -> list[Case]:
    """Each kind, and its status, with mistakes in its metadata: they are said as often as the real server looks at them."""
    bodies: dict[str, Document] = {
        "/v1/namespaces": named("odd"),
        "autoscaling/v1/horizontalpodautoscalers": autoscaler(
            scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}),
        "/apiextensions.k8s.io/v1/customresourcedefinitions": named("as.odd.example.com", spec={
            "group": "odd.example.com", "scope": "Namespaced", "names": {"plural": "as", "kind": "A"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}),
    }  # fmt: skip
    for case in sorted([*_CASES, *RARE], key=lambda case: case.changes is None):
        bodies.setdefault(case.path, case.body)
    return [
        Case(
            f"{part or 'kind'} with odd metadata: {path.replace('/', ' ')}", path, body, _ODD_METADATA, subresource=part
        )
        for path, body in bodies.items()
        for part in ("status", "")
        if not part or path.rpartition("/")[2] in _WITH_STATUS
    ]


_WITH_STATUS = frozenset({
    "certificatesigningrequests", "cronjobs", "daemonsets", "deployments", "horizontalpodautoscalers", "ingresses", "jobs", "namespaces", "nodes",
    "persistentvolumeclaims", "persistentvolumes", "poddisruptionbudgets", "pods", "replicasets", "replicationcontrollers",
    "resourceclaims", "resourcequotas", "services", "statefulsets", "volumeattachments",
})  # fmt: skip
"""Not here: statuses that a controller of the real server writes meanwhile."""
CASES = [*_CASES, *RARE, *CHANGED_TWICE, *_with_odd_metadata(), *LESS_COMMON, *DEVICE_CASES]
