"""Sources and fields of a PersistentVolume: both servers take, refuse and complete the same."""

from __future__ import annotations

from typing import Any

from test_builtin_kinds import Client, both, normalised

from ctrlruntime.testing import Environment

__all__ = ["both"]

NODES = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}}
REMOTE = {"name": "a", "namespace": "b"}
SOURCES: dict[str, list[dict[str, Any]]] = {
    "awsElasticBlockStore": [
        {"volumeID": "v"},
        {"volumeID": ""},
        {"volumeID": "v", "partition": 300},
        {"volumeID": "v", "partition": -1},
    ],
    "azureDisk": [
        {"diskName": "d", "diskURI": "https://x"},
        {},
        {"diskName": "d", "diskURI": "x", "kind": "Managed"},
        {"diskName": "d", "diskURI": "https://x", "cachingMode": "Odd", "kind": "Odd"},
    ],
    "azureFile": [
        {"secretName": "s", "shareName": "n"},
        {},
        {"secretName": "s", "shareName": "n", "secretNamespace": ""},
        {"secretName": "s", "shareName": "n", "secretNamespace": "a"},
    ],
    "cephfs": [
        {"monitors": ["a"]},
        {},
        {"monitors": []},
        {"monitors": ["a"], "secretRef": {}},
    ],
    "cinder": [
        {"volumeID": "v"},
        {},
        {"volumeID": "v", "secretRef": {}},
        {"volumeID": "v", "secretRef": {"name": "a"}},
        {"volumeID": "v", "secretRef": {"name": "a", "namespace": "b"}},
    ],
    "fc": [
        {"targetWWNs": ["a"], "lun": 1},
        {},
        {"targetWWNs": ["a"]},
        {"targetWWNs": ["a"], "lun": 300},
        {"wwids": ["a"], "targetWWNs": ["b"], "lun": 1},
        {"wwids": ["a"]},
    ],
    "flexVolume": [
        {"driver": "a/b"},
        {},
        {"driver": "a"},
        {"driver": "a/b", "options": {"kubernetes.io/x": "y"}},
        {"driver": "a/b", "secretRef": {}},
    ],
    "flocker": [
        {"datasetName": "a"},
        {},
        {"datasetName": "a", "datasetUUID": "b"},
        {"datasetName": "a/b"},
    ],
    "gcePersistentDisk": [
        {"pdName": "a"},
        {},
        {"pdName": "a", "partition": 300},
    ],
    "glusterfs": [
        {"endpoints": "a", "path": "b"},
        {},
        {"endpoints": "a", "path": "b", "endpointsNamespace": ""},
        {"endpoints": "a", "path": "b", "endpointsNamespace": "A_"},
    ],
    "hostPath": [
        {"path": "/a"},
        {},
        {"path": "/a/../b"},
        {"path": "/a", "type": "Odd"},
    ],
    "iscsi": [
        {"targetPortal": "a", "iqn": "iqn.2001-04.com.example:storage", "lun": 0},
        {},
        {"targetPortal": "a", "iqn": "x", "lun": 300},
        {"targetPortal": "a", "iqn": "iqn.2001-04.com.example:storage", "lun": 0, "chapAuthSession": True},
        {"targetPortal": "a", "iqn": "iqn.2001-04.com.example:storage", "lun": 0, "secretRef": {}},
        {"targetPortal": "a", "iqn": "iqn.2001-04.com.example:storage", "lun": 0, "initiatorName": "x"},
    ],
    "nfs": [
        {"server": "a", "path": "/b"},
        {},
        {"server": "a", "path": "b"},
    ],
    "photonPersistentDisk": [
        {"pdID": "a"},
        {},
    ],
    "portworxVolume": [
        {"volumeID": "a"},
        {},
    ],
    "quobyte": [
        {"registry": "a:1", "volume": "v"},
        {},
        {"registry": "a", "volume": "v"},
        {"registry": "a:1,b", "volume": "v"},
        {
            "registry": "a:1",
            "volume": "v",
            "tenant": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        },
    ],
    "rbd": [
        {"monitors": ["a"], "image": "b"},
        {},
        {"monitors": ["a"], "image": "b", "secretRef": {}},
    ],
    "scaleIO": [
        {"gateway": "a", "system": "b", "volumeName": "c", "secretRef": {"name": "s"}},
        {},
        {"gateway": "a", "system": "b", "volumeName": "c"},
        {"gateway": "a", "system": "b", "volumeName": "c", "secretRef": {}},
    ],
    "storageos": [
        {"volumeName": "a"},
        {},
        {"volumeName": "A_", "volumeNamespace": "B_"},
        {"volumeName": "a", "secretRef": {}},
        {"volumeName": "a", "secretRef": {"name": "a"}},
    ],
    "vsphereVolume": [
        {"volumePath": "a"},
        {},
    ],
    "local": [
        {"path": "/a"},
        {},
        {"path": "/a/.."},
        {"path": "a"},
    ],
    "csi": [
        {"driver": "a.b", "volumeHandle": "h"},
        {"driver": "a/b", "volumeHandle": ""},
        {"driver": "", "volumeHandle": "h", "nodeStageSecretRef": {}},
        {"driver": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "volumeHandle": "h"},
        {"driver": "d", "volumeHandle": "h", "controllerPublishSecretRef": {"name": "A", "namespace": "B_"}},
        {"driver": "d", "volumeHandle": "h", "controllerExpandSecretRef": {"name": "A", "namespace": "B_"}},
        {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": "A", "namespace": "B_"}},
        {"driver": "d", "volumeHandle": "h", "nodeExpandSecretRef": {"name": "A", "namespace": "B_"}},
        {"driver": "d", "volumeHandle": "h", "controllerPublishSecretRef": {}},
        {"driver": "d", "volumeHandle": "h", "nodeExpandSecretRef": {}},
    ],
}
"""Right and wrong ones of each."""
FIELDS: list[dict[str, Any]] = [
    {"persistentVolumeReclaimPolicy": "Recycle"},
    {"accessModes": []},
    {"accessModes": ["Odd"]},
    {"accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]},
    {"accessModes": ["ReadWriteOncePod"]},
    {"capacity": {"storage": "0"}},
    {"capacity": {"storage": "-1"}},
    {"capacity": {"cpu": "1"}},
    {"capacity": {"storage": "1Gi", "cpu": "1"}},
    {"mountOptions": ["a", "a"]},
    {"claimRef": {}},
    {"claimRef": {"name": "a"}},
    {"claimRef": {"name": "A_", "namespace": "b"}},
    {"volumeMode": "Odd"},
    {"storageClassName": "A_"},
    {"volumeAttributesClassName": "a"},
    {"volumeAttributesClassName": ""},
    {"nodeAffinity": {}},
    {"nodeAffinity": {"required": {"nodeSelectorTerms": []}}},
    {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Odd"}]}]}}},
]


def test_both_servers_judge_volumes_alike(both: tuple[Environment, Environment, str]) -> None:
    embedded, real, _ = both
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    specs = [{kind: source} for kind, sources in SOURCES.items() for source in sources]
    specs += [{"local": source, "nodeAffinity": NODES} for source in SOURCES["local"]]
    specs += [{"hostPath": {"path": "/a"}, **fields} for fields in FIELDS]
    differing = {}
    for spec in specs:
        body = {"metadata": {"name": "volume-of-a-test"}, "spec": {**volume, **spec}}
        found, expected = (
            normalised(*Client(server).send("POST", "/api/v1/persistentvolumes?dryRun=All", body))
            for server in (embedded, real)
        )
        if found != expected:
            differing[str(spec)] = (found, expected)
    assert differing == {}
