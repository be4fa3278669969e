"""Every built-in kind is read and written against documents made from the schemas alone, as a Go server would write them."""

from __future__ import annotations

import ast
import gzip
import importlib
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ctrlruntime.api import GroupVersionKind, Model, Object, gvk_for, kind_of
from ctrlruntime.api.groups import MODULES
from ctrlruntime.data import open_data
from ctrlruntime.scheme import Scheme

ROOT = Path(__file__).resolve().parents[2]
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
ABSENT = object()


@cache
def schemas() -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tarfile.open(fileobj=io.BytesIO(open_data("kubernetes-1.36/openapi-v3.tar.xz"))) as archive:
        for name in archive.getnames():
            if re.search(r"/v\d\.json$", name):
                found.update(json.load(archive.extractfile(name))["components"]["schemas"])
    return found


@cache
def protobuf() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(gzip.decompress(open_data("kubernetes-1.36/protobuf-tables.json.gz")))
    return tables


@cache
def flags(message: str) -> dict[str, str]:
    result: dict[str, str] = {}
    for name, kind, mark in protobuf()[message].values():
        result.update(flags(kind) if "i" in mark else {name: mark})
    return result


def target(schema: dict[str, Any]) -> str | None:
    found = schema.get("$ref") or next((p["$ref"] for p in schema.get("allOf", ()) if "$ref" in p), None)
    return found and found.rpartition("/")[2]


SPECIAL = {
    "Quantity": ("0", "1500m"),
    "IntOrString": (0, "http"),
    "Time": (ABSENT, "2026-01-02T03:04:05Z"),
    "MicroTime": (ABSENT, "2026-01-02T03:04:05.000006Z"),
    "FieldsV1": (ABSENT, {"f:spec": {"f:x": {}}}),
    "RawExtension": (ABSENT, {"kind": "X", "n": None}),
    "JSON": (ABSENT, {"a": [1, None, ""]}),
    "JSONSchemaPropsOrArray": (ABSENT, [{"type": "string"}]),
    "JSONSchemaPropsOrBool": (ABSENT, False),
    "JSONSchemaPropsOrStringArray": (ABSENT, ["a"]),
}


def kinds() -> Iterator[tuple[GroupVersionKind, str]]:
    for name, schema in schemas().items():
        named = schema.get("x-kubernetes-group-version-kind", [])
        metadata = schema.get("properties", {}).get("metadata", {})
        if len(named) == 1 and target(metadata) == META + "ObjectMeta":
            yield GroupVersionKind(named[0]["group"], named[0]["version"], named[0]["kind"]), name


KINDS = sorted(kinds())


def sample(schema: dict[str, Any], mode: str, depth: int) -> Any:
    """A value of a type: `absent` is what is there when nobody said anything, `zero` sets pointers to zeros, `full` sets everything."""
    name = target(schema)
    if name is None:
        kind, form = schema.get("type"), schema.get("format")
        full = mode == "full"
        if kind == "array":
            return [sample(schema["items"], mode, depth + 1)] if full else []
        if kind == "object":
            return {"k": sample(schema["additionalProperties"], mode, depth + 1)} if full else {}
        zero, value = {
            "string": ("", "AAEC+/8=" if form == "byte" else "text"),
            "integer": (0, 7),
            "number": (0, 1.5),
            "boolean": (False, True),
        }[kind]
        return value if full else zero
    if (short := name.rpartition(".")[2]) in SPECIAL:
        return SPECIAL[short][mode == "full"]
    marks = flags(name.replace("io.k8s.", "k8s.io.", 1).replace("-", "_"))
    # A kind inside another one (a StatefulSet's claims) is written with its kind, as the server does.
    named = next((gvk for gvk, of in KINDS if of == name), None)
    document: dict[str, Any] = {"apiVersion": named.api_version, "kind": named.kind} if named else {}
    for wire, inner in schemas()[name].get("properties", {}).items():
        if wire in {"apiVersion", "kind"} and wire not in marks:
            continue
        value = member(inner, marks[wire], wire in schemas()[name].get("required", ()), mode, depth)
        if value is not ABSENT:
            document[wire] = value
    return document


def member(schema: dict[str, Any], mark: str, required: bool, mode: str, depth: int) -> Any:
    pointer, omitempty = "p" in mark, "o" in mark
    if mode == "full":
        return ABSENT if depth > 6 and "JSONSchemaProps" in json.dumps(schema) else sample(schema, mode, depth + 1)
    if pointer:
        return ABSENT if mode == "absent" or depth > 4 else sample(schema, mode, depth + 1)
    composite = schema.get("type") in {"array", "object"}
    name = (target(schema) or "").rpartition(".")[2]
    struct = target(schema) is not None and name not in SPECIAL
    if struct:
        value = sample(schema, mode, depth + 1)
        return value if value or (required and not omitempty) else ABSENT
    if omitempty or (composite and not required):
        return ABSENT
    return sample(schema, mode, depth + 1)


@pytest.mark.parametrize("mode", ["absent", "zero", "full"])
@pytest.mark.parametrize(("name", "schema"), KINDS, ids=lambda value: str(value) if isinstance(value, tuple) else "")
def test_every_kind_is_written_as_it_was_read(name: GroupVersionKind, schema: str, mode: str) -> None:
    cls = Scheme().class_for(name)
    content = sample({"$ref": schema}, mode, 0)
    document = {**content, "unknownField": {"kept": [None, 0, ""]}}
    raw = json.dumps(document).encode()

    written = json.loads(cls.from_json(raw).to_json())

    assert written == document
    assert list(written)[:2] == ["apiVersion", "kind"]
    assert json.loads(cls.from_json(raw).deep_copy().to_json()) == document


@pytest.mark.parametrize(("name", "schema"), KINDS, ids=lambda value: str(value) if isinstance(value, tuple) else "")
def test_every_kind_reads_absent_fields_as_defaults(name: GroupVersionKind, schema: str) -> None:
    cls = Scheme().class_for(name)

    assert cls.from_json(b"{}") == cls()
    assert cls.from_json(b"{}").to_dict() == cls().to_dict()
    assert cls().to_apply_dict() == {}


def test_every_kind_of_the_server_has_a_class() -> None:
    assert len(KINDS) > 60
    assert all(gvk_for(Scheme().class_for(name)) == name for name, _ in KINDS)


def test_names_and_scopes_are_those_of_discovery() -> None:
    legacy = json.loads(gzip.decompress(open_data("kubernetes-1.36/discovery.json.gz")))["legacy"]
    checked = 0
    for document in legacy.values():
        for resource in document.get("resources", ()):
            group, _, version = document["groupVersion"].rpartition("/")
            if "/" in resource["name"] or (group, version) not in MODULES:
                continue
            info = kind_of(Scheme().class_for(GroupVersionKind(group, version, resource["kind"])))
            assert info.plural == resource["name"]
            assert info.singular == resource["singularName"]
            assert info.scope == ("Namespaced" if resource["namespaced"] else "Cluster")
            assert info.short_names == tuple(resource.get("shortNames", ()))
            assert info.categories == tuple(resource.get("categories", ()))
            checked += 1
    assert checked > 60


def test_every_class_of_every_module_can_be_built() -> None:
    for module in {"ctrlruntime.api.meta.v1", *MODULES.values()}:
        loaded = importlib.import_module(module)
        for name in loaded.__all__:
            cls = getattr(loaded, name)
            assert issubclass(cls, Model)
            assert cls() == cls.from_dict(cls().to_dict())


def test_attributes_have_the_spelling_of_kubernetes_asyncio() -> None:
    client = pytest.importorskip("kubernetes_asyncio.client")
    ours = {"continue": "continue_", "except": "except_", "from": "from_", "not": "not_", "exec": "exec"}
    theirs: dict[str, dict[str, str]] = {}
    for name in dir(client):
        if hasattr(model := getattr(client, name), "attribute_map"):
            theirs[name] = {wire: attribute for attribute, wire in model.attribute_map.items()}

    compared = 0
    for module in MODULES.values():
        loaded = importlib.import_module(module)
        for name in loaded.__all__:
            names = theirs.get(f"V{module[-1]}{name}", {})
            for attribute, info in getattr(loaded, name).model_fields.items():
                wire = info.serialization_alias
                if wire in names and not attribute.startswith("schema_"):
                    assert attribute == ours.get(wire, names[wire])
                    compared += 1
    assert compared > 1500


def test_old_spellings_are_accepted() -> None:
    from ctrlruntime.api import meta

    assert meta.ListMeta.model_validate({"_continue": "x"}).continue_ == "x"
    assert meta.ListMeta(continue_="x").to_dict() == {"continue": "x"}


def test_the_modules_are_what_the_script_writes() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "generate-api", "--check"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_groups_are_loaded_only_when_imported() -> None:
    program = (
        "import sys; from ctrlruntime.api import coordination; "
        "print([m for m in sys.modules if m.startswith('ctrlruntime.api.') and m.endswith(('.v1', '.v2'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ast.literal_eval(done.stdout) == ["ctrlruntime.api.meta.v1", "ctrlruntime.api.coordination.v1"]


def test_no_attribute_hides_one_of_the_base_class() -> None:
    names = {
        n
        for m in MODULES.values()
        for c in vars(importlib.import_module(m)).values()
        if _is_wire(c)
        for n in c.model_fields
    }

    assert not {name for name in names if hasattr(Object, name)}


def _is_wire(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Model)
