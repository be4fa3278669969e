"""Tracked children: what they bear, and what is refused."""

from __future__ import annotations

import pytest

from ctrlruntime.api import Object, core, gvk_for
from ctrlruntime.api.meta.v1 import ObjectMeta
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.errors import AlreadyOwnedError
from ctrlruntime.tracking import set_tracked_owner, tracked_owner, tracking_labels


class Memcached(Object, group="cache.example.com", version="v1"):
    pass


class MemcachedOfOld(Object, group="cache.example.com", version="v1alpha1", kind="Memcached"):
    pass


def memcached(name="parent", uid="u1", kind=Memcached):
    return kind(metadata=ObjectMeta(name=name, namespace="ns", uid=uid))


def child():
    return core.ConfigMap(metadata=ObjectMeta(name="child", namespace="far"))


def test_a_child_bears_its_owners_uid_as_label_and_its_name_as_annotation():
    obj = child()

    set_tracked_owner(memcached(), obj)

    assert obj.metadata.labels == {"cache.example.com/memcached-uid": "u1"} == tracking_labels(memcached())
    assert obj.metadata.annotations == {"cache.example.com/memcached": "ns/parent"}
    assert tracked_owner(gvk_for(Memcached), obj.metadata.annotations) == NamespacedName("ns", "parent")
    assert obj.metadata.owner_references == []


def test_the_version_of_the_kind_makes_no_difference_and_twice_is_once():
    obj = child()

    set_tracked_owner(memcached(), obj)
    set_tracked_owner(memcached(kind=MemcachedOfOld), obj)

    assert len(obj.metadata.labels) == 1


def test_a_name_longer_than_a_label_value_fits():
    obj = child()

    set_tracked_owner(memcached("n" * 200), obj)

    assert tracked_owner(gvk_for(Memcached), obj.metadata.annotations) == NamespacedName("ns", "n" * 200)


def test_a_kind_of_the_core_group_and_a_cluster_scoped_one_have_a_label_too():
    obj = child()

    set_tracked_owner(core.Namespace(metadata=ObjectMeta(name="team", uid="u")), obj)

    assert obj.metadata.labels == {"core/namespace-uid": "u"}
    assert tracked_owner(gvk_for(core.Namespace), obj.metadata.annotations) == NamespacedName("", "team")


def test_another_owner_of_the_kind_is_refused_and_named():
    obj = child()
    set_tracked_owner(memcached(), obj)

    with pytest.raises(AlreadyOwnedError, match=r"ConfigMap far/child is tracked by Memcached ns/parent"):
        set_tracked_owner(memcached("other", "u2"), obj)


def test_an_owner_that_was_never_read_is_refused():
    with pytest.raises(ValueError, match="has no uid"):
        set_tracked_owner(memcached(uid=""), child())


def test_an_object_without_the_annotation_has_no_tracked_owner():
    assert tracked_owner(gvk_for(Memcached), {}) is None
