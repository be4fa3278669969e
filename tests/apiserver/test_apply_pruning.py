"""Removal of paths from a tree, by the types of fields."""

import pytest
from apply_types import TYPE

from ctrlruntime.apiserver.apply.merge import ABSENT
from ctrlruntime.apiserver.apply.pruning import without


@pytest.mark.parametrize(
    ("value", "fields", "left"),
    [
        ({"size": 1, "text": "a"}, {"f:size": {}}, {"text": "a"}),
        ({"options": {"a": "1"}}, {"f:options": {"f:a": {}}}, {"options": {}}),
        ({"tags": ["a"]}, {"f:tags": {'v:"a"': {}}}, {}),
        ({"tags": ["a", "b"]}, {"f:tags": {'v:"a"': {}}}, {"tags": ["b"]}),
        (
            {"items": [{"name": "x", "size": 1}]},
            {"f:items": {'k:{"kind":"K","name":"x"}': {"f:size": {}}}},
            {"items": [{"name": "x"}]},
        ),
    ],
)
def test_removal_by_paths(value, fields, left):
    assert without(TYPE, value, fields) == left


def test_a_list_of_which_nothing_is_left_goes():
    assert without(TYPE.fields["tags"], ["a"], {'v:"a"': {}}) is ABSENT
