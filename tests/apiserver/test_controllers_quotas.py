"""Which changes lead to a new count of a ResourceQuota."""

from __future__ import annotations

from collections import Counter

from controllers_cluster import cluster, config_map, pod

from ctrlruntime.apiserver.controllers import resourcequotas

QUOTAS, MAPS = ("", "resourcequotas"), ("", "configmaps")


async def make_quota(c, name, hard, **spec):
    await c.create(*QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})


def used(c, name):
    return c.api.get(*QUOTAS, "default", name)["status"]["used"]


def count_lists(c):
    """Count what is listed of each kind from here on."""
    counts, listed = Counter(), c.api.list

    def counting(group, resource, *rest, **options):
        counts[resource] += 1
        return listed(group, resource, *rest, **options)

    c.api.list = counting
    return counts


async def test_a_deleted_object_leads_to_the_quotas_that_count_it_alone():
    async with cluster(["resourcequota"]) as c:
        for name in ("a", "b"):
            await c.create(*MAPS, config_map(name))
        await make_quota(c, "of-maps", {"configmaps": "5"})
        await make_quota(c, "of-pods", {"pods": "5"})
        await c.settle()
        lists = count_lists(c)

        await c.api.delete(*MAPS, "default", "a")
        await c.settle()

        assert used(c, "of-maps") == {"configmaps": "1"}
        assert lists == {"configmaps": 1}


async def test_a_change_leads_to_the_quotas_that_count_the_object_otherwise_after_it():
    async with cluster(["resourcequota"]) as c:
        await c.create("", "pods", pod("p"))
        await make_quota(c, "in-time", {"pods": "5"}, scopes=["Terminating"])
        await make_quota(c, "at-all-times", {"pods": "5"}, scopes=["NotTerminating"])
        await make_quota(c, "all", {"pods": "5"})
        await c.settle()
        lists = count_lists(c)

        await c.api.merge_patch("", "pods", "default", "p", {"metadata": {"labels": {"a": "b"}}})
        await c.settle()
        assert lists == {}

        await c.api.merge_patch("", "pods", "default", "p", {"spec": {"activeDeadlineSeconds": 9}})
        await c.settle()
        assert (used(c, "in-time"), used(c, "at-all-times"), lists) == ({"pods": "1"}, {"pods": "0"}, {"pods": 2})

        await c.api.merge_patch("", "pods", "default", "p", {"status": {"phase": "Failed"}}, subresource="status")
        await c.settle()
        assert (used(c, "in-time"), used(c, "all")) == ({"pods": "0"}, {"pods": "0"})


async def test_what_is_there_already_is_not_looked_at_one_by_one(monkeypatch):
    looked = []
    original = resourcequotas.ResourceQuotas._freed_by
    monkeypatch.setattr(
        resourcequotas.ResourceQuotas, "_freed_by", lambda *args: looked.append(args[1]) or original(*args)
    )
    async with cluster(["resourcequota"]) as c:
        for number in range(20):
            await c.create(*MAPS, config_map(f"m{number}"))
        await make_quota(c, "q", {"configmaps": "50"})
        await c.settle()

        assert used(c, "q") == {"configmaps": "20"}
        assert set(looked) <= {QUOTAS}


async def test_an_object_that_cannot_be_counted_does_not_end_the_counting(monkeypatch):
    original = resourcequotas.evaluator_of

    def odd(name):
        if name == ("", "secrets"):
            raise ValueError(name)
        return original(name)

    async with cluster(["resourcequota"]) as c:
        await c.create("", "secrets", {"metadata": {"name": "s"}})
        await c.create(*MAPS, config_map("a"))
        await make_quota(c, "q", {"configmaps": "5"})
        await c.settle()
        monkeypatch.setattr(resourcequotas, "evaluator_of", odd)

        await c.api.delete("", "secrets", "default", "s")
        await c.api.delete(*MAPS, "default", "a")
        await c.settle()

        assert used(c, "q") == {"configmaps": "0"}
