"""Configurations that do not fit the type of what they are applied to."""

import pytest
from apply_types import TYPE

from ctrlruntime.apiserver.apply.validation import problems


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"size": "1"}, ".size: expected numeric (int or float), got string"),
        ({"on": 1}, ".on: expected boolean, got &{1}"),
        ({"text": True}, ".text: expected string, got &value.valueUnstructured{Value:true}"),
        ({"any": {}}, None),
        ({"options": "x"}, ".options: expected map, got &{x}"),
        ({"tags": {"a": 1}}, ".tags: expected list, got &{map[a:1]}"),
        ({"none": 1}, ".none: field not declared in schema"),
        ({"tags": ["a", "a"]}, '.tags: duplicate entries for key [="a"]'),
        (
            {"tags": [None]},
            ".tags: element 0: associative list without keys has an element that's an explicit null",
        ),
        ({"items": [1]}, ".items: element 0: associative list with keys may not have non-map elements"),
        ({"size": None, "options": None, "items": None}, None),
    ],
)
def test_what_does_not_fit_is_said_with_upstreams_words(config, wrong):
    assert problems(TYPE, config) == ([wrong] if wrong else [])
