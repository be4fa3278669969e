"""The direct client over a transport in memory: what is asked, how answers and their loss reach the gate, pages that expire."""

import json
import subprocess
import sys

import pytest

from ctrlruntime.api import apps, core, meta
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import PartialObjectMetadata, Unstructured
from ctrlruntime.client import APIClient, intercept
from ctrlruntime.client.gate import Gate
from ctrlruntime.client.observers import CallObservers
from ctrlruntime.client.patches import json_patch, merge_from, merge_patch
from ctrlruntime.errors import (
    AlreadyExists,
    ConfigError,
    Conflict,
    Expired,
    FencedError,
    Gone,
    InternalError,
    NoMatchError,
    NotFound,
    PatchError,
    TransportError,
)
from ctrlruntime.rest.fence import Actor, acting
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.rest.transport import Response
from ctrlruntime.scheme import Scheme
from ctrlruntime.selector import NOTHING

RESOURCES = {
    "/api/v1": [
        ("configmaps", "ConfigMap", True),
        ("pods", "Pod", True),
        ("pods/status", "Pod", True),
        ("pods/eviction", "Eviction", True),
        ("nodes", "Node", False),
        ("namespaces", "Namespace", False),
        ("serviceaccounts", "ServiceAccount", True),
    ],
    "/apis/apps/v1": [("deployments", "Deployment", True), ("deployments/scale", "Scale", True)],
}


class Memory:
    """A transport that answers requests from a list: bytes, a tree, an exception, or a function of the request."""

    host = "http://memory"

    def __init__(self) -> None:
        self.answers: list = []
        self.asked: list[dict] = []

    def will(self, *answers) -> None:
        self.answers += answers

    async def request(self, method, path, *, params=(), body=None, **options):
        asked = {"method": method, "path": path, "params": dict(params), "body": body and json.loads(body), **options}
        self.asked.append(asked)
        answer = self.answers.pop(0)
        if callable(answer) and not isinstance(answer, type):
            answer = answer(asked)
        if isinstance(answer, BaseException):
            raise answer
        return Response(200, {}, answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    async def fetch(self, path, accept):
        if path == "/api":
            return 200, b'{"kind":"APIVersions","versions":["v1"]}'
        if path == "/apis":
            group = {"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}
            return 200, json.dumps({"kind": "APIGroupList", "groups": [group]}).encode()
        resources = [
            {"name": name, "kind": kind, "namespaced": namespaced} for name, kind, namespaced in RESOURCES[path]
        ]
        return 200, json.dumps({"resources": resources}).encode()


class Ended:
    """How a write ended, as the gate was told."""

    def __init__(self, gate, key):
        self.gate, self.key = gate, key

    def stored(self, meta):
        self.gate.ended.append((self.key, "stored", meta.resource_version))

    def deleted(self, uid, version=""):
        self.gate.ended.append((self.key, "deleted", f"{uid}@{version}" if version else uid))

    def deleted_all(self, items):
        self.gate.ended.append((self.key, "deleted all", [item.name for item in items]))

    def failed(self):
        self.gate.ended.append((self.key, "failed", ""))

    def lost(self):
        self.gate.ended.append((self.key, "lost", ""))


class Watched(Gate):
    def __init__(self) -> None:
        super().__init__()
        self.ended: list = []

    def open(self, gvk, namespace, name):
        return Ended(self, (gvk.kind, namespace, name))


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def gate():
    return Watched()


@pytest.fixture
def observers():
    return CallObservers()


@pytest.fixture
def calls(observers):
    calls = []
    observers.add_observer(calls.append)
    return calls


@pytest.fixture
def client(memory, gate, observers):
    letters = iter("bcdfghjklmnp" * 10)
    mapper = RESTMapper(memory.fetch)
    return APIClient(memory, mapper, Scheme(), gate=gate, observers=observers, random_letter=lambda _: next(letters))


def config_map(**data):
    return core.ConfigMap(metadata=meta.ObjectMeta(name="a", namespace="ns"), data=data)


def stored(version="7", **more):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": version},
        **more,
    }


def absent(name="a"):
    return NotFound("not found", details={"name": name} if name else {})


# --- what is asked ---------------------------------------------------------------------------------------------------


async def test_options_become_parameters(client, memory):
    memory.will(stored())

    await client.create(config_map(x="1"), dry_run=True, field_owner="me", field_validation="Strict")

    assert memory.asked[0]["params"] == {"dryRun": "All", "fieldManager": "me", "fieldValidation": "Strict"}
    assert memory.asked[0]["path"] == "/api/v1/namespaces/ns/configmaps"
    assert memory.asked[0]["body"]["data"] == {"x": "1"}


async def test_the_controller_is_the_field_owner_unless_the_call_names_one(client, memory):
    memory.will(stored(), stored())

    with acting(Actor("memcached")):
        await client.update(config_map())
        await client.update(config_map(), field_owner="me")

    assert [asked["params"]["fieldManager"] for asked in memory.asked] == ["memcached", "me"]


async def test_a_delete_carries_its_options_as_a_body(client, memory):
    memory.will({"kind": "Status", "details": {"uid": "u"}})

    await client.delete(
        config_map(), dry_run=True, grace_period_seconds=0, propagation_policy="Orphan", uid="u", resource_version="7"
    )

    assert memory.asked[0]["body"] == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "dryRun": ["All"],
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Orphan",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
    }


async def test_a_patch_says_what_it_is(client, memory):
    obj = config_map(x="1")
    obj.metadata.resource_version = "5"
    base = obj.deep_copy()
    obj.data["x"] = "2"
    memory.will(stored(), stored())

    await client.patch(obj, merge_from(base, optimistic_lock=True), force=True)
    await client.patch(obj, json_patch([{"op": "add", "path": "/data", "value": {}}]))

    assert memory.asked[0]["content_type"] == "application/merge-patch+json"
    assert memory.asked[0]["body"] == {"data": {"x": "2"}, "metadata": {"resourceVersion": "5"}}
    assert memory.asked[0]["params"] == {"force": "true"}
    assert memory.asked[1]["content_type"] == "application/json-patch+json"
    with pytest.raises(PatchError, match="resourceVersion"):
        await client.patch(config_map(), merge_from(config_map(), optimistic_lock=True))


async def test_an_apply_sends_what_was_set_under_its_owner(client, memory):
    memory.will(stored())

    with acting(Actor("memcached")):
        await client.apply(config_map(x="1"), force=True)

    asked = memory.asked[0]
    assert (asked["method"], asked["content_type"]) == ("PATCH", "application/apply-patch+yaml")
    assert asked["params"] == {"fieldManager": "memcached", "force": "true"}
    assert asked["body"]["data"] == {"x": "1"}


async def test_metadata_alone_is_asked_for(client, memory):
    kind = PartialObjectMetadata.of(core.ConfigMap)
    memory.will(stored(kind="PartialObjectMetadata"), stored(kind="PartialObjectMetadata"))

    obj = await client.get(kind, NamespacedName("ns", "a"))
    await client.patch(obj, json_patch([]))

    assert all("as=PartialObjectMetadata;" in asked["accept"] for asked in memory.asked)
    assert obj.kind == "ConfigMap"


async def test_a_selector_that_selects_nothing_asks_nothing(client, memory):
    assert len(await client.list(core.ConfigMap, labels=NOTHING)) == 0
    assert [event async for event in client.watch(core.ConfigMap, labels=NOTHING)] == []
    await client.delete_all_of(core.ConfigMap, namespace="ns", labels=NOTHING)

    assert memory.asked == []


async def test_every_call_is_recorded_once(client, memory, calls):
    memory.will(stored(), {"metadata": {}, "items": []}, stored(), {"kind": "Status"})
    key = NamespacedName("ns", "a")

    with acting(Actor("c")):
        await client.get(core.ConfigMap, key)
        await client.list(core.ConfigMap)
        await client.patch(config_map(), json_patch([]))
        await client.delete(config_map())

    assert [(call.verb, call.resource, call.namespace, call.name) for call in calls] == [
        ("get", "configmaps", "ns", "a"),
        ("list", "configmaps", "", ""),
        ("patch", "configmaps", "ns", "a"),
        ("delete", "configmaps", "ns", "a"),
    ]
    assert {call.actor.controller for call in calls} == {"c"}


# --- what the gate is told -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error", "end"),
    [
        (Conflict("no"), Conflict, "failed"),
        (FencedError("no"), FencedError, "failed"),
        (ConfigError("no credential"), ConfigError, "failed"),
        (absent(name=""), NoMatchError, "failed"),
        (TransportError("reset"), TransportError, "lost"),
        (InternalError("a webhook failed, or the store did after it had written"), InternalError, "lost"),
        (b"<html>", TransportError, "lost"),
    ],
)
async def test_how_a_write_fails(client, memory, gate, answer, error, end):
    memory.will(answer)
    obj = config_map(x="1")

    with pytest.raises(error):
        await client.update(obj)

    assert obj == config_map(x="1")
    assert gate.ended == [(("ConfigMap", "ns", "a"), end, "")]


async def test_how_a_write_succeeds(client, memory, gate):
    marked = stored("10")
    marked["metadata"] |= {"deletionTimestamp": "x", "finalizers": ["example.com/held"]}
    memory.will(stored("8"), stored("9"), marked, {"kind": "Status", "details": {"uid": "u"}}, stored("11"))

    await client.create(config_map())
    await client.update(config_map())
    for _ in range(3):  # marked for deletion; gone, by a Status; gone, by the last state
        await client.delete(config_map())

    assert [end[1:] for end in gate.ended] == [
        ("stored", "8"),
        ("stored", "9"),
        ("stored", "10"),
        ("deleted", "u"),
        ("deleted", "u@11"),
    ]


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ({}, ("deleted", "u@7")),
        ({"deletionGracePeriodSeconds": 0}, ("deleted", "u@7")),
        ({"deletionGracePeriodSeconds": 30}, ("stored", "7")),
        ({"finalizers": ["example.com/other"]}, ("stored", "7")),
    ],
)
async def test_a_write_that_takes_the_last_finalizer_away_is_a_deletion(client, memory, gate, more, end):
    answer = stored()
    answer["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", **more}
    memory.will(answer)

    await client.update(config_map())

    assert [(end, detail) for _, end, detail in gate.ended] == [end]


async def test_a_namespace_is_not_gone_without_finalizers_of_its_metadata(client, memory, gate):
    answer = stored() | {"kind": "Namespace"}
    answer["metadata"] = {"name": "a", "uid": "u", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    memory.will(answer)

    await client.update(core.Namespace(metadata=meta.ObjectMeta(name="a")))

    assert [(end, detail) for _, end, detail in gate.ended] == [("stored", "7")]


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ({"kind": "ConfigMapList", "items": [stored()]}, ("deleted all", ["a"])),
        ({"kind": "ConfigMapList", "items": []}, ("deleted all", [])),
        ({"kind": "Status", "status": "Success"}, ("lost", "")),
        (b"<html>", ("lost", "")),
    ],
)
async def test_the_answer_to_a_collection_delete_lists_what_it_deleted(client, memory, gate, answer, end):
    memory.will(answer)

    await client.delete_all_of(core.ConfigMap, namespace="ns")

    assert len(memory.asked) == 1
    assert gate.ended == [(("ConfigMap", "ns", ""), *end)]


async def test_a_name_is_no_key(client):
    with pytest.raises(TypeError, match=r"'ns/a' is not a key of a ConfigMap: .* ctrl.NamespacedName\('ns', 'a'\)"):
        await client.get(core.ConfigMap, "ns/a")


async def test_an_eviction_leaves_the_pod_unknown_until_it_is_read(client, memory, gate):
    from ctrlruntime.api import policy

    memory.will({"kind": "Status", "status": "Success"})
    pod = core.Pod(metadata=meta.ObjectMeta(name="a", namespace="ns"))

    await client.subresource("eviction").create(pod, policy.Eviction())

    assert memory.asked[0]["path"] == "/api/v1/namespaces/ns/pods/a/eviction"
    assert memory.asked[0]["body"]["metadata"] == {"name": "a", "namespace": "ns"}
    assert gate.ended == [(("Pod", "ns", "a"), "lost", "")]


async def test_a_dry_run_makes_no_mark(client, memory, gate):
    memory.will(stored())

    await client.update(config_map(), dry_run=True)

    assert gate.ended == []


async def test_only_answered_writes_of_whole_objects_are_handed_to_who_watches_writes(client, memory, observers):
    seen = []
    observers.add_write_observer(seen.append)
    metadata_only = PartialObjectMetadata.of(core.ConfigMap)
    partial = metadata_only(metadata=meta.ObjectMeta(name="a", namespace="ns"))
    memory.will(
        stored("1"), stored("2"), stored("3"), stored("4"), Conflict("no"), {"kind": "Status", "details": {"uid": "u"}}
    )

    with acting(Actor("web")):
        await client.create(config_map())
        await client.apply(config_map(color="red"))
        await client.update(config_map(), dry_run=True)
        await client.patch(partial, merge_patch({"metadata": {"labels": {"a": "b"}}}))
        with pytest.raises(Conflict):
            await client.update(config_map())
        await client.delete(config_map())

    assert [(write.verb, write.is_apply, write.manager, write.name) for write in seen] == [
        ("create", False, "web", "a"),
        ("patch", True, "web", "a"),
    ]
    assert json.loads(seen[1].after)["metadata"]["resourceVersion"] == "2"
    assert json.loads(seen[1].sent)["data"] == {"color": "red"}


# --- names -----------------------------------------------------------------------------------------------------------


async def test_a_generated_name_is_completed_before_it_is_sent(client, memory, gate):
    memory.will(AlreadyExists("taken"), lambda asked: stored() | {"metadata": asked["body"]["metadata"]})
    obj = core.ConfigMap(metadata=meta.ObjectMeta(generate_name="x" * 70, namespace="ns"))

    await client.create(obj)

    first, second = (asked["body"]["metadata"]["name"] for asked in memory.asked)
    assert first != second
    assert (len(second), obj.metadata.name) == (63, second)
    assert [(key[2], end) for key, end, _ in gate.ended] == [(first, "failed"), (second, "stored")]


async def test_after_a_lost_answer_no_second_name_is_tried(client, memory):
    memory.will(TransportError("reset"))
    obj = core.ConfigMap(metadata=meta.ObjectMeta(generate_name="a-", namespace="ns"))

    with pytest.raises(TransportError):
        await client.create(obj)

    assert len(memory.asked) == 1
    assert obj.metadata.name == ""


async def test_a_name_taken_each_time_is_given_up(client, memory):
    memory.will(*[AlreadyExists("taken") for _ in range(8)])

    with pytest.raises(AlreadyExists):
        await client.create(core.ConfigMap(metadata=meta.ObjectMeta(generate_name="a-", namespace="ns")))

    assert memory.answers == []


# --- pages -----------------------------------------------------------------------------------------------------------


def page(*names, token="", version="5"):
    return {
        "metadata": {"resourceVersion": version, "continue": token},
        "items": [{"metadata": {"name": name, "namespace": "ns"}} for name in names],
    }


async def test_a_list_is_fetched_in_pages_of_500(client, memory):
    memory.will(page("a", "b", token="t"), page("c"))

    items = await client.list(core.ConfigMap, namespace="ns", labels={"x": "y"}, fields={"metadata.name": "a"})

    assert [item.metadata.name for item in items] == ["a", "b", "c"]
    assert (items.resource_version, items.continue_token) == ("5", "")
    selectors = {"labelSelector": "x=y", "fieldSelector": "metadata.name=a"}
    assert [asked["params"] for asked in memory.asked] == [
        {**selectors, "limit": "500"},
        {**selectors, "limit": "500", "continue": "t"},
    ]


@pytest.mark.parametrize("error", [Expired, Gone])
async def test_a_token_that_expires_midway_begins_again_with_larger_pages(client, memory, error):
    memory.will(page("a", token="t"), error("old"), page("a", "b", token="u", version="6"), page("c", version="6"))

    items = await client.list(core.ConfigMap)

    assert [item.metadata.name for item in items] == ["a", "b", "c"]
    assert items.resource_version == "6"
    assert [asked["params"]["limit"] for asked in memory.asked] == ["500", "500", "1000", "1000"]


async def test_a_list_that_expires_each_time_is_given_up_with_bounded_pages(client, memory):
    memory.will(*[page("a", token="t"), Expired("old")] * 20)

    with pytest.raises(Expired):
        await client.list(core.ConfigMap)

    assert max(int(asked["params"]["limit"]) for asked in memory.asked) <= 64_000


async def test_one_page_is_left_to_the_caller(client, memory):
    memory.will(page("a", token="t"), Expired("old"))

    first = await client.list(core.ConfigMap, limit=1)
    assert first.continue_token == "t"
    with pytest.raises(Expired):
        await client.list(core.ConfigMap, limit=1, continue_token="t")


# --- what is not there -----------------------------------------------------------------------------------------------


async def test_no_object_and_no_kind_are_told_apart(client, memory):
    memory.will(absent(), absent(), absent(name=""))

    assert await client.get_or_none(core.ConfigMap, NamespacedName("ns", "a")) is None
    with pytest.raises(NotFound):
        await client.get(core.ConfigMap, NamespacedName("ns", "a"))
    with pytest.raises(NoMatchError, match=r"does not serve .*ConfigMap"):
        await client.get_or_none(core.ConfigMap, NamespacedName("ns", "a"))


async def test_no_subresource_is_named(client, memory):
    memory.will(absent())

    with pytest.raises(NoMatchError, match=r"the subresource 'status' of .*ConfigMap"):
        await client.status.update(config_map())


async def test_no_kind_at_all(client):
    with pytest.raises(TypeError, match="is not a kind"):
        await client.get(dict, NamespacedName("ns", "a"))
    with pytest.raises(TypeError, match="is not a kind"):
        await client.get("ConfigMap", NamespacedName("ns", "a"))


async def test_bare_objects_of_two_kinds_are_not_mixed_up(client, memory):
    memory.will(stored(), {**stored(), "kind": "Pod"}, {"kind": "Status"}, {"kind": "Status"})

    await client.create(Unstructured.from_dict(stored()))
    await client.create(Unstructured.from_dict({**stored(), "kind": "Pod"}))
    for kind in ("ConfigMap", "Pod"):
        await client.delete(PartialObjectMetadata.from_dict({**stored(), "kind": kind}))

    plurals = [asked["path"].split("/")[5] for asked in memory.asked]
    assert plurals == ["configmaps", "pods", "configmaps", "pods"]


# --- interceptor -----------------------------------------------------------------------------------------------------


async def test_hooks_stand_in_for_their_verbs(client, memory):
    seen: list = []

    def hook(name, answer=None):
        async def called(wrapped, *arguments, **options):
            assert wrapped is client
            seen.append((name, arguments, options))
            return answer

        return called

    async def watch(wrapped, kind, **options):
        seen.append(("watch", (kind,), options))
        yield "event"

    verbs = ["get", "list", "create", "update", "patch", "apply", "delete", "delete_all_of"]
    below = ["get", "create", "update", "patch", "apply"]
    hooks = {name: hook(name) for name in [*verbs, *(f"subresource_{name}" for name in below)]}
    ours = intercept(client, watch=watch, **hooks)
    obj, key, patch = config_map(), NamespacedName("ns", "a"), json_patch([])
    cm = core.ConfigMap

    await ours.get(cm, key)
    await ours.get_or_none(cm, key)
    await ours.list(cm, namespace="ns", limit=5)
    await ours.create(obj, dry_run=True)
    await ours.update(obj, field_owner="me")
    await ours.patch(obj, patch, force=True)
    await ours.apply(obj, field_owner="me")
    await ours.delete(obj, uid="u")
    await ours.delete_all_of(cm, namespace="ns")
    assert [event async for event in ours.watch(cm, labels="a")] == ["event"]
    await ours.status.get(obj, cm)
    await ours.subresource("scale").create(obj, obj)
    await ours.status.update(obj, body=obj)
    await ours.status.patch(obj, patch)
    await ours.status.apply(obj, force=True)

    assert memory.asked == []
    assert [name for name, _, _ in seen] == ["get", *verbs, "watch", *(f"subresource_{name}" for name in below)]
    by_name = {name: (arguments, options) for name, arguments, options in seen}
    assert by_name["get"] == ((cm, key), {})
    assert by_name["list"] == (
        (cm,),
        {"namespace": "ns", "labels": None, "fields": None, "limit": 5, "continue_token": ""},
    )
    assert by_name["patch"][1]["force"] is True
    assert by_name["delete"][1]["uid"] == "u"
    assert by_name["subresource_create"][0] == ("scale", obj, obj)
    assert by_name["subresource_apply"] == (("status", obj), {"dry_run": False, "field_owner": "", "force": True})


async def test_verbs_without_a_hook_pass(client, memory):
    ours = intercept(client)
    memory.will(
        stored(), absent(), page("a"), stored(), stored(), stored(), {"kind": "Status"}, {}, stored(), stored(), stored(),
        stored(),
    )  # fmt: skip
    obj, key = config_map(), NamespacedName("ns", "a")
    pod = core.Pod(metadata=meta.ObjectMeta(name="a", namespace="ns"))

    assert (await ours.get(core.ConfigMap, key)).metadata.uid == "u"
    assert await ours.get_or_none(core.ConfigMap, key) is None
    assert len(await ours.list(core.ConfigMap)) == 1
    await ours.create(obj)
    await ours.update(obj)
    await ours.patch(obj, json_patch([]))
    await ours.delete(obj)
    await ours.delete_all_of(core.ConfigMap, namespace="ns")
    await ours.apply(config_map(), field_owner="me")
    memory.answers[:] = [{**stored(), "kind": "Pod"}] * 4
    await ours.status.get(pod, core.Pod)
    await ours.status.update(pod)
    await ours.status.patch(pod, json_patch([]))
    await ours.status.apply(core.Pod(metadata=meta.ObjectMeta(name="a", namespace="ns")), field_owner="me")

    assert memory.answers == []
    assert (ours.scheme, ours.mapper, ours.api_reader) == (client.scheme, client.mapper, client.api_reader)


async def test_a_hook_may_fail_once_and_pass_on(client, memory):
    memory.will(stored("9"))
    failures = [Conflict("somebody was faster")]

    async def update(wrapped, obj, **options):
        if failures:
            raise failures.pop()
        return await wrapped.update(obj, **options)

    ours = intercept(client, update=update)
    obj = config_map()

    with pytest.raises(Conflict):
        await ours.update(obj)
    await ours.update(obj)

    assert obj.metadata.resource_version == "9"


async def test_find_turns_a_hooks_not_found_into_none(client):
    async def get(wrapped, kind, key):
        raise absent()

    assert await intercept(client, get=get).get_or_none(apps.Deployment, NamespacedName("ns", "a")) is None


# --- the packages ----------------------------------------------------------------------------------------------------


def test_the_packages_load_without_the_http_library():
    code = (
        "import sys, ctrlruntime.client, ctrlruntime.rest, ctrlruntime.client.interfaces as i;"
        "print([m for m in ('aiohttp', 'kubernetes_asyncio', 'cryptography', 'yaml') if m in sys.modules]);"
        "from ctrlruntime.client import APIClient, SplitClient; print(APIClient.__name__, SplitClient.__name__);"
        "print(all(hasattr(ctrlruntime.client, n) for n in ctrlruntime.client.__all__))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.splitlines() == ["[]", "APIClient SplitClient", "True"]


@pytest.mark.parametrize(
    "write",
    [
        lambda client, obj: client.create(obj),
        lambda client, obj: client.update(obj),
        lambda client, obj: client.patch(obj, merge_from(apps.Deployment(metadata=obj.metadata.deep_copy()))),
        lambda client, obj: client.apply(obj, field_owner="me"),
        lambda client, obj: client.status.update(obj),
    ],
)
async def test_a_value_of_another_type_is_refused_before_anything_is_sent(client, memory, write):
    obj = apps.Deployment(metadata=meta.ObjectMeta(name="web", namespace="ns"))
    obj.spec.replicas = "three"

    with pytest.raises(ValueError, match=r"spec\.replicas: expected int, got 'three'"):
        await write(client, obj)
    assert memory.asked == []
