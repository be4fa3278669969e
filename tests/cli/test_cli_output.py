"""What others wrote cannot steer the terminal of who runs a command; what goes into a file or a pipe is exact."""

from __future__ import annotations

import ast
import io
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

import ctrlruntime.cli
from ctrlruntime.cli import ctrl, output
from ctrlruntime.cli.output import Coloured, ask, say, warn
from ctrlruntime.terminal import escaped

CODES = [
    *range(0x09),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA0),
    0x61C,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]
CONTROLS = [chr(code) for code in CODES]
HOSTILE = "a\x1b[2J\x1b]0;owned\x07b\u202etxt.exe\x9b31m\rc"
SHOWN = r"a\x1b[2J\x1b]0;owned\x07b\u202etxt.exe\x9b31m\x0dc"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("character", CONTROLS, ids=ascii)
def test_a_control_character_is_written_out(character):
    shown = escaped(f"a{character}b")

    assert shown.isascii()
    assert shown.isprintable()
    assert shown.encode().decode("unicode_escape") == f"a{character}b"


@pytest.mark.parametrize("text", ["a\tb\nc", "é中😀", "\\x1b", "\u200d\u00a0"])
def test_what_is_no_control_character_stays(text):
    assert escaped(text) == text


def test_half_a_surrogate_pair_can_be_written(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)

    say("\ud800")

    assert escaped("\ud800") == r"\ud800"
    assert stream.getvalue() == "\\ud800\n"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_terminal_gets_texts_escaped_and_our_colours(monkeypatch, name):
    stream = Terminal()
    monkeypatch.setattr(sys, name, stream)

    say(HOSTILE, Coloured(f"{HOSTILE}!", "red"), err=name == "stderr")

    assert stream.getvalue() == f"{SHOWN}\x1b[31m{SHOWN}!\x1b[0m\n"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_what_is_no_terminal_gets_texts_exactly_and_no_colours(monkeypatch, name):
    stream = io.StringIO()
    monkeypatch.setattr(sys, name, stream)

    say(HOSTILE, Coloured("!", "red"), nl=False, err=name == "stderr")

    assert stream.getvalue() == f"{HOSTILE}!"


def test_warn_prints_a_repeated_warning_once_per_command():
    @click.group(invoke_without_command=True)
    def outer():
        warn("a")
        warn("a")

    @outer.command()
    def inner():
        warn("a")
        warn("b")

    runs = [CliRunner().invoke(outer, ["inner"]).stderr for _ in range(2)]

    assert runs == ["warning: a\nwarning: b\n"] * 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["crd", "diff", "-", "."],
        ["import", "-"],
        ["validate", "-"],
        ["catalog", "validate", "-"],
        ["bundle", "--input", "-", "--package", "shop", "--version", "1.0.0"],
    ],
)
def test_standard_input_that_is_no_text_is_one_line(arguments):
    done = CliRunner().invoke(ctrl, arguments, input=b"\xff\xfe")

    assert (done.exit_code, done.stderr) == (1, "error: cannot read standard input: it is not UTF-8 text\n")


def test_a_question_is_escaped(monkeypatch):
    asked = []
    monkeypatch.setattr(click, "prompt", lambda question, **_: asked.append(question) or " yes ")

    assert ask(HOSTILE) == "yes"
    assert asked == [SHOWN]


@pytest.mark.parametrize(
    "arguments", [["render", "{path}"], ["validate", "{path}"], ["import", "{path}"], [HOSTILE], ["--" + HOSTILE]]
)
def test_commands_that_read_hostile_files_keep_the_terminal(tmp_path, monkeypatch, arguments):
    hostile = {"apiVersion": "v1", "kind": HOSTILE, "metadata": {"name": HOSTILE, "labels": {HOSTILE: HOSTILE}}}
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml]")
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(hostile))
    monkeypatch.setattr(output, "is_terminal", lambda _: True)

    done = CliRunner().invoke(ctrl, [argument.format(path=tmp_path) for argument in arguments], color=True)

    assert done.output
    assert not [character for character in CONTROLS if character in done.output.replace("\x1b[", "")]


def test_commands_write_through_one_function_only():
    folder = Path(ctrlruntime.cli.__file__).parent
    found = [
        f"{path.name}:{node.lineno}: {ast.unparse(node.func)}"
        for path in folder.glob("*.py")
        if path.name != "output.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and writes(node)
    ]

    assert not found, f"write with ctrlruntime.cli.output: {found}"


def writes(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if name == "click.confirm":
        return not isinstance(call.args[0], ast.Constant)
    return name in {
        "print", "click.echo", "click.secho", "click.style", "click.prompt", "click.echo_via_pager", "sys.stdout.write", "sys.stderr.write",
        "sys.stdout.writelines", "sys.stderr.writelines", "sys.stdout.buffer.write", "sys.__stdout__.write",
    }  # fmt: skip
