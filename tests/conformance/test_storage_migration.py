"""Objects are brought into the version that is stored, on both servers."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.errors import Conflict, Forbidden, Invalid, NotFound
from ctrlruntime.install import CustomResourceDefinition
from ctrlruntime.project.storage import MigrationError, find_definition, migrate
from ctrlruntime.testing import Environment, eventually

ROOT = Path(__file__).parents[2]
_numbers = itertools.count()


@pytest.fixture
async def client(server: Environment) -> AsyncIterator[ctrl.Client]:
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield cluster.unfenced_client()
    await cluster.close()


@pytest.fixture
async def group(client) -> AsyncIterator[str]:
    """A group of its own for each test; what the test installs there is removed."""
    group = f"migrate{next(_numbers)}.example.com"
    yield group
    for definition in await client.list(CustomResourceDefinition):
        if definition["spec"]["group"] == group:
            await delete_objects(client, definition)
            await client.delete(definition)
            key = ctrl.NamespacedName("", definition.metadata.name)

            async def gone(key=key) -> bool:  # the next test must not meet two kinds of one name
                return await client.get_or_none(CustomResourceDefinition, key) is None

            await eventually(gone)


async def delete_objects(client: ctrl.Client, definition: ctrl.Unstructured) -> None:
    """Leave none to kube-apiserver: right after a change of the versions, it may need minutes to delete a definition with objects."""
    spec = definition["spec"]
    served = next(version["name"] for version in spec["versions"] if version["served"])
    kind = ctrl.Unstructured.of(f"{spec['group']}/{served}", spec["names"]["kind"])
    for obj in (await client.list(kind)).valid:
        with contextlib.suppress(NotFound):
            await client.delete(obj)


def versions(group: str, stored: str, *, also: str = "", required: tuple[str, ...] = ()):
    """A definition with v1alpha1 and v1beta1, of which one is stored."""
    properties = {"size": {"type": "integer"}, "mode": {"type": "string"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gauges.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Gauge", "plural": "gauges", "shortNames": ["gg"]},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == stored,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": properties, "required": list(required)}
                            },
                        }
                    },
                }
                for name in ("v1alpha1", "v1beta1")
                if stored == "v1alpha1" or not also or name in (stored, also)
            ],
        },
    }


@pytest.fixture
async def stored_before(client, group, namespace) -> list[str]:
    """Five objects stored in v1alpha1, of a kind whose storage version has become v1beta1."""
    await ctrl.install_crds(client, versions(group, "v1alpha1"))
    kind = ctrl.Unstructured.of(f"{group}/v1alpha1", "Gauge")
    names = [f"g{number}" for number in range(5)]
    for number, name in enumerate(names):
        await client.create(
            kind.from_dict(
                {
                    "apiVersion": f"{group}/v1alpha1",
                    "kind": "Gauge",
                    "metadata": {"name": name, "namespace": namespace},
                    "spec": {"size": number},
                }
            )
        )
    await ctrl.install_crds(client, versions(group, "v1beta1"))
    assert await stored(client, group) == ["v1alpha1", "v1beta1"]
    return names


async def stored(client, group) -> list[str]:
    definition = await client.get(CustomResourceDefinition, ctrl.NamespacedName("", f"gauges.{group}"))
    return definition["status"]["storedVersions"]


async def resource_versions(client, group, namespace) -> dict[str, str]:
    kind = ctrl.Unstructured.of(f"{group}/v1beta1", "Gauge")
    items = await client.list(kind, namespace=namespace)
    return {meta.name: meta.resource_version for meta in items.metadata}


async def test_every_object_is_written_back_and_the_old_version_dropped(client, group, stored_before):
    seen = []

    done = await migrate(client, f"gauges.{group}", page_size=2, progress=lambda now: seen.append(now.written))

    assert (done.written, done.before, done.after) == (5, ("v1alpha1", "v1beta1"), ("v1beta1",))
    assert seen == [2, 4, 5]
    assert await stored(client, group) == ["v1beta1"]


async def test_an_object_stored_in_the_old_version_is_really_stored_again(
    server, client, group, namespace, stored_before
):
    before = await resource_versions(client, group, namespace)

    await migrate(client, f"gauges.{group}")

    after = await resource_versions(client, group, namespace)
    assert all(int(after[name]) > int(before[name]) for name in stored_before)


async def test_the_old_version_can_then_be_removed(client, group, stored_before):
    without = versions(group, "v1beta1", also="v1beta1")
    with pytest.raises(Invalid, match=r"storedVersions"):
        await ctrl.install_crds(client, without)

    await migrate(client, f"gauges.{group}")

    await ctrl.install_crds(client, without)


async def test_a_second_migration_changes_nothing(client, group, namespace, stored_before):
    await migrate(client, f"gauges.{group}")
    before = await resource_versions(client, group, namespace)

    again = await migrate(client, f"gauges.{group}")

    assert (again.written, again.after) == (5, ("v1beta1",))
    assert await resource_versions(client, group, namespace) == before


async def test_a_dry_run_changes_nothing(client, group, namespace, stored_before):
    before = await resource_versions(client, group, namespace)

    done = await migrate(client, f"gauges.{group}", dry_run=True)

    assert (done.written, done.after) == (5, ("v1alpha1", "v1beta1"))
    assert await resource_versions(client, group, namespace) == before
    assert await stored(client, group) == ["v1alpha1", "v1beta1"]


async def test_a_write_that_meets_another_is_done_again(client, group, namespace, stored_before):
    kind = ctrl.Unstructured.of(f"{group}/v1beta1", "Gauge")
    met = []

    async def meet(inner, obj, **options):
        if obj.metadata.name == "g1" and not met:
            met.append(obj.metadata.name)
            theirs = await client.get(kind, ctrl.object_key(obj))
            theirs["spec"]["size"] = 100
            await client.update(theirs)
        return await inner.update(obj, **options)

    done = await migrate(ctrl.client.intercept(client, update=meet), f"gauges.{group}")

    assert (done.written, done.gone, met) == (5, 0, ["g1"])
    theirs = await client.get(kind, ctrl.NamespacedName(namespace, "g1"))
    assert theirs["spec"]["size"] == 100


async def test_an_object_that_is_deleted_meanwhile_is_no_failure(client, group, stored_before):
    async def delete(inner, obj, **options):
        if obj.metadata.name == "g2":
            await client.delete(obj.deep_copy())
        return await inner.update(obj, **options)

    done = await migrate(ctrl.client.intercept(client, update=delete), f"gauges.{group}")

    assert (done.written, done.gone) == (4, 1)
    assert await stored(client, group) == ["v1beta1"]


async def test_an_object_that_became_invalid_is_migrated_all_the_same_for_it_does_not_change(
    client, group, stored_before
):
    await ctrl.install_crds(client, versions(group, "v1beta1", required=("mode",)))

    done = await migrate(client, f"gauges.{group}")

    assert (done.written, done.refused) == (5, {})


async def test_an_object_that_is_refused_is_named_and_the_old_version_kept(client, group, namespace, stored_before):
    async def refuse(inner, obj, **options):
        if obj.metadata.name == "g3":
            raise Forbidden('admission webhook "v.example.com" denied the request: no')
        return await inner.update(obj, **options)

    with pytest.raises(MigrationError, match=rf"rejects 1 objects of gauges\.{group}.*{namespace}/g3: .*denied"):
        await migrate(ctrl.client.intercept(client, update=refuse), f"gauges.{group}")

    assert await stored(client, group) == ["v1alpha1", "v1beta1"]


async def test_a_definition_that_changes_meanwhile_is_tried_again(client, group, stored_before):
    met = []

    async def meet(inner, name, obj, **options):
        if not met:
            met.append(name)
            raise Conflict("changed meanwhile")
        return await inner.subresource(name).update(obj, **options)

    done = await migrate(ctrl.client.intercept(client, subresource_update=meet), f"gauges.{group}")

    assert (done.after, met) == (("v1beta1",), ["status"])


async def test_a_storage_version_that_changes_meanwhile_is_an_error(client, group, stored_before):
    async def change(inner, obj, **options):
        if obj.metadata.name == "g4":
            await ctrl.install_crds(client, versions(group, "v1alpha1"))
        return await inner.update(obj, **options)

    with pytest.raises(
        MigrationError, match=r"changed to v1alpha1 while its objects were written in v1beta1\. Run the command again"
    ):
        await migrate(ctrl.client.intercept(client, update=change), f"gauges.{group}")


@pytest.mark.parametrize("name", ["gauges", "gauge", "Gauge", "gg", "gauges.{group}", "gg.{group}"])
async def test_a_kind_goes_by_all_of_its_names(client, group, name):
    await ctrl.install_crds(client, versions(group, "v1alpha1"))

    assert (await find_definition(client, name.format(group=group))).metadata.name == f"gauges.{group}"


async def test_a_kind_that_is_not_there_is_said_with_the_nearest_name(client, group):
    await ctrl.install_crds(client, versions(group, "v1alpha1"))

    with pytest.raises(NotFound, match=r"no CRD of the kind 'gauegs'.*did you mean 'gauge"):
        await find_definition(client, "gauegs")


async def test_a_name_of_two_kinds_needs_the_group(client, group):
    other = versions(f"more.{group}", "v1alpha1")
    await ctrl.install_crds(client, versions(group, "v1alpha1"), other)
    try:
        with pytest.raises(MigrationError, match=rf"several kinds \(gauges\.{group}, gauges\.more\.{group}\)"):
            await find_definition(client, "gauges")
    finally:
        await ctrl.uninstall_crds(client, other)


def test_the_command_says_what_it_did(server, group, stored_before):
    arguments = ["-m", "ctrlruntime", "storage", "migrate", f"gauges.{group}", "--page-size", "3"]

    done = subprocess.run(
        [sys.executable, *arguments, "--kubeconfig", str(server.kubeconfig_path)],
        cwd=ROOT, env={**os.environ}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            f"gauges.{group}: 5 objects stored in v1beta1",
            "stored versions: v1alpha1, v1beta1 before, v1beta1 now",
        ],
    ), done.stderr
    assert done.stderr.splitlines() == ["3 objects, about 2 left", "5 objects"]
