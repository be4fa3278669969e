"""More Pod specs, by the field they are odd in: what `test_pod_specs.py` compares as a Pod and as a Deployment's template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from pod_specs import (
    CONTAINER,
    annotated,
    mounted,
    near,
    projected,
    spread,
    with_container,
    with_env,
    with_init,
    with_pod,
    with_ports,
    with_requests,
    with_resources,
    with_volume,
)

Document: TypeAlias = dict[str, Any]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io"
_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_MIRROR: Final = "kubernetes.io/config.mirror"
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_ONE_CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_LONG: Final = "a" * 64


def with_context(**fields: Any) -> Document:
    return with_container(securityContext=fields)


def with_pod_context(**fields: Any) -> Document:
    return with_pod(securityContext=fields)


def with_windows(pod: Document | None = None, container: Document | None = None, **fields: Any) -> Document:
    """A spec with options for Windows, of the Pod and of its container."""
    spec = with_pod(**fields)
    if pod is not None:
        spec["securityContext"] = {"windowsOptions": pod}
    if container is not None:
        spec["containers"] = [{**CONTAINER, "securityContext": {"windowsOptions": container}}]
    return spec


def on_windows(**fields: Any) -> Document:
    return with_pod(os={"name": "windows"}, **fields)


def on_linux(**fields: Any) -> Document:
    return with_pod(os={"name": "linux"}, **fields)


def with_field(path: str, version: str = "v1") -> Document:
    return with_env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path, "apiVersion": version}}})


def with_amount(resource: str, **fields: Any) -> Document:
    return with_env({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": resource, **fields}}})


def with_file(*, volume: Document | None = None, **fields: Any) -> Document:
    ref = {"volumeName": "v", "path": "p", "key": "k", **fields}
    volumes = [{"name": "v", **(volume or {"emptyDir": {}})}]
    return {**with_env({"name": "A", "valueFrom": {"fileKeyRef": ref}}), "volumes": volumes}


def with_claim(spec: Document | None = None, **metadata: Any) -> Document:
    template = {"spec": {**_ONE_CLAIM, **(spec or {})}, **({"metadata": metadata} if metadata else {})}
    return with_volume(ephemeral={"volumeClaimTemplate": template})


def with_dns(policy: str = "ClusterFirst", **config: Any) -> Document:
    return with_pod(dnsPolicy=policy, dnsConfig=config)


def with_probe(**fields: Any) -> Document:
    return with_container(livenessProbe=fields)


def with_hook(hook: str, **action: Any) -> Document:
    return with_container(lifecycle={hook: action})


def with_rules(*rules: Document, policy: str = "Never") -> Document:
    return with_container(restartPolicy=policy, restartPolicyRules=list(rules))


def rule(operator: str = "In", *values: int, action: str = "Restart") -> Document:
    return {"action": action, "exitCodes": {"operator": operator, "values": list(values)}}


def with_nodes(*terms: Document) -> Document:
    return with_pod(affinity={"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": list(terms)}}})


def field_term(key: str, operator: str, *values: str) -> Document:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


def tolerating(**toleration: Any) -> Document:
    return with_pod(tolerations=[toleration])


def downward(**item: Any) -> Document:
    return with_volume(downwardAPI={"items": [item]})


def with_hosts(*aliases: Document, **fields: Any) -> Document:
    return with_pod(hostAliases=list(aliases), **fields)


MORE_SPECS: Final[Mapping[str, Document]] = {
    # Windows
    "windows host process": with_windows({"hostProcess": True}, hostNetwork=True),
    "windows host process off the host network": with_windows({"hostProcess": True}),
    "windows host process of a container": with_windows(container={"hostProcess": True}, hostNetwork=True),
    "windows host process of a part": {
        "hostNetwork": True,
        "containers": [
            {**CONTAINER, "securityContext": {"windowsOptions": {"hostProcess": True}}},
            {"name": "d", "image": "d:1"},
        ],
    },
    "windows host process of the Pod alone": with_windows(
        {"hostProcess": True}, {"hostProcess": False}, hostNetwork=True
    ),
    "windows service account": with_windows({"gmsaCredentialSpecName": "A_b", "gmsaCredentialSpec": ""}),
    "windows service account of a container": with_windows(container={"gmsaCredentialSpec": "x" * 70000}),
    "windows user": with_windows({"runAsUserName": "NT AUTHORITY\\SYSTEM"}),
    "windows user of nothing": with_windows({"runAsUserName": ""}),
    "windows user with signs": with_windows({"runAsUserName": "a\tb"}),
    "windows user with two slashes": with_windows({"runAsUserName": "a\\b\\c"}),
    "windows user without a domain": with_windows({"runAsUserName": "\\c"}),
    "windows user of a long domain": with_windows({"runAsUserName": "a" * 300 + "\\c"}),
    "windows user of a bad domain": with_windows({"runAsUserName": "-a\\c"}),
    "windows user of a long name": with_windows(container={"runAsUserName": "a" * 105}),
    "windows user of dots": with_windows(container={"runAsUserName": "..."}),
    "windows user of a bad name": with_windows(container={"runAsUserName": "a/b"}),
    "windows options on linux": with_windows({"runAsUserName": "a"}, {"runAsUserName": "a"}, os={"name": "linux"}),
    "linux options on windows": on_windows(
        hostPID=True,
        hostIPC=True,
        hostUsers=False,
        shareProcessNamespace=True,
        securityContext={
            "seLinuxOptions": {"level": "s0"},
            "fsGroup": 1,
            "fsGroupChangePolicy": "Always",
            "seLinuxChangePolicy": "Recursive",
            "sysctls": [{"name": "a", "value": "1"}],
            "supplementalGroups": [1],
            "supplementalGroupsPolicy": "Merge",
            "runAsUser": 1,
            "runAsGroup": 1,
            "seccompProfile": {"type": "RuntimeDefault"},
            "appArmorProfile": {"type": "RuntimeDefault"},
        },
    ),
    "linux options of a container on windows": {
        **with_context(
            seLinuxOptions={"level": "s0"},
            seccompProfile={"type": "RuntimeDefault"},
            appArmorProfile={"type": "RuntimeDefault"},
            capabilities={"add": ["A"]},
            readOnlyRootFilesystem=True,
            privileged=True,
            allowPrivilegeEscalation=True,
            procMount="Default",
            runAsUser=1,
            runAsGroup=1,
        ),
        "os": {"name": "windows"},
    },
    "a system without a name": with_pod(os={"name": ""}),
    # seccomp and AppArmor
    "seccomp of a file with another type": with_context(
        seccompProfile={"type": "RuntimeDefault", "localhostProfile": "a"}
    ),
    "seccomp upwards": with_context(seccompProfile={"type": "Localhost", "localhostProfile": "../a"}),
    "seccomp without a type": with_pod_context(seccompProfile={"type": ""}),
    "seccomp annotation with the field": {
        **annotated(**{_SECCOMP: "localhost/a"}),
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    },
    "seccomp annotation of a bad profile": annotated(**{_SECCOMP: "x"}),
    "seccomp annotation upwards": annotated(**{_SECCOMP: "localhost/../a"}),
    "seccomp annotation of a container": annotated(
        **{"container.seccomp.security.alpha.kubernetes.io/c": "localhost/a"}
    ),
    "seccomp annotation of a bad profile of a container": annotated(
        **{"container.seccomp.security.alpha.kubernetes.io/c": "x"}
    ),
    "AppArmor without a type": with_context(appArmorProfile={"type": ""}),
    "AppArmor of a file with another type": with_context(
        appArmorProfile={"type": "Unconfined", "localhostProfile": "a"}
    ),
    "AppArmor of a file with blanks": with_context(appArmorProfile={"type": "Localhost", "localhostProfile": " a "}),
    "AppArmor of a long file": with_context(appArmorProfile={"type": "Localhost", "localhostProfile": "a" * 5000}),
    "AppArmor annotation unconfined": annotated(**{f"{_APP_ARMOR}/c": "unconfined"}),
    "AppArmor annotation of a file": annotated(**{f"{_APP_ARMOR}/c": "localhost/a"}),
    "AppArmor annotation of nothing": annotated(**{f"{_APP_ARMOR}/c": ""}),
    "AppArmor annotation of no file": annotated(**{f"{_APP_ARMOR}/c": "localhost/"}),
    "AppArmor annotation of a bad profile": annotated(**{f"{_APP_ARMOR}/c": "x"}),
    "AppArmor annotation of no container": annotated(**{f"{_APP_ARMOR}/d": "runtime/default"}),
    "AppArmor annotation that the field agrees with": {
        **with_context(appArmorProfile={"type": "RuntimeDefault"}),
        "ANNOTATIONS": {f"{_APP_ARMOR}/c": "runtime/default"},
    },
    "AppArmor annotation that the field contradicts": {
        **with_context(appArmorProfile={"type": "Unconfined"}),
        "ANNOTATIONS": {f"{_APP_ARMOR}/c": "runtime/default"},
    },
    "AppArmor annotation that the field of the Pod agrees with": {
        **with_pod_context(appArmorProfile={"type": "RuntimeDefault"}),
        "ANNOTATIONS": {f"{_APP_ARMOR}/c": "runtime/default"},
    },
    "AppArmor annotation that the field of the Pod contradicts": {
        **with_pod_context(appArmorProfile={"type": "RuntimeDefault"}),
        "ANNOTATIONS": {f"{_APP_ARMOR}/c": "unconfined"},
    },
    "AppArmor annotation of an init container": {
        **with_init(),
        "ANNOTATIONS": {f"{_APP_ARMOR}/i": "localhost/b", f"{_APP_ARMOR}/c": "unconfined"},
    },
    "AppArmor annotation on windows": {**on_windows(), "ANNOTATIONS": {f"{_APP_ARMOR}/c": "runtime/default"}},
    "AppArmor of the Pod": with_pod_context(appArmorProfile={"type": "RuntimeDefault"}),
    "AppArmor of the Pod and its containers": {
        **with_init(),
        "containers": [{**CONTAINER, "securityContext": {"appArmorProfile": {"type": "Unconfined"}}}],
        "securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "a"}},
    },
    # Other annotations
    "cost of the deletion": annotated(**{_COST: "-5"}),
    "cost of the deletion in words": annotated(**{_COST: "many"}),
    "cost of the deletion with a plus": annotated(**{_COST: "+5"}),
    "cost of the deletion with zeros": annotated(**{_COST: "05"}),
    "cost of the deletion that is too great": annotated(**{_COST: "2147483648"}),
    "cost of the deletion of nothing": annotated(**{_COST: ""}),
    "a mirror": annotated(**{_MIRROR: "x"}),
    "a mirror on a node": {**annotated(**{_MIRROR: "x"}), "nodeName": "n"},
    "a mirror of nothing": {**annotated(**{_MIRROR: ""}), "nodeName": "n"},
    "a source of a static Pod": annotated(**{"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "x"}),
    "sysctls of old": annotated(**{"security.alpha.kubernetes.io/sysctls": "a=1"}),
    "a great annotation": annotated(a="x" * 300000),
    # Resizing and resources
    "resize policy of both": with_container(
        resizePolicy=[
            {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
            {"resourceName": "memory", "restartPolicy": "NotRequired"},
        ],
        resources={"requests": {"cpu": "1", "memory": "1Gi"}},
    ),
    "resize policy of storage": with_container(
        resizePolicy=[{"resourceName": "ephemeral-storage", "restartPolicy": "X"}]
    ),
    "resize policy twice": with_container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2),
    "resize policy without a policy": with_container(resizePolicy=[{"resourceName": "cpu"}]),
    "resize policy that restarts what never restarts": {
        **with_container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
        "restartPolicy": "Never",
    },
    "resize policy of an init container": with_init(
        resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    ),
    "resize policy of a sidecar": with_init(
        restartPolicy="Always", resizePolicy=[{"resourceName": "memory", "restartPolicy": "NotRequired"}]
    ),
    "guaranteed by the Pod": with_pod(
        resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
    ),
    "burstable by the Pod": {
        **with_resources(limits={"cpu": "1", "memory": "1Gi"}),
        "resources": {"requests": {"cpu": "2"}},
    },
    "nothing by the Pod": {**with_requests(cpu="1"), "resources": {}},
    "claims by the Pod": with_pod(resources={"claims": [{"name": "a"}]}),
    "storage by the Pod": with_pod(resources={"requests": {"ephemeral-storage": "1Gi"}}),
    "huge pages by the Pod": with_pod(resources={"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"}}),
    "more than the limit by the Pod": with_pod(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
    "negative by the Pod": with_pod(resources={"limits": {"cpu": "-1"}}),
    "fractions of bytes by the Pod": with_pod(resources={"limits": {"memory": "1500m"}}),
    "the Pod on windows": on_windows(resources={"limits": {"cpu": "1"}}),
    "an amount of nothing": with_resources(limits={"cpu": "0"}),
    "an amount in powers": with_requests(memory="1e9", cpu="100e-3"),
    "a limit of pods": with_resources(limits={"pods": "1"}),
    # DNS and hosts
    "DNS with dots and signs": with_dns(searches=["a.b.", "_tcp.example.com", "."]),
    "DNS with bad names": with_dns(searches=["A B", "a..b", "-a"]),
    "DNS with a long search": with_dns(searches=["a" * 70 + ".b"]),
    "DNS with too much to search": with_dns(searches=[f"{'a' * 60}.{'b' * 60}.{index}" for index in range(20)]),
    "DNS with bad servers": with_dns(nameservers=["a", "1.2.3", "::1", "fe80::1%eth0"]),
    "DNS with zeros": with_dns(nameservers=["010.0.0.1"]),
    "DNS with options": with_dns(options=[{"name": "ndots", "value": "2"}, {"name": "edns0"}]),
    "DNS with an option of nothing": with_dns(options=[{"value": "2"}]),
    "DNS of the node": with_dns("Default", nameservers=["1.1.1.1"]),
    "DNS of nothing but searches": with_dns("None", searches=["a"]),
    "DNS of its own": with_dns("None", nameservers=["1.1.1.1"], searches=["a"]),
    "DNS by an unknown policy": with_pod(dnsPolicy="X"),
    "hosts": with_hosts({"ip": "1.2.3.4", "hostnames": ["a", "b.c"]}),
    "hosts by a bad name": with_hosts({"ip": "1.2.3.4", "hostnames": ["A_b"]}),
    "hosts by a bad address": with_hosts({"ip": "a", "hostnames": ["a"]}),
    "hosts without an address": with_hosts({"hostnames": ["a"]}),
    "hosts without a name": with_hosts({"ip": "::1"}),
    "hosts on the host network": with_hosts({"ip": "::1", "hostnames": ["a"]}, hostNetwork=True),
    "a full host name": with_pod(setHostnameAsFQDN=True, hostname="a", subdomain="b"),
    "a full host name on windows": on_windows(setHostnameAsFQDN=True),
    "a full host name and another": with_pod(setHostnameAsFQDN=True, hostnameOverride="a"),
    "a long host name": with_pod(hostname=_LONG, subdomain=_LONG),
    "another host name that is long": with_pod(hostnameOverride="a." * 40 + "a"),
    "another host name in capitals": with_pod(hostnameOverride="A"),
    "another host name of nothing": with_pod(hostnameOverride=""),
    # Volumes
    "ephemeral claim of an unknown mode": with_claim({"accessModes": ["X"]}),
    "ephemeral claim without a mode": with_claim({"accessModes": []}),
    "ephemeral claim of no size": with_claim({"resources": {}}),
    "ephemeral claim of no bytes": with_claim({"resources": {"requests": {"storage": "0"}}}),
    "ephemeral claim of a bad class": with_claim({"storageClassName": "A_"}),
    "ephemeral claim with labels": with_claim(labels={"a": "b"}, annotations={"c": "d"}),
    "ephemeral claim with a name": with_claim(name="n"),
    "ephemeral claim with finalizers": with_claim(finalizers=["a/b"]),
    "ephemeral claim with bad labels": with_claim(labels={"a b": "c"}),
    "ephemeral claim with a source": with_claim({"dataSource": {"kind": "PersistentVolumeClaim", "name": "c"}}),
    "ephemeral claim of blocks": with_claim({"volumeMode": "Block"}),
    "ephemeral claim of an unknown volume mode": with_claim({"volumeMode": "X"}),
    "claim of a bad name": with_volume(persistentVolumeClaim={"claimName": "A_"}),
    "claim that is only read": with_volume(persistentVolumeClaim={"claimName": "a", "readOnly": True}),
    "git repository upwards": with_volume(gitRepo={"repository": "r", "directory": "../a"}),
    "git repository by an option": with_volume(gitRepo={"repository": "-r", "revision": "-v", "directory": "-d"}),
    "flex": with_volume(flexVolume={"driver": "example.com/d", "options": {"a": "b"}}),
    "flex with options of Kubernetes": with_volume(flexVolume={"driver": "d", "options": {"kubernetes.io/a": "b"}}),
    "flex without a driver": with_volume(flexVolume={"driver": ""}),
    "gluster of nothing": with_volume(glusterfs={"endpoints": "", "path": ""}),
    "ceph of nothing": with_volume(cephfs={"monitors": []}),
    "rbd of nothing": with_volume(rbd={"monitors": [], "image": ""}),
    "scale io of nothing": with_volume(scaleIO={"gateway": "", "system": "", "secretRef": None}),
    "storage os of nothing": with_volume(storageos={}),
    "storage os with a secret": with_volume(storageos={"volumeName": "A_", "secretRef": {"name": ""}}),
    "quobyte of nothing": with_volume(quobyte={"registry": "", "volume": ""}),
    "quobyte of a bad registry": with_volume(quobyte={"registry": "a", "volume": "v", "tenant": "t" * 65}),
    "portworx": with_volume(portworxVolume={"volumeID": "v"}),
    "portworx of nothing": with_volume(portworxVolume={"volumeID": ""}),
    "vsphere": with_volume(vsphereVolume={"volumePath": "[d] v"}),
    "photon disk of nothing": with_volume(photonPersistentDisk={"pdID": ""}),
    "flocker of both": with_volume(flocker={"datasetName": "a", "datasetUUID": "b"}),
    "flocker upwards": with_volume(flocker={"datasetName": "a/b"}),
    "flocker of nothing": with_volume(flocker={}),
    "cinder": with_volume(cinder={"volumeID": "v", "secretRef": {"name": ""}}),
    "disk of an amazon": with_volume(awsElasticBlockStore={"volumeID": "v", "partition": 300}),
    "disk of a google": with_volume(gcePersistentDisk={"pdName": "d", "partition": -1}),
    "azure disk of nothing": with_volume(azureDisk={"diskName": "", "diskURI": ""}),
    "azure disk of an unknown kind": with_volume(
        azureDisk={"diskName": "d", "diskURI": "https://blob/a", "kind": "Managed", "cachingMode": "X"}
    ),
    "azure share": with_volume(azureFile={"secretName": "s", "shareName": "h"}),
    "fibre channel": with_volume(fc={"targetWWNs": ["a"], "lun": 0}),
    "fibre channel of both": with_volume(fc={"targetWWNs": ["a"], "wwids": ["b"], "lun": 300}),
    "fibre channel without a unit": with_volume(fc={"targetWWNs": ["a"]}),
    "fibre channel of nothing": with_volume(fc={}),
    "iscsi of nothing": with_volume(iscsi={"targetPortal": "", "iqn": "", "lun": 0}),
    "iscsi by bad names": with_volume(iscsi={"targetPortal": "a", "iqn": "iqn.x", "lun": 300}),
    "iscsi by an odd name": with_volume(
        iscsi={"targetPortal": "a", "iqn": "nqn.x", "lun": 1, "initiatorName": "eui.x", "chapAuthDiscovery": True}
    ),
    "csi inline": with_volume(csi={"driver": "csi.example.com", "volumeAttributes": {"a": "b"}}),
    "csi inline by a bad driver": with_volume(csi={"driver": "-a_b-", "nodePublishSecretRef": {"name": ""}}),
    "csi inline by a long driver": with_volume(csi={"driver": _LONG}),
    "nfs on a relative path": with_volume(nfs={"server": "", "path": "a"}),
    "host path upwards": with_volume(hostPath={"path": "/a/../b", "type": "X"}),
    "memory": with_volume(emptyDir={"medium": "Memory", "sizeLimit": "1Gi"}),
    "memory by an unknown medium": with_volume(emptyDir={"medium": "X"}),
    "memory of huge pages": with_volume(emptyDir={"medium": "HugePages-2Mi"}),
    "folder of a negative size": with_volume(emptyDir={"sizeLimit": "-1"}),
    "folder of parts of bytes": with_volume(emptyDir={"sizeLimit": "100m"}),
    "image volume of nothing": with_volume(image={}),
    "image volume by an unknown policy": with_volume(image={"reference": "a:1", "pullPolicy": "X"}),
    "image volume with blanks": with_volume(image={"reference": " a "}),
    "image volume by a part": mounted({"subPath": "a"}, image={"reference": "a:1"}),
    "image volume by a variable": mounted({"subPathExpr": "$(A)"}, image={"reference": "a:1"}),
    "image volume that spreads": mounted({"mountPropagation": "None"}, image={"reference": "a:1"}),
    "secret of a bad name": with_volume(secret={"secretName": "A_", "optional": True}),
    "secret with modes": with_volume(
        secret={"secretName": "a", "defaultMode": 511, "items": [{"key": "a", "path": "b", "mode": 512}]}
    ),
    "config map of bad keys": with_volume(configMap={"name": "a", "items": [{"key": "a b", "path": "/b"}]}),
    "a file by a label": downward(path="a", fieldRef={"fieldPath": "metadata.labels['a']"}),
    "a file by a bad label": downward(path="a", fieldRef={"fieldPath": "metadata.labels['a b']"}),
    "a file by an address": downward(path="a", fieldRef={"fieldPath": "status.podIP"}),
    "a file by an amount": downward(
        path="a", resourceFieldRef={"containerName": "c", "resource": "limits.cpu", "divisor": "1m"}
    ),
    "a file by an unknown amount": downward(
        path="a", resourceFieldRef={"containerName": "d", "resource": "limits.x", "divisor": "3"}
    ),
    "a file upwards": downward(path="../a", fieldRef={"fieldPath": "metadata.name"}, mode=-1),
    "a file of nothing": downward(path=""),
    "a file twice": with_volume(downwardAPI={"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}] * 2}),
    "projected without a name": projected({"secret": {"optional": True}}, {"configMap": {}}),
    "projected trust": projected({"clusterTrustBundle": {"name": "a", "path": "p"}}),
    "projected trust of a signer": projected(
        {"clusterTrustBundle": {"signerName": "a/b", "labelSelector": {}, "path": "p"}}
    ),
    "projected trust of both": projected({"clusterTrustBundle": {"name": "a", "signerName": "a/b", "path": "/p"}}),
    "projected certificate": projected(
        {"podCertificate": {"signerName": "a.b/c", "keyType": "ED25519", "credentialBundlePath": "p"}}
    ),
    "projected certificate of nothing": projected({"podCertificate": {"signerName": "", "keyType": ""}}),
    "projected token twice": {
        **projected({"serviceAccountToken": {"path": "t"}}, {"serviceAccountToken": {"path": "t"}}),
        "serviceAccountName": "default",
    },
    "projected token without a path": {
        **projected({"serviceAccountToken": {"path": "", "audience": "x"}}),
        "serviceAccountName": "default",
    },
    "projected file by a field": projected(
        {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}
    ),
    "volume of a bad name": with_pod(volumes=[{"name": "A_", "emptyDir": {}}]),
    # Mounts
    "mount on nothing": mounted({"mountPath": ""}),
    "mount on a relative path": mounted({"mountPath": "a"}),
    "mount by both paths": mounted({"subPath": "a", "subPathExpr": "b"}),
    "mount by a variable upwards": mounted({"subPathExpr": "../$(A)"}),
    "mount by an absolute path": mounted({"subPath": "/a"}),
    "mount read only by an unknown word": mounted({"readOnly": True, "recursiveReadOnly": "X"}),
    "mount read only that spreads": mounted(
        {"readOnly": True, "recursiveReadOnly": "IfPossible", "mountPropagation": "HostToContainer"}
    ),
    "mount that spreads from a privileged container": {
        **with_container(
            securityContext={"privileged": True},
            volumeMounts=[{"name": "v", "mountPath": "/d", "mountPropagation": "Bidirectional"}],
        ),
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
    "mount twice on a path": {
        **with_container(volumeMounts=[{"name": "v", "mountPath": "/d"}] * 2),
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
    "device twice": {
        **with_container(volumeDevices=[{"name": "v", "devicePath": "/d"}] * 2),
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    },
    "device upwards": {
        **with_container(volumeDevices=[{"name": "v", "devicePath": "../d"}]),
        "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": _ONE_CLAIM}}}],
    },
    # Placement
    "spread by keys": spread({"matchLabelKeys": ["app", "x"], "labelSelector": {"matchLabels": {"a": "b"}}}),
    "spread by a key of the selector": spread(
        {"matchLabelKeys": ["a"], "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    ),
    "spread by a bad key": spread({"matchLabelKeys": ["a b"], "labelSelector": {"matchLabels": {"a": "b"}}}),
    "spread by keys twice": spread({"matchLabelKeys": ["a", "a"], "labelSelector": {}}),
    "spread by nothing": spread({"topologyKey": "", "whenUnsatisfiable": "", "maxSkew": 0}),
    "spread by a bad topology": spread({"topologyKey": "a b"}),
    "spread by an unknown word": spread({"whenUnsatisfiable": "X", "minDomains": 1}),
    "spread by a bad selector": spread({"labelSelector": {"matchLabels": {"a b": "c"}}}),
    "spread by an unknown operator": spread({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}),
    "spread by a bad value": spread(
        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["a b"]}]}}
    ),
    "near by keys": near(matchLabelKeys=["app"], mismatchLabelKeys=["x"]),
    "near by keys of the selector": near(labelSelector={"matchLabels": {"a": "b"}}, matchLabelKeys=["a"]),
    "near by both keys": near(matchLabelKeys=["a"], mismatchLabelKeys=["a"]),
    "near by a bad key": near(matchLabelKeys=["a b"]),
    "near by keys without a selector": near(labelSelector=None, matchLabelKeys=["a"]),
    "near by nothing": near(topologyKey=""),
    "near by a bad topology": near(topologyKey="a b"),
    "near by a bad selector": near(namespaceSelector={"matchLabels": {"a": "b c"}}),
    "nodes by no term": with_nodes(),
    "nodes by an empty term": with_nodes({}),
    "nodes by a name": with_nodes(field_term("metadata.name", "In", "n")),
    "nodes by two names": with_nodes(field_term("metadata.name", "In", "n", "m")),
    "nodes by a bad name": with_nodes(field_term("metadata.name", "In", "A_")),
    "nodes by a name that exists": with_nodes(field_term("metadata.name", "Exists")),
    "nodes with a bad value": with_nodes({"matchExpressions": [{"key": "a", "operator": "In", "values": ["a b"]}]}),
    "nodes with a number in words": with_nodes({"matchExpressions": [{"key": "a", "operator": "Lt", "values": ["b"]}]}),
    "preferred nodes with a bad value": with_pod(
        affinity={
            "nodeAffinity": {
                _PREFERRED: [
                    {
                        "weight": 101,
                        "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["a b"]}]},
                    }
                ]
            }
        }
    ),
    "a node selector of bad values": with_pod(nodeSelector={"a": "b c", "d e": "f"}),
    "a toleration by an unknown effect": tolerating(key="a", operator="Exists", effect="X"),
    "a toleration by an unknown operator": tolerating(key="a", operator="X"),
    "a toleration without a key": tolerating(operator="Equal", value="a"),
    "a toleration with a time": tolerating(key="a", operator="Exists", effect="NoSchedule", tolerationSeconds=5),
    "a toleration with a value": tolerating(key="a", operator="Exists", value="b"),
    "a toleration of a bad key": tolerating(key="a b", operator="Exists"),
    "a toleration of nodes that are gone": tolerating(
        key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute", tolerationSeconds=5
    ),
    "a toleration of everything that executes": tolerating(operator="Exists", effect="NoExecute"),
    "a toleration of less than a word": tolerating(key="a", operator="Lt", value="b"),
    # Gates, times and rules
    "gates twice": with_pod(schedulingGates=[{"name": "a"}, {"name": "a"}]),
    "gates of nothing": with_pod(schedulingGates=[{"name": ""}]),
    "gates of a bad name": with_pod(schedulingGates=[{"name": "a b"}]),
    "conditions": with_pod(readinessGates=[{"conditionType": "example.com/a"}]),
    "conditions of nothing": with_pod(readinessGates=[{"conditionType": ""}]),
    "conditions of a bad name": with_pod(readinessGates=[{"conditionType": "a b"}]),
    "sleep before the end": with_hook("preStop", sleep={"seconds": 5}),
    "sleep of nothing": with_hook("preStop", sleep={"seconds": 0}),
    "sleep that is negative": with_hook("postStart", sleep={"seconds": -1}),
    "hook by a port": with_hook("preStop", tcpSocket={"port": 80}),
    "hook of two kinds": with_hook("preStop", exec={"command": ["a"]}, sleep={"seconds": 5}),
    "hook of nothing": with_hook("preStop"),
    "hook by HTTP": with_hook("postStart", httpGet={"port": "web", "httpHeaders": [{"name": "A B", "value": "c"}]}),
    "a signal": {**with_container(lifecycle={"stopSignal": "SIGUSR1"}), "os": {"name": "linux"}},
    "a signal without a system": with_container(lifecycle={"stopSignal": "SIGUSR1"}),
    "an unknown signal": {**with_container(lifecycle={"stopSignal": "SIGX"}), "os": {"name": "linux"}},
    "a signal on windows": {**with_container(lifecycle={"stopSignal": "SIGUSR1"}), "os": {"name": "windows"}},
    "lifecycle of nothing": with_container(lifecycle={}),
    "probe by a service": with_probe(grpc={"port": 80, "service": "a"}),
    "probe by a bad port": with_probe(grpc={"port": 0}),
    "probe with times": with_probe(
        exec={"command": ["a"]}, timeoutSeconds=-1, periodSeconds=-1, failureThreshold=-1, initialDelaySeconds=-1
    ),
    "probe with successes": with_probe(exec={"command": ["a"]}, successThreshold=2),
    "probe with no grace": with_probe(exec={"command": ["a"]}, terminationGracePeriodSeconds=0),
    "probe with grace": with_probe(exec={"command": ["a"]}, terminationGracePeriodSeconds=5),
    "probe by a command of nothing": with_probe(exec={"command": []}),
    "probe by an odd scheme": with_probe(httpGet={"port": 70000, "scheme": "X", "path": "a"}),
    "probe by a bad port name": with_probe(tcpSocket={"port": "A_B"}),
    "probe by a bad header": with_probe(httpGet={"port": 80, "httpHeaders": [{"name": "", "value": "a"}]}),
    "probe of two kinds": with_probe(tcpSocket={"port": 80}, grpc={"port": 80}),
    "probe of a sidecar": with_init(
        restartPolicy="Always",
        startupProbe={"exec": {"command": ["a"]}},
        lifecycle={"preStop": {"sleep": {"seconds": 1}}},
    ),
    "init container restarted oddly": with_init(restartPolicy="X"),
    "init container that is never restarted": with_init(restartPolicy="Never"),
    "init container restarted on failure": with_init(restartPolicy="OnFailure"),
    "container restarted always": with_container(restartPolicy="Always"),
    "container restarted oddly": with_container(restartPolicy="X"),
    "rules of nothing": with_rules({}),
    "rules of an unknown action": with_rules(rule("In", 1, action="X")),
    "rules of all containers": with_rules(rule("In", 1, action="RestartAllContainers")),
    "rules of an unknown operator": with_rules(rule("X", 1)),
    "rules of no value": with_rules(rule("NotIn")),
    "rules of a value twice": with_rules(rule("In", 1, 1)),
    "rules of great values": with_rules(rule("In", 256, -1)),
    "rules of many": with_rules(*[rule("In", 1)] * 21),
    "rules of many values": with_rules(rule("In", *range(256))),
    "rules of a container that always restarts": with_rules(rule("In", 1), policy="Always"),
    "rules of an init container": with_init(restartPolicy="Never", restartPolicyRules=[rule("In", 1)]),
    "rules of a sidecar": with_init(restartPolicy="Always", restartPolicyRules=[rule("In", 1)]),
    # Security
    "sysctls": with_pod_context(
        sysctls=[{"name": "net.core.somaxconn", "value": "1"}, {"name": "kernel/shm", "value": ""}]
    ),
    "sysctls twice": with_pod_context(sysctls=[{"name": "net.a", "value": "1"}, {"name": "net/a", "value": "2"}]),
    "sysctls of the host": {
        **with_pod_context(
            sysctls=[{"name": "net.core.somaxconn", "value": "1"}, {"name": "kernel.shmmax", "value": "1"}]
        ),
        "hostNetwork": True,
        "hostIPC": True,
    },
    "groups by a policy": with_pod_context(supplementalGroups=[1, 2], supplementalGroupsPolicy="Strict"),
    "labels of SELinux by a mount": with_pod_context(seLinuxChangePolicy="MountOption"),
    "processes masked": with_context(procMount="Default"),
    "processes masked oddly": with_context(procMount="X"),
    "processes unmasked": {**with_context(procMount="Unmasked"), "hostUsers": False},
    "processes unmasked of host users": {**with_context(procMount="Unmasked"), "hostUsers": True},
    "users of its own": with_pod(hostUsers=False, hostPID=True, hostIPC=True),
    "users of its own with a device": {
        **with_container(volumeDevices=[{"name": "v", "devicePath": "/dev/x"}]),
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "hostUsers": False,
    },
    "users of its own that spread": {
        **mounted({"mountPropagation": "HostToContainer"}),
        "hostUsers": False,
    },
    "privileged without more": with_context(
        privileged=True, allowPrivilegeEscalation=False, capabilities={"add": ["CAP_SYS_ADMIN"]}
    ),
    "all capabilities": with_context(capabilities={"add": ["ALL"], "drop": ["ALL"]}, allowPrivilegeEscalation=False),
    "great user": with_context(runAsUser=2147483648, runAsGroup=-1),
    "root that must not be": with_context(runAsNonRoot=True, runAsUser=0),
    "linux with everything": on_linux(hostPID=True, securityContext={"fsGroup": 1}),
    # Environment
    "a variable of the node": with_field("spec.nodeName"),
    "a variable of a phase": with_field("status.phase"),
    "a variable of an unknown field": with_field("spec.x"),
    "a variable of no field": with_field(""),
    "a variable of another version": with_field("metadata.name", "v2"),
    "a variable of a bad annotation": with_field("metadata.annotations['a b']"),
    "a variable of an annotation without a sign": with_field("metadata.annotations['a"),
    "a variable of a name with a key": with_field("metadata.name['a']"),
    "a variable of host addresses": with_field("status.hostIPs"),
    "a variable of a limit": with_amount("limits.cpu", divisor="1m"),
    "a variable of another container": with_amount("requests.memory", containerName="d", divisor="1Mi"),
    "a variable of an odd divisor": with_amount("limits.memory", divisor="3"),
    "a variable of a divisor of another": with_amount("limits.cpu", divisor="1Mi"),
    "a variable of huge pages": with_amount("limits.hugepages-2Mi"),
    "a variable of an unknown amount": with_amount("limits.x"),
    "a variable of no amount": with_amount(""),
    "a variable of storage": with_amount("limits.ephemeral-storage", divisor="1Gi"),
    "a variable of a secret": with_env({"name": "A", "valueFrom": {"secretKeyRef": {"name": "A_", "key": "a b"}}}),
    "a variable of no key": with_env({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": ""}}}),
    "a variable in a file": with_file(),
    "a variable in a file that may be missing": with_file(optional=True),
    "a variable in a file of no key": with_file(key="", path="", volumeName=""),
    "a variable in a file upwards": with_file(path="../a"),
    "a variable in a file of a bad key": with_file(key="a=b"),
    "a variable in a file of another volume": with_file(volumeName="w"),
    "a variable in a file of a secret": with_file(volume={"secret": {"secretName": "a"}}),
    "a variable with a sign": with_env({"name": "a=b", "value": "c"}),
    "a variable with dots": with_env({"name": "a.b-c", "value": "c"}),
    "a variable with digits": with_env({"name": "1 a", "value": "c"}),
    "variables with a prefix": with_container(envFrom=[{"prefix": "1-", "secretRef": {"name": "a", "optional": True}}]),
    "variables of nothing": with_container(envFrom=[{}]),
    "variables without a name": with_container(envFrom=[{"secretRef": {}}]),
    # Ports and names
    "a great port": with_ports({"containerPort": 65536, "hostPort": 65536}),
    "a negative port": with_ports({"containerPort": -1}),
    "a long port name": with_ports({"containerPort": 80, "name": "a" * 16}),
    "a port name of digits": with_ports({"containerPort": 80, "name": "80"}),
    "a port name with dashes": with_ports({"containerPort": 80, "name": "a--b"}),
    "a bad host address": with_ports({"containerPort": 80, "hostPort": 80, "hostIP": "x"}),
    "the host port of an init container": {
        **with_init(ports=[{"containerPort": 80, "hostPort": 80}], restartPolicy="Always"),
        "containers": [{**CONTAINER, "ports": [{"containerPort": 81, "hostPort": 80}]}],
    },
    "no port protocol": with_ports({"containerPort": 80, "protocol": ""}),
    "a container twice": {"containers": [CONTAINER, CONTAINER]},
    "a container as an init container": {**with_init(name="c")},
    "a container of a bad name": with_container(name="A_"),
    "a container of a long name": with_container(name=_LONG),
    "a bad scheduler": with_pod(schedulerName="A_"),
    "a deadline of nothing": with_pod(activeDeadlineSeconds=0),
    "a bad priority class": with_pod(priorityClassName="A_"),
    "a priority": with_pod(priority=5),
    "a preemption policy": with_pod(preemptionPolicy="Never"),
    "an unknown preemption policy": with_pod(preemptionPolicy="X"),
    "a priority class that is not there": with_pod(priorityClassName="missing"),
    "a priority class of the system": with_pod(priorityClassName="system-node-critical"),
    "an account that is not there": with_pod(serviceAccountName="missing"),
    "two accounts": with_pod(serviceAccountName="default", serviceAccount="other"),
    "no token": with_pod(automountServiceAccountToken=False),
    "a runtime class that is not there": with_pod(runtimeClassName="missing"),
    "a group of Pods": with_pod(schedulingGroup={"podGroupName": "a"}),
    "a workload": with_pod(workloadRef={"name": "a", "podGroup": "b"}),
    "overhead of nothing": with_pod(overhead={}),
    "overhead of odd things": with_pod(overhead={"cpu": "-1", "x": "1"}),
    "a pull secret of a bad name": with_pod(imagePullSecrets=[{"name": "A_"}]),
    "input": with_container(stdin=True, stdinOnce=True, tty=True, workingDir="a", args=["$(A)"]),
    "a message on a relative path": with_container(terminationMessagePath="a"),
    "claims of devices": {
        **with_resources(claims=[{"name": "r", "request": "A_"}]),
        "resourceClaims": [{"name": "r", "resourceClaimTemplateName": "A_"}],
    },
}
