"""The store against a dictionary, its indexes against a scan, and paths cut from bytes."""

from __future__ import annotations

import json

import pytest
from cache_server import content, obj
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ctrlruntime.api.metadata import metadata_of
from ctrlruntime.cache.store import Entry, Index, Store, field_path_index
from ctrlruntime.selector import NOTHING, parse_labels


def entry(raw):
    return Entry(raw, metadata_of(raw))


def thing(name, *, namespace="ns", labels=None, **more):
    return entry(obj(name, 1, namespace=namespace, metadata={"labels": labels} if labels else {}, **more))


def index(name, extract, failures=None):
    return Index(name, extract, on_failure=lambda *failure: None if failures is None else failures.append(failure))


def names(entries):
    return sorted(found.meta.name for found in entries)


NAMES = st.sampled_from("abcdef")
SPACES = st.sampled_from(["", "x", "y"])
VALUES = st.lists(st.sampled_from(["red", "green", "blue", ""]), max_size=3)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.store = Store()
        self.model = {}
        self.store.add_index(index("colours", self.colours))
        self.late = False

    @staticmethod
    def colours(found):
        return json.loads(found.raw)["colours"]

    @rule(namespace=SPACES, name=NAMES, colours=VALUES, label=st.sampled_from(["one", "two"]))
    def put(self, namespace, name, colours, label):
        new = thing(name, namespace=namespace, labels={"l": label}, colours=colours)
        assert self.store.put(new) == self.model.get((namespace, name))
        self.model[namespace, name] = new

    @rule(namespace=SPACES, name=NAMES)
    def remove(self, namespace, name):
        assert self.store.remove(namespace, name) == self.model.pop((namespace, name), None)

    @rule()
    def index_later(self):
        if not self.late:
            self.late = True
            self.store.add_index(index("metadata.labels.l", field_path_index("metadata.labels.l")))

    @invariant()
    def equals_the_model(self):
        assert content(self.store) == {key: found.raw for key, found in self.model.items()}
        assert len(self.store) == len(self.model)
        assert self.store.size_bytes == sum(len(found.raw) for found in self.model.values())
        assert self.store.keys() == set(self.model)
        assert self.store.keys("x") == {key for key in self.model if key[0] == "x"}

    @invariant()
    def indexes_find_what_a_scan_finds(self):
        for space in ("", "x"):
            for colour in ("red", "green", ""):
                found = self.store.select(space, None, [("colours", colour)])
                scanned = [
                    e for (ns, _), e in self.model.items() if (not space or ns == space) and colour in self.colours(e)
                ]
                assert sorted(found, key=str) == sorted(scanned, key=str)
        for text in ("l=one", "l in (two)", "l!=one", "l", "!l", "l in (one,two)"):
            selector = parse_labels(text)
            found = self.store.select("", selector)
            assert sorted(found, key=str) == sorted(
                [e for e in self.model.values() if selector.matches(e.meta.labels)], key=str
            )
            if self.late:
                both = self.store.select("y", selector, [("metadata.labels.l", "one"), ("colours", "red")])
                assert all(e in found and e.meta.namespace == "y" for e in both)
                assert names(both) == names(
                    e
                    for (ns, _), e in self.model.items()
                    if ns == "y" and selector.matches(e.meta.labels)
                    and e.meta.labels["l"] == "one" and "red" in self.colours(e)
                )  # fmt: skip

    @invariant()
    def nothing_is_left_behind(self):
        for name in self.store.index_names:
            found = self.store.index(name)
            assert {key for keys in found._keys.values() for key in keys} == set(found._values)
            assert set(found._values) <= set(self.model)
            assert all(found._keys.values())


TestStore = StoreMachine.TestCase


def test_a_field_can_be_indexed_once():
    store = Store()
    store.add_index(index("spec.a", field_path_index("spec.a")))

    with pytest.raises(ValueError, match=r"spec\.a exists"):
        store.add_index(index("spec.a", field_path_index("spec.a")))


def test_an_object_with_several_values_is_found_by_each():
    store = Store()
    store.add_index(index("colours", lambda found: json.loads(found.raw)["colours"]))
    store.put(thing("a", colours=["red", "green", "red"]))

    assert names(store.select("", None, [("colours", "red")])) == ["a"]
    assert names(store.select("", None, [("colours", "red"), ("colours", "green")])) == ["a"]
    assert store.remove("ns", "a") is not None
    assert store.select("", None, [("colours", "red")]) == []


def test_one_text_is_one_value_and_no_list_of_letters():
    store = Store()
    store.add_index(index("whole", lambda _: "red"))
    store.put(thing("a"))

    assert names(store.select("", None, [("whole", "red")])) == ["a"]
    assert store.select("", None, [("whole", "r")]) == []


@pytest.mark.parametrize("bad", [lambda _: 1 // 0, lambda _: [1], lambda _: [None], lambda _: None, lambda _: [["x"]]])
def test_an_index_function_that_fails_leaves_the_object_readable_by_key(bad):
    store, failures = Store(), []
    found = index("bad", lambda e: ["fine"] if e.meta.name == "good" else bad(e), failures)
    store.add_index(found)

    store.put(thing("good"))
    store.put(thing("bad"))

    assert names(store.select("", None, [("bad", "fine")])) == ["good"]
    assert store.get("ns", "bad") is not None
    assert found.failures == 1
    assert [(name, e.meta.name) for name, e, _ in failures] == [("bad", "bad")]


def test_an_object_leaves_the_index_when_its_function_begins_to_fail():
    store = Store()
    store.add_index(index("spec.a", field_path_index("spec.a")))
    store.put(thing("a", spec={"a": "x"}))

    store.put(thing("a", spec={"a": {"no": "scalar"}}))

    assert store.select("", None, [("spec.a", "x")]) == []


def test_a_selector_of_nothing_selects_nothing():
    store = Store()
    store.put(thing("a"))

    assert store.select("", NOTHING) == []


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ({"node": "n1"}, ("n1",)),
        ({"node": ""}, ("",)),
        ({"node": 3}, ("3",)),
        ({"node": 1.5}, ("1.5",)),
        ({"node": True}, ("true",)),
        ({"node": False}, ("false",)),
        ({"node": None}, ()),
        ({}, ()),
        (None, ()),
    ],
)
def test_a_field_path_gives_the_scalar_as_json_writes_it(spec, values):
    assert tuple(field_path_index("spec.node")(thing("a", spec=spec))) == values


def test_a_leading_dot_is_as_good_as_none():
    assert tuple(field_path_index(".metadata.name")(thing("a"))) == ("a",)


def test_an_absent_top_field_gives_no_value():
    assert tuple(field_path_index("status.phase")(thing("a"))) == ()


@pytest.mark.parametrize("path", ["", ".", "  "])
def test_an_empty_path_is_refused(path):
    with pytest.raises(ValueError, match="field path"):
        field_path_index(path)


@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_what_is_no_scalar_cannot_be_indexed(value):
    with pytest.raises(ValueError, match="scalar"):
        list(field_path_index("spec.a")(thing("a", spec={"a": value})))


@given(st.recursive(st.text(max_size=5) | st.integers() | st.none() | st.booleans(),
                    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8))  # fmt: skip
def test_a_cut_path_equals_the_walk_through_the_decoded_tree(tree):
    found = thing("x", a=tree)
    node = tree
    for step in "bc":
        node = node.get(step) if isinstance(node, dict) else None if node is None else "stop"
        if node == "stop":
            return
    expected = () if node is None else (node if isinstance(node, str) else json.dumps(node),)
    if isinstance(node, dict):
        return

    assert tuple(field_path_index("a.b.c")(found)) == expected
