"""Merge and comparison by the types of fields."""

import pytest
from apply_types import TEXT, TYPE

from ctrlruntime.apiserver.apply.merge import compare_fields, merge, named_fields, settled, with_declared
from ctrlruntime.apiserver.apply.types import Compiler, ItemKeyError, Type


def compared(old, new):
    changed, removed = {}, {}
    compare_fields(TYPE, old, new, changed, removed)
    return changed, removed


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        ({"size": 1}, {"size": 1}, {}, {}),
        ({"size": 1}, {"size": 2}, {"f:size": {}}, {}),
        ({}, {"options": {"a": "1"}}, {"f:options": {".": {}, "f:a": {}}}, {}),
        ({"options": None}, {"options": {"a": "1"}}, {"f:options": {"f:a": {}}}, {}),
        ({"options": {"a": "1"}}, {"options": {}}, {}, {"f:options": {"f:a": {}}}),
        ({"options": {"a": "1"}}, {}, {}, {"f:options": {".": {}, "f:a": {}}}),
        ({"options": {}}, {"options": None}, {"f:options": {}}, {}),
        ({"whole": {"a": "1"}}, {"whole": {"b": "1"}}, {"f:whole": {}}, {}),
        ({"steps": ["a"]}, {"steps": ["a", "b"]}, {"f:steps": {}}, {}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {}, {}),
        ({"tags": ["a"]}, {"tags": ["b"]}, {"f:tags": {'v:"b"': {}}}, {"f:tags": {'v:"a"': {}}}),
        (
            {"items": [{"name": "x", "size": 1}]},
            {"items": [{"name": "x", "kind": "K", "size": 2}]},
            {"f:items": {'k:{"kind":"K","name":"x"}': {"f:kind": {}, "f:size": {}}}},
            {},
        ),
        ({"free": {"a": 1}}, {"free": {"a": {"b": 1}}}, {"f:free": {"f:a": {".": {}, "f:b": {}}}}, {}),
        ({"free": {"a": {"b": 1}}}, {"free": {"a": 1}}, {"f:free": {"f:a": {}}}, {"f:free": {"f:a": {"f:b": {}}}}),
        ({"tags": ["a", "a"]}, {"tags": ["a"]}, {"f:tags": {'v:"a"': {}}}, {"f:tags": {'v:"a"': {}}}),
    ],
)
def test_what_changed_and_what_is_gone(old, new, changed, removed):
    assert compared(old, new) == (changed, removed)


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({"size": 1}, {"f:size": {}}),
        ({"options": {"a": "1"}}, {"f:options": {"f:a": {}}}),
        ({"options": {}}, {"f:options": {}}),
        ({"options": None}, {"f:options": {}}),
        ({"tags": []}, None),
        ({"steps": []}, {"f:steps": {}}),
        ({"items": [{"name": "x"}]}, {"f:items": {'k:{"kind":"K","name":"x"}': {".": {}, "f:name": {}}}}),
        ({"free": {"a": {"b": 1}, "c": {}}}, {"f:free": {"f:a": {".": {}, "f:b": {}}, "f:c": {}}}),
    ],
)
def test_what_a_configuration_names(config, fields):
    assert named_fields(TYPE, config) == fields


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        (["a", "b", "c"], ["c", "a"], ["b", "c", "a"]),
        (["a", "b"], ["x", "b"], ["a", "x", "b"]),
        (["a"], ["b", "c"], ["a", "b", "c"]),
        ([], ["b", "a"], ["b", "a"]),
        (["a", "b"], [], ["a", "b"]),
    ],
)
def test_lists_keep_the_order_of_the_configuration(live, config, merged):
    kind = TYPE.fields["tags"]

    assert merge(kind, live, config) == merged
    if len(set(live) & set(config)) < 2:
        assert [item for item in merged if item in live] == live


def test_a_merge_changes_none_of_its_arguments():
    live = {"options": {"a": "1"}, "items": [{"name": "x", "kind": "K", "size": 1}], "whole": {"a": "1"}}
    config = {"options": {"b": "1"}, "items": [{"name": "x", "size": 2}], "whole": {"b": "1"}}

    merged = merge(TYPE, live, config)

    assert merged == {
        "options": {"a": "1", "b": "1"},
        "items": [{"name": "x", "kind": "K", "size": 2}],
        "whole": {"b": "1"},
    }
    assert live["items"] == [{"name": "x", "kind": "K", "size": 1}]
    assert config["items"] == [{"name": "x", "size": 2}]


def test_a_null_of_fields_with_owners_changes_nothing():
    assert merge(TYPE, {"options": {"a": "1"}, "size": 1}, {"options": None, "size": None}) == {
        "options": {"a": "1"},
        "size": None,
    }


def test_declared_fields_go_with_what_is_below_them():
    fields = {"f:options": {"f:a": {}}, "f:items": {'k:{"kind":"K","name":"x"}': {"f:size": {}}}}

    assert with_declared(TYPE, fields) == {
        "f:options": {".": {}, "f:a": {}},
        "f:items": {".": {}, 'k:{"kind":"K","name":"x"}': {"f:size": {}}},
    }


def test_an_item_without_any_key_is_refused():
    schema = {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": TEXT}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            }
        },
    }
    kind = Compiler().custom(schema, Type()).fields["items"]

    with pytest.raises(ItemKeyError, match="omits all key fields"):
        kind.step({"other": 1})


def test_what_has_become_one_value_has_one_owner():
    fields = {
        "f:whole": {".": {}, "f:a": {}},
        "f:steps": {'v:"a"': {}},
        "f:options": {"f:a": {}},
        "f:items": {'k:{"kind":"K","name":"x"}': {"f:size": {}}},
        "f:free": {"f:a": {"f:b": {}}},
    }

    assert settled(TYPE, fields) == {**fields, "f:whole": {}, "f:steps": {}}
