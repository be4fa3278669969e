"""Objects of random classes on both servers: what the code did not change is stored as it was, by every verb.

Each definition has 50 random classes, one for each field of its spec, so that a few requests try them all.
"""

from __future__ import annotations

import asyncio
import functools
import types
from collections.abc import Awaitable
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec
import pytest
from pydantic import Field
from random_classes import Definition, definition, python_value

import ctrlruntime as ctrl
from ctrlruntime.api import Model, Object, meta
from ctrlruntime.client import APIClient
from ctrlruntime.client.patches import merge_from
from ctrlruntime.errors import Invalid
from ctrlruntime.generate import crds
from ctrlruntime.generate.options import Options
from ctrlruntime.patch import apply_json_patch
from ctrlruntime.webhook import Conversion, defaulting
from ctrlruntime.webhook.request import AdmissionRequest

GROUP = "survive.example.com"
CLASSES = 50


@dataclass(frozen=True)
class Lot:
    """A kind with many random classes, in two versions that are the same."""

    kind: type[Object]
    other: type[Object]
    parts: dict[str, Definition]

    def change(self, spec: Any, random: Random) -> dict[str, Any]:
        """Change one field of each part that is there; return the parts that were changed."""
        changed: dict[str, Any] = {}
        for name, made in self.parts.items():
            part = getattr(spec, name)
            if part is not None:
                field, sort = random.choice(list(made.fields.items()))
                setattr(part, field, python_value(sort.annotation, sort.values(random)))
                changed[name] = field
        return changed


def make_lot(seed: int, random: Random) -> Lot:
    parts = {f"part{number}": definition(random) for number in range(CLASSES)}

    def body(namespace: dict[str, Any]) -> None:
        annotations = {name: made.cls | None for name, made in parts.items()}
        namespace |= {"__annotations__": annotations, "__module__": __name__, **dict.fromkeys(parts)}

    spec = types.new_class("Spec", (Model,), {}, body)

    def kind(version: str, **words: Any) -> type[Object]:
        def body(namespace: dict[str, Any]) -> None:
            namespace |= {
                "__annotations__": {"spec": spec},
                "__module__": __name__,
                "spec": Field(default_factory=spec),
            }

        words |= {"group": GROUP, "version": version, "kind": f"Lot{seed}", "plural": f"lots{seed}"}
        return types.new_class(f"Lot{seed}", (Object,), words, body)

    return Lot(kind("v1"), kind("v2", storage=False), parts)


async def check_lot(server, namespace: str, client: APIClient, seed: int) -> None:
    random = Random(seed)
    lot = make_lot(seed, random)
    client.scheme.register(lot.kind)
    options = Options(allow_floats=True)
    (crd,) = crds([lot.kind], options=options, warn=lambda _: None)
    await asyncio.to_thread(server.install_crds, [crd])
    try:
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/lots{seed}"
        spec = {name: made.values(random) for name, made in lot.parts.items() if random.random() < 0.95}
        document = {"apiVersion": f"{GROUP}/v1", "kind": f"Lot{seed}", "metadata": {"name": "a"}, "spec": spec}
        await asyncio.to_thread(server.connection.request, "POST", path, document)

        async def stored() -> dict[str, Any]:
            return await asyncio.to_thread(server.connection.request, "GET", f"{path}/a")

        await check_verbs(lot, client, ctrl.NamespacedName(namespace, "a"), stored, random)
        await check_apply(lot, server, client, path, namespace, random)
    finally:
        name = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/lots{seed}.{GROUP}"
        await asyncio.to_thread(server.connection.request, "DELETE", name)


async def check_verbs(lot: Lot, client: APIClient, key: ctrl.ObjectKey, stored: Any, random: Random) -> None:
    raw = await stored()

    # Only the metadata: by update, by patch, and by the functions that do nothing when nothing changes.
    obj = await client.get(lot.kind, key)
    obj.metadata.labels["by"] = "update"
    await client.update(obj)
    assert (await stored())["spec"] == raw["spec"]

    base = obj.deep_copy()
    obj.metadata.labels["by"] = "patch"
    patch = merge_from(base)
    assert msgspec.json.decode(patch.data(obj)) == {"metadata": {"labels": {"by": "patch"}}}
    await client.patch(obj, patch)
    assert (await stored())["spec"] == raw["spec"]

    for brought in (ctrl.create_or_update, ctrl.create_or_patch):
        _, result = await brought(client, lot.kind, key, lambda obj: assign_again(lot, obj))
        assert result == "unchanged"

    # One field of each class: nothing else changes.
    base = obj.deep_copy()
    changed = lot.change(obj.spec, random)
    expected = obj.to_dict()["spec"]
    check_only(lot, raw["spec"], expected, changed)
    await client.update(obj)
    updated = (await stored())["spec"]
    assert updated == expected | with_defaults(updated, expected)

    base = obj.deep_copy()
    changed = lot.change(obj.spec, random)
    body = msgspec.json.decode(merge_from(base).data(obj))
    assert set(body.get("spec") or {}) <= set(changed)
    await client.patch(obj, merge_from(base))
    check_only(lot, updated, (await stored())["spec"], changed)

    # Apply owns what the code set, and leaves the rest.
    raw = await stored()
    mine = lot.kind(metadata=meta.ObjectMeta(name=key.name, namespace=key.namespace, labels={"by": "apply"}))
    await client.apply(mine, field_owner="mine", force=True)
    assert (await stored())["spec"] == raw["spec"]
    assert (await stored())["metadata"]["labels"] == {"by": "apply"}

    # Conversion and webhooks work on the bytes that the server has.
    raw = await stored()
    check_conversion(lot, raw)
    await check_defaulting(lot, raw, random)


async def check_apply(lot: Lot, server, client: APIClient, path: str, namespace: str, random: Random) -> None:
    """A class applies what its JSON applies: the same object, the same owner of each field, or the same refusal."""
    for _ in range(2):
        spec = {name: made.values(random) for name, made in lot.parts.items() if random.random() < 0.5}
        mine: Any = lot.kind(metadata=meta.ObjectMeta(name="typed", namespace=namespace))
        for name, part in spec.items():
            setattr(mine.spec, name, lot.parts[name].cls.from_dict(part))
        body = {"apiVersion": mine.api_version, "kind": mine.kind, "metadata": {"name": "raw"}, "spec": spec}
        patch = functools.partial(server.connection.request, content_type="application/apply-patch+yaml")

        refused = [
            await refusal(client.apply(mine, field_owner="mine", force=True)),
            await refusal(asyncio.to_thread(patch, "PATCH", f"{path}/raw?fieldManager=mine&force=true", body)),
        ]
        assert refused[0] == refused[1]
        if refused[0]:
            break  # an apply can remove the last item of a set, and with it a required field
        typed, raw = [
            await asyncio.to_thread(server.connection.request, "GET", f"{path}/{name}") for name in ("typed", "raw")
        ]
        assert typed.get("spec") == raw.get("spec")
        owned = [obj["metadata"]["managedFields"][0]["fieldsV1"] for obj in (typed, raw)]
        assert owned[0] == owned[1]


async def refusal(request: Awaitable[Any]) -> list[str]:
    try:
        await request
    except Invalid as error:
        return sorted(cause.field for cause in error.causes)
    return []


def assign_again(lot: Lot, obj: Any) -> None:
    for name, made in lot.parts.items():
        part = getattr(obj.spec, name)
        for field in made.fields if part is not None else ():
            if field in part.model_fields_set:
                setattr(part, field, getattr(part, field))


def wire(lot: Lot, part: str, field: str) -> str:
    return lot.parts[part].cls.model_fields[field].serialization_alias or ""


def check_only(lot: Lot, before: dict[str, Any], after: dict[str, Any], changed: dict[str, str]) -> None:
    """Each part is as it was, but for the field that was changed."""
    assert before.keys() == after.keys()
    for name in before:
        field = wire(lot, name, changed[name]) if name in changed else ""
        rest = [{key: value for key, value in tree[name].items() if key != field} for tree in (before, after)]
        assert rest[0] == rest[1], (name, field)


def with_defaults(stored: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """What the server has of each part, if it has all that was sent: it may fill in defaults below a new value."""
    for name, part in sent.items():
        assert part.keys() <= stored[name].keys(), name
    return stored


def check_conversion(lot: Lot, raw: dict[str, Any]) -> None:
    def to(kind: type[Any]) -> Any:
        return lambda obj: kind(metadata=obj.metadata, spec=obj.spec)

    conversion = Conversion(lot.kind).spoke(lot.other, to_hub=to(lot.kind), from_hub=to(lot.other))
    there = conversion.convert_raw(msgspec.json.encode(raw), "v2")
    back = msgspec.json.decode(conversion.convert_raw(there, "v1"))
    assert msgspec.json.decode(there) == raw | {"apiVersion": f"{GROUP}/v2"}
    assert back == raw


async def check_defaulting(lot: Lot, raw: dict[str, Any], random: Random) -> None:
    changed: dict[str, str] = {}

    class Nothing:
        def default(self, obj: Any) -> None:
            assign_again(lot, obj)

    class OneField:
        def default(self, obj: Any) -> None:
            changed.update(lot.change(obj.spec, random))

    request = AdmissionRequest(operation="UPDATE", name="a", namespace="", object=msgspec.json.encode(raw))
    assert not (await defaulting(lot.kind, Nothing())(request)).patches
    patches = (await defaulting(lot.kind, OneField())(request)).patches
    check_only(lot, raw["spec"], apply_json_patch(raw, patches)["spec"], changed)


@pytest.mark.parametrize("seed", range(3))
async def test_objects_of_random_classes_survive(server, namespace, client, seed) -> None:
    await check_lot(server, namespace, client, seed)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3, 100))
async def test_objects_of_many_random_classes_survive(server, namespace, client, seed) -> None:
    await check_lot(server, namespace, client, seed)
