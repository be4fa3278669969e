"""Hostile definitions: whatever stands anywhere in one, an import writes a module of classes or refuses, and nothing of it runs."""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.importing import importable, source_of
from ctrlruntime.project.importing.layout import Text, docstring, value
from ctrlruntime.project.importing.reading import UnexpectedSourceError, regenerated

GOLDENS = sorted((Path(__file__).parents[1] / "generate" / "golden" / "crd").glob("*.yaml"))
CODE = '__import__("builtins").hostile()'
TEXTS = [
    CODE,
    f"A\n{CODE}\nclass B",
    f"A(ctrl.Object): pass\n{CODE}\n#",
    f'"""\n{CODE}\n"""',
    f"{{{CODE}}}",
    '"',
    '""',
    '"""',
    'x"""',
    '""""',
    '"\\',
    "\\",
    '\\"""',
    "'''",
    "class",
    "None",
    "ﬁeld",
    "\uff21",
    "__class__",
    "a\x00b",
    "a\x85b\u2028c\rd",
    "\u202e",
    "$(id)",
    "",
    "x" * 5000,
]
ODD = [*TEXTS, [CODE], ["a", CODE], {CODE: CODE}, 12, True, None, [], {}]


def base(**over: Any) -> dict[str, Any]:
    """A definition with something at every place that an import reads."""
    field = {
        "type": "string",
        "description": "text",
        "title": "title",
        "externalDocs": {"url": "https://example.com", "description": "more"},
        "default": "a",
        "enum": ["a", "b"],
        "pattern": "^[a-z]$",
        "format": "word",
        "maxLength": 5,
        "example": {"a": ["b"]},
        "x-kubernetes-validations": [{"rule": "self != ''", "message": "empty", "reason": "FieldValueInvalid"}],
    }
    items = {"type": "object", "required": ["name"], "properties": {"name": field}}
    spec = {
        "type": "object",
        "description": "The spec.",
        "properties": {
            "field": field,
            "list": {
                "type": "array",
                "items": items,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "map": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1, "format": "int32"}},
            "either": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "both": {"type": "string", "allOf": [{"maxLength": 3}, {"pattern": "a"}], "nullable": True},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "deprecated": True,
        "deprecationWarning": "old",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.map", "statusReplicasPath": ".status.x"}},
        "additionalPrinterColumns": [
            {"name": "Field", "type": "string", "jsonPath": ".spec.field", "description": "d"}
        ],
        "selectableFields": [{"jsonPath": ".spec.field"}],
    }
    names = {
        "kind": "Game",
        "plural": "games",
        "singular": "game",
        "listKind": "GameList",
        "shortNames": ["g"],
        "categories": ["all"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "games.example.com", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version], **over},
    }


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, child in children:
        yield from places(child, (*path, step))


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        tree = tree[step]
    return tree


PLACES = list(places(base()))
words = st.sampled_from(TEXTS) | st.text(max_size=10)
anything = st.recursive(
    words | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def hostile(draw: st.DrawFn) -> dict[str, Any]:
    """A definition with up to three places where anything stands, or a key is anything."""
    tree = base()
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(PLACES))
        try:
            parent = at(tree, path[:-1])
            old = parent[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
        if isinstance(parent, dict) and draw(st.booleans()):
            parent[draw(words)] = parent.pop(path[-1])
        elif isinstance(parent, (dict, list)):
            parent[path[-1]] = draw(anything | st.just([old]) | st.just({CODE: old}))
    return tree


def check(text: str) -> None:
    try:
        definitions = importable(text, "a file")
    except ConfigError:
        return
    source_of(definitions, warn=lambda _: None)  # it reads the module that it wrote, and refuses anything odd


@pytest.fixture(autouse=True)
def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the code in a definition would call."""

    def hostile() -> None:
        pytest.fail("a definition ran its code")

    monkeypatch.setattr(builtins, "hostile", hostile, raising=False)


@pytest.mark.parametrize("number", range(len(PLACES)), ids=lambda number: ".".join(map(str, PLACES[number])))
def test_hostile_texts_and_shapes_at_each_place_run_nothing(number: int, pytestconfig: pytest.Config) -> None:
    """At each place every eighth of them, in turn; with `--all` each of them."""
    step = 1 if pytestconfig.getoption("--all") else 8
    for evil in ODD[number % step :: step]:
        tree = base()
        at(tree, PLACES[number][:-1])[PLACES[number][-1]] = evil
        check(json.dumps(tree))


@settings(max_examples=200)
@given(hostile())
def test_random_definitions_of_a_wrong_shape_run_nothing(tree: dict[str, Any]) -> None:
    check(json.dumps(tree))


@pytest.mark.thorough
@settings(max_examples=20_000)
@given(hostile())
def test_many_random_definitions_of_a_wrong_shape_run_nothing(tree: dict[str, Any]) -> None:
    check(json.dumps(tree))


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system [id]",
        "!!binary aGk=",
        "!!set {a}",
        "2026-01-02",
        "0x10",
        ".nan",
        "{1: a}",
        "{~: a}",
    ],
)
@pytest.mark.parametrize("word", ["default", "example", "title", "description"])
def test_what_only_yaml_can_say_is_refused_or_a_text(word: str, text: str) -> None:
    tree = yaml.safe_dump(base()).replace("example:\n", "EXAMPLE:\n", 1)
    lines = [
        f"{line.partition(word)[0]}{word}: {text}" if line.strip().startswith(f"{word}: ") else line
        for line in tree.split("\n")
    ]

    check("\n".join(lines))


def test_a_schema_without_a_floor_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        schema = {"type": "object", "properties": {"a": schema}}
    tree = base()
    tree["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema

    with pytest.raises(ConfigError, match=r"more than 100 levels deep|exceeded max depth of 200"):
        importable(json.dumps(tree), "a file")


def test_a_kind_that_is_no_identifier_gets_a_class_that_is() -> None:
    tree = base()
    tree["spec"]["names"] |= {"kind": "Game-Room", "listKind": "Game-RoomList"}

    assert "class GameRoom(" in source_of(importable(json.dumps(tree), "a file"), warn=lambda _: None)


@given(st.text() | st.sampled_from(TEXTS), st.integers(0, 3))
def test_a_docstring_is_one_string(text: str, indent: int) -> None:
    assume(text.strip())
    source = "\n".join(docstring(text, indent=0))

    (statement,) = ast.parse(source).body

    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Constant)


@pytest.mark.parametrize("odd", [["a"], {"a": 1}, 1, None, True, b"a"])
def test_only_texts_are_quoted(odd: Any) -> None:
    with pytest.raises(TypeError, match="is not a string"):
        Text(odd)


@pytest.mark.parametrize("odd", [{1: "a"}, object(), b"a", {"a": {1, 2}}])
def test_only_json_is_written_as_source(odd: Any) -> None:
    with pytest.raises(TypeError, match=r"is not a (string|JSON value)"):
        value(odd)


HEAD = "import ctrlruntime as ctrl\nfrom typing import Annotated\n\n"


@pytest.mark.parametrize(
    "source",
    [
        CODE,
        "import os",
        "from os import system",
        "from ctrlruntime import errors",
        "from ctrlruntime import crd as meta",
        "from ctrlruntime import crd\nclass A(ctrl.Model):\n    a: crd.Flag.__subclasses__",
        "class A(ctrl.Model):\n    a: ctrl.crd.Flag",
        "from ctrlruntime.api import *\nx = 1",
        "def f(): pass",
        f"class A(ctrl.Model):\n    a: int = {CODE}",
        f"class A(ctrl.Model):\n    {CODE}",
        f"class A(ctrl.Model):\n    a: {CODE}",
        "class A(ctrl.Model):\n    def f(self): pass",
        "class A(ctrl.Model):\n    _a: int",
        f"class A({CODE}): pass",
        f"@{CODE}\nclass A(ctrl.Model): pass",
        "@print\nclass A(ctrl.Model): pass",
        "class A(ctrl.Model, **{}): pass",
        "class A(ctrl.Model): pass\nclass A(ctrl.Model): pass",
        "class A(ctrl.errors.CtrlError): pass",
        "class A(ctrl.Model):\n    a: ctrl.Model.__subclasses__",
        "class A(ctrl.Model):\n    a: int = [x for x in ()]",
        "class A(ctrl.Model):\n    a: int = (lambda: 1)()",
        'class A(ctrl.Model):\n    a: str = f"{1}"',
        "class A(ctrl.Model):\n    a: int = int('1')",
    ],
)
def test_a_module_with_anything_else_is_not_read(source: str) -> None:
    with pytest.raises(UnexpectedSourceError):
        regenerated(HEAD + source)


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.stem)
def test_what_is_read_of_a_module_is_what_it_makes_when_it_is_run(path: Path) -> None:
    import sys
    import types

    from ctrlruntime.api import Object
    from ctrlruntime.generate import Options, crds

    source = source_of(importable(path.read_text(), "a golden"), warn=lambda _: None)
    module = sys.modules["imported_hostile"] = types.ModuleType("imported_hostile")
    exec(source, module.__dict__)
    kinds = [found for found in vars(module).values() if isinstance(found, type) and issubclass(found, Object)]

    assert regenerated(source) == crds(kinds, options=Options(), warn=lambda _: None)
