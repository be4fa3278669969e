"""Admission policies: both servers refuse, allow, warn and change alike, and refuse the same policies.

All policies are there before the first request: on the real server they act about a second later. Each is for the objects of one case, in the
namespace of the module.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from itertools import permutations
from typing import Any

import pytest
import pytest_asyncio
from apply_sequences import definition
from servers import LONGEST_WAIT
from test_builtin_kinds import Client, both, normalised

from ctrlruntime.testing import Environment, eventually

__all__ = ["both"]

GROUP = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
MUTATING, MUTATING_BINDINGS = f"{GROUP}/mutatingadmissionpolicies", f"{GROUP}/mutatingadmissionpolicybindings"
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
                    "expression": "object.spec.replicas != 4",
                    "messageExpression": "string(object.kind) + request.subResource",
                }
            ],
        },
        {},
    ),
}


def configuration(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def json_patch(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


CONTAINERS = (
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [%s]}}}}"
)
CONTAINER = "Object.spec.template.spec.containers"
CHANGES: dict[str, list[str]] = {
    "configmaps": [
        "Object{metadata: Object.metadata{labels: {'a': 'b'}}, kind: 'Secret', apiVersion: 'v2'}",
        "Object{metadata: Object.metadata{labels: Object.metadata.labels{a: 'b'}, name: 'other'}}",
        "Object{metadata: Object.spec{labels: {'a':'b'}}}",
        "Object{metadata: Object.metadata{labels: Object.metadata.none{a: 'b'}}}",
        "Object{data: {'a': 1}}",
        "Object{data: {1: 'x'}}",
        "Object{data: 1}",
        "Object{odd: 1}",
        "Object{data: {'b': object.data.none}}",
        "Object{data: {'b': object.data.a + variables.text}}",
        "Object{?data: object.data.a == 'x' ? optional.of({'b': 'c'}) : optional.none()}",
        "Object{data: Object.data{?b: object.data[?'a'], ?c: object.data[?'none']}}",
        "Object{data: {'b': namespaceObject.metadata.name + request.operation}}",
        "Object{}",
        "[JSONPatch{op: 'add', path: '/data/b', value: 'x'}, JSONPatch{op: 'copy', from: '/data/a', path: '/data/c'}]",
        "[JSONPatch{op: 'test', path: '/data/a', value: 'y'}, JSONPatch{op: 'add', path: '/data/b', value: 'x'}]",
        "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a.io/b'), value: 'x'}]",
        "[JSONPatch{op: 'add', path: '/metadata/annotations', value: Object.metadata.annotations{a: 'b'}}]",
        "[JSONPatch{op: 'replace', path: '/metadata/name', value: 'other'}]",
        "[JSONPatch{op: 'add', path: '/data/b', value: null}]",
        "[JSONPatch{op: 'add', path: '/data/b', value: 1}]",
        "[JSONPatch{op: 'remove', path: '/data/none'}]",
        "[JSONPatch{op: 'add', path: '/metadata/annotations/none', value: 'x'}]",
        "[JSONPatch{op: 'odd', path: '/data/a'}]",
        "[JSONPatch{}]",
    ],
    "deployments": [
        CONTAINERS % f"{CONTAINER}{{name: 'c', image: 'd:2'}}, {CONTAINER}{{name: 'side', image: 's:1'}}",
        CONTAINERS % f"{CONTAINER}.item{{name: 'side', image: 's:1'}}",
        CONTAINERS % f"{CONTAINER}{{image: 's:1'}}",
        CONTAINERS % f"{CONTAINER}{{name: 'c', args: ['a']}}",
        "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}",
        "Object{spec: Object.spec{replicas: 'x'}}",
        "Object{spec: Object.spec{replicas: -1}}",
        "Object{status: Object.status{replicas: 3}}",
    ],
    "gizmos": [
        "Object{spec: Object.spec{tags: ['z'], replicas: 2, free: Object.spec.free{x: 1}, parts: [Object.spec.parts{name: 'p', size: 9}]}}",
        "Object{spec: Object.spec{whole: Object.spec.whole{a: 'q'}}}",
        "Object{spec: Object.spec{odd: 1}}",
        "Object{spec: Object.spec{mode: null}}",
        "[JSONPatch{op: 'add', path: '/spec/replicas', value: 'x'}]",
        "[JSONPatch{op: 'add', path: '/spec/odd', value: 'x'}]",
    ],
}
"""What the policies do to objects of these kinds: a case for each."""
VALUES = (
    *("1u", "2.5", "1.0", "1e21", "1.5e300", "9007199254740993", "-9007199254740993", "9007199254740993u"),
    *("'text'", "b'x'", "b''", "null", "true", "[1u]", "[b'x']", "[null]", "{'a': null}", "{1: 2}", "{true: 'x'}"),
    *("{1u: 'x'}", "{65: 1}", "optional.of(1)", "optional.none()", "optional.of([1])", "duration('90s')", "type(1)"),
    *("timestamp('2020-01-01T00:00:00Z')", "ip('10.0.0.1')", "cidr('10.0.0.0/8')", "authorizer", "request.kind"),
    *("request.userInfo.groups", "variables", "namespaceObject.metadata.labels", "namespaceObject.spec"),
    *("object.spec.parts", "object.spec.whole", "{'a': object.spec.tags}", "{'a': type(1)}"),
    *(f"Object.spec.free{{a: {one}}}" for one in ("1u", "1.0", "[1u]", "{1: 2}", "type(1)", "b'x'", "[Object{}]")),
    *(f"{{'a': {one}}}" for one in ("1.0", "1u", "optional.of(1)", "optional.none()")),
)
CHANGES["gizmos"] += [
    f"Object{{spec: Object.spec{{free: {each}}}}}" for each in (*VALUES, "{'a': Object.spec.free.a{b: 1}}")
]  # kube-apiserver panics at the last one in a JSON patch
CHANGES["gizmos"] += [f"[JSONPatch{{op: 'add', path: '/spec/free', value: {each}}}]" for each in VALUES]
for kind in ("configmaps", "gizmos"):
    CHANGES[kind] += [
        f"[JSONPatch{{op: 'add', path: '{path}', value: {value}}}]"
        for path in ("/metadata", "/metadata/managedFields", "/metadata/labels", "/data", "/kind", "/apiVersion", "")
        for value in ("1", "[1]", "'x'", "null", "{'a': 'b'}")
    ]
CHANGES["scales"] = [
    "Object{spec: Object.spec{replicas: 1}}",
    "Object{spec: Object.spec{replicas: 'x'}}",
    "Object{spec: Object.spec{odd: 1}}",
    "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
    "Object{metadata: Object.metadata{name: 'other'}}",
    "[JSONPatch{op: 'replace', path: '/spec/replicas', value: 'x'}]",
    "[JSONPatch{op: 'replace', path: '/spec/replicas', value: -1}]",
    "[JSONPatch{op: 'replace', path: '/spec', value: 1}]",
    "[JSONPatch{op: 'remove', path: '/spec'}]",
    "[JSONPatch{op: 'replace', path: '/kind', value: 'Deployment'}]",
    "[JSONPatch{op: 'replace', path: '/apiVersion', value: 'apps/v1'}]",
    "[JSONPatch{op: 'add', path: '/metadata', value: null}]",
]
CHANGES["tokens"] = [
    "Object{spec: Object.spec{expirationSeconds: 700}}",
    "Object{spec: Object.spec{expirationSeconds: 'x'}}",
    "Object{spec: Object.spec{audiences: ['a']}}",
    "[JSONPatch{op: 'add', path: '/spec/expirationSeconds', value: 'x'}]",
    "[JSONPatch{op: 'add', path: '/spec/expirationSeconds', value: 5}]",
    "[JSONPatch{op: 'add', path: '/spec/expirationSeconds', value: null}]",
    "[JSONPatch{op: 'add', path: '/spec/audiences', value: 'x'}]",
    "[JSONPatch{op: 'remove', path: '/spec'}]",
    "[JSONPatch{op: 'replace', path: '/kind', value: 'Scale'}]",
]
MUTATED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ignoring": (
        {
            "failurePolicy": "Ignore",
            "mutations": [
                configuration("Object{data: {'b': 'first'}}"),
                configuration("Object{data: {'b': object.data.none}}"),
                json_patch("[JSONPatch{op: 'add', path: '/data/c', value: object.data.b + 'x'}]"),
            ],
        },
        {},
    ),
    "unsure": (
        {
            "matchConditions": [{"name": "none", "expression": "object.data.none == 'x'"}],
            "mutations": [configuration("Object{data: {'b': 'x'}}")],
        },
        {},
    ),
    "otherwise": (
        {
            "matchConditions": [{"name": "a", "expression": "object.data.a == 'y'"}],
            "mutations": [configuration("Object{data: {'b': 'x'}}")],
        },
        {},
    ),
    "configured": (
        {**PARAMETERS, "mutations": [configuration("Object{data: {'b': params.data.a}}")]},
        {"paramRef": {"name": "params-y", "parameterNotFoundAction": "Deny"}},
    ),
    "unconfigured": (
        {**PARAMETERS, "mutations": [configuration("Object{data: {'b': params.data.a}}")]},
        {"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
    ),
    "unknownkind": (
        {
            "paramKind": {"apiVersion": "no.example.com/v1", "kind": "No"},
            "mutations": [configuration("Object{data: {'b': params.data.a}}")],
        },
        {"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
    ),
}
"""What else policies say of ConfigMaps."""


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
    for case, (given, bound) in mutating_cases().items():
        name = f"{case}.{namespace}"
        constraints = {
            "resourceRules": [_mutated_resources(case)],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        }
        spec = {"reinvocationPolicy": "Never", "matchConstraints": constraints, **given}
        if case.startswith(("scales", "tokens")):  # what has no labels
            number = case[len("scales") :]
            for_case = (
                f"?spec.?replicas.orValue(0) == 1{number}"
                if case.startswith("scales")
                else f"?spec.?audiences.orValue([]) == ['{case}']"
            )
            spec["matchConditions"] = [{"name": "case", "expression": f"object.{for_case}"}]
        else:
            constraints["objectSelector"] = {"matchLabels": {"case": case.partition("-")[0]}}
        made.append((MUTATING, {"metadata": {"name": name}, "spec": spec}))
        made.append((MUTATING_BINDINGS, {"metadata": {"name": name}, "spec": {"policyName": name, **bound}}))
    return made


def _mutated_resources(case: str) -> dict[str, Any]:
    match case.rstrip("0123456789"):
        case "scales":
            return SCALES
        case "tokens":
            return {**MAPS, "operations": ["CREATE"], "resources": ["serviceaccounts/token"]}
        case _:
            kinds = ["configmaps", "deployments", "gizmos"]
            return {**MAPS, "apiGroups": ["*"], "operations": ["CREATE"], "resources": kinds}


def mutating_cases() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The spec and the binding of each mutating policy; those of CHANGES are named after the kind and their number."""
    variables = [{"name": "text", "expression": "'-' + request.operation"}]
    listed = {
        f"{kind}{number}": ({"variables": variables, "mutations": [_mutation(one)]}, {})
        for kind, expressions in CHANGES.items()
        for number, one in enumerate(expressions)
    }
    again = {
        "again-first": configuration("Object{data: {'b': object.data.a + 'x'}}"),
        "again-last": configuration("Object{data: {'a': 'changed'}}"),
    }
    twice = {name: ({"reinvocationPolicy": "IfNeeded", "mutations": [one]}, {}) for name, one in again.items()}
    return {**listed, **MUTATED, **called(), **twice}  # the last ones are waited for


CALLED = ("ABC", "AbC", "aBc", "A", "AB", "?bAb", "?BAb", "?AAB", "AB?bC", "A!B", "!AB", "Ab!")
"""Policies that add their letter to a text when they are called. A small letter is one with reinvocationPolicy Never.

`?x`: only if the text has an x; `!` adds nothing.
"""


def letters(text: str) -> list[tuple[str, str]]:
    """Return the condition and the letter of each policy."""
    return [(condition[1:].lower(), letter) for condition, letter in re.findall(r"(\?\w)?([\w!])", text)]


def called() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for number, text in enumerate(CALLED):
        for place, (condition, letter) in enumerate(letters(text)):
            change = f"Object{{data: {{'n': object.data[?'n'].orValue('') + '{letter.strip('!').lower()}'}}}}"
            spec: dict[str, Any] = {"mutations": [configuration(change)]}
            spec["reinvocationPolicy"] = "Never" if letter.islower() else "IfNeeded"
            if condition:
                test = f"object.data[?'n'].orValue('').contains('{condition}')"
                spec["matchConditions"] = [{"name": "a", "expression": test}]
            found[f"called{number}-{place}"] = (spec, {})
    return found


CALLED_CASES = {f"called{number}" for number in range(len(CALLED))}


def text_of(policies: Sequence[tuple[str, str]], again: Sequence[tuple[str, str]] | None = None) -> str:
    """Return the text that the policies make in this order: once they have run, those that may are called again.

    `again`: the order of the second calls, if it is another one.
    """
    text = ""
    ran: set[tuple[str, str]] = set()
    for is_second, order in ((False, policies), (True, policies if again is None else again)):
        for policy in order:
            condition, letter = policy
            if condition in text and (not is_second or (policy in ran and not letter.islower())):
                text += letter.strip("!").lower()
                ran.add(policy)
    return text


def _mutation(expression: str) -> dict[str, Any]:
    return json_patch(expression) if expression.startswith("[") else configuration(expression)


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
        crd = json.loads(json.dumps(definition()).replace("apply.example.com", f"{namespace}.example.com"))
        assert client.send("POST", DEFINITIONS, crd)[0] == 201

    def is_served() -> bool:
        return Client(real).send("GET", changed_object("gizmos", namespace)[1])[0] == 200

    assert await eventually(is_served, timeout=LONGEST_WAIT, interval=0.2)
    for server in (embedded, real):
        for path, body in policies(namespace):
            code, _, answer = Client(server).send("POST", path, body)
            assert code == 201, answer

    def all_act() -> bool:
        """The last policies of each plugin act, and the real server has found the kind."""
        again, gizmo = changed_object("again", namespace), changed_object("gizmos0", namespace)
        changed, kept = (Client(real).send(method, f"{path}?dryRun=All", body) for method, path, body in (again, gizmo))
        scaled = Client(real).send(*requests("scale", namespace)[-1])
        return changed[2]["data"].get("b") == "changedx" and kept[0] == 201 and scaled[0] != 200

    assert await eventually(all_act, timeout=LONGEST_WAIT, interval=0.2)
    yield embedded, real, namespace
    for server in (embedded, real):
        for path, body in policies(namespace):
            Client(server).send("DELETE", f"{path}/{body['metadata']['name']}")
        for path in (f"{STORAGE}/{namespace}", f"{DEFINITIONS}/gizmos.{namespace}.example.com"):
            Client(server).send("DELETE", path)


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


def changed_object(case: str, namespace: str) -> tuple[str, str, dict[str, Any]]:
    """The method, the path and the object that a mutating policy is for."""
    kind = case.rstrip("0123456789")
    match kind:
        case "deployments":
            return "POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", deployed(case)
        case "scales":
            head = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
            body = {**head, "metadata": {"name": "scale", "namespace": namespace}}
            body["spec"] = {"replicas": int(f"1{case[len(kind) :]}")}
            return "PUT", f"/apis/apps/v1/namespaces/{namespace}/deployments/scale/scale", body
        case "tokens":
            head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
            body = {**head, "metadata": {}, "spec": {"audiences": [case]}}
            return "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token", body
        case "gizmos":
            parts = [{"name": "p"}, {"name": "q", "zone": "there"}]
            spec = {"tags": ["x"], "whole": {"a": "1", "b": "2"}, "parts": parts}
            head = {"apiVersion": f"{namespace}.example.com/v1", "kind": "Gizmo"}
            body = {**head, "metadata": {"name": "g", "labels": {"case": case}}, "spec": spec}
            return "POST", f"/apis/{namespace}.example.com/v1/namespaces/{namespace}/gizmos", body
        case _:
            return "POST", f"/api/v1/namespaces/{namespace}/configmaps", config_map(case, "x")


@pytest.mark.parametrize("number", range(len(CALLED)), ids=CALLED)
@pytest.mark.asyncio(loop_scope="module")
async def test_both_servers_call_policies_again(number: int, judged: tuple[Environment, Environment, str]) -> None:
    policies = letters(CALLED[number])
    embedded, real, namespace = judged
    method, path, body = changed_object(f"called{number}", namespace)

    found, other = (
        normalised(*Client(server).send(method, f"{path}?dryRun=All", body))["object"]["data"].get("n", "")
        for server in (embedded, real)
    )

    assert found == text_of(policies)
    # kube-apiserver calls them in any order, and in another one again if it read its policies again in between.
    orders = list(permutations(policies))
    assert other in {text_of(first, second) for first in orders for second in orders}


@pytest.mark.parametrize("case", sorted({case.partition("-")[0] for case in mutating_cases()} - CALLED_CASES))
@pytest.mark.asyncio(loop_scope="module")
async def test_both_servers_change_alike(case: str, judged: tuple[Environment, Environment, str]) -> None:
    embedded, real, namespace = judged
    method, path, body = changed_object(case, namespace)

    found, expected = (
        normalised(*Client(server).send(method, f"{path}?dryRun=All", body)) for server in (embedded, real)
    )

    if case.startswith("tokens") and expected["code"] == 201:  # the servers have other names and keys
        for answer in (found["object"], expected["object"]):
            del answer["status"]["token"], answer["spec"]["audiences"]
    assert found == expected


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
        {"reinvocationPolicy": "Never", "mutations": [configuration(one)]}
        for one in (
            *(
                "Object",
                "{}",
                "Objekt{}",
                "Object.metadata{}",
                "JSONPatch{}",
                "object",
                "Object{a: none}",
                "Object{a: 1}.a",
            ),
            *("[Object.a{}, Object.b{}]", "variables.text", "Object{?a: 1}"),
        )
    ),
    *(
        {"reinvocationPolicy": "Never", "mutations": [json_patch(one)]}
        for one in (
            *("[]", "[JSONPatch{op: 1}]", "[JSONPatch{odd: 1}]", "[{'op': 'add'}]", "JSONPatch{}", "dyn([])", "null"),
            "jsonpatch.escapeKey('a')",
        )
    ),
    {
        "reinvocationPolicy": "Never",
        "mutations": [
            {"patchType": "JSONPatch"},
            {**json_patch("[JSONPatch{}]"), "applyConfiguration": {"expression": "Object{}"}},
        ],
    },
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
        rule, path = ({**MAPS, "operations": ["CREATE"]}, MUTATING) if "mutations" in spec else (MAPS, POLICIES)
        body = {"metadata": {"name": "a"}, "spec": {"matchConstraints": {"resourceRules": [rule]}, **spec}}
        found, expected = (normalised(*Client(server).send("POST", f"{path}?dryRun=All", body)) for server in both[:2])
        if found != expected:
            differing[json.dumps(spec)] = found, expected
    assert differing == {}
