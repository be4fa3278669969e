"""Values set in a YAML text of a person's: what was there stays, to the byte where it can."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_one
from ctrlruntime.generate.text import dump
from ctrlruntime.olm.making.editing import REMOVED, with_values

TEXT = """
    # The head.
    kind: Shop  # inline
    spec:
      # About the words.
      words:
      - a  # the first
      - b
      # About the text.
      text: |
        one

        two
      # About the owner.
      owner:
        name: Ada
      flow: {a: 1, b: 2}  # both
      empty: {}
      nothing:
      last: "end"  # of it
    # The tail.
"""


def text_of(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def edited(values: dict, text: str = TEXT) -> str:
    """The text after an edit that was made in its place."""
    found = with_values(text_of(text), values, "base.yaml")
    assert not found.is_rewritten
    return found.text


def lines_of(text: str) -> list[str]:
    return text.splitlines()


CASES = {
    "a scalar keeps the comment beside it": ({("kind",): "Cart"}, "kind: Shop  #", "kind: Cart  #"),
    "a quoted scalar, too": ({("spec", "last"): "1"}, 'last: "end"  # of it', 'last: "1"  # of it'),
    "a list": ({("spec", "words"): ["c"]}, "  - a  # the first\n  - b\n", "  - c\n"),
    "a block of text": ({("spec", "text"): "three"}, "text: |\n    one\n\n    two\n", "text: three\n"),
    "a text of several lines": (
        {("kind",): "one\ntwo"}, "kind: Shop  # inline\n", "kind: |-\n  one\n  two\n",
    ),
    "a key of a map below": ({("spec", "owner", "name"): "Bob"}, "name: Ada", "name: Bob"),
    "a key that is new, after the one before it in the alphabet": (
        {("spec", "owner", "site"): "x"}, "name: Ada\n", "name: Ada\n    site: x\n",
    ),
    "a key before all others": ({("spec", "owner", "age"): 7}, "    name: Ada\n", "    age: 7\n    name: Ada\n"),
    "a key of a map that is empty": ({("spec", "empty", "a", "b"): 1}, "empty: {}\n", "empty:\n    a:\n      b: 1\n"),
    "a key of a map that is null": ({("spec", "nothing", "a"): 1}, "nothing:\n", "nothing:\n    a: 1\n"),
    "a map in one line": ({("spec", "flow"): 3}, "flow: {a: 1, b: 2}", "flow: 3"),
    "a key of a map in one line": (
        {("spec", "flow", "b"): 3}, "  flow: {a: 1, b: 2}  # both\n", "  flow:  # both\n    a: 1\n    b: 3\n",
    ),
    "a key of a map in one line that goes": (
        {("spec", "flow", "b"): REMOVED}, "  flow: {a: 1, b: 2}  # both\n", "  flow:  # both\n    a: 1\n",
    ),
    "a key that goes": ({("spec", "text"): REMOVED}, "  text: |\n    one\n\n    two\n", ""),
}  # fmt: skip


@pytest.mark.parametrize(("values", "before", "after"), CASES.values(), ids=list(CASES))
def test_only_the_lines_of_a_value_change(values, before, after):
    text = text_of(TEXT)
    assert text.count(before) == 1

    assert edited(values) == text.replace(before, after)


def test_a_map_that_is_missing_is_made_with_the_key():
    assert edited({("metadata", "labels", "a"): "b"}, "kind: Shop\nspec: {}\n") == (
        "kind: Shop\nmetadata:\n  labels:\n    a: b\nspec: {}\n"
    )


def test_the_indent_of_a_person_is_kept():
    text = "spec:\n      words:\n          - a\n      owner: b\n"

    assert edited({("spec", "words"): ["c"]}, text) == "spec:\n      words:\n      - c\n      owner: b\n"


@pytest.mark.parametrize(
    "values",
    [{("kind",): "Shop"}, {("spec", "words"): ["a", "b"]}, {("spec", "gone"): REMOVED}, {("gone", "a"): REMOVED}, {}],
)
def test_what_is_so_already_leaves_the_text_alone(values):
    text = text_of(TEXT).rstrip("\n")  # not even a line break at its end

    assert with_values(text, values, "base.yaml").text == text


UNFIT = {
    "a map in one line": ("{kind: Shop, spec: {}} # all\n", {("kind",): "Cart"}),
    "an anchor": ("kind: &a Shop\nspec: *a\n", {("kind",): "Cart"}),
    "the only key of a map": ("spec:\n  a: 1\n", {("spec", "a"): REMOVED}),
    "a key of a map in braces with comments": ("spec: {\n  a: 1  # one\n}\n", {("spec", "b"): 2}),
}


@pytest.mark.parametrize(("text", "values"), UNFIT.values(), ids=list(UNFIT))
def test_a_form_that_is_not_edited_in_its_place_is_written_anew(text, values):
    found = with_values(text, values, "base.yaml")

    wanted = read_one(text, "")
    for keys, value in values.items():
        tree = wanted
        for key in keys[:-1]:
            tree = tree[key]
        if value is REMOVED:
            del tree[keys[-1]]
        else:
            tree[keys[-1]] = value
    assert (found.text, found.is_rewritten) == (dump(wanted), True)


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [
        ("- a\n", {}, "base.yaml must have one YAML map"),
        ("", {("a",): 1}, "base.yaml must have one YAML map"),
        ("a: 1\n---\nb: 2\n", {}, "base.yaml: 2 documents where one is expected"),
        ("a: b: c\n", {}, "base.yaml, line 1: mapping values are not allowed"),
        ("spec: 7\n", {("spec", "a"): 1}, "base.yaml: spec must be a map"),
    ],
)
def test_what_is_no_map_is_refused(text, values, said):
    with pytest.raises(ConfigError, match=said):
        with_values(text, values, "base.yaml")


def test_two_keys_of_a_map_in_one_line_are_both_set_and_comments_of_others_stay():
    text = "modes:  # mine\n- {type: Own, supported: true}  # no\nprovider: {name: Ada}  # us\n"

    found = edited({("provider", "name"): "Bob", ("provider", "url"): "x", ("title",): "Shop"}, text)

    assert found == text.replace(
        "provider: {name: Ada}  # us\n", "provider:  # us\n  name: Bob\n  url: x\ntitle: Shop\n"
    )


@pytest.mark.parametrize("text", ["# Mine.\nspec:\n  a: 1\n", "# Mine.\n{spec: {a: 1}}\n"])
def test_what_no_yaml_holds_is_refused(text):
    with pytest.raises(ConfigError, match=r"cannot update base\.yaml: YAML does not keep the new values"):
        with_values(text, {("spec", "a"): "Gr\udcf6\udcdfe"}, "base.yaml")


def test_a_number_beyond_64_bits_is_refused():
    with pytest.raises(ConfigError, match=r"cannot update base\.yaml: YAML does not keep the new values"):
        with_values("spec: {}\n", {("spec", "a"): -(2**63) - 1}, "base.yaml")


words = st.text("ab#:- \n'", min_size=1, max_size=8)
keys = st.sampled_from(["a", "b", "c", "d"])
whole = st.integers(-(2**63), 2**63 - 1)  # what JSON of Kubernetes holds; others are refused
values = st.one_of(words, whole, st.lists(words, max_size=2), st.dictionaries(keys, words, max_size=2))
trees = st.dictionaries(keys, st.one_of(values, st.dictionaries(keys, values, max_size=3)), min_size=1, max_size=4)


@given(tree=trees, key=keys, below=st.none() | keys, value=values)
def test_the_text_says_what_was_set_and_all_else_as_before(tree, key, below, value):
    way = (key,) if below is None or not isinstance(tree.get(key, {}), dict) else (key, below)

    found = read_one(with_values("# mine\n" + dump(tree), {way: value}, "base.yaml").text, "")

    wanted = {**tree, key: value if len(way) == 1 else {**tree.get(key, {}), way[1]: value}}
    assert found == wanted
