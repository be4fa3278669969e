"""Sets of field paths in the form of managedFields."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.apiserver.apply.fieldsets import (
    SELF,
    cut,
    difference,
    intersection,
    ordered,
    parse,
    paths,
    union,
)


def members(fields, prefix=()):
    """The paths of a set, as tuples: what the operations must agree with."""
    found = set()
    for step, node in fields.items():
        if step == SELF:
            continue
        path = (*prefix, step)
        if not node or SELF in node:
            found.add(path)
        found |= members(node, path)
    return found


def of(paths_):
    """The set with these members."""
    root = {}
    for path in sorted(paths_):
        node = root
        for step in path:
            node = node.setdefault(step, {})
        node[SELF] = {}
    return canonical(root)


def canonical(node):
    result = {step: canonical(inner) if step != SELF else {} for step, inner in node.items()}
    return {} if set(result) == {SELF} else result


STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
PATHS = st.sets(st.lists(STEPS, min_size=1, max_size=3).map(tuple), max_size=8)


@given(PATHS, PATHS)
def test_union_difference_and_intersection_are_those_of_the_paths(a, b):
    one, two = of(a), of(b)

    assert members(union(one, two)) == a | b
    assert members(difference(one, two)) == a - b
    assert members(intersection(one, two)) == a & b
    assert (members(one), members(two)) == (a, b)


@given(PATHS, PATHS)
def test_results_are_canonical(a, b):
    for result in (union(of(a), of(b)), difference(of(a), of(b)), intersection(of(a), of(b))):
        assert result == of(members(result))


@given(PATHS, PATHS)
def test_a_cut_takes_everything_below(a, b):
    left = {path for path in a if not any(path[: len(other)] == other for other in b)}

    assert members(cut(of(a), of(b))) == left


def test_paths_are_shown_as_in_conflicts():
    fields = {
        "f:spec": {
            "f:replicas": {},
            "f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}},
            "f:ports": {'k:{"port":80,"protocol":"TCP"}': {}},
            "f:tags": {'v:"x"': {}, "v:2": {}},
        }
    }

    assert list(paths(fields)) == [
        ".spec.replicas",
        '.spec.containers[name="c"]',
        '.spec.containers[name="c"].image',
        '.spec.ports[port=80,protocol="TCP"]',
        ".spec.tags[=2]",
        '.spec.tags[="x"]',
    ]


def test_steps_are_written_in_upstreams_order():
    fields = {"v:10": {}, "v:9": {}, 'k:{"p":443}': {}, 'k:{"p":80}': {}, "f:b": {"f:z": {}, ".": {}}, ".": {}}

    assert json.dumps(ordered(fields)) == json.dumps(
        {".": {}, "f:b": {".": {}, "f:z": {}}, 'k:{"p":80}': {}, 'k:{"p":443}': {}, "v:9": {}, "v:10": {}}
    )


def test_what_a_client_sends_becomes_canonical():
    assert parse({'k:{ "b": 1, "a": "<" }': {".": {}}}) == {'k:{"a":"\\u003c","b":1}': {}}


@pytest.mark.parametrize("bad", [[], {"spec": {}}, {"k:[]": {}}, {"v:{": {}}, {"i:x": {}}, {"f:a": 1}])
def test_what_is_no_set_is_refused(bad):
    with pytest.raises(ValueError, match=r".+"):
        parse(bad)
