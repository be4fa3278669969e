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
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
SCALES = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["UPDATE"],
    "resources": ["deployments/scale"],
}
CLASSES = {**MAPS, "apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"]}
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
                {
                    "expression": "variables.shown != '<y>'",
                    "message": "plain",
                    "messageExpression": "string(object.data.none)",
                },
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
            "validations": [
                {"expression": "object.data.a == params.data.a", "messageExpression": "'as ' + params.data.a"}
            ],
        },
        {"paramRef": {"name": "params-x", "parameterNotFoundAction": "Deny"}},
    ),
    "selected": (
        {**PARAMETERS, "validations": [{"expression": "object.data.a == params.data.a", "message": "not it"}]},
        {"paramRef": {"selector": {"matchLabels": {"kind": "params"}}, "parameterNotFoundAction": "Deny"}},
    ),
    "lost": (
        {**PARAMETERS, "validations": [{"expression": "false"}]},
        {"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
    ),
    "unneeded": (
        {**PARAMETERS, "validations": [{"expression": "false"}]},
        {"paramRef": {"name": "none", "parameterNotFoundAction": "Allow"}},
    ),
    "unreferenced": ({**PARAMETERS, "validations": [{"expression": "params != null", "message": "none"}]}, {}),
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
    "surrounded": (
        {
            "validations": [
                {"expression": each}
                for each in (
                    "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == object.metadata.namespace",
                    "namespaceObject.status.phase == 'Active' && namespaceObject.spec.finalizers == ['kubernetes']",
                    "has(namespaceObject.metadata.annotations) && namespaceObject.metadata.annotations['none'] == 'x'",
                    "namespaceObject.metadata.generation > 0",
                    "namespaceObject.metadata.UID != ''",
                    "namespaceObject.metadata.creationTimestamp < timestamp('2100-01-01T00:00:00Z')",
                )
            ]
        },
        {"validationActions": ["Warn"]},
    ),
    "kept": (
        {
            "variables": [
                {"name": "numbers", "expression": "[1, 2]"},
                {"name": "asked", "expression": "request"},
                {"name": "values", "expression": "object.?data.a.orValue('none')"},
                {"name": "maybe", "expression": "object.?data.b"},
                {"name": "nothing", "expression": "null"},
                {"name": "allowed", "expression": "authorizer.requestResource.check('create')"},
            ],
            "validations": [
                {"expression": "variables.numbers.all(each, each > 0) && variables.nothing == null"},
                {"expression": "!variables.maybe.hasValue() && variables.allowed.allowed()"},
                {"expression": "variables.asked.operation == 'CREATE'"},
                {"expression": "variables.values != 'y'", "messageExpression": "'not ' + string(variables.values)"},
                {"expression": "variables.asked.nothing == 'x'"},
            ],
        },
        {"validationActions": ["Warn"]},
    ),
    "elsewhere": (
        {**PARAMETERS, "validations": [{"expression": "false", "message": "found"}]},
        {"paramRef": {"name": "params-x", "namespace": "default", "parameterNotFoundAction": "Deny"}},
    ),
    "global": (
        {
            "paramKind": {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"},
            "validations": [{"expression": "params.provisioner != 'x'", "messageExpression": "string(params.kind)"}],
        },
        {"paramRef": {"selector": {"matchLabels": {"kind": "params"}}, "parameterNotFoundAction": "Deny"}},
    ),
    "misplaced": (
        {
            "paramKind": {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"},
            "validations": [{"expression": "true"}],
        },
        {"paramRef": {"name": "a", "namespace": "default", "parameterNotFoundAction": "Deny"}},
    ),
    "unscoped": (
        {
            "matchConstraints": {"resourceRules": [CLASSES], "namespaceSelector": {}},
            "validations": [
                {"expression": "namespaceObject == null", "message": "in a namespace"},
                {
                    "expression": "object.provisioner != 'y'",
                    "messageExpression": "request.kind.kind + request.namespace",
                },
                {"expression": "object.provisioner != 'z' || namespaceObject.metadata.name == 'x'"},
            ],
        },
        {},
    ),
    "unscopedparams": (
        {
            **PARAMETERS,
            "matchConstraints": {"resourceRules": [CLASSES], "namespaceSelector": {}},
            "validations": [{"expression": "true"}],
        },
        {"paramRef": {"name": "params-x", "parameterNotFoundAction": "Deny"}},
    ),
    "long": ({"validations": [{"expression": "false", "messageExpression": f"'{'long ' * 2000}'"}]}, {}),
    "broadly": ({"validations": [{"expression": "false", "messageExpression": "'two\\nlines'"}]}, {}),
    "namespaces": (
        {
            "matchConstraints": {"resourceRules": [{**MAPS, "resources": ["namespaces"]}], "namespaceSelector": {}},
            "validations": [
                {"expression": "namespaceObject == null", "message": "has an object"},
                {"expression": "request.name == 'x'", "messageExpression": "request.namespace + '/' + request.name"},
            ],
        },
        {},
    ),
    "status": (
        {
            "matchConstraints": {
                "resourceRules": [{**SCALES, "resources": ["deployments/status"]}],
                "objectSelector": {},
            },
            "validations": [{"expression": "object.status.replicas < 2", "messageExpression": "request.subResource"}],
        },
        {},
    ),
    "scale": (
        {
            "matchConstraints": {"resourceRules": [SCALES], "objectSelector": {}},
            "validations": [
                {
                    "expression": "object.spec.replicas < 4",
                    "messageExpression": "string(object.kind) + request.subResource",
                }
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


def deployed(case: str) -> dict[str, Any]:
    pods = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "replicas": 0, "template": pods}
    return {"metadata": {"name": "scale", "labels": {"case": case}}, "spec": spec}


def config_map(case: str, value: str) -> dict[str, Any]:
    return {"metadata": {"name": f"{case}-{value}", "labels": {"case": case}}, "data": {"a": value}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judged(both: tuple[Environment, Environment, str]) -> AsyncIterator[tuple[Environment, Environment, str]]:
    """Both servers with all policies in force, and the objects they look at."""
    embedded, real, namespace = both
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for server in (embedded, real):
        client = Client(server)
        for name, value in (("params-x", "x"), ("params-y", "y")):
            kept = {"metadata": {"name": name, "labels": {"kind": "params"}}, "data": {"a": value}}
            assert client.send("POST", maps, kept)[0] == 201
        assert client.send("POST", maps, {**config_map("old", "kept")})[0] == 201
        assert client.send("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", deployed("scale"))[0] == 201
        kept = {"metadata": {"name": namespace, "labels": {"kind": "params"}}, "provisioner": "x"}
        assert client.send("POST", STORAGE, kept)[0] == 201
        for path, body in policies(namespace):
            code, _, answer = client.send("POST", path, body)
            assert code == 201, answer

    def the_last_acts() -> bool:
        return Client(real).send(*requests("scale", namespace)[-1])[0] != 200

    assert await eventually(the_last_acts, timeout=120, interval=0.2)
    yield embedded, real, namespace
    for server in (embedded, real):
        for path, body in policies(namespace):
            Client(server).send("DELETE", f"{path}/{body['metadata']['name']}")
        Client(server).send("DELETE", f"{STORAGE}/{namespace}")


def requests(case: str, namespace: str) -> list[tuple[str, str, Any]]:
    """What is sent of a case."""
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/scale"
    made = [config_map(case, value) for value in "xyz"]
    match case:
        case "scale":
            head = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
            body = {**head, "metadata": {"name": "scale", "namespace": namespace}}
            return [("PUT", f"{deployment}/scale?dryRun=All", {**body, "spec": {"replicas": n}}) for n in (3, 4)]
        case "status":
            body = {**deployed("status"), "kind": "Deployment", "apiVersion": "apps/v1"}
            return [("PUT", f"{deployment}/status?dryRun=All", {**body, "status": {"replicas": n}}) for n in (1, 2)]
        case "unscoped" | "unscopedparams" | "namespaces":
            path, metadata = "/api/v1/namespaces" if case == "namespaces" else STORAGE, {"labels": {"case": case}}
            given = [{"metadata": {**metadata, "name": value}, "provisioner": value} for value in "xyz"]
            return [("POST", f"{path}?dryRun=All", body) for body in given]
        case "old" | "bound":
            kept, path = config_map(case, "kept"), f"{maps}/{case}-kept?dryRun=All"
            updates = [("PUT", path, {**kept, "data": {"a": value}}) for value in ("kept", "y")]
            return [*(("POST", f"{maps}?dryRun=All", body) for body in made), *updates, ("DELETE", path, None)]
        case _:
            return [("POST", f"{maps}?dryRun=All", body) for body in made]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.asyncio(loop_scope="module")
async def test_both_servers_judge_alike(case: str, judged: tuple[Environment, Environment, str]) -> None:
    embedded, real, namespace = judged

    found, expected = (
        [normalised(*Client(server).send(*request)) for request in requests(case, namespace)]
        for server in (embedded, real)
    )

    assert found == expected
    assert case in {"ignored", "unneeded"} or any(one["code"] > 299 or one["warnings"] for one in found)


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
    {"validations": [{"expression": "object.data.a"}, {"expression": "true ? false : dyn(1)"}]},
    *(
        {
            "variables": [
                {"name": "request", "expression": "[request]"},
                {"name": "time", "expression": "optional.of(1)"},
            ],
            "validations": [{"expression": each, "messageExpression": each}],
            "auditAnnotations": [{"key": "a", "valueExpression": each}],
        }
        for each in (
            *("null", "[]", "{'a': 1}", "optional.of(1)", "type(1)", "timestamp('2020-01-01T00:00:00Z')", "b'x'", "1u"),
            *("authorizer", "request", "namespaceObject", "namespaceObject.kind", "namespaceObject.status.conditions"),
            *(
                "variables.request",
                "variables.time",
                "[duration('1s')]",
                "request.options",
                "quantity('1')",
                "[1, 'a']",
            ),
        )
    ),
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
