"""The scripts of the checkout: each works in a clean clone, since it makes or uses the environment itself."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
PYTHON = sorted(
    path.name for path in SCRIPTS.iterdir() if path.is_file() and path.read_text().startswith("#!/usr/bin/env python3")
)
BASH = sorted(
    path.name for path in SCRIPTS.iterdir() if path.is_file() and path.read_text().startswith("#!/usr/bin/env bash")
)


@pytest.mark.parametrize("name", PYTHON)
def test_a_python_script_starts_itself_in_the_environment(name):
    lines = (SCRIPTS / name).read_text().splitlines()
    (first,) = [number for number, line in enumerate(lines) if line.startswith("import in_environment")]

    before = [line.split()[1].partition(".")[0] for line in lines[:first] if line.startswith(("import ", "from "))]
    assert set(before) <= sys.stdlib_module_names


@pytest.mark.parametrize("name", BASH)
def test_a_bash_script_sources_the_environment(name):
    assert 'source "$(dirname "${BASH_SOURCE[0]}")/environment"' in (SCRIPTS / name).read_text()


ENVIRONMENT = """\
cd "$(dirname "${BASH_SOURCE[0]}")/.."
environment() {
    mkdir -p "$1/bin"
    printf '#!/bin/sh\\necho "$PWD" "$@"\\n' >"$1/bin/python"
    chmod +x "$1/bin/python"
    PATH="$PWD/$1/bin:$PATH"
}
"""


def test_outside_of_an_environment_it_is_made_and_the_script_gets_its_arguments(tmp_path):
    scripts = tmp_path / "checkout" / "scripts"
    scripts.mkdir(parents=True)
    shutil.copy(SCRIPTS / "in_environment.py", scripts)
    (scripts / "environment").write_text(ENVIRONMENT)
    (scripts / "tool").write_text("import in_environment\nprint('not started again')\n")
    outside = getattr(sys, "_base_executable", sys.executable)

    done = subprocess.run(
        [outside, "../checkout/scripts/tool", "--option", "two words"],
        cwd=tmp_path / "checkout", capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert done.stdout == f"{tmp_path / 'checkout'} {scripts / 'tool'} --option two words\n"


def find_python(wanted: str, path: Path, pyenv: Path) -> str:
    code = f'source "{SCRIPTS}/environment" && find_python'
    environ = {"PATH": f"{path}:/usr/bin:/bin", "PYENV_ROOT": str(pyenv), "PYTHON": wanted}
    done = subprocess.run(["bash", "-c", code], env=environ, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip()


def interpreter(path: Path) -> Path:
    """Write a program that says yes to every question about its version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


def test_a_version_is_found_in_the_path_and_then_among_pyenvs_newest_first(tmp_path):
    path, pyenv = tmp_path / "bin", tmp_path / "pyenv"
    old, new = (interpreter(pyenv / "versions" / version / "bin" / "python") for version in ("9.9.2", "9.9.10"))

    assert find_python("9.9", path, pyenv) == str(new)

    new.unlink()
    assert find_python("9.9", path, pyenv) == str(old)

    assert find_python("9.9", interpreter(path / "python9.9").parent, pyenv) == str(path / "python9.9")


def test_a_version_that_is_not_here_is_named(tmp_path):
    assert find_python("9.9", tmp_path, tmp_path).startswith(
        "environment: cannot find 9.9: neither the PATH nor pyenv has it"
    )


@pytest.fixture
def side_by_side(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("side_by_side").side_by_side


@pytest.mark.parametrize(
    ("command", "code", "printed"),
    [
        (["sh", "-c", "echo out; echo err >&2; exit 3"], 3, "out\nerr\n"),
        (["no-such-program"], 127, "no-such-program cannot be started: No such file or directory\n"),
        (["sh", "-c", "echo begun; exec sleep 100"], 124, "begun\n\nsh did not end within 1 s\n"),
    ],
)
def test_a_step_that_fails_is_told_with_its_reason(side_by_side, command, code, printed):
    [ended] = side_by_side({"step": command}, 1, longest=1)

    assert (ended.name, ended.code, ended.printed) == ("step", code, printed)


OBJECTS_OF = """
import runpy, sys
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]).parent))
for each in runpy.run_path(sys.argv[1])["objects_of"](Path(sys.argv[2])):
    print(each["kind"])
"""


def test_corpus_names_the_files_it_cannot_read_and_goes_on(tmp_path):
    good = "apiVersion: v1\nkind: {}\nmetadata: {{name: a}}\n"
    texts = {
        "a.yaml": good.format("Secret"),
        "b.yaml": "{{ template }}: [",
        "c.json": "{",
        "d.jsonl": '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}\n1\n',
        "e.jsonl": "{",
        "f.jsonl.gz": "no gzip",
        "g.yml": "values: 1\n",
        "h.txt": "not looked at",
        "i.yaml": good.format("Service"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    done = subprocess.run(
        [sys.executable, "-c", OBJECTS_OF, SCRIPTS / "corpus", tmp_path], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["Secret", "Pod", "Service"]
    told = [line.removeprefix(f"skipped {tmp_path}/") for line in done.stderr.splitlines()]
    assert [line.partition(":")[0] for line in told] == ["b.yaml", "c.json", "e.jsonl", "f.jsonl.gz", "g.yml"]
    assert told[-1] == "g.yml: it has no objects"
