"""`ctrl completion`: what it prints makes a shell ask the program for what may come next."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_lines_of_its_own(shell):
    outcome = CliRunner().invoke(ctrl, ["completion", shell])

    assert outcome.exit_code == 0
    assert f"_CTRL_COMPLETE={shell}_complete" in outcome.output


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_takes_the_lines():
    lines = CliRunner().invoke(ctrl, ["completion", "bash"]).output

    done = subprocess.run(["bash", "-n"], input=lines, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_the_program_answers_what_the_lines_ask():
    asked = {**os.environ, "_CTRL_COMPLETE": "bash_complete", "COMP_WORDS": "ctrl upg", "COMP_CWORD": "1"}

    done = subprocess.run([sys.executable, "-m", "ctrlruntime"], env=asked, capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["plain,upgrade"]


@pytest.mark.parametrize("words", [["completion"], ["completion", "tcsh"]])
def test_a_shell_that_is_none_is_wrong_usage(words):
    outcome = CliRunner().invoke(ctrl, words)

    assert outcome.exit_code == 2
    assert "bash" in outcome.output
