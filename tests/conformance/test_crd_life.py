"""The life of a version, on both servers: added, stored, deprecated, migrated from, no longer served, removed.

At each step the server is given the next definition, and `ctrl bundle compare` and `ctrl crd diff` are asked about the same step: what
they call harmless is taken, and what they refuse is refused, or loses data.
"""

from __future__ import annotations

import http.client
import itertools
from collections.abc import AsyncIterator
from typing import Any

import bundles
import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.errors import Invalid, NotFound
from ctrlruntime.install import CustomResourceDefinition
from ctrlruntime.olm.bundle import Bundle, read_bundle
from ctrlruntime.olm.upgrade import compare
from ctrlruntime.project.compatibility import Level, compare_all
from ctrlruntime.project.storage import migrate
from ctrlruntime.testing import Environment, eventually

_numbers = itertools.count()
INTEGER = {"type": "integer"}


@pytest.fixture
async def client(server: Environment) -> AsyncIterator[ctrl.Client]:
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield cluster.unfenced_client()
    await cluster.close()


@pytest.fixture
async def group(client) -> AsyncIterator[str]:
    """A group of its own for each test; its definition is removed."""
    group = f"life{next(_numbers)}.example.com"
    yield group
    key = ctrl.NamespacedName("", f"valves.{group}")
    found = await client.get_or_none(CustomResourceDefinition, key)
    if found is not None:
        await client.delete(found)


@pytest.fixture
def release(tmp_path):
    """Writes bundles that follow each other, with a definition each."""
    numbers = itertools.count()

    def write(definition: dict[str, Any]) -> Bundle:
        number = next(numbers)

        def change(files: bundles.Files) -> None:
            files[bundles.CRD] = definition
            files.csv["metadata"]["name"] = f"kettle.v1.{number}.0"
            files.csv["metadata"]["annotations"]["olm.skipRange"] = f"<1.{number}.0"
            files.csv["spec"]["version"] = f"1.{number}.0"

        return read_bundle(bundles.write(tmp_path / str(number), change))

    return write


def definition(group: str, *versions: str, stored: str, deprecated: str = "", unserved: str = "", **fields: Any):
    """A definition whose versions are alike, but for the fields that `fields` give one of them: `v1={"lid": …}`."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"valves.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Valve", "plural": "valves", "singular": "valve", "listKind": "ValveList"},
            "versions": [
                {
                    "name": name,
                    "served": name != unserved,
                    "storage": name == stored,
                    **({"deprecated": True} if name == deprecated else {}),
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": {"turns": INTEGER} | fields.get(name, {})}
                            },
                        }
                    },
                }
                for name in versions
            ],
        },
    }


def valve(group: str, version: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/{version}", "kind": "Valve", "metadata": {"name": name}, "spec": spec}


def said(old: Bundle, new: Bundle, **options: Any) -> dict[str, Level]:
    """What `ctrl bundle compare` says of a step, by code."""
    return {str(each.code): each.level for one in compare(old, new, **options) for each in one.findings}


async def ask(server: Environment, method: str, path: str, body: Any = None) -> Any:
    """Send a request that is to succeed. A real server answers 429 for a moment when a definition has changed."""
    return await eventually(lambda: server.connection.request(method, path, body))


async def stored(client: ctrl.Client, group: str) -> list[str]:
    found = await client.get(CustomResourceDefinition, ctrl.NamespacedName("", f"valves.{group}"))
    return found["status"]["storedVersions"]


def answer(server: Environment, path: str) -> tuple[int, list[str]]:
    """The status of a read, and the warnings that come with it."""
    address = server.connection.url.removeprefix("https://")
    connection = http.client.HTTPSConnection(address, context=server.connection.tls, timeout=LONGEST_WAIT)
    try:
        connection.request("GET", path, headers=dict(server.connection.headers))
        found = connection.getresponse()
        return found.status, [value for name, value in found.getheaders() if name == "Warning"]
    finally:
        connection.close()


async def test_a_version_is_added_stored_deprecated_and_removed(server, client, group, namespace, release):
    def path(version: str, name: str = "") -> str:
        return f"/apis/{group}/{version}/namespaces/{namespace}/valves{name and f'/{name}'}"

    async def turns(version: str) -> dict[str, int]:
        items = (await ask(server, "GET", path(version)))["items"]
        return {each["metadata"]["name"]: each["spec"]["turns"] for each in items}

    alpha = definition(group, "v1alpha1", stored="v1alpha1")
    await ctrl.install_crds(client, alpha)
    await ask(server, "POST", path("v1alpha1"), valve(group, "v1alpha1", "old", turns=1))
    shipped = release(alpha)

    # v1 is added: whoever knows v1alpha1 notices nothing.
    both = definition(group, "v1alpha1", "v1", stored="v1alpha1")
    added = release(both)
    assert said(shipped, added) == {"version-added": Level.HARMLESS}
    await ctrl.install_crds(client, both)
    assert await turns("v1") == await turns("v1alpha1") == {"old": 1}
    assert await stored(client, group) == ["v1alpha1"]

    # It becomes the stored one: what is written from now on is stored in it, what was is not.
    moved = definition(group, "v1alpha1", "v1", stored="v1")
    storing = release(moved)
    assert said(added, storing) == {"storage-version-changed": Level.RISKY}
    await ctrl.install_crds(client, moved)
    await ask(server, "POST", path("v1alpha1"), valve(group, "v1alpha1", "new", turns=2))
    assert await turns("v1") == await turns("v1alpha1") == {"old": 1, "new": 2}
    assert await stored(client, group) == ["v1alpha1", "v1"]

    # The old one is deprecated: who uses it is told, and who does not is not.
    warned = definition(group, "v1alpha1", "v1", stored="v1", deprecated="v1alpha1")
    warning = release(warned)
    assert said(storing, warning) == {"version-deprecated": Level.HARMLESS}
    await ctrl.install_crds(client, warned)
    text = f'299 - "{group}/v1alpha1 Valve is deprecated; use {group}/v1 Valve"'
    await eventually(lambda: answer(server, path("v1alpha1")) == (200, [text]))
    await eventually(lambda: answer(server, path("v1")) == (200, []))

    # It cannot go while objects are stored in it: the server says so, and so do we, by what the server lists.
    gone = definition(group, "v1", stored="v1")
    last = release(gone)
    there = await stored(client, group)
    assert said(warning, last, stored=there) == {"stored-version-removed": Level.BREAKING}
    with pytest.raises(Invalid, match=r"status\.storedVersions\[0\]: Invalid value: \"v1alpha1\""):
        await ctrl.install_crds(client, gone)

    # Every object is stored anew. Then nothing is in the way but those who still use it.
    await migrate(client, f"valves.{group}")
    there = await stored(client, group)
    assert there == ["v1"]
    assert said(warning, last, stored=there) == {"served-version-removed": Level.BREAKING}

    # It is not served any more: its clients get 404, which can be taken back.
    hidden = definition(group, "v1alpha1", "v1", stored="v1", deprecated="v1alpha1", unserved="v1alpha1")
    hiding = release(hidden)
    assert said(warning, hiding, stored=there) == {"version-not-served": Level.BREAKING}
    await ctrl.install_crds(client, hidden)
    await eventually(lambda: answer(server, path("v1alpha1"))[0] == 404)

    # And it goes. `ctrl crd diff` reads the server's own definition, and agrees.
    installed = await client.get(CustomResourceDefinition, ctrl.NamespacedName("", f"valves.{group}"))
    (compared,) = compare_all([installed.to_dict()], [gone])
    last = release(gone)
    assert [str(each.code) for each in compared.findings] == ["migrated-version-removed"]
    assert said(hiding, last, stored=there) == {"migrated-version-removed": Level.HARMLESS}
    await ctrl.install_crds(client, gone)
    assert await turns("v1") == {"old": 1, "new": 2}


async def test_a_version_that_was_never_deprecated_goes_without_a_warning(server, client, group, namespace, release):
    both = definition(group, "v1alpha1", "v1", stored="v1")
    hidden = definition(group, "v1alpha1", "v1", stored="v1", unserved="v1alpha1")
    await ctrl.install_crds(client, both)
    path = f"/apis/{group}/v1alpha1/namespaces/{namespace}/valves"

    found = said(release(both), release(hidden))

    assert found == {"version-not-served": Level.BREAKING, "version-not-deprecated": Level.RISKY}
    await eventually(lambda: answer(server, path) == (200, []))
    await ctrl.install_crds(client, hidden)
    await eventually(lambda: answer(server, path)[0] == 404)
    with pytest.raises(NotFound):
        server.connection.request("POST", path, valve(group, "v1alpha1", "late", turns=1))


async def test_versions_that_differ_lose_data_where_nothing_converts_them(server, client, group, namespace, release):
    one = definition(group, "v1alpha1", stored="v1alpha1")
    both = definition(group, "v1alpha1", "v1", stored="v1alpha1", v1={"lid": INTEGER})
    await ctrl.install_crds(client, both)
    old, new = (f"/apis/{group}/{version}/namespaces/{namespace}/valves" for version in ("v1alpha1", "v1"))
    await ask(server, "POST", new, valve(group, "v1", "held", turns=1, lid=5))

    read = await ask(server, "GET", f"{old}/held")
    read["spec"]["turns"] = 2
    await ask(server, "PUT", f"{old}/held", read)

    assert (await ask(server, "GET", f"{new}/held"))["spec"] == {"turns": 2}
    assert said(release(one), release(both)) == {"conversion-missing": Level.BREAKING, "version-added": Level.HARMLESS}


async def test_objects_that_do_not_fit_the_next_definition_are_named(server, client, group, namespace, release):
    before = definition(group, "v1", stored="v1", v1={"lid": INTEGER})
    after = definition(group, "v1", stored="v1", v1={"turns": INTEGER | {"maximum": 9}})
    await ctrl.install_crds(client, before)
    path = f"/apis/{group}/v1/namespaces/{namespace}/valves"
    for name, spec in (("fits", {"turns": 9}), ("open", {"turns": 10}), ("lidded", {"turns": 1, "lid": 1})):
        await ask(server, "POST", path, valve(group, "v1", name, **spec))
    items = (await ask(server, "GET", path))["items"]
    objects = [each | {"apiVersion": f"{group}/v1", "kind": "Valve"} for each in items]

    found = compare(release(before), release(after), objects=objects)

    told = {(str(each.code), each.path) for one in found if one.name == "objects" for each in one.findings}
    assert told == {
        ("object-refused", "object Valve/open spec.turns"),
        ("object-pruned", "object Valve/lidded spec.lid"),
    }
    await ctrl.install_crds(client, after)
    await eventually(lambda: "lid" not in server.connection.request("GET", f"{path}/lidded")["spec"])
    with pytest.raises(Invalid, match=r"spec\.turns: Invalid value: 10"):
        server.connection.request("POST", f"{path}?dryRun=All", valve(group, "v1", "again", turns=10))
    await ask(server, "POST", f"{path}?dryRun=All", valve(group, "v1", "again", turns=9))
