"""Pod specs, most of them odd, and what has such a spec: the tables behind `test_pod_specs.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Document: TypeAlias = dict[str, Any]

LABELS: Final = {"app": "a"}
CONTAINER: Final = {"name": "c", "image": "nginx:1"}


def with_container(**fields: Any) -> Document:
    return {"containers": [{**CONTAINER, **fields}]}


def with_ports(*ports: Document, **fields: Any) -> Document:
    return {**with_container(ports=list(ports)), **fields}


def with_resources(**resources: Any) -> Document:
    return with_container(resources=resources)


def with_requests(**requests: str) -> Document:
    return with_resources(requests=requests)


def with_volume(**source: Any) -> Document:
    return {**with_container(), "volumes": [{"name": "v", **source}]}


def projected(*sources: Document) -> Document:
    return with_volume(projected={"sources": list(sources)})


def with_env(*variables: Document) -> Document:
    return with_container(env=list(variables))


def with_init(**fields: Any) -> Document:
    return {**with_container(), "initContainers": [{"name": "i", "image": "i:1", **fields}]}


def with_pod(**fields: Any) -> Document:
    return {**with_container(), **fields}


def annotated(**annotations: str) -> Document:
    """A spec whose Pod has annotations."""
    return {**with_container(), "ANNOTATIONS": annotations}


_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def on_nodes(key: str, operator: str, *values: str) -> Document:
    """A spec whose Pod needs nodes with a label."""
    requirement = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    term = {"matchExpressions": [requirement]}
    return with_pod(affinity={"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term]}}})


def near(**term: Any) -> Document:
    """A spec whose Pod needs to be near other Pods."""
    return with_pod(affinity={"podAffinity": {_REQUIRED: [{"topologyKey": "zone", "labelSelector": {}, **term}]}})


def spread(*constraints: Document) -> Document:
    usual = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    return with_pod(topologySpreadConstraints=[{**usual, **constraint} for constraint in constraints])


def mounted(mount: Document | None = None, **source: Any) -> Document:
    mounts = [{"name": "v", "mountPath": "/d", **(mount or {})}]
    return {**with_container(volumeMounts=mounts), "volumes": [{"name": "v", **(source or {"emptyDir": {}})}]}


def as_device(**source: Any) -> Document:
    return {
        **with_container(volumeDevices=[{"name": "v", "devicePath": "/dev/x"}]),
        "volumes": [{"name": "v", **source}],
    }


def with_claims(*claims: Document, names: tuple[str, ...] = ()) -> Document:
    """A spec whose Pod has claims of devices, and whose container names some."""
    named = [{"name": name} for name in names]
    return {**with_resources(claims=named), **({"resourceClaims": list(claims)} if claims else {})}


_ZONE: Final = {"topologyKey": "zone"}
_TOKEN: Final = {"serviceAccountToken": {"path": "t"}}

SPECS: Final[Mapping[str, Document]] = {
    "plain": with_container(),
    "nothing": {},
    "no containers": {"containers": []},
    # Images
    "blanks around the image": with_container(image=" i "),
    "a blank image": with_container(image=" "),
    "no image": with_container(image=""),
    "image of a variable": with_container(image="$(IMG)"),
    "image in capitals": with_container(image="Nginx"),
    "image with a port": with_container(image="reg:5000/a"),
    "image with a port and tag": with_container(image="reg:5000/a:latest"),
    "image with a digest": with_container(image="a@sha256:" + "0" * 64),
    "image with a short digest": with_container(image="a@sha256:00"),
    "image latest with a digest": with_container(image="a:latest@sha256:" + "0" * 64),
    "image with a bad tag": with_container(image="a:-x"),
    "image of a template": with_container(image="{{ .Values.image }}"),
    "image with two colons": with_container(image="a:b:c"),
    "image that is only hexadecimal": with_container(image="0" * 64),
    "image with a scheme": with_container(image="https://reg/a"),
    "image in dashes": with_container(image="a--b/c__d.e"),
    "image with a host in capitals": with_container(image="REG.example.com/a"),
    "bad pull policy": with_container(imagePullPolicy="Sometimes"),
    # Ports
    "host network": with_ports({"containerPort": 80}, hostNetwork=True),
    "host network and another host port": with_ports({"containerPort": 80, "hostPort": 81}, hostNetwork=True),
    "host network of an init container": {**with_init(ports=[{"containerPort": 80}]), "hostNetwork": True},
    "the same host port twice": with_ports(
        {"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}
    ),
    "one port, two host ports": with_ports(
        {"containerPort": 80, "hostPort": 80}, {"containerPort": 80, "hostPort": 81}
    ),
    "ambiguous host address": with_ports(
        {"containerPort": 80, "hostPort": 80}, {"containerPort": 80, "hostPort": 80, "hostIP": "1.2.3.4"}
    ),
    "host address without a port": with_ports({"containerPort": 80, "hostIP": "1.2.3.4"}),
    "the same port twice": with_ports({"containerPort": 80}, {"containerPort": 80}),
    "a port with and without host port": with_ports({"containerPort": 80}, {"containerPort": 80, "hostPort": 80}),
    "one port of two protocols": with_ports({"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}),
    "a port name twice": with_ports({"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}),
    "a port name in two containers": {
        "containers": [
            {**CONTAINER, "ports": [{"containerPort": 80, "name": "a"}]},
            {"name": "d", "image": "d:1", "ports": [{"containerPort": 81, "name": "a"}]},
        ]
    },
    "a bad protocol": with_ports({"containerPort": 80, "protocol": "tcp"}),
    "a bad port name": with_ports({"containerPort": 80, "name": "A_B"}),
    "no port": with_ports({"name": "a"}),
    # Resources
    "domain of kubernetes": with_requests(**{"foo.kubernetes.io/x": "1"}),
    "domain of kubernetes in part": with_requests(**{"foo.kubernetes.io/x": "1500m"}),
    "extended resource": with_requests(**{"example.com/x": "1"}),
    "extended resource in part": with_resources(limits={"example.com/x": "1500m"}),
    "extended resource of requests": with_resources(limits={"requests.example.com/x": "1"}),
    "huge pages": with_requests(**{"hugepages-2Mi": "2Mi", "cpu": "1"}),
    "huge pages alone": with_resources(limits={"hugepages-2Mi": "2Mi"}),
    "huge pages that do not fit": with_resources(limits={"hugepages-2Mi": "3Mi", "cpu": "1"}),
    "huge pages of another amount": with_resources(
        limits={"hugepages-2Mi": "4Mi", "cpu": "1"}, requests={"hugepages-2Mi": "2Mi"}
    ),
    "limits without requests": with_resources(limits={"cpu": "1", "memory": "1Gi"}),
    "request over limit": with_resources(limits={"cpu": "1"}, requests={"cpu": "2"}),
    "negative request": with_requests(cpu="-1"),
    "unknown resource": with_requests(gpu="1"),
    "storage of a container": with_requests(storage="1Gi"),
    "fractions of bytes": with_resources(limits={"memory": "1500m"}, requests={"memory": "100m"}),
    "fractions of stored bytes": with_requests(**{"ephemeral-storage": "100m"}),
    "tiny amounts": with_requests(cpu="1n", memory="1u"),
    "of an init container": with_init(resources={"limits": {"cpu": "1"}}),
    "of the Pod": with_pod(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
    "of the Pod and its container": {
        **with_resources(limits={"cpu": "1"}, requests={"cpu": "500m"}),
        "resources": {"limits": {"cpu": "2"}},
    },
    "of the Pod less than its container": {
        **with_requests(cpu="2"),
        "resources": {"requests": {"cpu": "1"}},
    },
    "extended resource of the Pod": with_pod(resources={"limits": {"example.com/x": "1"}}),
    # Environment
    "a variable twice": with_env({"name": "A", "value": "1"}, {"name": "A", "value": "2"}),
    "a variable twice alike": with_env({"name": "A", "value": "1"}, {"name": "A", "value": "1"}),
    "a variable that adds to itself": with_env({"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}),
    "a variable of itself": with_env({"name": "A", "value": "1"}, {"name": "A", "value": "$(A)"}),
    "a variable without a name": with_env({"value": "1"}),
    "a variable with two values": with_env(
        {"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    ),
    "a variable of nothing": with_env({"name": "A", "valueFrom": {}}),
    "a variable of a label": with_env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}),
    "a variable of all labels": with_env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}),
    "a prefix with a sign": with_container(envFrom=[{"prefix": "a=b", "configMapRef": {"name": "m"}}]),
    # Volumes
    "token without an account": projected(_TOKEN),
    "token with an account": {**projected(_TOKEN), "serviceAccountName": "default"},
    "a short token": {
        **projected({"serviceAccountToken": {"path": "t", "expirationSeconds": 5}}),
        "serviceAccountName": "default",
    },
    "projected nothing": projected({}),
    "projected without sources": projected(),
    "projected over each other": projected(
        {"configMap": {"name": "m", "items": [{"key": "a", "path": "p"}]}},
        {"secret": {"name": "s", "items": [{"key": "a", "path": "p"}]}},
    ),
    "no source": with_volume(),
    "two sources": with_volume(emptyDir={}, configMap={"name": "m"}),
    "the same volume twice": with_pod(volumes=[{"name": "v"}, {"name": "v"}]),
    "mount of a volume that is not there": with_container(volumeMounts=[{"name": "data", "mountPath": "/d"}]),
    "mount with a colon": {
        **with_container(volumeMounts=[{"name": "v", "mountPath": "/a:b"}]),
        "volumes": [{"name": "v"}],
    },
    "mount upwards": {
        **with_container(volumeMounts=[{"name": "v", "mountPath": "/d", "subPath": "../a"}]),
        "volumes": [{"name": "v"}],
    },
    "azure disk": with_volume(azureDisk={"diskName": "d", "diskURI": "https://blob/a"}),
    "iscsi": with_volume(iscsi={"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}),
    "rbd": with_volume(rbd={"monitors": ["a"], "image": "i"}),
    "scale io": with_volume(scaleIO={"gateway": "g", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v"}),
    "git repository": with_volume(gitRepo={"repository": "r"}),
    "photon disk": with_volume(photonPersistentDisk={"pdID": "p"}),
    "flocker": with_volume(flocker={"datasetName": "d"}),
    "storage os": with_volume(storageos={"volumeName": "v", "volumeNamespace": "n"}),
    "quobyte": with_volume(quobyte={"registry": "a:1", "volume": "v"}),
    "gluster": with_volume(glusterfs={"endpoints": "e", "path": "p"}),
    "ceph": with_volume(cephfs={"monitors": ["a"]}),
    "image volume": with_volume(image={"reference": "a"}),
    "image volume of a tag": with_volume(image={"reference": "a:1"}),
    "ephemeral claim": with_volume(
        ephemeral={
            "volumeClaimTemplate": {
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            }
        }
    ),
    "ephemeral claim of nothing": with_volume(ephemeral={}),
    # Names and places
    "host name with a dot": with_pod(hostname="a.b"),
    "bad account": with_pod(serviceAccountName="A_B"),
    "old account": with_pod(serviceAccount="builder"),
    "bad node name": with_pod(nodeName="A_B"),
    "node labels of old": with_pod(nodeSelector={"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "x"}),
    "zone of old": with_pod(nodeSelector={"failure-domain.beta.kubernetes.io/zone": "a"}),
    "affinity to a zone of old": with_pod(
        affinity={
            "nodeAffinity": {
                _REQUIRED: {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "Exists"}]}
                    ]
                }
            }
        }
    ),
    "spread over zones of old": with_pod(
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "failure-domain.beta.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {},
            }
        ]
    ),
    "affinity without a selector": with_pod(affinity={"podAffinity": {_REQUIRED: [_ZONE]}}),
    "preference without a selector": with_pod(
        affinity={"podAntiAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _ZONE}]}}
    ),
    "preference of no weight": with_pod(
        affinity={"podAntiAffinity": {_PREFERRED: [{"weight": 0, "podAffinityTerm": {**_ZONE, "labelSelector": {}}}]}}
    ),
    "a toleration of everything": with_pod(tolerations=[{"operator": "Exists"}]),
    "an alias twice": with_pod(hostAliases=[{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]),
    "an alias with zeros": with_pod(hostAliases=[{"ip": "::ffff:1.2.3.4"}]),
    "pull secret twice": with_pod(imagePullSecrets=[{"name": "a"}, {"name": "a"}]),
    "pull secret without a name": with_pod(imagePullSecrets=[{}]),
    "scheduling gates": with_pod(schedulingGates=[{"name": "example.com/a"}]),
    "scheduling gate and node": with_pod(schedulingGates=[{"name": "example.com/a"}], nodeName="n"),
    "priority class with capitals": with_pod(runtimeClassName="A_B"),
    "overhead": with_pod(overhead={"cpu": "1"}),
    "windows": with_pod(os={"name": "windows"}),
    "an unknown system": with_pod(os={"name": "plan9"}),
    "nodes with a greater number": on_nodes("a", "Gt", "1"),
    "nodes with two greater numbers": on_nodes("a", "Gt", "1", "2"),
    "nodes in nothing": on_nodes("a", "In"),
    "nodes that exist with a value": on_nodes("a", "Exists", "b"),
    "nodes by an unknown operator": on_nodes("a", "X"),
    "nodes by a bad key": on_nodes("a b", "Exists"),
    "nodes by a bad field": with_pod(
        affinity={
            "nodeAffinity": {
                _REQUIRED: {
                    "nodeSelectorTerms": [{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["n"]}]}]
                }
            }
        }
    ),
    "nodes of no weight": with_pod(
        affinity={
            "nodeAffinity": {
                _PREFERRED: [{"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]
            }
        }
    ),
    "near Pods of a namespace": near(namespaces=["x"], namespaceSelector={}),
    "near Pods of a bad namespace": near(namespaces=["X_"]),
    "spread with everything": spread(
        {"minDomains": 2, "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore", "matchLabelKeys": ["x"]}
    ),
    "spread twice": spread({}, {}),
    "spread over no domains": spread({"whenUnsatisfiable": "ScheduleAnyway", "minDomains": 0}),
    "spread by an unknown policy": spread({"nodeTaintsPolicy": "X"}),
    "spread by keys without a selector": spread({"labelSelector": None, "matchLabelKeys": ["a"]}),
    "a toleration of more than": with_pod(
        tolerations=[{"key": "a", "operator": "Gt", "value": "5", "effect": "NoSchedule"}]
    ),
    "a toleration of a bad value": with_pod(tolerations=[{"key": "a", "value": "a b", "effect": "NoSchedule"}]),
    "another host name on the host network": with_pod(hostnameOverride="a", hostNetwork=True),
    # Devices and mounts
    "a claim of devices": with_claims({"name": "r", "resourceClaimName": "x"}, names=("r",)),
    "a claim that is not there": with_claims(names=("r",)),
    "a claim of two things": with_claims({"name": "r", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}),
    "a claim of nothing": with_claims({"name": "r"}),
    "a claim twice": with_claims(*[{"name": "r", "resourceClaimName": "x"}] * 2, names=("r", "r")),
    "a block device": as_device(persistentVolumeClaim={"claimName": "c"}),
    "a block device of a folder": as_device(emptyDir={}),
    "a block device of nothing": with_container(volumeDevices=[{"name": "v", "devicePath": "/dev/x"}]),
    "a block device that is mounted": {
        **as_device(persistentVolumeClaim={"claimName": "c"}),
        "containers": [
            {
                **CONTAINER,
                "volumeDevices": [{"name": "v", "devicePath": "/dev/x"}],
                "volumeMounts": [{"name": "v", "mountPath": "/d"}],
            }
        ],
    },
    "a mount by a variable": mounted({"subPathExpr": "$(X)"}),
    "a mount that spreads": mounted({"mountPropagation": "Bidirectional"}),
    "a mount that spreads oddly": mounted({"mountPropagation": "X"}),
    "a mount read only all the way": mounted({"readOnly": True, "recursiveReadOnly": "Enabled"}),
    "a mount half read only": mounted({"recursiveReadOnly": "Enabled"}),
    "an image that is mounted": mounted(image={"reference": "a:1"}),
    "a disk without a name": with_volume(awsElasticBlockStore={"volumeID": ""}),
    "a disk of old without a name": with_volume(gcePersistentDisk={"pdName": ""}),
    "a share without a name": with_volume(azureFile={"secretName": "", "shareName": ""}),
    "two projections in one": projected({"secret": {"name": "a"}, "configMap": {"name": "b"}}),
    "a token upwards": {**projected({"serviceAccountToken": {"path": "../a"}}), "serviceAccountName": "default"},
    "a token for centuries": {
        **projected({"serviceAccountToken": {"path": "a", "expirationSeconds": 9999999999}}),
        "serviceAccountName": "default",
    },
    "a bad mode of files": with_volume(projected={"defaultMode": 1000, "sources": []}),
    "the limit of another container": with_volume(
        downwardAPI={"items": [{"path": "b", "resourceFieldRef": {"resource": "limits.cpu"}}]}
    ),
    "variables of two sources": with_container(envFrom=[{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]),
    "variables of a bad name": with_container(envFrom=[{"configMapRef": {"name": "A_"}}]),
    "a variable of a file": {
        **with_env({"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}),
        "volumes": [{"name": "v"}],
    },
    # Lives
    "never started again": with_pod(restartPolicy="Never"),
    "an unknown restart policy": with_pod(restartPolicy="Sometimes"),
    "a deadline": with_pod(activeDeadlineSeconds=5),
    "negative grace": with_pod(terminationGracePeriodSeconds=-1),
    "ephemeral containers": with_pod(ephemeralContainers=[{"name": "e", "image": "e"}]),
    "sidecar": with_init(restartPolicy="Always"),
    "a container that is never restarted": with_container(restartPolicy="Never"),
    "probe of an init container": with_init(livenessProbe={"exec": {"command": ["a"]}}),
    "probe of nothing": with_container(livenessProbe={}),
    "probe of a port": with_container(livenessProbe={"tcpSocket": {"port": 80}}),
    "probe by HTTP": with_container(readinessProbe={"httpGet": {"port": 80}}),
    "probe with a grace": with_container(
        readinessProbe={"tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": 5}
    ),
    "probe by gRPC": with_container(startupProbe={"grpc": {"port": 80}}),
    "a hook that sleeps": with_container(lifecycle={"preStop": {"sleep": {"seconds": 60}}}),
    "bad message policy": with_container(terminationMessagePolicy="Sometimes"),
    "resize policy": with_container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}]),
    "rules of restarts": with_container(
        restartPolicy="Never",
        restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
    ),
    "rules of restarts without a policy": with_container(
        restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]
    ),
    # Security
    "policies of groups": with_pod(
        securityContext={"fsGroupChangePolicy": "X", "supplementalGroupsPolicy": "Y", "supplementalGroups": [-1]}
    ),
    "AppArmor of a file": with_pod(securityContext={"appArmorProfile": {"type": "Localhost"}}),
    "AppArmor of an unknown type": with_container(securityContext={"appArmorProfile": {"type": "X"}}),
    "seccomp of an unknown type": with_container(securityContext={"seccompProfile": {"type": "X"}}),
    "host users": with_pod(hostUsers=False, hostNetwork=True),
    "proc mount": with_container(securityContext={"procMount": "Unmasked"}),
    "negative user": with_pod(securityContext={"runAsUser": -1}),
    "seccomp of a file": with_pod(securityContext={"seccompProfile": {"type": "Localhost"}}),
    "sysctl": with_pod(securityContext={"sysctls": [{"name": "a b", "value": "1"}]}),
    "process namespace": with_pod(shareProcessNamespace=True, hostPID=True),
    # Annotations
    "seccomp annotation": annotated(**{"seccomp.security.alpha.kubernetes.io/pod": "runtime/default"}),
    "AppArmor annotation": annotated(**{"container.apparmor.security.beta.kubernetes.io/c": "runtime/default"}),
    "critical annotation": annotated(**{"scheduler.alpha.kubernetes.io/critical-pod": ""}),
    "annotation with a bad key": annotated(**{"a/b/c": ""}),
    "DNS without a policy": with_pod(dnsPolicy="None"),
    "DNS by old addresses": with_pod(dnsConfig={"nameservers": ["::ffff:1.2.3.4"]}),
    "DNS that searches everywhere": with_pod(dnsConfig={"searches": ["a"] * 33}),
    "three and one name servers": with_pod(dnsConfig={"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}),
}


def _template(spec: Document) -> Document:
    spec = dict(spec)
    annotations = spec.pop("ANNOTATIONS", None)
    metadata = {"labels": LABELS, **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, "spec": spec}


def _pod(spec: Document) -> Document:
    template = _template({"schedulerName": "nobody", **spec})
    return {"metadata": {"name": "x", **template["metadata"]}, "spec": template["spec"]}


def _workload(spec: Document) -> Document:
    return {
        "metadata": {"name": "x"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": _template(spec), "serviceName": "x"},
    }


def _controller(spec: Document) -> Document:
    return {"metadata": {"name": "x"}, "spec": {"selector": LABELS, "template": _template(spec)}}


def _job(spec: Document) -> Document:
    return {"metadata": {"name": "x"}, "spec": {"template": _template({"restartPolicy": "Never", **spec})}}


def _cron_job(spec: Document) -> Document:
    return {"metadata": {"name": "x"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _job(spec)["spec"]}}}


def _pod_template(spec: Document) -> Document:
    return {"metadata": {"name": "x"}, "template": _template(spec)}


KINDS: Final[Mapping[str, tuple[str, Callable[[Document], Document]]]] = {
    "Pod": ("v1/pods", _pod),
    "Deployment": ("apps/v1/deployments", _workload),
    "Job": ("batch/v1/jobs", _job),
    "StatefulSet": ("apps/v1/statefulsets", _workload),
    "DaemonSet": ("apps/v1/daemonsets", _workload),
    "ReplicaSet": ("apps/v1/replicasets", _workload),
    "ReplicationController": ("v1/replicationcontrollers", _controller),
    "CronJob": ("batch/v1/cronjobs", _cron_job),
    "PodTemplate": ("v1/podtemplates", _pod_template),
}
"""For each kind with a Pod's spec: its path, and what makes an object of the spec. The first three are compared in every run."""
