from __future__ import annotations

import pytest

from ctrlruntime.errors import PatchError
from ctrlruntime.patch import (
    FailedTestError,
    apply_json_patch,
    apply_merge_patch,
    create_json_patch,
    create_merge_patch,
    equal,
)


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


_HUGE = 10**40


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        (None, {}, False),
        ([], {}, False),
        ({"a": [1, {"b": 0}]}, {"a": [True, {"b": 0}]}, False),
        ({"a": [1, {"b": 0}]}, {"a": [1, {"b": False}]}, False),
        ({"a": True}, {"a": True}, True),
        ({"a": 1, "b": 2.0}, {"b": 2, "a": 1.0}, True),
        ({"a": 1, "b": True}, {"b": 1, "a": 1}, False),
        ({"a": _HUGE}, {"a": _HUGE}, True),
        ({"a": _HUGE, "b": 1}, {"a": _HUGE, "b": True}, False),
        ({"a": "\ud800"}, {"a": "\ud800"}, True),
        ([1, 2], [1, 2, 3], False),
    ],
)
def test_documents_are_equal_as_json(left, right, expected):
    assert equal(left, right) is equal(right, left) is expected


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
    assert apply_json_patch(document(), operations)["a"] == expected


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
        (
            {"op": "add", "path": "/a/b/c", "value": 1},
            'add operation does not apply: doc is missing path: "/a/b/c": missing value',
        ),
        (
            {"op": "add", "path": "a", "value": 1},
            'add operation does not apply: doc is missing path: "a": missing value',
        ),
        ({"op": "remove", "path": ""}, 'remove operation does not apply: doc is missing path: "": missing value'),
        ({"op": "move", "path": "/a"}, "move operation failed to decode from: missing value"),
        (
            {"op": "move", "from": "/a", "path": "/a/b"},
            "move operation does not apply: doc is missing destination path: /a/b: missing value",
        ),
        ({"op": "test", "path": "/a/b", "value": True}, "testing value /a/b failed: test failed"),
        ({"op": "foo", "path": "/a"}, "Unexpected kind: foo"),
        ("add", "Unexpected kind: add"),
        ({"path": "/a"}, "Unexpected kind: unknown"),
        ({"op": "add", "value": 1}, "add operation failed to decode path: missing value"),
    ],
)
def test_what_does_not_apply_is_said_in_the_servers_words(operation, message):
    with pytest.raises(PatchError) as raised:
        apply_json_patch(document(), [operation])

    assert str(raised.value) == message


def test_a_patch_that_fails_changes_nothing():
    tree = document()

    with pytest.raises(FailedTestError):
        apply_json_patch(tree, [{"op": "remove", "path": "/a"}, {"op": "test", "path": "/n", "value": 1}])

    assert tree == document()


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


def test_a_copy_shares_nothing_with_its_source():
    changed = apply_json_patch(
        document(), [{"op": "copy", "from": "/a", "path": "/c"}, {"op": "add", "path": "/c/b", "value": "2"}]
    )

    assert changed["a"]["b"] == "1"


def test_the_whole_document_may_be_replaced():
    assert apply_json_patch(document(), [{"op": "replace", "path": "", "value": [1]}]) == [1]


def test_copies_may_add_only_so_much():
    operations = [{"op": "copy", "from": "/a", "path": f"/c{number}"} for number in range(3)]

    with pytest.raises(PatchError, match="accumulated size increase of copy is 46, exceeding the limit 40"):
        apply_json_patch(document(), operations, copy_limit=40)


def test_numbers_are_compared_as_they_are_written():
    with pytest.raises(PatchError, match="test failed"):
        apply_json_patch({"n": 1}, [{"op": "test", "path": "/n", "value": 1.0}])


def test_a_patch_keeps_its_own_values():
    operations = [{"op": "add", "path": "/new", "value": {"x": []}}, {"op": "add", "path": "/new/x/-", "value": 1}]

    assert apply_json_patch(document(), operations) == apply_json_patch(document(), operations)
