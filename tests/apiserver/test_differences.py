"""Differences as kube-apiserver shows them, and what may change in claims."""

import pytest

from ctrlruntime.apiserver.registry.claim_validation import claim_causes
from ctrlruntime.apiserver.registry.internal_types import difference


def test_a_difference_names_the_fields_of_the_server():
    old = {"name": "d", "image": "i", "resources": {}}

    assert difference("core.EphemeralContainer", old, {**old, "tty": True}).splitlines()[4:] == [
        '- "TTY": false,',
        '+ "TTY": true,',
        '  "TargetContainerName": ""',
        " }",
    ]


def test_what_a_pod_shares_with_its_host_is_in_its_security_context():
    lines = difference("core.PodSpec", {}, {"hostNetwork": True}).splitlines()

    assert '-  "HostNetwork": false,' in lines
    assert '+  "HostNetwork": true,' in lines


def test_letters_are_escaped_as_by_go_and_maps_are_sorted():
    lines = difference("core.PodSpec", {}, {"nodeSelector": {"b": "<", "a": "&"}}).splitlines()

    assert [line.strip("+ ") for line in lines if "u00" in line] == ['"a": "\\u0026",', '"b": "\\u003c"']


def claim(size="2Gi", status=None, annotations=None, **spec):
    return {
        "metadata": {"name": "a", "annotations": annotations or {}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
        "status": status or {},
    }


BOUND = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
OLD_CLASS = {"volume.beta.kubernetes.io/storage-class": "x"}


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        (claim(), claim("3Gi"), ["spec"]),
        (claim(), claim(storageClassName="x"), []),
        (claim(annotations=OLD_CLASS), claim(storageClassName="x"), []),
        (
            claim(annotations=OLD_CLASS),
            claim(storageClassName="y"),
            ["metadata.annotations.volume.beta.kubernetes.io/storage-class", "spec"],
        ),
        (claim(), claim(volumeName="v"), []),
        (claim(volumeName="v"), claim(volumeName="w"), ["spec"]),
        (claim(status=BOUND), claim("3Gi"), []),
        (claim(status=BOUND), claim("1500Mi"), []),
        (claim(status=BOUND), claim("1Gi"), ["spec.resources.requests.storage"]),
        (claim(status=BOUND), claim(volumeAttributesClassName="gold"), []),
        (claim(volumeMode="Filesystem"), claim(volumeMode="Block"), ["spec", "volumeMode"]),
    ],
)
def test_what_may_change_in_a_claim(old, new, fields):
    assert [cause.field for cause in claim_causes(new, old)] == fields
