from __future__ import annotations

import pytest

from ctrlruntime.schema.typed import Misfit, typed


def read(name, value):
    unknown = []
    return typed(f"k8s.io.api.{name}").read(value, "", unknown), unknown


def test_what_go_leaves_out_goes_and_what_go_always_writes_comes():
    body = {
        "metadata": {"name": "d", "creationTimestamp": None, "labels": {}, "annotations": None},
        "spec": {
            "replicas": 0,
            "selector": {},
            "minReadySeconds": 0,
            "template": {"spec": {"containers": [{"name": "c"}]}},
        },
    }

    result, unknown = read("apps.v1.Deployment", body)

    assert result == {
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 0,
            "selector": {},
            "template": {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {}}]}},
            "strategy": {},
        },
        "status": {},
    }
    assert list(result["spec"]) == ["replicas", "selector", "template", "strategy"]
    assert unknown == []


def test_pointers_keep_their_empty_structs():
    result, _ = read("core.v1.Pod", {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": []}})

    assert result["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert result["spec"]["containers"] == []


def test_times_without_a_value_are_null_in_conditions():
    result, _ = read("core.v1.Pod", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})

    assert result["status"]["conditions"] == [
        {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    ]


def test_unknown_fields_are_named_by_path():
    _, unknown = read(
        "core.v1.Pod",
        {"spec": {"containers": [{"name": "c", "imag": "x", "env": [{"nam": 1}]}], "bogus": {}}, "odd": 1},
    )

    assert sorted(unknown) == ["odd", "spec.bogus", "spec.containers[0].env[0].nam", "spec.containers[0].imag"]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"replicas": "3"},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"replicas": 2**31},
            "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"replicas": True},
            "json: cannot unmarshal bool into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"paused": "yes"},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool",
        ),
        (
            {"template": []},
            "json: cannot unmarshal array into Go struct field DeploymentSpec.spec.template of type v1.PodTemplateSpec",
        ),
        (
            {"template": {"spec": {"containers": {}}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
    ],
)
def test_wrong_types_are_named_as_encoding_json_does(spec, text):
    with pytest.raises(Misfit) as caught:
        read("apps.v1.Deployment", {"spec": spec})

    assert str(caught.value) == text


def test_special_values_take_their_canonical_form():
    pod, _ = read("core.v1.Pod", {"metadata": {"creationTimestamp": "2024-01-01T02:00:00+02:00"}})
    secret, _ = read("core.v1.Secret", {"data": {"a": "aGk="}})
    service, _ = read("core.v1.Service", {"spec": {"ports": [{"port": 80, "targetPort": "http"}]}})

    assert pod["metadata"]["creationTimestamp"] == "2024-01-01T00:00:00Z"
    assert secret["data"] == {"a": "aGk="}
    assert service["spec"]["ports"] == [{"port": 80, "targetPort": "http"}]
    with pytest.raises(Misfit, match="illegal base64 data at input byte 1"):
        read("core.v1.Secret", {"data": {"a": "a!"}})


def test_schemas_of_definitions_read_both_sides_of_their_unions():
    package = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    value = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "items": {"type": "string", "bogus": 1},
        "default": {"a": 1},
    }
    unknown: list[str] = []

    result = typed(package).read(value, "", unknown)

    assert result["additionalProperties"] == {"type": "string"}
    assert result["default"] == {"a": 1}
    assert unknown == ["items.bogus"]
    assert typed(package).read({"additionalProperties": True}, "", []) == {"additionalProperties": True}
