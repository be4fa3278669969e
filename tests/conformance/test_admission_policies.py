"""ValidatingAdmissionPolicies: both servers refuse, allow and warn alike, and refuse the same policies.

All policies are there before the first request: on the real server they act about a second later. Each is for the objects of one case, in the
namespace of the module.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from test_builtin_kinds import Client, both, normalised

from ctrlruntime.testing import Environment, eventually

__all__ = ["both"]

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
SCALES = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["UPDATE"],
    "resources": ["deployments", "deployments/scale"],
}
PARAMETERS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "denied": ({"validations": [{"expression": "object.data.a == 'x'", "message": " a has to be x "}]}, {}),
    "unsaid": ({"validations": [{"expression": " object.data.a == 'x' ", "reason": "RequestEntityTooLarge"}]}, {}),
    "several": (
        {
            "validations": [
                {"expression": "object.data.a != 'y'", "message": "first"},
                {"expression": "object.data.a == 'x'", "message": "second", "reason": "Forbidden"},
            ]
        },
        {"validationActions": ["Deny", "Audit"]},
    ),
    "explained": (
        {
            "variables": [
                {"name": "value", "expression": "object.data.a"},
                {"name": "shown", "expression": "'<' + variables.value + '>'"},
            ],
            "validations": [
                {
                    "expression": "variables.value == 'x'",
                    "message": "plain",
                    "messageExpression": "'found ' + variables.shown",
                },
                {"expression": "variables.shown != '<y>'", "message": "plain", "messageExpression": "object.data.none"},
                {"expression": "variables.shown != '<y>'", "messageExpression": "'  '"},
            ],
        },
        {"validationActions": ["Warn"]},
    ),
    "broken": ({"validations": [{"expression": "object.data.none == 'x'"}, {"expression": "true"}]}, {}),
    "ignored": ({"failurePolicy": "Ignore", "validations": [{"expression": "object.data.none == 'x'"}]}, {}),
    "brokenvariable": (
        {
            "variables": [{"name": "none", "expression": "object.data.none"}],
            "validations": [
                {"expression": "variables.none == 'x'"},
                {"expression": "has(object.data) && variables.none == 'x'"},
            ],
        },
        {},
    ),
    "conditional": (
        {
            "matchConditions": [
                {"name": "y", "expression": "object.data.a == 'y'"},
                {"name": "none", "expression": "object.data.none == 'x'"},
            ],
            "validations": [{"expression": "false", "message": "always"}],
        },
        {},
    ),
    "parameters": (
        {
            **PARAMETERS,
            "validations": [{"expression": "object.data.a == params.data.a", "messageExpression": "params.data.a"}],
        },
        {"paramRef": {"name": "parameters", "parameterNotFoundAction": "Deny"}},
    ),
    "selected": (
        {**PARAMETERS, "validations": [{"expression": "object.data.a == params.data.a", "message": "not it"}]},
        {"paramRef": {"selector": {"matchLabels": {"kind": "parameters"}}, "parameterNotFoundAction": "Deny"}},
    ),
    "lost": (
        {**PARAMETERS, "validations": [{"expression": "false"}]},
        {"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
    ),
    "unneeded": (
        {**PARAMETERS, "validations": [{"expression": "false"}]},
        {"paramRef": {"name": "none", "parameterNotFoundAction": "Allow"}},
    ),
    "unreferenced": ({**PARAMETERS, "validations": [{"expression": "params == null", "message": "some"}]}, {}),
    "unknown": (
        {"paramKind": {"apiVersion": "no.example.com/v1", "kind": "No"}, "validations": [{"expression": "true"}]},
        {"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
    ),
    "surroundings": (
        {
            "validations": [
                {"expression": "namespaceObject.metadata.name == object.metadata.namespace", "message": "namespace"},
                {"expression": "request.operation == 'CREATE'", "messageExpression": "request.operation"},
                {"expression": "request.resource.resource == 'configmaps' && !request.dryRun", "message": "dry"},
                {"expression": "authorizer.requestResource.check('create').allowed()", "message": "may not"},
                {"expression": "!authorizer.group('').resource('pods').check('odd').allowed()", "message": "may"},
            ]
        },
        {},
    ),
    "old": (
        {
            "validations": [
                {
                    "expression": "oldObject == null || object == null || object.data.a == oldObject.data.a",
                    "message": "fixed",
                },
                {"expression": "object != null", "message": "stays"},
            ]
        },
        {},
    ),
    "excluded": (
        {
            "matchConstraints": {"excludeResourceRules": [{**MAPS, "resourceNames": ["excluded-y"]}]},
            "validations": [{"expression": "false", "message": "not y"}],
        },
        {},
    ),
    "named": (
        {
            "matchConstraints": {"resourceRules": [{**MAPS, "resourceNames": ["named-y"]}]},
            "validations": [{"expression": "false", "message": "only y"}],
        },
        {},
    ),
    "bound": (
        {"validations": [{"expression": "false", "message": "bound"}]},
        {"matchResources": {"resourceRules": [{**MAPS, "operations": ["UPDATE"]}]}},
    ),
    "scale": (
        {
            "matchConstraints": {"resourceRules": [SCALES]},
            "validations": [
                {"expression": "object.spec.replicas < 4", "messageExpression": "object.kind + request.subResource"}
            ],
        },
        {},
    ),
}


def policies(namespace: str) -> list[tuple[str, dict[str, Any]]]:
    """The policy and the binding of each case, with where they are created."""
    made: list[tuple[str, dict[str, Any]]] = []
    for case, (spec, bound) in CASES.items():
        name = f"{case}.{namespace}"
        constraints = {
            "resourceRules": [MAPS],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "objectSelector": {"matchLabels": {"case": case}},
            **spec.get("matchConstraints", {}),
        }
        binding = {"policyName": name, "validationActions": ["Deny"], **bound}
        made.append((POLICIES, {"metadata": {"name": name}, "spec": {**spec, "matchConstraints": constraints}}))
        made.append((BINDINGS, {"metadata": {"name": name}, "spec": binding}))
    return made


def config_map(case: str, value: str) -> dict[str, Any]:
    return {"metadata": {"name": f"{case}-{value}", "labels": {"case": case}}, "data": {"a": value}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judged(both: tuple[Environment, Environment, str]) -> AsyncIterator[tuple[Environment, Environment, str]]:
    """Both servers with all policies in force, and the objects they look at."""
    embedded, real, namespace = both
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    deployment = {
        "selector": {"matchLabels": {"a": "b"}},
        "replicas": 0,
        "template": {"metadata": {"labels": {"a": "b"}}},
    }
    deployment["template"]["spec"] = {"containers": [{"name": "c", "image": "c:1"}]}  # type: ignore[index]
    scaled = {"metadata": {"name": "scale", "labels": {"case": "scale"}}, "spec": deployment}
    for server in (embedded, real):
        client = Client(server)
        for name, value in (("parameters", "x"), ("parameters-y", "y")):
            kept = {"metadata": {"name": name, "labels": {"kind": "parameters"}}, "data": {"a": value}}
            assert client.send("POST", maps, kept)[0] == 201
        assert client.send("POST", maps, {**config_map("old", "kept")})[0] == 201
        assert client.send("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", scaled)[0] == 201
        for path, body in policies(namespace):
            code, _, answer = client.send("POST", path, body)
            assert code == 201, answer

    def all_act() -> bool:
        codes = {
            client.send("POST", f"{maps}?dryRun=All", config_map(case, "y"))[0]
            for case in ("denied", "lost", "excluded")
        }
        return 201 not in codes - {client.send("POST", f"{maps}?dryRun=All", config_map("excluded", "y"))[0]}

    assert await eventually(all_act, timeout=120, interval=0.2)
    yield embedded, real, namespace
    for server in (embedded, real):
        for path, body in policies(namespace):
            Client(server).send("DELETE", f"{path}/{body['metadata']['name']}")


def requests(case: str, namespace: str) -> list[tuple[str, str, Any]]:
    """What is sent of a case."""
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    if case == "scale":
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/scale"
        scale = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "scale", "namespace": namespace}}
        return [("PUT", f"{path}/scale?dryRun=All", {**scale, "spec": {"replicas": number}}) for number in (3, 4)]
    sent = [("POST", f"{maps}?dryRun=All", config_map(case, value)) for value in "xyz"]
    if case in {"old", "bound"}:
        kept = config_map("old", "kept")
        kept["metadata"]["labels"]["case"] = case
        sent += [("PUT", f"{maps}/old-kept?dryRun=All", {**kept, "data": {"a": value}}) for value in ("kept", "y")]
        sent.append(("DELETE", f"{maps}/old-kept?dryRun=All", None))
    return sent


@pytest.mark.parametrize("case", CASES)
@pytest.mark.asyncio(loop_scope="module")
async def test_both_servers_judge_alike(case: str, judged: tuple[Environment, Environment, str]) -> None:
    embedded, real, namespace = judged

    found, expected = (
        [normalised(*Client(server).send(*request)) for request in requests(case, namespace)]
        for server in (embedded, real)
    )

    assert found == expected


WRONG: list[dict[str, Any]] = [
    {"validations": [{"expression": "object.x ==="}]},
    {"validations": [{"expression": "nothing.x == 1"}]},
    {"validations": [{"expression": "request.nothing == 'x'"}]},
    {"validations": [{"expression": "'text'"}]},
    {"validations": [{"expression": "params.x == 1"}]},
    {"validations": [{"expression": "true", "messageExpression": "1"}]},
    {"validations": [{"expression": "true", "messageExpression": "odd("}]},
    {"validations": [{"expression": "variables.a"}]},
    {"validations": [{"expression": "variables.b"}], "variables": [{"name": "a", "expression": "1"}]},
    {"validations": [{"expression": "variables.a"}], "variables": [{"name": "a", "expression": "1"}]},
    {"validations": [{"expression": "variables.a"}], "variables": [{"name": "a", "expression": "nothing"}]},
    {
        "validations": [{"expression": "variables.a == 1"}],
        "variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}],
    },
    {
        "validations": [{"expression": "true"}],
        "variables": [{"name": name, "expression": "1"} for name in ("if", "a-b", "1a", " ")],
    },
    {"auditAnnotations": [{"key": "a", "valueExpression": expression} for expression in ("1", "odd(", "'x'", "null")]},
    {"validations": [{"expression": "true"}], "matchConditions": [{"name": "a", "expression": "params.x == 1"}]},
    {
        **PARAMETERS,
        "validations": [{"expression": "params.x == 1"}],
        "matchConditions": [{"name": "a", "expression": "params.x == 1"}],
    },
    {"validations": [{"expression": "true"}], "matchConditions": [{"name": "a", "expression": "variables.a"}]},
]


def test_both_servers_refuse_the_same_policies(both: tuple[Environment, Environment, str]) -> None:
    differing = {}
    for spec in WRONG:
        body = {"metadata": {"name": "a"}, "spec": {"matchConstraints": {"resourceRules": [MAPS]}, **spec}}
        found, expected = (
            normalised(*Client(server).send("POST", f"{POLICIES}?dryRun=All", body)) for server in both[:2]
        )
        if found != expected:
            differing[json.dumps(spec)] = found, expected
    assert differing == {}
