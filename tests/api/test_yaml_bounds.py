"""All YAML is read within bounds, whatever reads it, and whichever parser PyYAML has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctrlruntime.api import yaml_nodes
from ctrlruntime.api.yaml_nodes import FILE, Bounds, MeaningError, compose, load, python_parser
from ctrlruntime.api.yaml_text import read_documents
from ctrlruntime.apiserver.yaml_reader import YAMLProblem, read_yaml
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_documents as read_files
from ctrlruntime.project.project_file import project_file
from ctrlruntime.rest import kubeconfig

SMALL = Bounds(size=2_000, depth=10, values=50)


def doubled(times: int, form: str) -> str:
    lines = [f"a0: &a0 {form.replace('*B', '1') if '<<' not in form else '{a: 1}'}"]
    return "\n".join([*lines, *(f"a{n}: &a{n} {form.replace('*B', f'*a{n - 1}')}" for n in range(1, times))])


DEEP, LARGE = "exceeded max depth", "the text comes to more than"
BOMBS = {
    "brackets": ("[" * 100_000 + "]" * 100_000, DEEP),
    "braces": ("{a: " * 100_000 + "1" + "}" * 100_000, DEEP),
    "open brackets": ("[" * 100_000, DEEP),
    "dashes": ("- " * 100_000 + "1", DEEP),
    "indents": ("".join(f"{' ' * n}a:\n" for n in range(1_000)), DEEP),
    "lists of aliases": (doubled(60, "[*B, *B]"), LARGE),
    "maps of aliases": (doubled(60, "{a: *B, b: *B}"), LARGE),
    "merges": (doubled(60, "{<<: [*B, *B]}"), LARGE),
    "merges of one map": (
        f"a: &a {{{', '.join(f'k{n}: 1' for n in range(1_000))}}}\nb: [{', '.join(['{<<: *a}'] * 1_000)}]",
        LARGE,
    ),
    "values": ("- &a [" + "1," * 1_000 + "]\n" + "- *a\n" * 1_000, LARGE),
    "a value in itself": ("a: &a [*a]", "contains itself"),
    "a merge of itself": ("a: &a {<<: *a}", "contains itself"),
    "size": ("a" * (FILE.size + 1), "the text is longer than 67,108,864"),
}


@pytest.mark.parametrize(("text", "says"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_with_the_bound_and_the_line(text, says):
    with pytest.raises(MeaningError) as caught:
        load(text)
    with pytest.raises(MeaningError) as refused:
        list(read_documents(text, bounds=FILE))
    with pytest.raises(ConfigError) as in_file:
        read_files(text, "x.yaml")

    assert says in caught.value.problem
    assert (refused.value.problem, refused.value.line) == (caught.value.problem, caught.value.line)
    assert str(in_file.value) == f"x.yaml, line {caught.value.line}: {caught.value.problem}"


@pytest.mark.parametrize(("text", "says"), [BOMBS[name] for name in ("brackets", "merges", "values")])
def test_a_bomb_as_a_body_a_kubeconfig_or_a_project_file_is_refused(tmp_path, text, says):
    file = tmp_path / "config"
    file.write_text(text)

    with pytest.raises(YAMLProblem, match=says):
        read_yaml(text.encode())
    with pytest.raises(ConfigError, match=rf"^kubeconfig .* is not YAML: .*{says}"):
        kubeconfig.load([str(file)])
    with pytest.raises(ConfigError, match=says):
        project_file(text, "PROJECT")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: " + "[" * 11 + "]" * 11, 2),
        ("x: [" + "1, " * 40 + "\n" + "1, " * 40 + "]", 2),
        ("[\n" + " " * 2_000, 1),
    ],
)
@pytest.mark.parametrize("parser", [None, python_parser()])
def test_both_parsers_keep_the_bounds(text, line, parser):
    with pytest.raises(MeaningError) as caught:
        list(compose(text, SMALL, parser=parser))

    assert caught.value.line == line


@pytest.mark.parametrize("parser", [None, python_parser()])
def test_what_is_within_bounds_is_composed(parser):
    text = "a: &a {b: [1]}\nc: *a\n---\n" + "[" * 10 + "]" * 10

    first, second = compose(text, SMALL, parser=parser)

    assert first.value[0][1] is first.value[1][1]
    assert (second.id, first.end_mark.line) == ("sequence", 2)


def test_an_anchor_may_be_given_again():
    assert load("a: &a 1\nb: &a 2\nc: *a") == {"a": 1, "b": 2, "c": 2}


@pytest.mark.parametrize("text", ["", "---", "~", "# nothing"])
def test_an_empty_text_is_none(text):
    assert load(text) is None


@pytest.mark.parametrize(
    "text", ["!!python/object/apply:os.system [id]", "!!python/name:os.system", "!x a", "a\n---\nb", "*a", "\ud800"]
)
def test_what_is_no_plain_document_is_refused(text):
    import yaml

    with pytest.raises((MeaningError, yaml.YAMLError)):
        load(text)


def test_without_libyaml_all_is_read_the_same(monkeypatch):
    import yaml

    monkeypatch.delattr(yaml, "cyaml")
    yaml_nodes._fastest.cache_clear()
    try:
        assert load("a: [1, &x b, *x]") == {"a": [1, "b", "b"]}
    finally:
        yaml_nodes._fastest.cache_clear()


def test_nothing_else_in_the_package_reads_yaml():
    package = Path(yaml_nodes.__file__).parents[1]
    reads = re.compile(
        r"\byaml\.(safe_load|load|full_load|unsafe_load|compose|parse|scan)(_all)?\(|\b(Safe|C|Full|Unsafe)\w*Loader\("
    )

    found = [
        str(path) for path in package.rglob("*.py") if path.name != "yaml_nodes.py" and reads.search(path.read_text())
    ]

    assert not found, f"read YAML with ctrlruntime.api.yaml_nodes, which has bounds: {found}"
