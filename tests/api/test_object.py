from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import Field

from ctrlruntime.api import (
    GroupVersionKind,
    Model,
    NamespacedName,
    Object,
    ObjectList,
    PartialObjectMetadata,
    ScalePaths,
    Unstructured,
    apps,
    autoscaling,
    core,
    gvk_for,
    kind_of,
    meta,
    object_key,
)
from ctrlruntime.api.autoscaling import v1 as autoscaling_v1
from ctrlruntime.errors import DecodeError, NotRegisteredError


class MemcachedSpec(Model):
    size: int = Field(ge=0, description="Number of pods.")


class MemcachedStatus(Model):
    nodes: list[str] = Field(default_factory=list)


class Memcached(Object, group="cache.example.com", version="v1alpha1", short_names=("mc",)):
    """A group of memcached servers."""

    spec: MemcachedSpec
    status: MemcachedStatus = Field(default_factory=MemcachedStatus)


def memcached(**keywords: Any) -> Memcached:
    return Memcached(metadata=meta.ObjectMeta(name="a", namespace="b"), spec=MemcachedSpec(size=0), **keywords)


def test_kind_and_api_version_are_filled_and_first() -> None:
    written = memcached().to_json()

    assert written == (
        b'{"apiVersion":"cache.example.com/v1alpha1","kind":"Memcached",'
        b'"metadata":{"name":"a","namespace":"b"},"spec":{"size":0}}'
    )
    assert Memcached.from_json(b'{"spec":{"size":1}}').kind == "Memcached"


def test_class_keywords_have_defaults() -> None:
    info = kind_of(Memcached)

    assert gvk_for(Memcached) == gvk_for(memcached()) == GroupVersionKind("cache.example.com", "v1alpha1", "Memcached")
    assert (info.plural, info.singular, info.list_kind) == ("memcacheds", "memcached", "MemcachedList")
    assert (info.scope, info.short_names, info.served, info.storage, info.scale) == (
        "Namespaced",
        ("mc",),
        True,
        None,
        None,
    )
    assert str(info.gvk) == "cache.example.com/v1alpha1, Kind=Memcached"
    assert str(info.gvr) == "cache.example.com/v1alpha1, Resource=memcacheds"


def test_class_keywords_are_inherited() -> None:
    class Base(Object, group="g.example.com", version="v1", scope="Cluster", categories=("all",)): ...

    class One(Base, plural="oneses", scale=ScalePaths(".spec.n", ".status.n"), storage=True): ...

    class OneV2(One, version="v2", kind="One"): ...

    class Two(One): ...

    assert (kind_of(One).scope, kind_of(One).categories) == ("Cluster", ("all",))
    assert (kind_of(OneV2).plural, kind_of(OneV2).scale) == ("oneses", ScalePaths(".spec.n", ".status.n"))
    assert kind_of(OneV2).storage is None
    assert kind_of(Two).plural == "twos"
    assert OneV2().api_version == "g.example.com/v2"
    assert (OneV2().kind, One().kind, One().api_version) == ("One", "One", "g.example.com/v1")


def test_the_life_of_a_version_is_not_inherited_by_the_next_and_its_shape_is() -> None:
    life: dict[str, Any] = {"storage": True, "served": False, "skip": True, "deprecated": "use v2"}
    shape: dict[str, Any] = {"selectable_fields": (".spec.a",), "scale": ScalePaths(".spec.n", ".status.n")}

    class Old(Object, group="g.example.com", version="v1", kind="One", **life, **shape): ...

    class New(Old, version="v2"): ...

    class Same(Old): ...

    old, new = kind_of(Old), kind_of(New)
    assert (new.storage, new.served, new.skip, new.deprecated) == (None, True, False, False)
    assert (new.selectable_fields, new.scale) == (old.selectable_fields, old.scale)
    assert not kind_of(Same).served


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"gruop": "g"}, "unknown class keyword 'gruop'; did you mean 'group'"),
        ({"group": "g", "version": "v1", "scope": "Namespace"}, "scope is 'Namespaced' or 'Cluster'"),
        ({"group": "g/v1", "version": "v1"}, "give group="),
        ({"short_names": "mc"}, r"short_names=\('mc',\)"),
    ],
)
def test_wrong_class_keywords_are_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        type("Wrong", (Object,), {"__module__": __name__}, **keywords)


def test_a_class_without_group_and_version_is_no_kind() -> None:
    class Nothing(Object): ...

    with pytest.raises(NotRegisteredError, match=r"class Nothing\(Object, group=…, version=…\)"):
        gvk_for(Nothing)
    with pytest.raises(NotRegisteredError, match=r"Unstructured\.of"):
        gvk_for(Unstructured)
    with pytest.raises(NotRegisteredError, match=r"PartialObjectMetadata\.of"):
        gvk_for(PartialObjectMetadata)


def test_another_kind_is_refused() -> None:
    with pytest.raises(DecodeError, match="the object is a apps/v1 Deployment, and Memcached is cache"):
        Memcached.from_dict({**apps.Deployment().to_dict(), "spec": {"size": 1}})


def test_metadata_is_never_none() -> None:
    assert core.Pod().metadata == meta.ObjectMeta()
    assert core.Pod.from_json('{"metadata":null}').metadata.labels == {}


def test_key_is_hashable() -> None:
    assert {object_key(memcached()): 1} == {NamespacedName("b", "a"): 1}
    assert str(object_key(memcached())) == "b/a"


def test_preferred_and_other_versions_of_a_group() -> None:
    assert autoscaling.HorizontalPodAutoscaler().api_version == "autoscaling/v2"
    assert autoscaling_v1.HorizontalPodAutoscaler().api_version == "autoscaling/v1"


def test_explicit_zeros_of_built_in_kinds_survive() -> None:
    deployment = apps.Deployment()
    deployment.spec.replicas = 0
    deployment.spec.template.spec.volumes = [core.Volume(name="v", empty_dir=core.EmptyDirVolumeSource())]

    spec = deployment.to_dict()["spec"]

    assert spec["replicas"] == 0
    assert spec["template"]["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert "strategy" not in spec
    assert "status" not in deployment.to_dict()


def test_secrets_hold_bytes() -> None:
    secret = core.Secret.from_json('{"data":{"k":"AAEC+/8="}}')

    assert secret.data == {"k": b"\x00\x01\x02\xfb\xff"}
    assert core.Secret(data={"k": b"\xfb\xff"}).to_dict()["data"] == {"k": "+/8="}


# Apply.


def test_apply_holds_what_the_code_set() -> None:
    deployment = apps.Deployment(metadata=meta.ObjectMeta(name="d", namespace="n", labels={"a": "b"}))
    deployment.spec.replicas = 0

    assert deployment.apply_payload() == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n", "labels": {"a": "b"}},
        "spec": {"replicas": 0},
    }


def test_apply_leaves_out_what_is_the_servers() -> None:
    desired = memcached(status=MemcachedStatus(nodes=["x"]))
    desired.metadata.resource_version = "5"
    desired.metadata.generation = 2

    assert desired.apply_payload()["metadata"] == {"name": "a", "namespace": "b"}
    assert "status" not in desired.apply_payload()


def test_a_status_apply_holds_the_status_alone() -> None:
    desired = memcached(status=MemcachedStatus(nodes=["x"]))

    payload = desired.apply_payload(subresource="status")

    assert payload == {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": "a", "namespace": "b"},
        "status": {"nodes": ["x"]},
    }


def test_apply_refuses_an_object_read_from_the_server() -> None:
    read = Memcached.from_dict({"metadata": {"name": "a", "namespace": "b", "uid": "1"}, "spec": {"size": 1}})
    disguised = read.deep_copy()
    disguised.metadata.uid = ""
    refreshed = memcached()
    refreshed.refresh(read)

    for obj in (read, disguised, refreshed, copy.deepcopy(disguised)):
        with pytest.raises(ValueError, match=r"Memcached b/a was read from the server.* Build a fresh Memcached\("):
            obj.apply_payload()


def test_apply_takes_a_manifest() -> None:
    desired = Memcached.from_yaml("metadata: {name: a}\nspec: {size: 1}\n")

    assert desired.apply_payload()["spec"] == {"size": 1}


def test_apply_needs_a_name() -> None:
    with pytest.raises(ValueError, match=r"no metadata\.name"):
        apps.Deployment().apply_payload()


# Kinds without a class.


def test_unstructured_of_is_the_class_of_a_kind() -> None:
    kind = Unstructured.of("example.com/v1", "Widget")

    widget = kind(metadata=meta.ObjectMeta(name="w"), spec={"size": 0, "x": None})

    assert kind is Unstructured.of("example.com/v1", "Widget")
    assert gvk_for(kind) == GroupVersionKind("example.com", "v1", "Widget")
    assert widget.to_dict() == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 0, "x": None},
    }
    assert isinstance(widget, Unstructured)


def test_unstructured_keeps_everything() -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Foo",
        "metadata": {"name": "a"},
        "spec": {"n": None, "z": 0, "e": {}, "l": []},
    }

    foo = Unstructured.from_dict(document)

    assert foo.to_dict() == document
    assert gvk_for(foo) == GroupVersionKind("", "v1", "Foo")
    assert (foo["spec"]["z"], "spec" in foo, "status" in foo) == (0, True, False)


def test_unstructured_is_changed_by_wire_names_and_paths() -> None:
    foo = Unstructured.of("v1", "Foo")()

    foo["spec"] = {"a": [1, 2]}
    foo.set_path("status", "phase", value="Ready")
    foo.metadata.labels["x"] = "y"

    assert foo.get_path("spec", "a", 1) == 2
    assert foo.get_path("spec", "b", "c", default="none") == "none"
    assert foo.to_dict()["status"] == {"phase": "Ready"}
    assert foo.to_dict()["metadata"] == {"labels": {"x": "y"}}
    del foo["spec"]
    assert "spec" not in foo
    with pytest.raises(KeyError, match=r"use \.metadata"):
        foo["metadata"]
    with pytest.raises(TypeError, match="phase holds a str"):
        foo.set_path("status", "phase", "x", value=1)


def test_unstructured_is_compared_and_copied_by_content() -> None:
    foo = Unstructured.of("v1", "Foo").from_dict({"spec": {"a": [1]}})
    other = foo.deep_copy()

    assert foo == other
    other["spec"]["a"].append(2)
    assert foo != other


def test_partial_metadata_is_a_kinds_metadata_alone() -> None:
    kind = PartialObjectMetadata.of(apps.Deployment)

    partial = kind.from_json(
        '{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"},"spec":{"replicas":1}}'
    )

    assert kind is PartialObjectMetadata.of(apps.Deployment)
    assert partial.to_dict() == {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
    assert gvk_for(kind) == gvk_for(apps.Deployment)
    assert kind_of(PartialObjectMetadata.of(core.Node)).scope == "Cluster"
    assert gvk_for(PartialObjectMetadata.of(Unstructured.of("v1", "Foo"))) == GroupVersionKind("", "v1", "Foo")


# Lists.


def test_a_list_is_a_sequence_of_typed_items() -> None:
    pods = ObjectList.from_json(
        core.Pod, b'{"metadata":{"resourceVersion":"5","continue":"c"},"items":[{"metadata":{"name":"a"}},{}]}'
    )

    assert [pod.metadata.name for pod in pods] == ["a", ""]
    assert (len(pods), pods[0].kind, pods[-1].api_version) == (2, "Pod", "v1")
    assert (pods.metadata.resource_version, pods.metadata.continue_) == ("5", "c")
    assert pods[:1] == [pods[0]]
    assert pods.to_dict()["kind"] == "PodList"


def test_a_list_whose_items_are_null_is_empty() -> None:
    assert list(ObjectList.from_json(core.Pod, b'{"items":null}')) == []


def test_a_list_that_is_no_json_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match="cannot read a list of Pod"):
        ObjectList.from_json(core.Pod, b"{")
