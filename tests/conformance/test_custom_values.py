"""What is stored of custom resources: both servers keep, prune, default, refuse and write the same values."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from cases import seeds
from crd_cases import Client
from random_schemas import EMBEDDED, INT_OR_STRING, PRESERVE, CheckMaker, SchemaMaker, ValueMaker

from ctrlruntime.testing import Environment

GROUP = "values.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HEAD = f'"apiVersion":"{GROUP}/v1","kind":"Value"'
ITEMS = f"/apis/{GROUP}/v1/values"
DRY = f"{ITEMS}?dryRun=All"
OBJECTS = 20

Answers = dict[str, Any]


def definition(schema: dict[str, Any], name: str = "value") -> dict[str, Any]:
    names = {
        "plural": f"{name}s",
        "singular": name,
        "kind": name.capitalize(),
        "listKind": f"{name.capitalize()}List",
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": f"{name}s.{GROUP}"}, "spec": spec}


@contextlib.contextmanager
def served(server: Environment, schema: dict[str, Any], name: str = "value") -> Iterator[Client]:
    """A client of a server that serves the schema."""
    server.install_crds(definition(schema, name), timeout=30)
    client = Client(server)
    yield client
    client.close()
    server.connection.request("DELETE", f"{DEFINITIONS}/{name}s.{GROUP}")


def answered(answer: tuple[int, Any, list[str]]) -> list[Any]:
    """Return what both servers must say alike; Go walks maps in random order."""
    code, body, warnings = answer
    if code < 300:
        return [code, json.dumps({**body, "metadata": None}, sort_keys=True), sorted(warnings)]
    causes = (body.get("details") or {}).get("causes") or [{"message": body["message"]}]
    return [code, sorted(f"{cause.get('field')}: {cause['message']}" for cause in causes), sorted(warnings)]


def differences(ask: Callable[[Environment], Answers], *servers: Environment) -> dict[str, Any]:
    """Return what the servers answered differently, by request."""
    embedded, real = map(ask, servers)
    return {name: (embedded[name], real[name]) for name in real if embedded[name] != real[name]}


@pytest.mark.parametrize("seed", seeds(range(40), 2))
def test_random_values_of_random_schemas_are_stored_alike(embedded_server, real_server, seed: int) -> None:
    name = f"random{seed}"

    def ask(server: Environment) -> Answers:
        random = Random(seed)
        properties = {f"p{number}": SchemaMaker(random).schema() for number in range(8)}
        found: Answers = {}
        with served(server, {"type": "object", "properties": properties}, name) as client:
            for number in range(OBJECTS):
                maker = ValueMaker(random)
                fields = {key: maker.value(schema) for key, schema in properties.items() if random.random() < 0.8}
                head = {"apiVersion": f"{GROUP}/v1", "kind": name.capitalize(), "metadata": {"name": f"o{number}"}}
                answer = client.request("POST", f"/apis/{GROUP}/v1/{name}s", {**head, **fields})
                found[json.dumps(fields)] = answered(answer)
        return found

    assert differences(ask, embedded_server, real_server) == {}


@pytest.mark.parametrize("seed", seeds(range(40), 1))
def test_several_failures_of_a_value_are_told_alike(embedded_server, real_server, seed: int) -> None:
    name = f"failing{seed}"

    def ask(server: Environment) -> Answers:
        random = Random(seed)
        maker = CheckMaker(random)
        kinds = {f"{kind}{number}": kind for kind in ("string", "integer", "array", "object") for number in range(8)}
        schemas = {key: maker.schema(kind) for key, kind in kinds.items()}
        found: Answers = {}
        with served(server, {"type": "object", "properties": schemas}, name) as client:
            for number in range(OBJECTS):
                values = {key: maker.value(kind) for key, kind in kinds.items()}
                for key in kinds if number == 0 else ("",):
                    fields = {key: values[key]} if key else values
                    head = {"apiVersion": f"{GROUP}/v1", "kind": name.capitalize(), "metadata": {"name": "o"}}
                    answer = client.request("POST", f"/apis/{GROUP}/v1/{name}s?dryRun=All", {**head, **fields})
                    shown = [{each: schemas[each], "value": value} for each, value in fields.items()][:1]
                    found[json.dumps(shown if key else fields)] = answered(answer)
        return found

    assert differences(ask, embedded_server, real_server) == {}


# Checks of other types, formats without effect, and bounds that the type does not hold

UNUSUAL: dict[str, dict[str, Any]] = {
    "date": {"type": "string", "format": "date"},
    "unknown": {"type": "string", "format": "odd", "minLength": 2, "minimum": 3},
    "lengths": {"type": "integer", "minLength": 2, "maxItems": 0, "minProperties": 2},
    "int32": {"type": "integer", "format": "int32", "maximum": 1e10},
    "halves": {"type": "integer", "minimum": 0.5, "maximum": 2.5, "multipleOf": 0.5},
    "float": {"type": "number", "format": "float", "maximum": 10},
    "number": {"type": "number", "format": "date"},
    "object": {"type": "object", "format": "date"},
    "either": {INT_OR_STRING: True, "format": "date", "minLength": 3, "minimum": 2},
    "boolean": {"type": "boolean", "minLength": 2, "enum": [True]},
    "list": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
    "any": {"type": "integer", "anyOf": [{"format": "date"}, {"format": "int64"}]},
    "all": {"type": "integer", "allOf": [{"format": "int64"}, {"format": "int32", "maximum": 3}]},
    "texts": {"type": "string", "allOf": [{"format": "int64"}, {"format": "date-time"}]},
    "numbers": {"type": "number", "allOf": [{"format": "double"}, {"format": "date"}]},
    "large": {"type": "integer", "maximum": 2**53 + 1},
    "larger": {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 2**63},
    "small": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 3, "exclusiveMaximum": True},
}
SCALARS = ["a", "ab", "2020-01-01", 1, 0, 3, 2**31, 2**53 + 1, 2**63, 1.5, 2.0, 1e39, True, False]
UNUSUAL_VALUES = [*SCALARS, [], ["a"], ["ab", None], [None], {}, {"x": 1}, None]


def test_unusual_checks_are_made_alike(embedded_server, real_server) -> None:
    def ask(server: Environment) -> Answers:
        head = {"apiVersion": f"{GROUP}/v1", "kind": "Unusual", "metadata": {"name": "new"}}
        with served(server, {"type": "object", "properties": UNUSUAL}, "unusual") as client:
            found: Answers = {}
            for value in UNUSUAL_VALUES:
                fields = dict.fromkeys(UNUSUAL, value)
                if isinstance(value, list):  # the real server takes it for a text that has a format
                    del fields["date"]
                found[str(value)] = answered(
                    client.request("POST", f"/apis/{GROUP}/v1/unusuals?dryRun=All", {**head, **fields})
                )
            return found

    assert differences(ask, embedded_server, real_server) == {}


# Numbers

ANYTHING = {"type": "object", PRESERVE: True}
NUMBERS = [
    "1",
    "1.0",
    "-0.0",
    "1e2",
    "2.5",
    "1e15",
    "1e16",
    "9007199254740991.0",
    "9007199254740992.0",
    "9007199254740993",
    "12345678901234567.5",
    "9223372036854775807",
    "9223372036854775808",
    "123456789012345678901",
    "1e20",
    "1e-7",
    "1.000000001",
    "1.00000001",
    "true",
]
FIELDS: dict[str, dict[str, Any]] = {
    "any": {PRESERVE: True},
    "integer": {"type": "integer"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "number": {"type": "number"},
    "either": {INT_OR_STRING: True},
    "bounded": {"type": "integer", "minimum": -5, "maximum": 10},
    "large": {"type": "number", "maximum": 2000000},
    "even": {"type": "integer", "multipleOf": 2},
    "halves": {"type": "number", "multipleOf": 0.5},
    "whole": {"type": "integer", "enum": [1, 100]},
    "chosen": {"type": "number", "enum": [1, 0.5, 100]},
    "text": {"type": "string"},
    "date": {"type": "string", "format": "date"},
}
WAYS = {
    "POST": ("POST", DRY, '{{{head},"metadata":{{"name":"new"}},"spec":{{"{field}":{number}}}}}', "application/json"),
    "YAML": (
        "POST",
        DRY,
        '{{{head}, "metadata": {{"name": "new"}}, "spec": {{"{field}": {number}}}}}',
        "application/yaml",
    ),
    "PUT": (
        "PUT",
        f"{ITEMS}/one?dryRun=All",
        '{{{head},"metadata":{{"name":"one","resourceVersion":"{version}"}},"spec":{{"{field}":{number},"big":9007199254740993}}}}',
        "application/json",
    ),
    "merge": ("PATCH", f"{ITEMS}/one?dryRun=All", '{{"spec":{{"{field}":{number}}}}}', "application/merge-patch+json"),
    "json": (
        "PATCH",
        f"{ITEMS}/one?dryRun=All",
        '[{{"op":"add","path":"/spec/{field}","value":{number}}}]',
        "application/json-patch+json",
    ),
    "test": (
        "PATCH",
        f"{ITEMS}/one?dryRun=All",
        '[{{"op":"test","path":"/spec/{field}","value":{number}}}]',
        "application/json-patch+json",
    ),
    "apply": (
        "PATCH",
        f"{ITEMS}/one?dryRun=All&fieldManager=numbers&force=true",
        '{{{head},"metadata":{{"name":"one"}},"spec":{{"{field}":{number}}}}}',
        "application/apply-patch+yaml",
    ),
}


def test_numbers_are_read_judged_and_written_alike(embedded_server, real_server) -> None:
    spec = {"type": "object", PRESERVE: True, "properties": FIELDS}
    stored = {"any": 1, "integer": 1, "number": 1, "big": 2**53 + 1}

    def ask(server: Environment) -> Answers:
        with served(server, {"type": "object", "properties": {"spec": spec}}) as client:
            body = {"apiVersion": f"{GROUP}/v1", "kind": "Value", "metadata": {"name": "one"}, "spec": stored}
            version = client.request("POST", ITEMS, body)[1]["metadata"]["resourceVersion"]
            found: Answers = {}
            for way, (method, path, template, kind) in WAYS.items():
                for field in FIELDS if way == "POST" else ("any", "integer", "number"):
                    for number in NUMBERS:
                        text = template.format(head=HEAD, field=field, number=number, version=version)
                        answer = client.request(method, path, text, kind)
                        generation = answer[1].get("metadata", {}).get("generation")
                        found[f"{way} {field} {number}"] = [*answered(answer), generation]
            return found

    assert differences(ask, embedded_server, real_server) == {}


def test_numbers_of_definitions_are_written_alike(embedded_server, real_server) -> None:
    def ask(server: Environment) -> Answers:
        client = Client(server)
        found: Answers = {}
        for number in ("1", "1.0", "0.5", "1e20", "9007199254740993"):
            for schema in (
                {"type": "number", "default": "@"},
                {"type": "integer", "default": "@"},
                {**ANYTHING, "default": {"deep": ["@"]}},
                {"type": "number", "maximum": "@", "multipleOf": "@", "enum": ["@"]},
            ):
                text = json.dumps(definition({"type": "object", "properties": {"a": schema}}, "other")).replace(
                    '"@"', number
                )
                code, body, _ = client.request("POST", f"{DEFINITIONS}?dryRun=All", text)
                found[f"{number} {schema}"] = [
                    code,
                    json.dumps(body["spec"]["versions"][0]["schema"] if code < 300 else body["message"]),
                ]
        client.close()
        return found

    assert differences(ask, embedded_server, real_server) == {}


# Objects inside objects

OWNER = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}
METADATA: list[Any] = [
    None,
    {},
    {"odd": 1},
    *({"namespace": name} for name in ("", "fine", "Bad_NS", "a.b", "a" * 64)),
    *({"finalizers": names} for names in (["bad"], ["a/b/c", " x"], ["orphan", "foregroundDeletion"], [""])),
    *({"generation": number} for number in (-1, 1.0, 1.5)),
    *(
        {"ownerReferences": owners}
        for owners in ([{}], [{**OWNER, "apiVersion": "a/b/c"}], [{**OWNER, "kind": "Event"}])
    ),
    {"ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "name": "m", "controller": True}]},
    *({"annotations": texts} for texts in ({"BAD KEY": "x"}, {"UP/x": "x"}, {"k": "x" * 262_145})),
    *({"labels": texts} for texts in ({"bad key": "v"}, {"k": "bad value"}, {"k": 1})),
    *({"name": name} for name in ("", "UPPER ok?", "a/b", "a%b", "..")),
    *({"generateName": name} for name in ("ok-", "a/", ".")),
    {"managedFields": [{"manager": "x", "operation": "Bad"}]},
    {"managedFields": [{"manager": "x" * 200, "operation": "Apply", "fieldsType": "Other"}]},
    {"managedFields": [{"manager": "bad\nname", "operation": "Update", "subresource": "x" * 300}]},
    {"creationTimestamp": "x"},
    {"uid": "x", "resourceVersion": "abc", "selfLink": "s"},
    {"namespace": "B", "generation": -2, "labels": {"a b": "c d"}, "name": "x/y", "generateName": "q/"},
]
POD = {"apiVersion": "v1", "kind": "Pod"}
HEADS: list[Any] = [
    {},
    {"apiVersion": "", "kind": ""},
    {"apiVersion": "a/b/c", "kind": "bad kind"},
    {"apiVersion": 1, "kind": "x"},
    {**POD, "kind": ["x"]},
    {**POD, "kind": "X" * 64},
    {**POD, "metadata": "x"},
]


ROOT = {"required": ["metadata", "apiVersion", "kind", "spec"], "minProperties": 5}
"""Judges the whole object: its own fields count."""


def test_own_fields_of_objects_are_judged_alike(embedded_server, real_server) -> None:
    inner = {"type": "object", EMBEDDED: True, PRESERVE: True}
    properties = {
        "one": inner,
        "map": {"type": "object", "additionalProperties": inner},
        "list": {"type": "array", "items": inner},
    }

    spec = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec, "more": ANYTHING}, **ROOT}

    def ask(server: Environment) -> Answers:
        found: Answers = {}
        with served(server, schema) as client:
            head = {"apiVersion": f"{GROUP}/v1", "kind": "Value", "metadata": {"name": "new"}}
            for fields in ({}, {"spec": {}}, {"spec": {}, "more": {}}):
                found[f"root {fields}"] = answered(client.request("POST", DRY, {**head, **fields}))
            for number, value in enumerate([*({**POD, "metadata": each} for each in METADATA), *HEADS]):
                place = {"one": value, "map": {"k": value}, "list": [value]}
                for name, held in place.items() if number < 8 else [("map", place["map"])]:
                    found[f"{number} {name} {value}"] = answered(
                        client.request("POST", DRY, {**head, "spec": {name: held}, "more": {}})
                    )
                default = definition({"type": "object", "properties": {"a": {**inner, "default": value}}}, "other")
                answer = client.request("POST", f"{DEFINITIONS}?dryRun=All", default)
                found[f"{number} default {value}"] = answered(answer) if answer[0] >= 300 else 201
        return found

    assert differences(ask, embedded_server, real_server) == {}


# Definitions


@pytest.mark.parametrize("value", [True, False, {"type": "string"}])
def test_additional_properties_stand_where_the_real_server_takes_them(embedded_server, real_server, value) -> None:
    extra = {"additionalProperties": value}
    schemas = [
        {"type": "object", **extra},
        {"type": "object", EMBEDDED: True, PRESERVE: True, **extra},
        {"type": "object", "properties": {"a": {"type": "string"}}, **extra},
        {"type": "object", "default": {"a": "b"}, **extra},
        {"type": "object", "default": {"a": {"b": 1}}, **extra},
    ]

    def ask(server: Environment) -> Answers:
        client = Client(server)
        found: Answers = {}
        for root in (schemas[0], *({"type": "object", "properties": {"a": schema}} for schema in schemas)):
            answer = client.request("POST", f"{DEFINITIONS}?dryRun=All", definition(root, "other"))
            found[str(root)] = answered(answer) if answer[0] >= 300 else 201
        client.close()
        return found

    assert differences(ask, embedded_server, real_server) == {}


# Formats

TEXTS: dict[str, str] = {
    "date-time": "2024-01-01T00:00:00Z 2024-01-01t00:00:00.123+01:00",
    "datetime": "2024-01-01T00:00:00",
    "date": "2024-01-01 2024-02-30 20240101",
    "byte": "aGk= YQ== YWJj aGk_",
    "duration": "1h30m 1.5h 3ms 5µs -1h 1w",
    "hostname": "a.example.com localhost xn--a.com münchen.de",
    "email": "a@b.c <a@b.c> a@\tb <a@\tb> a(x)<a@b> group:a@b; a@[1.2.3.4] .a@b a..b@c",
    "ipv4": "1.2.3.4 010.1.1.1 ::ffff:1.2.3.4",
    "ipv6": "::1 1:2:3:4:5:6:7:8 ::1.2.3.4",
    "cidr": "10.0.0.0/8 010.0.0.0/08 ::ffff:1.2.3.4/96 10.0.0.0/255.0.0.0",
    "mac": "00:11:22:33:44:55 0011.2233.4455 001122334455",
    "uri": "http://a:80/%41?y=%zz urn:x:y /a//b http://a@b:c@d/#e http://[fe80::1%25en0]/ http://ü|/",
    "uuid": "123e4567-e89b-12d3-a456-426614174000 {123e4567-e89b-12d3-a456-426614174000}",
    "uuid3": "6ba7b810-9dad-31d1-80b4-00c04fd430c8",
    "uuid4": "6ba7b810-9dad-41d1-80b4-00c04fd430c8 6ba7b8109dad41d180b400c04fd430c8",
    "uuid5": "6ba7b810-9dad-51d1-80b4-00c04fd430c8",
    "k8s-short-name": "abc-1",
    "k8s-long-name": "a.b.c",
    "bsonobjectid": "507f1f77bcf86cd799439011",
    "isbn": "978-0-306-40615-7",
    "isbn10": "0306406152 080442957X",
    "isbn13": "9780306406157",
    "creditcard": "4111111111111111 378282246310005",
    "hexcolor": "#fff FFFFFF",
    "rgbcolor": "rgb(1,2,3)",
    "ssn": "123-45-6789 123456789",
    "password": "",
}
ODD = " \t\n\x7f%.-_:/@[](){}<>\"'\\|^`~=+$#?;,0179aZé\u0663\u00a0"


def spoiled(random: Random, text: str) -> str:
    """Return the text with a character more, less or another."""
    place = random.randrange(len(text) + 1)
    return text[:place] + random.choice([*ODD, "", "%25", "::"]) + text[place + random.randrange(2) :]


@pytest.mark.parametrize("seed", seeds(range(7), 1))
def test_formats_are_judged_alike(embedded_server, real_server, seed: int) -> None:
    name = f"formats{seed}"
    random = Random(seed)
    texts = [text for listed in TEXTS.values() for text in listed.split(" ")]
    texts += [spoiled(random, text) for text in texts for _ in range(3)]
    keys = {form: form.replace("-", "_") for form in TEXTS}
    properties = {key: {"type": "string", "format": form} for form, key in keys.items()}

    def ask(server: Environment) -> Answers:
        found: Answers = {}
        with served(server, {"type": "object", "properties": properties}, name) as client:
            for text in texts:
                head = {"apiVersion": f"{GROUP}/v1", "kind": name.capitalize(), "metadata": {"name": "new"}}
                body = {**head, **dict.fromkeys(properties, text)}
                found[text] = answered(client.request("POST", f"/apis/{GROUP}/v1/{name}s?dryRun=All", body))
        return found

    assert differences(ask, embedded_server, real_server) == {}


# Costs of rules

COSTLY = (
    "quantity(string(self)).isGreaterThan(quantity('0'))",
    "isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",
    "type(self) == int || string(self).split(',').all(x, x != 'y')",
    "string(self) + string(self) == 'xx'",
)


@pytest.mark.parametrize(
    "more", [{}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "^[0-9]+$"}], ids=str
)
def test_the_length_of_an_int_or_string_bounds_the_cost_of_its_rules(embedded_server, real_server, more) -> None:
    def ask(server: Environment) -> Answers:
        client = Client(server)
        found: Answers = {}
        for rule in COSTLY:
            for length in ({}, {"maxLength": 0}, {"maxLength": 20}, {"maxLength": 1000}):
                for count in (16, 3000):
                    items = {INT_OR_STRING: True, **more, **length, "x-kubernetes-validations": [{"rule": rule}]}
                    listed = {"type": "array", "maxItems": count, "items": items}
                    body = definition({"type": "object", "properties": {"a": listed}}, "other")
                    answer = client.request("POST", f"{DEFINITIONS}?dryRun=All", body)
                    found[f"{rule} {length} {count}"] = answered(answer) if answer[0] >= 300 else 201
        client.close()
        return found

    assert differences(ask, embedded_server, real_server) == {}
