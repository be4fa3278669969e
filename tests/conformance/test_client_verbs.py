"""The client's verbs on both servers, for typed, unstructured and metadata-only objects, with options and refusals."""

import asyncio
import dataclasses

import pytest
from pydantic import Field
from servers import LONGEST_WAIT

from ctrlruntime.api import apps, authentication, coordination, core, meta, policy
from ctrlruntime.api.autoscaling import v1 as autoscaling_v1
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object, PartialObjectMetadata, Unstructured
from ctrlruntime.client import APIClient, dry_run, namespaced, with_field_owner, with_field_validation
from ctrlruntime.client.patches import json_patch, merge_from, merge_patch, strategic_merge_patch
from ctrlruntime.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NoMatchError,
    NotFound,
    NotRegisteredError,
)
from ctrlruntime.field import MicroTime
from ctrlruntime.rest import RESTMapper, get_config
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme
from ctrlruntime.testing import eventually


class WidgetSpec(Model):
    size: int = 0
    color: str = ""


class WidgetStatus(Model):
    ready: int = 0
    selector: str = ""


class Widget(Object, group="client.example.com", version="v1"):
    spec: WidgetSpec = Field(default_factory=WidgetSpec)
    status: WidgetStatus = Field(default_factory=WidgetStatus)


class Gadget(Object, group="client.example.com", version="v1"):
    spec: WidgetSpec = Field(default_factory=WidgetSpec)


def definition(plural: str, kind: str, subresources: dict) -> dict:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 0, "maximum": 10},
                    "color": {"type": "string", "default": "blue"},
                },
            },
            "status": {
                "type": "object",
                "properties": {"ready": {"type": "integer"}, "selector": {"type": "string"}},
            },
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.client.example.com"},
        "spec": {
            "group": "client.example.com",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": subresources,
                }
            ],
        },
    }


WIDGETS = definition(
    "widgets",
    "Widget",
    {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.ready",
            "labelSelectorPath": ".status.selector",
        },
    },
)
GADGETS = definition("gadgets", "Gadget", {})


@pytest.fixture(scope="module")
def kinds(server):
    server.install_crds([WIDGETS, GADGETS])


@pytest.fixture
async def connect(server, kinds):
    """Make clients; they are closed at the end."""
    transports: list[Transport] = []

    def make(kubeconfig: str = "", **options) -> APIClient:
        transport = Transport(get_config(kubeconfig or str(server.kubeconfig_path)))
        transports.append(transport)
        return APIClient(transport, RESTMapper(transport.fetch), Scheme(Widget, Gadget), **options)

    yield make
    for transport in transports:
        await transport.close()


@pytest.fixture
def client(connect):
    return connect()


def config_map(namespace: str, name: str = "a", **data: str) -> core.ConfigMap:
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace), data=data)


def widget(namespace: str, name: str = "a", size: int = 1) -> Widget:
    return Widget(metadata=meta.ObjectMeta(name=name, namespace=namespace), spec=WidgetSpec(size=size))


def deployment(namespace: str, name: str = "web") -> apps.Deployment:
    labels = {"app": name}
    return apps.Deployment(
        metadata=meta.ObjectMeta(name=name, namespace=namespace),
        spec=apps.DeploymentSpec(
            replicas=2,
            selector=meta.LabelSelector(match_labels=labels),
            template=core.PodTemplateSpec(
                metadata=meta.ObjectMeta(labels=labels),
                spec=core.PodSpec(containers=[core.Container(name="web", image="web:1")]),
            ),
        ),
    )


def key(obj: Object) -> NamespacedName:
    return NamespacedName(obj.metadata.namespace, obj.metadata.name)


ConfigMapTree = Unstructured.of("v1", "ConfigMap")
WidgetTree = Unstructured.of("client.example.com/v1", "Widget")
ConfigMapMetadata = PartialObjectMetadata.of(core.ConfigMap)


# --- typed -----------------------------------------------------------------------------------------------------------


async def test_a_typed_object_is_created_read_updated_and_deleted(client, namespace):
    obj = config_map(namespace, x="1")

    created = await client.create(obj)
    assert created is obj
    assert obj.metadata.uid
    first = obj.metadata.resource_version

    obj.data["y"] = "2"
    assert await client.update(obj) is obj
    assert obj.metadata.resource_version != first
    obj.data["z"] = "3"
    await client.update(obj)

    read = await client.get(core.ConfigMap, key(obj))
    assert read.data == {"x": "1", "y": "2", "z": "3"}
    assert read == obj
    assert (read.api_version, read.kind) == ("v1", "ConfigMap")
    assert [item.metadata.name for item in await client.list(core.ConfigMap, namespace=namespace)].count("a") == 1

    await client.delete(obj)
    assert await client.get_or_none(core.ConfigMap, key(obj)) is None
    with pytest.raises(NotFound) as caught:
        await client.get(core.ConfigMap, key(obj))
    assert caught.value.details["name"] == "a"


async def test_a_custom_resource_is_defaulted_into_the_object(client, namespace):
    obj = widget(namespace)

    await client.create(obj)

    assert obj.spec.color == "blue"
    assert obj.metadata.generation == 1


async def test_zeros_survive(client, namespace):
    obj = deployment(namespace)
    obj.spec.replicas = 0

    await client.create(obj)

    assert (await client.get(apps.Deployment, key(obj))).spec.replicas == 0


async def test_a_cluster_scoped_kind(client, namespace):
    read = await client.get(core.Namespace, NamespacedName("", namespace))

    assert read.metadata.name == namespace
    assert namespace in {meta.name for meta in (await client.list(core.Namespace)).metadata}


async def test_micro_time_passes_both_ways(client, namespace):
    now = MicroTime.of(MicroTime.convert("2026-02-03T04:05:06.000700Z"))
    lease = coordination.Lease(
        metadata=meta.ObjectMeta(name="l", namespace=namespace),
        spec=coordination.LeaseSpec(holder_identity="me", renew_time=now, lease_duration_seconds=15),
    )

    await client.create(lease)

    assert (await client.get(coordination.Lease, key(lease))).spec.renew_time == now


# --- unstructured and metadata only --------------------------------------------------------------------------------------


async def test_an_unstructured_object_goes_the_same_way(client, namespace):
    obj = WidgetTree(metadata=meta.ObjectMeta(name="a", namespace=namespace), spec={"size": 2})

    assert await client.create(obj) is obj
    assert obj["spec"] == {"size": 2, "color": "blue"}
    obj["spec"]["size"] = 3
    await client.update(obj)
    assert (await client.get(WidgetTree, key(obj)))["spec"]["size"] == 3
    assert (await client.get(Widget, key(obj))).spec.size == 3
    base = obj.deep_copy()
    obj["spec"]["size"] = 4
    await client.patch(obj, merge_from(base))
    assert obj.get_path("spec", "size") == 4
    assert [item["spec"]["size"] for item in await client.list(WidgetTree, namespace=namespace)] == [4]
    await client.delete(obj)
    assert await client.get_or_none(WidgetTree, key(obj)) is None


async def test_a_bare_unstructured_object_is_judged_by_its_own_kind(client, namespace):
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "bare", "namespace": namespace},
        "data": {"a": "1"},
    }
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bare", "namespace": namespace}}

    for tree in (made, other):
        await client.create(Unstructured.from_dict(tree))

    assert (await client.get(core.ConfigMap, NamespacedName(namespace, "bare"))).data == {"a": "1"}
    assert (await client.get(core.Secret, NamespacedName(namespace, "bare"))).type == "Opaque"


async def test_metadata_only_reads_patches_and_deletes(client, namespace):
    await client.create(config_map(namespace, x="1"))

    partial = await client.get(ConfigMapMetadata, NamespacedName(namespace, "a"))
    assert partial.metadata.name == "a"
    assert "data" not in partial.to_dict()
    assert (partial.api_version, partial.kind) == ("v1", "ConfigMap")
    listed = await client.list(ConfigMapMetadata, namespace=namespace)
    assert "a" in [item.metadata.name for item in listed]

    base = partial.deep_copy()
    partial.metadata.labels["seen"] = "yes"
    await client.patch(partial, merge_from(base))
    assert partial.metadata.labels == {"seen": "yes"}
    whole = await client.get(core.ConfigMap, key(partial))
    assert (whole.data, whole.metadata.labels) == ({"x": "1"}, {"seen": "yes"})

    await client.delete(partial)
    assert await client.get_or_none(ConfigMapMetadata, key(partial)) is None


async def test_metadata_alone_is_not_created_or_updated(client, namespace):
    partial = ConfigMapMetadata(metadata=meta.ObjectMeta(name="a", namespace=namespace))

    with pytest.raises(TypeError, match="cannot be created"):
        await client.create(partial)
    with pytest.raises(TypeError, match="cannot be updated"):
        await client.update(partial)
    with pytest.raises(TypeError, match="subresource"):
        await client.subresource("scale").get(partial, autoscaling_v1.Scale)


# --- lists and watches -----------------------------------------------------------------------------------------------


async def test_selectors_and_pages(client, namespace):
    for number in range(5):
        obj = config_map(namespace, f"n{number}")
        obj.metadata.labels = {"parity": "odd" if number % 2 else "even", "client": "yes"}
        await client.create(obj)

    async def names(**options):
        return [m.name for m in (await client.list(core.ConfigMap, namespace=namespace, **options)).metadata]

    assert await names(labels="parity=odd") == ["n1", "n3"]
    assert await names(labels={"parity": "even"}) == ["n0", "n2", "n4"]
    assert await names(labels="parity in (odd),client!=no") == ["n1", "n3"]
    assert await names(fields={"metadata.name": "n4"}) == ["n4"]
    assert await names(labels="parity=odd", fields="metadata.name=n1") == ["n1"]

    first = await client.list(core.ConfigMap, namespace=namespace, labels="client=yes", limit=2)
    assert [m.name for m in first.metadata] == ["n0", "n1"]
    assert first.continue_token
    rest = await client.list(
        core.ConfigMap, namespace=namespace, labels="client=yes", limit=2, continue_token=first.continue_token
    )
    assert [m.name for m in rest.metadata] == ["n2", "n3"]
    assert rest.resource_version == first.resource_version


async def test_a_watch_yields_changes_of_its_kind(client, namespace):
    start = (await client.list(core.ConfigMap, namespace=namespace)).resource_version
    obj = config_map(namespace, x="1")
    await client.create(obj)
    obj.data["x"] = "2"
    await client.update(obj)
    await client.delete(obj)

    seen = []
    async with asyncio.timeout(LONGEST_WAIT):
        async for event in client.watch(
            core.ConfigMap, namespace=namespace, fields="metadata.name=a", resource_version=start
        ):
            seen.append((event.type, event.object.data.get("x")))
            if event.type == "DELETED":
                break

    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


async def test_a_watch_ends_with_its_length(client, namespace):
    async with asyncio.timeout(LONGEST_WAIT):
        events = [event async for event in client.watch(Widget, namespace=namespace, timeout=1)]

    assert [event for event in events if event.type != "BOOKMARK"] == []


# --- options of writes -----------------------------------------------------------------------------------------------


async def test_a_dry_run_stores_nothing_and_leaves_the_object_alone(client, namespace):
    obj = config_map(namespace, x="1")

    answer = await client.create(obj, dry_run=True)
    assert answer is not obj
    assert answer.metadata.uid
    assert not obj.metadata.uid
    assert await client.get_or_none(core.ConfigMap, key(obj)) is None

    await client.create(obj)
    before = obj.deep_copy()
    changed = obj.deep_copy()
    changed.data["x"] = "2"
    assert (await client.update(changed, dry_run=True)).data == {"x": "2"}
    assert changed.metadata.resource_version == before.metadata.resource_version
    await client.patch(obj, merge_patch({"data": {"x": "3"}}), dry_run=True)
    assert obj == before
    await client.delete(obj, dry_run=True)
    await client.delete_all_of(core.ConfigMap, namespace=namespace, dry_run=True)
    assert (await client.get(core.ConfigMap, key(obj))).data == {"x": "1"}


async def test_the_field_owner_is_recorded(client, server, namespace):
    obj = config_map(namespace, x="1")

    await client.create(obj, field_owner="alice")
    await client.patch(obj, merge_patch({"data": {"y": "2"}}), field_owner="bob")

    assert {entry.manager for entry in obj.metadata.managed_fields} == {"alice", "bob"}


async def test_field_validation(client, namespace):
    def odd(name):
        return WidgetTree(metadata=meta.ObjectMeta(name=name, namespace=namespace), spec={"size": 1, "sise": 2})

    with pytest.raises(BadRequest, match="sise"):
        await client.create(odd("a"), field_validation="Strict")
    ignored = await client.create(odd("b"), field_validation="Ignore")
    assert ignored["spec"] == {"size": 1, "color": "blue"}
    warned = odd("c")
    await client.create(warned, field_validation="Warn")
    assert any("sise" in text for text in client._transport._warned)


async def test_preconditions_of_a_delete(client, namespace):
    obj = config_map(namespace)
    await client.create(obj)

    with pytest.raises(Conflict):
        await client.delete(obj, uid="somebody-else")
    with pytest.raises(Conflict):
        await client.delete(obj, resource_version="1")
    await client.delete(obj, uid=obj.metadata.uid, resource_version=obj.metadata.resource_version)

    with pytest.raises(NotFound):
        await client.delete(obj)


async def test_propagation_and_grace(client, namespace):
    obj = deployment(namespace)
    await client.create(obj)

    await client.delete(obj, propagation_policy="Foreground", grace_period_seconds=5)

    left = await client.get_or_none(apps.Deployment, key(obj))
    assert left is None or "foregroundDeletion" in left.metadata.finalizers


async def test_delete_all_of_takes_what_matches(client, namespace):
    for name, color in (("a", "red"), ("b", "red"), ("c", "green")):
        obj = config_map(namespace, name)
        obj.metadata.labels = {"color": color}
        await client.create(obj)

    await client.delete_all_of(core.ConfigMap, namespace=namespace, labels="color=red")

    left = await client.list(core.ConfigMap, namespace=namespace, labels="color")
    assert [m.name for m in left.metadata] == ["c"]
    await client.delete_all_of(core.ConfigMap, namespace=namespace, fields={"metadata.name": "c"})
    assert len(await client.list(core.ConfigMap, namespace=namespace, labels="color")) == 0
    with pytest.raises(ValueError, match="in one namespace"):
        await client.delete_all_of(core.ConfigMap)


# --- patches ---------------------------------------------------------------------------------------------------------


async def test_a_merge_patch_sends_the_difference(client, namespace):
    obj = config_map(namespace, x="1", y="2")
    await client.create(obj)
    stale = obj.deep_copy()
    obj.data["other"] = "kept"
    await client.update(obj)

    base = stale.deep_copy()
    del stale.data["x"]
    stale.data["y"] = "3"
    assert await client.patch(stale, merge_from(base)) is stale

    assert stale.data == {"y": "3", "other": "kept"}


async def test_an_optimistic_lock_refuses_a_stale_base(client, namespace):
    obj = config_map(namespace, x="1")
    await client.create(obj)
    stale = obj.deep_copy()
    obj.data["x"] = "2"
    await client.update(obj)

    base, before = stale.deep_copy(), stale.deep_copy()
    stale.data["x"] = before.data["x"] = "3"
    with pytest.raises(Conflict):
        await client.patch(stale, merge_from(base, optimistic_lock=True))
    assert stale == before, "a failed write leaves the object alone"

    base = obj.deep_copy()
    obj.data["x"] = "3"
    await client.patch(obj, merge_from(base, optimistic_lock=True))
    assert obj.data == {"x": "3"}


async def test_a_json_patch(client, namespace):
    obj = widget(namespace)
    await client.create(obj)

    await client.patch(obj, json_patch([{"op": "test", "path": "/spec/size", "value": 1},
                                        {"op": "replace", "path": "/spec/size", "value": 7}]))  # fmt: skip
    assert obj.spec.size == 7
    with pytest.raises(Invalid):
        await client.patch(obj, json_patch([{"op": "test", "path": "/spec/size", "value": 1}]))


async def test_a_strategic_patch_merges_lists_by_their_key(client, namespace):
    obj = deployment(namespace)
    await client.create(obj)

    change = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    await client.patch(obj, strategic_merge_patch(change))

    assert {container.name for container in obj.spec.template.spec.containers} == {"web", "side"}


# --- apply -----------------------------------------------------------------------------------------------------------


async def test_apply_owns_what_the_code_set(client, server, namespace):

    def desired(**data):
        return config_map(namespace, **data)

    applied = await client.apply(desired(x="1"), field_owner="mine")
    first = applied.metadata.resource_version
    assert applied.metadata.managed_fields[0].operation == "Apply"
    assert (await client.apply(desired(x="1"), field_owner="mine")).metadata.resource_version == first

    with pytest.raises(Conflict) as caught:
        await client.apply(desired(x="2"), field_owner="other")
    assert [cause.field for cause in caught.value.causes] == [".data.x"]
    assert "mine" in caught.value.causes[0].message
    assert (await client.apply(desired(x="2"), field_owner="other", force=True)).data == {"x": "2"}
    assert (await client.apply(desired(y="1"), field_owner="mine", dry_run=True)).data == {"x": "2", "y": "1"}
    assert (await client.get(core.ConfigMap, NamespacedName(namespace, "a"))).data == {"x": "2"}


async def test_apply_refuses_what_was_read(client, namespace):
    obj = await client.create(config_map(namespace, x="1"))

    with pytest.raises(ValueError, match="was read from the server"):
        await client.apply(obj, field_owner="mine")
    with pytest.raises(ValueError, match="field_owner is not set"):
        await client.apply(config_map(namespace, "b"))


async def test_status_is_applied_by_itself(client, server, namespace):
    await client.create(widget(namespace))
    mine = Widget(metadata=meta.ObjectMeta(name="a", namespace=namespace), status=WidgetStatus(ready=3))

    await client.status.apply(mine, field_owner="mine")

    assert mine.status.ready == 3
    assert mine.spec.size == 1


# --- subresources ----------------------------------------------------------------------------------------------------


async def test_status_and_the_rest_are_written_apart(client, namespace):
    obj = widget(namespace)
    obj.status.ready = 9
    await client.create(obj)
    assert obj.status.ready == 0, "create drops the status"

    obj.status.ready, obj.spec.size = 2, 5
    assert await client.status.update(obj) is obj
    assert (obj.status.ready, obj.spec.size) == (2, 1)
    obj.status.ready, obj.spec.size = 7, 5
    await client.update(obj)
    assert (obj.status.ready, obj.spec.size) == (2, 5)
    base = obj.deep_copy()
    obj.status.ready = 3
    await client.status.patch(obj, merge_from(base))
    assert (await client.status.get(obj, Widget)).status.ready == 3


async def test_scale_is_read_and_written(client, namespace):
    for obj in (widget(namespace, size=2), deployment(namespace)):
        await client.create(obj)
        scale = await client.subresource("scale").get(obj, autoscaling_v1.Scale)
        assert scale.spec.replicas == 2

        scale.spec.replicas = 4
        scale.metadata.resource_version = ""  # controllers write the Deployment's status at the same time
        assert await client.subresource("scale").update(obj, body=scale) is obj
        assert scale.spec.replicas == 4

        again = await client.get(type(obj), key(obj))
        assert (again.spec.size if isinstance(again, Widget) else again.spec.replicas) == 4


async def test_a_scale_without_a_name_gets_the_parents(client, namespace):
    obj = deployment(namespace)
    await client.create(obj)

    await client.subresource("scale").update(obj, body=autoscaling_v1.Scale(spec=autoscaling_v1.ScaleSpec(replicas=5)))

    assert (await client.get(apps.Deployment, key(obj))).spec.replicas == 5


async def test_a_subresource_that_is_not_there_is_named(client, namespace):
    obj = Gadget(metadata=meta.ObjectMeta(name="a", namespace=namespace))
    await client.create(obj)

    with pytest.raises(NoMatchError, match=r"the subresource 'status' of .*Gadget"):
        await client.status.update(obj)
    with pytest.raises(NoMatchError, match="'scale'"):
        await client.subresource("scale").get(obj, autoscaling_v1.Scale)


async def test_the_status_of_an_object_that_is_gone_is_not_found(client, namespace):
    with pytest.raises(NotFound):
        await client.status.update(widget(namespace, "gone"))


async def test_an_eviction_deletes_the_pod(client, namespace):
    pod = core.Pod(
        metadata=meta.ObjectMeta(name="a", namespace=namespace),
        spec=core.PodSpec(
            scheduler_name="nobody",
            containers=[core.Container(name="a", image="a")],
            termination_grace_period_seconds=0,
        ),
    )
    await client.create(pod)

    await client.subresource("eviction").create(pod, policy.Eviction())

    left = await client.get_or_none(core.Pod, key(pod))
    assert left is None or left.metadata.deletion_timestamp


async def test_a_token_is_asked_for(client, namespace):
    account = core.ServiceAccount(metadata=meta.ObjectMeta(name="a", namespace=namespace))
    await client.create(account)
    wanted = authentication.TokenRequest(spec=authentication.TokenRequestSpec(audiences=[], expiration_seconds=600))

    try:
        answer = await client.subresource("token").create(account, wanted)
    except NoMatchError:
        pytest.skip("this server issues no tokens")

    assert answer is wanted
    assert answer.status.token.count(".") == 2


# --- refusals --------------------------------------------------------------------------------------------------------


async def test_a_second_create_already_exists(client, namespace):
    await client.create(config_map(namespace, x="1"))
    again = config_map(namespace, x="2")

    with pytest.raises(AlreadyExists, match='configmaps "a" already exists'):
        await client.create(again)

    assert again == config_map(namespace, x="2")


async def test_a_stale_update_conflicts(client, namespace):
    obj = config_map(namespace, x="1")
    await client.create(obj)
    stale = obj.deep_copy()
    await client.patch(obj, merge_patch({"data": {"x": "2"}}))

    stale.data["x"] = "3"
    with pytest.raises(Conflict, match="the object has been modified"):
        await client.update(stale)

    assert stale.data == {"x": "3"}
    assert stale.metadata.resource_version != obj.metadata.resource_version


async def test_an_invalid_object_says_which_field(client, namespace):
    with pytest.raises(Invalid) as caught:
        await client.create(widget(namespace, size=11))
    assert [(cause.field, cause.reason) for cause in caught.value.causes] == [("spec.size", "FieldValueInvalid")]

    with pytest.raises(Invalid) as caught:
        await client.create(config_map(namespace, "Not_A_Name"))
    assert caught.value.causes[0].field == "metadata.name"


async def test_what_rbac_denies_is_forbidden(server, connect, namespace, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(server.add_user("nobody"))
    stranger = connect(str(path))

    with pytest.raises(Forbidden, match='User "nobody" cannot list resource "configmaps"'):
        await stranger.list(core.ConfigMap, namespace=namespace)
    with pytest.raises(Forbidden, match="cannot create"):
        await stranger.create(config_map(namespace))


async def test_a_namespace_that_is_not_there_is_not_found(client):
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        await client.create(config_map("nowhere"))
    assert len(await client.list(core.ConfigMap, namespace="nowhere")) == 0


async def test_a_kind_that_is_not_served_is_no_match(client, namespace):
    nothing = Unstructured.of("client.example.com/v1", "Nothing")

    with pytest.raises(NoMatchError, match=r"Nothing of client.example.com/v1.*nothings.client.example.com"):
        await client.get(nothing, NamespacedName(namespace, "a"))
    with pytest.raises(NoMatchError):
        await client.create(nothing(metadata=meta.ObjectMeta(name="a", namespace=namespace)))


async def test_a_kind_that_went_away_is_no_match(server, client, namespace):
    crd = definition("brieves", "Brief", {})
    brief = Unstructured.of("client.example.com/v1", "Brief")
    server.install_crds(crd)
    await client.create(brief(metadata=meta.ObjectMeta(name="a", namespace=namespace)))
    server.uninstall_crds(["brieves.client.example.com"])

    async def is_gone():
        try:
            await client.list(brief, namespace=namespace)
        except NoMatchError:
            return True
        return False

    await eventually(is_gone)
    await client.create(widget(namespace))  # the others of its group go on


async def test_a_class_the_scheme_does_not_know_is_not_registered(client, namespace):
    class Stranger(Object, group="client.example.com", version="v1"):
        pass

    with pytest.raises(NotRegisteredError, match="register"):
        await client.get(Stranger, NamespacedName(namespace, "a"))


async def test_names_and_namespaces_are_asked_for(client, namespace):
    with pytest.raises(ValueError, match="no namespace"):
        await client.get(core.ConfigMap, NamespacedName("", "a"))
    with pytest.raises(ValueError, match="no namespace"):
        await client.create(config_map(""))
    with pytest.raises(ValueError, match=r"metadata\.name"):
        await client.update(config_map(namespace, ""))
    with pytest.raises(ValueError, match="cannot be part of a name"):
        await client.get(core.ConfigMap, NamespacedName(namespace, "../secrets/a"))


async def test_generated_names_are_made_here_and_a_taken_one_is_replaced(connect, namespace):
    letters = iter("aaaaaaaaaabbbbb")
    client = connect(random_letter=lambda alphabet: next(letters))

    first, second = (
        core.ConfigMap(metadata=meta.ObjectMeta(generate_name="g-", namespace=namespace)) for _ in range(2)
    )
    await client.create(first)
    await client.create(second)

    assert (first.metadata.name, second.metadata.name) == ("g-aaaaa", "g-bbbbb")
    with pytest.raises(AlreadyExists):
        await client.create(config_map(namespace, "g-aaaaa"))


# --- wrappers --------------------------------------------------------------------------------------------------------


async def test_a_dry_run_client_stores_nothing(client, namespace):
    dry = dry_run(client)
    obj = config_map(namespace)

    await dry.create(obj, dry_run=False)
    assert await dry.get_or_none(core.ConfigMap, key(obj)) is None
    await client.create(obj)
    await dry.delete(obj)
    await dry.delete_all_of(core.ConfigMap, namespace=namespace)
    await dry.patch(obj, merge_patch({"data": {"a": "b"}}))
    thing = await client.create(widget(namespace))
    thing.status.ready = 5
    await dry.status.update(thing)

    assert (await client.get(core.ConfigMap, key(obj))).data == {}
    assert (await client.get(Widget, key(thing))).status.ready == 0


async def test_a_client_with_a_field_owner_writes_as_it(client, server, namespace):
    owned = with_field_owner(client, "alice")
    obj = config_map(namespace, x="1")

    await owned.create(obj)
    assert [entry.manager for entry in obj.metadata.managed_fields] == ["alice"]
    await owned.patch(obj, merge_patch({"data": {"x": "2"}}))
    await owned.patch(obj, merge_patch({"data": {"y": "1"}}), field_owner="bob")

    assert {entry.manager for entry in obj.metadata.managed_fields} == {"alice", "bob"}


async def test_a_client_with_field_validation_asks_for_it(client, namespace):
    strict = with_field_validation(client, "Strict")
    odd = WidgetTree(metadata=meta.ObjectMeta(name="a", namespace=namespace), spec={"sise": 2})

    with pytest.raises(BadRequest, match="sise"):
        await strict.create(odd)
    await strict.create(odd, field_validation="Ignore")


async def test_a_namespaced_client_fills_in_its_namespace_and_refuses_others(client, namespace):
    ours = namespaced(client, namespace)
    obj = config_map("", x="1")

    await ours.create(obj)
    assert obj.metadata.namespace == namespace
    assert (await ours.get(core.ConfigMap, NamespacedName("", "a"))).data == {"x": "1"}
    assert (await ours.api_reader.get(core.ConfigMap, NamespacedName("", "a"))).data == {"x": "1"}
    assert {m.namespace for m in (await ours.list(core.ConfigMap)).metadata} == {namespace}
    assert (await ours.get(core.Namespace, NamespacedName("", namespace))).metadata.name == namespace
    for refused in (
        ours.get(core.ConfigMap, NamespacedName("other", "a")),
        ours.list(core.ConfigMap, namespace="other"),
        ours.create(config_map("other")),
        ours.delete_all_of(core.ConfigMap, namespace="other"),
        ours.api_reader.list(core.ConfigMap, namespace="other"),
    ):
        with pytest.raises(ValueError, match=f"bound to '{namespace}'"):
            await refused

    await ours.delete_all_of(core.ConfigMap)
    assert await client.get_or_none(core.ConfigMap, key(obj)) is None


# --- who we are ------------------------------------------------------------------------------------------------------


async def test_impersonation(server, kinds, namespace):
    from ctrlruntime.rest import Impersonation

    config = get_config(str(server.kubeconfig_path))
    transport = Transport(dataclasses.replace(config, impersonate=Impersonation(user="jane", groups=("a", "b"))))
    client = APIClient(transport, RESTMapper(transport.fetch), Scheme())
    try:
        with pytest.raises(Forbidden, match='User "jane"'):
            await client.list(core.ConfigMap, namespace=namespace)
    finally:
        await transport.close()
