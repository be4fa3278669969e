"""What a cache holds: which option wins, what is refused, and which requests follow from it."""

from __future__ import annotations

import math

import pytest

from ctrlruntime.api.core import v1 as core
from ctrlruntime.cache.options import ByObject, CacheOptions, NamespaceOptions
from ctrlruntime.cache.reflector import WatchOptions
from ctrlruntime.cache.scope import Scope
from ctrlruntime.selector import NOTHING, parse_labels


def scope(namespace="", labels="", fields="", besides=(), *, transform=None, sync_period=36_000.0):
    return Scope(namespace, parse_labels(labels) if labels else None, fields, tuple(besides), transform, sync_period)


@pytest.mark.parametrize(
    ("options", "kind", "scopes"),
    [
        # nothing said: everything
        (CacheOptions(), None, [scope()]),
        (CacheOptions(namespaces=[]), None, [scope()]),
        (CacheOptions(namespaces={}), ByObject(), [scope()]),
        # the default
        (CacheOptions(namespaces=["a", "b"]), None, [scope("a"), scope("b")]),
        (CacheOptions(labels="x=1", fields="f=2"), None, [scope("", "x=1", "f=2")]),
        # the kind against the default
        (CacheOptions(namespaces=["a"]), ByObject(namespaces=["b"]), [scope("b")]),
        (CacheOptions(namespaces=["a"]), ByObject(namespaces=[]), [scope()]),
        (CacheOptions(labels="x=1", fields="f=2"), ByObject(labels="x=3"), [scope("", "x=3", "f=2")]),
        # the default entry for a namespace against the default
        (
            CacheOptions(namespaces={"a": NamespaceOptions(labels="x=5"), "b": NamespaceOptions()}, labels="x=1"),
            None,
            [scope("a", "x=5"), scope("b", "x=1")],
        ),
        # the kind against the default entry for a namespace
        (
            CacheOptions(namespaces={"a": NamespaceOptions(labels="x=5", fields="f=6")}),
            ByObject(labels="x=3"),
            [scope("a", "x=3", "f=6")],
        ),
        # the kind's entry for a namespace against all others
        (
            CacheOptions(namespaces={"a": NamespaceOptions(labels="x=5", fields="f=6")}, labels="x=1"),
            ByObject(namespaces={"a": NamespaceOptions(labels="x=7")}, labels="x=3"),
            [scope("a", "x=7", "f=6")],
        ),
        # a kind with namespaces of its own still takes the selectors of the default entry for them
        (
            CacheOptions(namespaces={"a": NamespaceOptions(labels="x=5")}),
            ByObject(namespaces=["a", "b"]),
            [scope("a", "x=5"), scope("b")],
        ),
        # everything else beside some
        (
            CacheOptions(namespaces={"": NamespaceOptions(labels="x=1"), "b": NamespaceOptions(), "a": NamespaceOptions()}),
            None,
            [scope("", "x=1", "metadata.namespace!=a,metadata.namespace!=b", ["a", "b"]), scope("b"), scope("a")],
        ),
        (CacheOptions(namespaces=[""], fields="f=2"), None, [scope("", "", "f=2")]),
        # transform and sync period follow the same order
        (
            CacheOptions(
                namespaces={"a": NamespaceOptions(transform=dict, sync_period=5), "b": NamespaceOptions()},
                transform=sorted,
                sync_period=7,
            ),
            None,
            [scope("a", transform=dict, sync_period=5), scope("b", transform=sorted, sync_period=7)],
        ),
        (
            CacheOptions(namespaces={"a": NamespaceOptions(transform=dict, sync_period=5)}, sync_period=None),
            ByObject(namespaces={"a": NamespaceOptions(sync_period=math.inf), "b": NamespaceOptions()}, transform=sorted),
            [scope("a", transform=sorted, sync_period=None), scope("b", transform=sorted, sync_period=None)],
        ),
    ],
)  # fmt: skip
def test_the_most_exact_option_wins(options, kind, scopes):
    assert options.scopes(kind, namespaced=True) == scopes


def test_a_cluster_scoped_kind_ignores_default_namespaces_but_not_selectors():
    options = CacheOptions(namespaces={"a": NamespaceOptions(labels="x=5")}, labels="x=1")

    assert options.scopes(None, namespaced=False) == [scope("", "x=1")]
    assert options.scopes(ByObject(labels="x=2"), namespaced=False) == [scope("", "x=2")]


def test_namespaces_of_its_own_for_a_cluster_scoped_kind_are_refused():
    with pytest.raises(ValueError, match="cluster-scoped"):
        CacheOptions().scopes(ByObject(namespaces=["a"]), namespaced=False)
    assert CacheOptions().scopes(ByObject(namespaces=[]), namespaced=False) == [scope()]


def test_none_inherits_and_false_does_not():
    short, long = WatchOptions(page_size=1), WatchOptions(page_size=2)
    options = CacheOptions(keep_managed_fields=True, watch=short)

    same = options.for_kind(ByObject())
    other = options.for_kind(ByObject(keep_managed_fields=False, watch=long))

    assert options.for_kind(None) == same
    assert (same.keep_managed_fields, same.watch) == (True, short)
    assert (other.keep_managed_fields, other.watch) == (False, long)


def test_defaults_are_those_of_controller_runtime():
    options = CacheOptions()

    assert options.sync_period == 36_000
    assert options.on_missing_informer == "start"
    assert not options.keep_managed_fields
    assert options.watch.backoff == (0.8, 30.0)
    assert options.watch.page_size == 500


def test_the_callers_mappings_are_kept_apart():
    namespaces, kinds = {"a": NamespaceOptions()}, {}
    options = CacheOptions(namespaces=namespaces, by_object=kinds)

    namespaces["b"] = NamespaceOptions()
    kinds[core.Pod] = ByObject()

    assert [found.namespace for found in options.scopes(None, namespaced=True)] == ["a"]
    assert options.by_object == {}


def test_an_iterator_of_namespaces_serves_every_kind():
    options = CacheOptions(namespaces=iter(["a"]))

    for _ in range(2):
        assert options.scopes(None, namespaced=True) == [scope("a")]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"namespaces": "default"}, r"write \['default'\]"),
        ({"labels": "a=b=c"}, "found '='"),
        ({"labels": NOTHING}, "matches nothing"),
        ({"fields": "a"}, "invalid selector"),
        ({"sync_period": 0}, "sync_period"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(wrong, message):
    for options in (CacheOptions, ByObject):
        with pytest.raises((ValueError, TypeError), match=message):
            options(**wrong)


def test_a_timeout_of_nothing_is_refused():
    with pytest.raises(ValueError, match="sync_timeout"):
        CacheOptions(sync_timeout=0)


def test_selectors_of_a_namespace_are_checked_too():
    with pytest.raises(ValueError, match="invalid selector"):
        NamespaceOptions(fields="x")
