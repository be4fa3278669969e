"""Bodies that kubectl sent, and bodies built field by field."""

import base64
import json
import struct

import pytest

from ctrlruntime.apiserver.http.protobuf import decode

# What kubectl 1.32 sends for `create`: {kind: body in base64}.
RECORDED = {
    "Namespace": ("azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhwKFAoEdGVhbRIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA=="),
    "Secret": ("azhzAAoMCgJ2MRIGU2VjcmV0Eh0KEQoBcxIAGgAiACoAMgA4AEIAEgYKAWESAWIaABoAIgA="),
    "Deployment": (
        "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ErgBCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEoYBCAISDAoKCgNh"
        "cHASA3dlYhpsChwKABIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEkwSLgoFbmdpbngSBW5naW54KgAyCgoAEAAYUCIAKgBCAGoA"
        "cgCAAQCIAQCQAQCiAQAaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIgIKACgAOAAaDAgAEAAYACAAKAA4ABoAIgA="
    ),
    "Service": (
        "azhzAAoNCgJ2MRIHU2VydmljZRJpCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEkIKGwoHODAtODA4MBIDVENQGFAi"
        "BwgAEJA/GgAoABIKCgNhcHASA3dlYhoAIglDbHVzdGVySVA6AEIAUgBaAGAAaAAaAgoAGgAiAA=="
    ),
    "Job": (
        "azhzAAoPCghiYXRjaC92MRIDSm9iEogBChEKAWoSABoAIgAqADIAOABCABJpMmcKEAoAEgAaACIAKgAyADgAQgASUxIwCgFqEgdi"
        "dXN5Ym94GgJzaBoCLWMaBmV4aXQgMCoAQgBqAHIAgAEAiAEAkAEAogEAGgVOZXZlcjIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEA"
        "GgggACgAMAA6ABoAIgA="
    ),
    "ResourceQuota": (
        "azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRIzChEKAXESABoAIgAqADIAOABCABIcCg0KA2NwdRIGCgQ1MDBtCgsKBHBvZHMSAwoB"
        "MxoAGgAiAA=="
    ),
    "Ingress": (
        "azhzAAofChRuZXR3b3JraW5nLms4cy5pby92MRIHSW5ncmVzcxJAChEKAWkSABoAIgAqADIAOABCABInGiUKA2EuYhIeChwKGgoB"
        "LxINIgsKA3N2YxIECgAQUBoGUHJlZml4GgIKABoAIgA="
    ),
    "PodDisruptionBudget": (
        "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSNgoRCgFwEgAaACIAKgAyADgAQgASFQoJCAEQABoDNTAlEggK"
        "BgoBYRIBYhoKCAAYACAAKAAwABoAIgA="
    ),
    "CronJob": (
        "azhzAAoTCghiYXRjaC92MRIHQ3JvbkpvYhKSAQoRCgFjEgAaACIAKgAyADgAQgASewoJKiAqICogKiAqGgAqbAoRCgFjEgAaACIA"
        "KgAyADgAQgASVzJVChAKABIAGgAiACoAMgA4AEIAEkESGgoBYxIBYioAQgBqAHIAgAEAiAEAkAEAogEAGglPbkZhaWx1cmUyAEIA"
        "SgBSAFgAYABoAIIBAIoBAJoBAMIBABoAGgAiAA=="
    ),
    "SelfSubjectAccessReview": (
        "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPQoQCgASABoAIgAqADIAOABC"
        "ABIfCh0KB2RlZmF1bHQSBGxpc3QaACIAKgRwb2RzMgA6ABoICAASABoAIAAaACIA"
    ),
}


def recorded(kind):
    return decode(base64.b64decode(RECORDED[kind]))


def varint(number):
    data = bytearray()
    number &= (1 << 64) - 1
    while True:
        number, low = number >> 7, number & 0x7F
        data.append(low | 0x80 if number else low)
        if not number:
            return bytes(data)


def field(number, value):
    """Encode one field: ints as varints, floats as fixed64, the rest as bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def envelope(api_version, kind, raw):
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, raw))


def test_namespace_of_kubectl():
    assert recorded("Namespace") == {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": "team"},
        "spec": {},
        "status": {},
    }


def test_secret_data_is_base64():
    assert recorded("Secret")["data"] == {"a": "Yg=="}


def test_deployment_of_kubectl():
    assert recorded("Deployment") == {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {}}
                    ]
                },
            },
            "strategy": {},
        },
        "status": {},
    }


def test_int_or_string_is_either():
    assert recorded("Service")["spec"]["ports"] == [
        {"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}
    ]
    assert recorded("PodDisruptionBudget")["spec"]["minAvailable"] == "50%"


def test_quantities_are_strings():
    assert recorded("ResourceQuota")["spec"]["hard"] == {"cpu": "500m", "pods": "3"}


def test_nested_messages_and_lists():
    assert recorded("Job")["spec"]["template"]["spec"]["containers"][0]["command"] == ["sh", "-c", "exit 0"]
    assert recorded("Ingress")["spec"]["rules"][0]["http"]["paths"][0]["backend"] == {
        "service": {"name": "svc", "port": {"number": 80}}
    }
    assert recorded("CronJob")["spec"]["schedule"] == "* * * * *"


def test_review_without_a_name():
    assert recorded("SelfSubjectAccessReview")["spec"] == {
        "resourceAttributes": {"namespace": "default", "verb": "list", "resource": "pods"}
    }


def test_delete_options_are_known_under_any_group_version():
    raw = message((1, 0), (2, message((1, "uid-1"))), (4, "Foreground"), (5, "All"))

    for api_version in ("v1", "meta.k8s.io/v1", "apps/v1"):
        found = decode(envelope(api_version, "DeleteOptions", raw))
        assert found == {
            "kind": "DeleteOptions",
            "apiVersion": api_version,
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "uid-1"},
            "propagationPolicy": "Foreground",
            "dryRun": ["All"],
        }


def test_scale_and_status():
    scale = decode(envelope("autoscaling/v1", "Scale", message((1, message((1, "web"))), (2, message((1, 3))))))
    status = decode(envelope("v1", "Status", message((2, "Failure"), (6, 409))))

    assert scale["spec"] == {"replicas": 3}
    assert (status["status"], status["code"]) == ("Failure", 409)


def test_times_and_micro_times():
    moment = message((1, 1_700_000_000), (2, 123_456_000))
    lease = message((1, message((1, "l"), (8, moment))), (2, message((1, "me"), (4, moment))))

    found = decode(envelope("coordination.k8s.io/v1", "Lease", lease))

    assert found["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert found["spec"]["renewTime"] == "2023-11-14T22:13:20.123456Z"


def test_zero_values_vanish_but_pointers_to_zero_stay():
    raw = message((1, message((1, "d"), (4, ""))), (2, message((1, 0), (5, 0))))

    found = decode(envelope("apps/v1", "Deployment", raw))

    assert found["metadata"] == {"name": "d"}
    assert found["spec"] == {"replicas": 0}


def test_negative_numbers():
    found = decode(envelope("scheduling.k8s.io/v1", "PriorityClass", message((1, message((1, "p"))), (2, -5))))

    assert found["value"] == -5


def test_raw_extension_holds_json():
    revision = message((1, message((1, "r"))), (2, message((1, b'{"spec":{"a":[1]}}'))), (3, 4))

    found = decode(envelope("apps/v1", "ControllerRevision", revision))

    assert found["data"] == {"spec": {"a": [1]}}
    assert found["revision"] == 4


def test_raw_extension_may_hold_another_envelope():
    inner = envelope("v1", "ConfigMap", message((1, message((1, "c")))))
    found = decode(envelope("v1", "List", message((2, message((1, inner))))))

    assert found["items"] == [{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}}]


def test_custom_resource_definition_with_schema_unions_and_defaults():
    json_value = message((1, b'"red"'))
    item = message((5, "string"), (8, json_value), (20, json_value))
    either = message((1, 1), (2, message((5, "object"))))
    schema = message(
        (5, "object"),
        (29, message((1, "colors"), (2, message((5, "array"), (24, message((1, item))))))),
        (29, message((1, "map"), (2, message((5, "object"), (30, either))))),
        (29, message((1, "closed"), (2, message((5, "object"), (30, message((1, 0))))))),
        (29, message((1, "number"), (2, message((5, "number"), (9, 1.5), (11, 0.0))))),
    )
    version = message((1, "v1"), (2, 1), (3, 1), (4, message((1, schema))))
    raw = message((1, message((1, "a.b.c"))), (2, message((1, "b.c"), (7, version))))

    found = decode(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw))

    properties = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert properties["colors"]["items"] == {"type": "string", "default": "red", "enum": ["red"]}
    assert properties["map"]["additionalProperties"] == {"type": "object"}
    assert properties["closed"]["additionalProperties"] is False
    assert properties["number"] == {"type": "number", "maximum": 1.5, "minimum": 0}


def test_extra_values_are_bare_lists():
    spec = message((5, message((1, "scopes"), (2, message((1, "a"), (1, "b"))))), (3, "ann"))

    found = decode(envelope("authorization.k8s.io/v1", "SubjectAccessReview", message((2, spec))))

    assert found["spec"]["extra"] == {"scopes": ["a", "b"]}


def test_unknown_fields_are_passed_over():
    found = decode(envelope("v1", "ConfigMap", message((1, message((1, "c"))), (999, "new"), (998, 5), (997, 1.0))))

    assert found["metadata"] == {"name": "c"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (json.dumps({"kind": "Pod"}).encode(), "does not appear to be a protobuf message"),
        (b"", "does not appear to be a protobuf message"),
        (envelope("example.com/v1", "Memcached", b""), "Memcached of example.com/v1 has no protobuf form; send JSON"),
        (envelope("v1", "Nothing", b""), "has no protobuf form"),
        (envelope("", "", b""), "an object without a kind"),
        (base64.b64decode(RECORDED["Deployment"])[:-9], "cut off"),
        (b"k8s\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "too many bytes"),
        (b"k8s\x00\x0b", "wire type 3"),
        (envelope("v1", "ConfigMap", message((1, 5))), "a number where bytes were expected"),
        (envelope("v1", "ConfigMap", message((1, message((7, "x"))))), "a number was expected"),
        (envelope("v1", "ConfigMap", message((1, message((1, b"\xff"))))), "damaged"),
        (envelope("apps/v1", "ControllerRevision", message((2, message((1, b"{"))))), "Expecting"),
        (b"k8s\x00" + message((1, message((1, "v1"), (2, "ConfigMap"))), (3, "gzip")), "content encoding 'gzip'"),
    ],
)
def test_damaged_or_foreign_bodies_are_value_errors(body, words):
    with pytest.raises(ValueError, match=words):
        decode(body)


def test_nesting_without_end_is_refused():
    schema = b""
    for _ in range(500):
        schema = field(28, schema)
    version = message((4, message((1, schema))))
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", message((2, message((7, version))))))


def test_every_cut_of_a_body_is_either_read_or_a_value_error():
    body = base64.b64decode(RECORDED["Deployment"])
    refused = 0
    for end in range(len(body)):
        try:
            assert decode(body[:end])["kind"] == "Deployment"
        except ValueError:
            refused += 1
    assert refused > len(body) / 2
