"""The help of every command and subcommand: it is there, says what the command does and how it is called, and comes at once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_IN_PAGES = {"generate kustomize manifests"}  # operator-sdk's words for `generate kustomize-manifests`
HEAVY = (
    "aiohttp",
    "cryptography",
    "jinja2",
    "kubernetes_asyncio",
    "prometheus_client",
    "rich",
    "tomlkit",
)
LOADED_BY_HELP = """
import sys
from ctrlruntime.cli import ctrl
for words in sys.argv[2:]:
    before = set(sys.modules)
    ctrl([*words.split(), "--help"], standalone_mode=False)
    found = sorted(set(sys.argv[1].split()) & (set(sys.modules) - before))
    if found:
        print(words, *found, file=sys.stderr)
"""


def walk(command, *words):
    """Every command below this one, by the words that call it."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from walk(command.get_command(context, name), *words, name)


COMMANDS = {" ".join(words): command for words, command in walk(ctrl) if words}


@pytest.mark.parametrize("words", COMMANDS)
def test_help_says_what_it_does_and_how_it_is_called(words):
    shown = CliRunner().invoke(ctrl, [*words.split(), "--help"])

    usage, _, first = shown.stdout.splitlines()[:3]
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert usage.startswith(f"Usage: ctrl {words} [OPTIONS]")
    paragraph = (COMMANDS[words].help or "").strip().partition("\n\n")[0].split()
    assert first.split() == paragraph[: len(first.split())]
    assert paragraph[0][0].isupper()
    assert paragraph[-1].endswith((".", ":"))
    own = [each for each in COMMANDS[words].params if isinstance(each, click.Option) and each.help]
    assert own or f"  ctrl {words}" in shown.stdout or "\nCommands:\n" in shown.stdout


@pytest.mark.parametrize("words", COMMANDS)
def test_an_option_that_is_none_is_wrong_usage(words):
    wrong = CliRunner().invoke(ctrl, [*words.split(), "--no-such-option"])

    assert wrong.exit_code == 2
    assert "No such option" in wrong.stderr
    assert "--no-such-option" in wrong.stderr
    assert f"Try 'ctrl {words} " in wrong.stderr


def test_every_option_of_every_command_has_a_help_text():
    silent = {
        f"{words} {each.opts[0]}"
        for words, command in COMMANDS.items()
        for each in command.params
        if isinstance(each, click.Option) and not each.help
    }

    assert silent == set()


def shown_calls():
    """Every call of `ctrl` in the pages, in a code block or between backticks: (page, command, options)."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
    for page in pages:
        text = page.read_text()
        spans = [line for block in BLOCK.findall(text) for line in block.splitlines()]
        spans += re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
        for span in spans:
            for call in re.findall(r"(?:^|[\s;&|(])ctrl ([^|;&#\n]+)", span):
                # `ctrl run … -- COMMAND`: those after `--` are not ours.
                words = call.partition(" -- ")[0].split()
                named = [" ".join(words[: count + 1]) for count in range(len(words))]
                command = next((name for name in reversed(named) if name in COMMANDS), "")
                command = "catalog render" if command == "catalog" else command
                options = [
                    word.strip("[](),.").partition("=")[0] for word in words if word.lstrip("[(").startswith("--")
                ]
                yield page.relative_to(ROOT), command, options


def options_of(command):
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}


def test_pages_show_options_that_exist_and_every_command():
    calls = list(shown_calls())
    unknown = {
        f"{page}: ctrl {command} {option}"
        for page, command, options in calls
        for option in options
        if option not in options_of(COMMANDS[command] if command else ctrl)
    }

    assert unknown == set()
    commands = {name for name, command in COMMANDS.items() if not isinstance(command, click.Group)}
    assert commands - {command for _, command, _ in calls} == NOT_IN_PAGES


def test_help_comes_without_what_only_the_work_needs():
    done = subprocess.run(
        [sys.executable, "-c", LOADED_BY_HELP, " ".join(HEAVY), *sorted(COMMANDS)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_that_is_misspelt_names_the_nearest():
    for words, near in ((["manifest"], "manifests"), (["bundle", "validat"], "validate")):
        done = CliRunner().invoke(ctrl, words)
        assert (done.exit_code, f"did you mean {near!r}?" in done.stderr) == (2, True)


@pytest.mark.parametrize("words", [["--help"], ["validate", "--json", "-"]])
def test_output_that_cannot_be_written_is_one_line(words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ctrlruntime", *words],
            input="",
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr) == (1, "error: the output cannot be written: No space left on device\n")
