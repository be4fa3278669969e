"""Claims and volumes: which are found for each other, and that the work does not grow with all of them."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from cases import seeds
from controllers_cluster import cluster, pod

from ctrlruntime.apiserver.controllers.matching import (
    FitIndex,
    Groups,
    Place,
    fits,
    is_free,
    place_of_claim,
    place_of_volume,
)

VOLUMES, CLAIMS, CLASSES = (
    ("", "persistentvolumes"),
    ("", "persistentvolumeclaims"),
    ("storage.k8s.io", "storageclasses"),
)
MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany")


def volume(name, size=1, modes=MODES[:1], labels=None, **spec):
    given = {"capacity": {"storage": f"{size}Gi"}, "accessModes": list(modes), "hostPath": {"path": "/a"}}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {**given, "storageClassName": "c", **spec}}


def claim(name, size=1, modes=MODES[:1], labels=None, **spec):
    asked = {"resources": {"requests": {"storage": f"{size}Gi"}}, "accessModes": list(modes), "storageClassName": "c"}
    selector = {"selector": {"matchLabels": labels}} if labels else {}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {**asked, **selector, **spec}}


async def make_volumes(c, count, **more):
    for number in range(count):
        labels = {"is": str(number)}
        await c.create(*VOLUMES, volume(f"v{number:03}", labels=labels, **more), namespace="")
        await c.settle()


async def make_claims(c, count, **more):
    for number in range(count):
        await c.create(*CLAIMS, claim(f"c{number:03}", **more))
        await c.settle()


def count_reads(c):
    """Count what controllers read of claims and volumes from here on."""
    counts = Counter()
    get, listed = c.api.get, c.api.list

    def counting_get(group, resource, *rest):
        counts[group, resource] += 1
        return get(group, resource, *rest)

    def counting_list(group, resource, *rest, **options):
        found = listed(group, resource, *rest, **options)
        counts[group, resource] += len(found)
        return found

    c.api.get, c.api.list = counting_get, counting_list
    return counts


async def volumes_then_claims(c, count):
    await make_volumes(c, count)
    await make_claims(c, count)


async def claims_then_volumes(c, count):
    await make_claims(c, count)
    await make_volumes(c, count)


async def nothing_fits(c, count):
    await make_claims(c, count, size=9)
    await make_volumes(c, count)
    await make_claims(c, 0)


async def every_claim_selects_one(c, count):
    for number in range(count):
        await c.create(*CLAIMS, claim(f"c{number:03}", labels={"is": str(number)}))
    await make_volumes(c, count)


@pytest.mark.parametrize(
    "make", [volumes_then_claims, claims_then_volumes, nothing_fits, every_claim_selects_one], ids=lambda f: f.__name__
)
async def test_the_work_grows_with_the_number_of_claims_and_not_with_its_square(make):
    work = {}
    for count in (10, 40):
        async with cluster(["persistentvolume-binder"]) as c:
            reads = count_reads(c)
            await make(c, count)
            await c.settle()
            work[count] = reads[VOLUMES] + reads[CLAIMS]
            bound = [one for one in c.api.list(*CLAIMS) if one["status"]["phase"] == "Bound"]
        assert len(bound) == (0 if make is nothing_fits else count)

    assert work[40] <= 4 * work[10] + 40


@pytest.mark.parametrize("seed", seeds(range(40), 6))
async def test_no_claim_waits_while_a_volume_that_fits_is_free(seed):
    """Claims and volumes come and go in any order, several at a time."""
    random = Random(seed)

    def some_modes():
        return random.sample(MODES, random.randint(1, 2))

    def some_labels():
        return {"is": random.choice("ab")} if random.random() < 0.3 else None

    async with cluster(["persistentvolume-binder"]) as c:
        for number in range(60):
            size = random.randint(1, 4)
            match random.choice(["claim", "claim", "volume", "volume", "delete claim", "delete volume", "settle"]):
                case "claim":
                    await c.create(*CLAIMS, claim(f"c{number}", size, some_modes(), some_labels()))
                case "volume":
                    made = volume(f"v{number}", size, some_modes(), some_labels())
                    await c.create(*VOLUMES, made, namespace="")
                case "settle":
                    await c.settle()
                case what:
                    kind = CLAIMS if what == "delete claim" else VOLUMES
                    if found := c.api.list(*kind):
                        meta = random.choice(found)["metadata"]
                        where = (meta.get("namespace", ""), meta["name"])
                        await c.api.merge_patch(*kind, *where, {"metadata": {"finalizers": None}})
                        await c.api.delete(*kind, *where)
        await c.settle()

        claims = {one["metadata"]["name"]: one for one in c.api.list(*CLAIMS)}
        found = c.api.list(*VOLUMES)
        free = [one for one in found if is_free(one)]
        waiting = [one for one in claims.values() if one["status"]["phase"] == "Pending"]
        assert not [(v["metadata"]["name"], w["metadata"]["name"]) for v in free for w in waiting if fits(v, w)]
        for one in found:
            if one["status"]["phase"] == "Bound":
                holder = claims[one["spec"]["claimRef"]["name"]]
                assert holder["spec"]["volumeName"] == one["metadata"]["name"]
                assert holder["status"]["phase"] == "Bound"


async def test_a_volume_goes_to_the_next_claim_if_the_first_one_takes_another():
    async with cluster(["persistentvolume-binder"]) as c:
        await c.create(*CLAIMS, claim("any", 1))
        await c.create(*CLAIMS, claim("choosy", 3, labels={"a": "b"}))
        await c.settle()
        for made in (volume("for-both", 3, labels={"a": "b"}), volume("for-any", 1)):  # both are offered to "any"
            await c.create(*VOLUMES, made, namespace="")
        await c.settle()

        bound = {one["metadata"]["name"]: one["spec"].get("volumeName") for one in c.api.list(*CLAIMS)}
        assert bound == {"any": "for-any", "choosy": "for-both"}


async def test_a_class_that_appears_leads_to_its_claims_alone():
    async with cluster(["persistentvolume-binder"]) as c:
        for name in ("own", "other"):
            await c.create(*CLAIMS, claim(name, storageClassName=name))
        await c.settle()
        reads = count_reads(c)

        made = {"metadata": {"name": "own"}, "provisioner": "p.example.com"}
        await c.create(*CLASSES, made, namespace="")
        await c.settle()

        key = "volume.kubernetes.io/storage-provisioner"
        found = {one["metadata"]["name"]: one["metadata"].get("annotations") or {} for one in c.api.list(*CLAIMS)}
        assert found["own"][key] == "p.example.com"
        assert key not in found["other"]
        assert reads[VOLUMES] == 0


async def test_the_protection_of_a_claim_in_use_reads_the_pods_of_the_claim_alone():
    work = {}
    for count in (10, 40):
        async with cluster(["persistentvolumeclaim-protection"]) as c:
            for number in range(count):
                await c.create(*CLAIMS, claim(f"c{number}"))
                source = {"name": "v", "persistentVolumeClaim": {"claimName": f"c{number}"}}
                for name in ("p", "q"):
                    volumes = [source, {**source, "name": "w"}]
                    await c.create("", "pods", pod(f"{name}{number}", nodeName="n", volumes=volumes))
                await c.api.delete(*CLAIMS, "default", f"c{number}")
            await c.settle()
            assert len(c.api.list(*CLAIMS)) == count

            reads = count_reads(c)
            for number in range(count):
                await c.api.delete("", "pods", "default", f"p{number}", grace_period_seconds=0)
                await c.settle()
            assert len(c.api.list(*CLAIMS)) == count
            work[count] = reads[CLAIMS] + reads["", "pods"]

    assert work[40] <= 4 * work[10] + 40


NODE = "volume.kubernetes.io/selected-node"
ASKED, ASKED_BEFORE = "volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"
LATE = {"volumeBindingMode": "WaitForFirstConsumer"}


@pytest.mark.parametrize(
    ("of_class", "annotations", "is_made"),
    [
        pytest.param({}, {ASKED: "p.example.com"}, True, id="asked"),
        pytest.param({}, {ASKED_BEFORE: "p.example.com"}, True, id="asked by the old annotation"),
        pytest.param({}, {}, False, id="not asked"),
        pytest.param({}, {ASKED: "q.example.com", ASKED_BEFORE: "p.example.com"}, False, id="another is asked"),
        pytest.param(LATE, {ASKED: "p.example.com"}, False, id="no node"),
        pytest.param(LATE, {ASKED: "p.example.com", NODE: ""}, False, id="empty node"),
        pytest.param(LATE, {ASKED: "p.example.com", NODE: "n"}, True, id="node"),
        pytest.param(
            {"provisioner": "kubernetes.io/aws-ebs"}, {ASKED: "ebs.csi.aws.com"}, True, id="driver of a plugin"
        ),
        pytest.param({"provisioner": "kubernetes.io/nfs"}, {ASKED: "kubernetes.io/nfs"}, False, id="plugin"),
    ],
)
async def test_the_provisioner_makes_the_volumes_that_it_is_asked_for(of_class, annotations, is_made):
    async with cluster(["provisioner"]) as c:
        await c.create("", "nodes", {"metadata": {"name": "n"}}, namespace="")
        made = {"metadata": {"name": "c"}, "provisioner": "p.example.com", **of_class}
        await c.create(*CLASSES, made, namespace="")
        wants = claim("a")
        wants["metadata"]["annotations"] = annotations
        await c.create(*CLAIMS, wants)
        await c.settle()

        found = [(one["spec"]["csi"]["driver"], one["spec"]["claimRef"]["name"]) for one in c.api.list(*VOLUMES)]
        assert found == ([(annotations.get(ASKED, "p.example.com"), "a")] if is_made else [])


async def test_a_claim_whose_node_is_gone_goes_back_to_the_scheduler():
    async with cluster(["provisioner"]) as c:
        await c.create(*CLASSES, {"metadata": {"name": "c"}, "provisioner": "p.example.com", **LATE}, namespace="")
        wants = claim("a")
        wants["metadata"]["annotations"] = {ASKED: "p.example.com", NODE: "gone"}
        await c.create(*CLAIMS, wants)
        await c.settle()

        assert c.api.get(*CLAIMS, "default", "a")["metadata"]["annotations"] == {ASKED: "p.example.com"}
        assert c.api.list(*VOLUMES) == []
        assert [(one["reason"], one["message"]) for one in c.api.list("", "events")] == [
            ("ProvisioningFailed", 'failed to provision volume with StorageClass "c": node "gone" not found')
        ]


@pytest.mark.parametrize("seed", seeds(range(60), 10))
def test_indexes_find_what_a_look_at_everything_finds(seed):
    random = Random(seed)
    volumes, claims = FitIndex(), FitIndex()
    offers, asks = {}, {}
    for number in range(80):
        modes, size, labels = (
            random.sample(MODES, random.randint(1, 3)),
            random.randint(1, 5),
            random.choice([None, {"a": "b"}]),
        )
        key, is_volume = (str(number % 50),), random.random() < 0.5
        index, known = (volumes, offers) if is_volume else (claims, asks)
        if random.random() < 0.2:
            index.remove(key)
            known.pop(key, None)
            continue
        place = (
            place_of_volume(volume("v", size, modes, labels))
            if is_volume
            else place_of_claim(claim("c", size, modes, labels))
        )
        index.put(key, place)
        known[key] = place

    def meets(offer: Place, ask: Place) -> bool:
        return set(ask.criteria) <= set(offer.criteria) and ask.modes <= offer.modes and ask.size <= offer.size

    for ask in asks.values():
        found = list(volumes.volumes_for(ask))
        assert sorted(found) == sorted(offered for offered, offer in offers.items() if meets(offer, ask))
        ranks = [(len(offers[one].modes), sorted(offers[one].modes), offers[one].size) for one in found]
        assert ranks == sorted(ranks)
    for offer in offers.values():
        assert sorted(claims.claims_for(offer)) == sorted(one for one, ask in asks.items() if meets(offer, ask))


def test_groups_forget_what_a_key_was_in():
    groups = Groups()
    groups.put(("k",), ("a",), ("b",))
    groups.put(("l",), ("a",))
    groups.put(("k",), ("b",))

    assert (groups.of(("a",)), groups.of(("b",)), groups.of(("c",))) == ([("l",)], [("k",)], [])
    groups.put(("k",))
    assert groups.of(("b",)) == []
