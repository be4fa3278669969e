from __future__ import annotations

import pytest

from ctrlruntime.errors import PatchError
from ctrlruntime.patch import apply_json_patch, apply_merge_patch, create_json_patch, create_merge_patch


@pytest.mark.parametrize(  # the examples of RFC 7386, appendix A
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_the_rfc(document, patch, expected):
    assert apply_merge_patch(document, patch) == expected


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({}, {"a": [None, {"b": None, "c": [{"d": None}]}]}, {"a": [None, {"c": [{}]}]}),
        ({"a": [1]}, {"a": [[{"b": None}]]}, {"a": [[{}]]}),
        ({"a": {}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ({"a": None}, {"a": {"b": None}}, {"a": {}}),
    ],
)
def test_nulls_in_lists_are_as_the_api_server_has_them(document, patch, expected):
    assert apply_merge_patch(document, patch) == expected


def test_merge_patch_leaves_its_inputs_alone():
    document, patch = {"a": {"b": 1}}, {"a": {"c": 2}}

    apply_merge_patch(document, patch)

    assert (document, patch) == ({"a": {"b": 1}}, {"a": {"c": 2}})


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}),
        ({"a": True}, {"a": 1}, {"a": 1}),
        ({}, {"x": {}}, {"x": {}}),
    ],
)
def test_create_merge_patch_is_minimal_and_applies(old, new, patch):
    assert create_merge_patch(old, new) == patch
    assert apply_merge_patch(old, patch) == new


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": {"b": 1}}], {"a": {"b": 1}}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": 1, "m~n": 2}, [{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/m~0n"}], {}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
        ({"a": 1}, [{"op": "test", "path": "/b", "value": None}], {"a": 1}),
        ({"a": None}, [{"op": "replace", "path": "/a", "value": 1}], {"a": 1}),
    ],
)
def test_json_patch_operations(document, operations, expected):
    assert apply_json_patch(document, operations) == expected


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "test", "path": "/a", "value": 2}, "testing value /a failed"),
        ({"op": "test", "path": "/a", "value": True}, "testing value /a failed"),
        ({"op": "remove", "path": "/x"}, "path /x does not exist"),
        ({"op": "replace", "path": "/x/y", "value": 1}, "path /x/y does not exist"),
        ({"op": "add", "path": "/x/y", "value": 1}, "path /x/y does not exist"),
        ({"op": "add", "path": "/l/9", "value": 1}, "index 9 is outside of the list at /l/9"),
        ({"op": "add", "path": "/l/01", "value": 1}, "'01' is not a list index"),
        ({"op": "add", "path": "/a/b", "value": 1}, "path /a/b does not exist"),
        ({"op": "add", "path": "a", "value": 1}, "must start with '/'"),
        ({"op": "add", "path": "/a"}, "has no value"),
        ({"op": "move", "path": "/a"}, "has no from"),
        ({"op": "move", "from": "/o", "path": "/o/p"}, "cannot move /o into itself"),
        ({"op": "remove", "path": ""}, "cannot remove the whole document"),
        ({"op": "jump", "path": "/a"}, "unknown JSON patch operation: 'jump'"),
        ({"op": "add"}, "has no path"),
        ("add", "must be an object"),
    ],
)
def test_json_patch_errors_say_what_failed(operation, message):
    document = {"a": 1, "l": [1, 2], "o": {"p": 1}}

    with pytest.raises(PatchError) as caught:
        apply_json_patch(document, [{"op": "add", "path": "/new", "value": 1}, operation])

    assert message in str(caught.value)
    assert document == {"a": 1, "l": [1, 2], "o": {"p": 1}}


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ({"a": 1}, {"a": 1}, 0),
        ({"a": 1, "b": 2}, {"a": 2, "c": 3}, 3),
        ({"l": [1, 2, 3]}, {"l": [1, 9, 2, 3]}, 1),
        ({"l": [1, 2, 3]}, {"l": [3]}, 2),
        ({"l": [{"a": 1}, {"b": 1}]}, {"l": [{"a": 2}, {"b": 1}]}, 1),
        ({"l": []}, {"l": [1, 2]}, 2),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, 1),
        ([1], {"a": 1}, 1),
    ],
)
def test_create_json_patch_applies_and_is_small(old, new, count):
    operations = create_json_patch(old, new)

    assert len(operations) == count
    assert apply_json_patch(old, operations) == new


def test_copies_stop_at_their_limit():
    document = {"a": "x" * 100}
    doubling = [{"op": "copy", "from": "", "path": f"/b{i}"} for i in range(30)]
    with pytest.raises(PatchError, match="copy operations add"):
        apply_json_patch(document, doubling, copy_limit=10_000)
    assert apply_json_patch(document, doubling[:1], copy_limit=10_000)["b0"] == document
