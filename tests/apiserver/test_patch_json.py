from __future__ import annotations

import pytest

from ctrlruntime.apiserver.patch import json_patch
from ctrlruntime.errors import PatchError


def document():
    return {"a": {"b": "1", "l": ["x", "y"]}, "n": None}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/a/c", "value": 2}], {"b": "1", "l": ["x", "y"], "c": 2}),
        ([{"op": "add", "path": "/a/c"}], {"b": "1", "l": ["x", "y"], "c": None}),
        ([{"op": "add", "path": "/a/l/-", "value": "z"}], {"b": "1", "l": ["x", "y", "z"]}),
        ([{"op": "add", "path": "/a/l/2", "value": "z"}], {"b": "1", "l": ["x", "y", "z"]}),
        ([{"op": "remove", "path": "/a/l/-1"}], {"b": "1", "l": ["x"]}),
        ([{"op": "replace", "path": "/a/new", "value": "1"}], {"b": "1", "l": ["x", "y"], "new": "1"}),
        ([{"op": "move", "from": "/a/l/0", "path": "/a/l/1"}], {"b": "1", "l": ["y", "x"]}),
        ([{"op": "copy", "from": "/a/no", "path": "/a/c"}], {"b": "1", "l": ["x", "y"], "c": None}),
        ([{"op": "add", "path": "/a/p~1q~0r", "value": 1}], {"b": "1", "l": ["x", "y"], "p/q~r": 1}),
        ([{"op": "test", "path": "/a/b", "value": "1"}], {"b": "1", "l": ["x", "y"]}),
        ([{"op": "test", "path": "/a/no", "value": None}], {"b": "1", "l": ["x", "y"]}),
    ],
)
def test_operations_apply_as_the_servers_library_does(operations, expected):
    assert json_patch.apply(document(), operations)["a"] == expected


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            {"op": "remove", "path": "/a/no"},
            "error in remove for path: '/a/no': Unable to remove nonexistent key: no: missing value",
        ),
        (
            {"op": "remove", "path": "/no/b"},
            'remove operation does not apply: doc is missing path: "/no/b": missing value',
        ),
        (
            {"op": "add", "path": "/a/l/5", "value": 1},
            "error in add for path: '/a/l/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            {"op": "replace", "path": "/a/l/5", "value": 1},
            "replace operation does not apply: doc is missing key: /a/l/5: missing value",
        ),
        ({"op": "test", "path": "/a/b", "value": 1}, "testing value /a/b failed: test failed"),
        ({"op": "test", "path": "/a/l", "value": [True]}, "testing value /a/l failed: test failed"),
        ({"op": "foo", "path": "/a"}, "Unexpected kind: foo"),
        ({"path": "/a"}, "Unexpected kind: unknown"),
        ({"op": "add", "value": 1}, "add operation failed to decode path: missing value"),
    ],
)
def test_what_does_not_apply_is_said_in_the_servers_words(operation, message):
    with pytest.raises(PatchError) as raised:
        json_patch.apply(document(), [operation])

    assert str(raised.value) == message


def test_a_copy_shares_nothing_with_its_source():
    changed = json_patch.apply(
        document(), [{"op": "copy", "from": "/a", "path": "/c"}, {"op": "add", "path": "/c/b", "value": "2"}]
    )

    assert changed["a"]["b"] == "1"


def test_the_whole_document_may_be_replaced():
    assert json_patch.apply(document(), [{"op": "replace", "path": "", "value": [1]}]) == [1]


def test_copies_may_add_only_so_much():
    operations = [{"op": "copy", "from": "/a", "path": f"/c{number}"} for number in range(3)]

    with pytest.raises(PatchError, match="accumulated size increase of copy is 46, exceeding the limit 40"):
        json_patch.apply(document(), operations, copy_limit=40)


def test_numbers_are_compared_as_they_are_written():
    with pytest.raises(PatchError, match="test failed"):
        json_patch.apply({"n": 1}, [{"op": "test", "path": "/n", "value": 1.0}])


def test_a_patch_keeps_its_own_values():
    operations = [{"op": "add", "path": "/new", "value": {"x": []}}, {"op": "add", "path": "/new/x/-", "value": 1}]

    assert json_patch.apply(document(), operations) == json_patch.apply(document(), operations)
