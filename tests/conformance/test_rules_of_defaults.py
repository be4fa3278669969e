"""A default is judged by the rules of its schema, also by those that do not compile: both servers refuse the definition alike."""

from __future__ import annotations

from typing import Any

from test_builtin_kinds import Client, both, normalised

from ctrlruntime.testing import Environment

__all__ = ["both"]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"


def ruled(*rules: str, **schema: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": rule} for rule in rules]}


def text(*rules: str, **schema: Any) -> dict[str, Any]:
    return ruled(*rules, type="string", **schema)


DEAR = "self.all(a, self.all(b, self.all(c, a.matches(b+c))))"
SPECS: dict[str, dict[str, Any]] = {
    "a rule that is cut off": {"type": "object", "properties": {"x": text("self >", default="a")}},
    "an unknown name": {"type": "object", "properties": {"x": text("class", default="a")}},
    "no bool": {"type": "object", "properties": {"x": text("self", default="a")}},
    "a rule of the object": ruled("self >", type="object", default={}, properties={"x": {"type": "string"}}),
    "a rule below the default": {"type": "object", "default": {"x": "a"}, "properties": {"x": text("self >")}},
    "a second rule": {"type": "object", "properties": {"x": text("self >", "self.size() > 9", default="a")}},
    "a rule that costs": {
        "type": "object",
        "default": {"x": ["a"]},
        "properties": {"x": ruled(DEAR, type="array", items={"type": "string"})},
    },
    "a message that is cut off": {
        "type": "object",
        "properties": {
            "x": {
                "type": "string",
                "default": "a",
                "x-kubernetes-validations": [{"rule": "self.size() > 9", "messageExpression": "1 +"}],
            }
        },
    },
}


def test_both_servers_judge_defaults_by_rules_alike(both: tuple[Environment, Environment, str]) -> None:
    embedded, real, _ = both
    differing = {}
    for name, spec in SPECS.items():
        schema = {"type": "object", "properties": {"spec": spec}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"kind": "Ruled", "plural": "ruleds"}
        body = {
            "metadata": {"name": "ruleds.defaults.example.com"},
            "spec": {"group": "defaults.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
        }
        found, expected = (normalised(*Client(server).send("POST", DEFINITIONS, body)) for server in (embedded, real))
        if found != expected:
            differing[name] = found, expected
    assert differing == {}
