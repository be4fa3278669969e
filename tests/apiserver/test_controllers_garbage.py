import pytest
from controllers_cluster import cluster, config_map

GC = ("garbage-collector",)


@pytest.fixture
async def c():
    async with cluster(GC) as running:
        yield running


def present(c):
    return {o["metadata"]["name"]: o for o in c.api.list("", "configmaps", "default")}


async def make(c, name, *owners, **metadata):
    return await c.create("", "configmaps", config_map(name, owners, **metadata))


async def test_dependent_goes_with_its_owner(c):
    owner = await make(c, "owner")
    child = await make(c, "child", owner)
    await make(c, "grandchild", child)

    await c.api.delete("", "configmaps", "default", "owner")
    await c.settle()

    assert present(c) == {}


async def test_dependent_of_an_owner_that_never_was_goes_at_once(c):
    owner = await make(c, "owner")
    owner["metadata"]["uid"] = "another"
    await make(c, "child", owner)

    await c.settle()

    assert present(c).keys() == {"owner"}


async def test_owner_of_the_same_name_and_another_uid_is_no_owner(c):
    owner = await make(c, "owner")
    await make(c, "child", owner)
    await c.settle()

    await c.api.delete("", "configmaps", "default", "owner")
    await make(c, "owner")
    await c.settle()

    assert present(c).keys() == {"owner"}


async def test_one_living_owner_keeps_the_dependent_and_the_dead_reference_goes(c):
    first, second = await make(c, "first"), await make(c, "second")
    await make(c, "child", first, second)

    await c.api.delete("", "configmaps", "default", "first")
    await c.settle()

    refs = present(c)["child"]["metadata"]["ownerReferences"]
    assert [ref["name"] for ref in refs] == ["second"]


async def test_owner_in_another_namespace_counts_as_absent(c):
    await c.api.create("", "namespaces", "", {"metadata": {"name": "far"}})
    owner = await c.create("", "configmaps", config_map("owner", namespace="far"), namespace="far")
    await make(c, "child", owner)

    await c.settle()

    assert present(c) == {}


async def test_cluster_scoped_owner_keeps_its_dependents(c):
    owner = c.api.get("", "namespaces", "", "default")
    await make(c, "child", owner)

    await c.settle()

    assert present(c).keys() == {"child"}


async def test_dependent_of_an_unknown_kind_is_left_alone(c):
    stranger = {"apiVersion": "strange.example.com/v1", "kind": "Thing", "metadata": {"name": "x", "uid": "u"}}
    await make(c, "child", stranger)

    await c.settle()

    assert present(c).keys() == {"child"}


async def test_foreground_owner_waits_for_the_dependents_that_block_it(c):
    owner = await make(c, "owner")
    await make(c, "blocking", (owner, {"blockOwnerDeletion": True}), finalizers=["example.com/hold"])
    await make(c, "other", owner)

    await c.api.delete("", "configmaps", "default", "owner", propagation_policy="Foreground")
    await c.settle()
    assert present(c).keys() == {"owner", "blocking"}
    assert "deletionTimestamp" in present(c)["blocking"]["metadata"]

    await c.api.merge_patch("", "configmaps", "default", "blocking", {"metadata": {"finalizers": None}})
    await c.settle()
    assert present(c) == {}


async def test_foreground_owner_goes_when_the_blocking_dependent_lets_go_of_it(c):
    owner = await make(c, "owner")
    await make(c, "blocking", (owner, {"blockOwnerDeletion": True}), finalizers=["example.com/hold"])
    await c.api.delete("", "configmaps", "default", "owner", propagation_policy="Foreground")
    await c.settle()

    await c.api.merge_patch("", "configmaps", "default", "blocking", {"metadata": {"ownerReferences": None}})
    await c.settle()

    assert present(c).keys() == {"blocking"}


async def test_foreground_deletion_goes_down_the_tree_first(c):
    owner = await make(c, "owner")
    child = await make(c, "child", (owner, {"blockOwnerDeletion": True}))
    await make(c, "grandchild", (child, {"blockOwnerDeletion": True}), finalizers=["example.com/hold"])

    await c.api.delete("", "configmaps", "default", "owner", propagation_policy="Foreground")
    await c.settle()
    assert present(c).keys() == {"owner", "child", "grandchild"}

    await c.api.merge_patch("", "configmaps", "default", "grandchild", {"metadata": {"finalizers": None}})
    await c.settle()
    assert present(c) == {}


async def test_foreground_owner_without_dependents_goes(c):
    await make(c, "owner")

    await c.api.delete("", "configmaps", "default", "owner", propagation_policy="Foreground")
    await c.settle()

    assert present(c) == {}


async def test_orphaned_dependents_stay_without_the_reference(c):
    owner = await make(c, "owner")
    await make(c, "child", owner)

    await c.api.delete("", "configmaps", "default", "owner", propagation_policy="Orphan")
    await c.settle()

    assert present(c).keys() == {"child"}
    assert "ownerReferences" not in present(c)["child"]["metadata"]


async def test_objects_present_before_the_collector_are_judged_too():
    async with cluster(()) as early:
        owner = await make(early, "owner")
        await make(early, "kept", owner)
        ghost = {**owner, "metadata": {**owner["metadata"], "uid": "gone"}}
        await make(early, "lost", ghost)
        import asyncio

        from ctrlruntime.apiserver.controllers import build

        task = asyncio.create_task(build(GC)[0].run(early.api))
        await early.settle()
        task.cancel()

        assert present(early).keys() == {"owner", "kept"}


async def test_object_that_cannot_be_deleted_does_not_stop_the_others(c):
    owner = await make(c, "owner")
    await make(c, "cursed", owner)
    await make(c, "plain", owner)
    delete = c.api.delete

    async def fails(group, resource, namespace, name, **options):
        if name == "cursed":
            raise RuntimeError("cursed")
        return await delete(group, resource, namespace, name, **options)

    c.api.delete = fails
    await delete("", "configmaps", "default", "owner")
    await c.settle()
    assert present(c).keys() == {"cursed"}

    c.api.delete = delete
    await c.until(lambda: not present(c))
