"""JSONPath without a server; tests/conformance/test_printer_columns.py has the two servers read the same paths."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.jsonpath import Field, JSONPathError, find, parse

DOCUMENT = {
    "metadata": {"labels": {"app.kubernetes.io/name": "x"}},
    "spec": {"size": 3, "items": [{"n": "a", "v": 1}, {"n": "b", "v": 2}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.size", [3]),
        ("$.spec.size", [3]),
        (".spec.none.deeper", []),
        (".spec.items[*].n", ["a", "b"]),
        (".spec.items[0].n", ["a"]),
        (".spec.items[-1].n", ["b"]),
        (".spec.items[0:1].n", ["a"]),
        (".spec.items[1,0].n", ["b", "a"]),
        (".spec.items[0]['n','v']", ["a", 1]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Old')].status", ["False"]),
        ('.status.conditions[?(@.type != "Ready")].type', ["Old"]),
        (".spec.items[?(@.v>1)].n", ["b"]),
        (".spec.items[?(@.v<=1)].n", ["a"]),
        (".spec.items[?(@.v)].n", ["a", "b"]),
        (r".metadata.labels['app\.kubernetes\.io/name']", ["x"]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["x"]),
        (".metadata.labels['app.kubernetes.io/name']", []),
        ("..n", ["a", "b"]),
        (".spec.items.*.n", ["a", "b"]),
    ],
)
def test_what_paths_lead_to(path, values):
    assert find(parse(path), DOCUMENT) == values


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (".spec[", "a bracket is not closed"),
        (".a[b]", "neither a position nor a name in single quotes"),
        ('.a["b"]', "neither a position nor a name in single quotes"),
        (".a[-]", "is not a position"),
        (".a[99999999999999999999]", "is not a position"),
        (".a[?(@.b]", "a filter is not closed"),
        (".a[?(@.b).c", "a filter is not closed"),
        (".a[?(@.b=='c)]", "a filter is not closed"),
        (".a[?(@.b==1.2.3)]", "is not a number"),
        (".a,.b", "',' means nothing there"),
        (".a....b", r"two \.\. follow each other"),
    ],
)
def test_what_cannot_be_read_says_why(path, problem):
    with pytest.raises(JSONPathError, match=problem):
        parse(path)


@pytest.mark.parametrize(
    "path", [".spec.items[2]", ".spec[0]", ".spec.items[?(@.n>1)]", ".spec.items[::0]", ".spec.size 3 x"]
)
def test_what_cannot_be_followed_is_an_error(path):
    with pytest.raises(JSONPathError):
        find(parse(path), DOCUMENT)


@given(st.text(st.characters(exclude_characters="\\*"), min_size=1))
def test_every_key_can_be_written_with_backslashes(key):
    path = parse("." + "".join(f"\\{char}" for char in key))

    assert path == (Field(key),)
    assert find(path, {key: 1}) == [1]


@given(st.text(alphabet=".[]'\"?(@)$=<,:-0a \\*{}"))
def test_every_text_is_a_path_or_an_error(text):
    with contextlib.suppress(JSONPathError):
        find(parse(text), DOCUMENT)
