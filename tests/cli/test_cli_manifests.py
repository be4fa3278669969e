"""`ctrl manifests`, and how the command line ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

ROOT = Path(__file__).parents[2]
API = """
    import ctrlruntime as ctrl

    class Game(ctrl.Object, group="g.example.com", version="v1"):
        size: int = 1

    @ctrl.rbac(resources="pods", verbs="get")
    async def reconcile(request): ...
"""
CRD = "crd/bases/g.example.com_games.yaml"


def run(*arguments: object):
    return CliRunner().invoke(ctrl, [str(argument) for argument in arguments])


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def game(package):
    return package(api=API)


def test_files_are_written_once_and_then_up_to_date(game, tmp_path):
    out = tmp_path / "config"

    first = run("manifests", "--module", game, "--output-dir", out)
    second = run("manifests", "--module", game, "--output-dir", out)

    assert (first.exit_code, first.stdout.splitlines()) == (
        0,
        [f"created {out}/{CRD}", f"created {out}/rbac/role.yaml"],
    )
    assert (second.exit_code, second.stdout) == (0, f"2 files in {out}: up to date\n")


def test_check_passes_on_what_was_written_and_writes_nothing(game, tmp_path):
    out = tmp_path / "config"
    run("manifests", "--module", game, "--output-dir", out)
    (out / CRD).write_text((out / CRD).read_text().replace("size:", "sizes:"))
    before = texts(out)

    stale = run("manifests", "--module", game, "--output-dir", out, "--check")

    assert stale.exit_code == 1
    assert [line.strip("+- ") for line in stale.stdout.splitlines() if line.startswith(("+ ", "- "))] == [
        "sizes:",
        "size:",
    ]
    assert stale.stderr == f"error: stale: {out}/{CRD}. Run ctrl manifests without --check\n"
    assert texts(out) == before


def test_check_of_what_is_current_is_silent(game, tmp_path):
    run("manifests", "--module", game, "--output-dir", tmp_path / "config")

    current = run("manifests", "--module", game, "--output-dir", tmp_path / "config", "--check")

    assert (current.exit_code, current.output) == (0, "")


def test_diff_shows_what_would_change_and_is_no_failure(game, tmp_path):
    shown = run("manifests", "--module", game, "--output-dir", tmp_path / "config", "--diff")

    assert shown.exit_code == 0
    assert f"+++ {tmp_path}/config/{CRD} (generated)" in shown.stdout
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize(("flag", "written"), [("--crd", [CRD]), ("--rbac", ["rbac/role.yaml"]), ("--webhook", [])])
def test_one_kind_of_files_can_be_chosen(game, tmp_path, flag, written):
    made = run("manifests", "--module", game, "--output-dir", tmp_path / "config", flag)

    assert made.exit_code == 0
    assert sorted(texts(tmp_path / "config")) == written


def test_the_role_is_named_as_asked(game, tmp_path):
    run("manifests", "--module", game, "--output-dir", tmp_path, "--role-name", "game-operator", "--rbac")

    assert "  name: game-operator\n" in (tmp_path / "rbac/role.yaml").read_text()


def test_a_definition_of_a_class_that_is_gone_is_named(game, tmp_path):
    gone = tmp_path / "crd/bases/g.example.com_olds.yaml"
    gone.parent.mkdir(parents=True)
    gone.touch()

    made = run("manifests", "--module", game, "--output-dir", tmp_path)

    assert made.exit_code == 0
    assert made.stderr == f"warning: {gone} was not generated from {game}. Delete it if its class no longer exists\n"


def test_a_package_without_anything_is_a_warning(package, tmp_path):
    made = run("manifests", "--module", package(), "--output-dir", tmp_path)

    assert (made.exit_code, made.stdout) == (0, "")
    assert "defines no kinds, permissions or webhooks" in made.stderr


def test_an_error_of_the_users_class_is_one_line_that_names_module_class_and_field(package, tmp_path):
    name = package(api=API.replace("size: int = 1", "size: float = 1.0"))

    refused = run("manifests", "--module", name, "--output-dir", tmp_path)

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.count("\n") == 1
    assert refused.stderr.startswith(f"error: {name}.api.Game.size: ")


KIND = "class Game(ctrl.Object, group='g.example.com', version='v1'"
VERSIONS = f"{KIND}, storage=True): ...\nclass Later(ctrl.Object, group='g.example.com', version='v2', kind='Game'"
WEBHOOK = "ctrl.new_webhook_managed_by(mgr).for_(Game)"
DEFAULTER = "class Fills:\n    async def default(self, game): ...\n"
BAD_INPUT = {
    "an unsupported type": (f"{KIND}):\n    x: float = 1.0", "bad.Game.x: not all clients and languages keep the value of a float"),
    "an ambiguous type": (f"{KIND}):\n    x: int | str = 1", "bad.Game.x: int | str is not supported. Use IntOrString"),
    "a TypedDict": (
        f"import typing\nclass D(typing.TypedDict):\n    a: int\n{KIND}):\n    x: D | None = None",
        "bad.Game: pydantic cannot build the class: Please use `typing_extensions.TypedDict`|bad.Game.x: D is a TypedDict",
    ),
    "a pattern with look-around": (
        f"from pydantic import Field\n{KIND}):\n    x: str = Field('', pattern='(?<=a)b')",
        "bad.Game.x: pydantic cannot build the field: .*look-around",
    ),
    "a limit of another type": (
        f"from pydantic import Field\n{KIND}):\n    x: int = Field(1, le=3.5)",
        "bad.Game.x: .*coercible to an integer",
    ),
    "a type that is not defined": (f"{KIND}):\n    x: 'Nowhere' = None", "bad.Game: the annotation 'Nowhere' is not defined"),
    "recursion": (
        f"class Part(ctrl.Model):\n    part: 'Part | None' = None\n{KIND}):\n    x: Part | None = None",
        r"bad.Part.part: the class contains itself \(Part -> Part\)",
    ),
    "two storage versions": (f"{VERSIONS}, storage=True): ...", "Game: 2 versions have storage=True"),
    "a version that is not a label": (f"{KIND.replace('v1', '1.0')}): ...", "bad.Game: the version '1.0' is not one like v1, v1alpha1"),
    "a path that is none": (f"@ctrl.crd.printcolumn('X', 'spec[')\n{KIND}): ...", r"\(bad.py:2\): .*a path starts with a dot"),
    "a path that leads nowhere": (f"@ctrl.crd.printcolumn('X', '.spec.x')\n{KIND}): ...", "'X': .spec.x is not in the schema"),
    "CEL that does not compile": (
        f"import typing\n{KIND}):\n    x: typing.Annotated[str, ctrl.crd.CEL('self >')] = ''",
        "bad.Game.x: the rule 'self >': compilation failed: ERROR: <input>:1:7: Syntax error",
    ),
    "a validator without methods": (
        f"{KIND}): ...\n{DEFAULTER}def setup(mgr):\n    {WEBHOOK}.with_validator(Fills()).complete()",
        "a Fills validates nothing: give it async methods validate_create",
    ),
    "a converter that is missing": (
        (f"{VERSIONS}): ...\nclass Third(ctrl.Object, group='g.example.com', version='v3', kind='Game'): ...\n"
        "same = lambda game: game\n"
        "def setup(mgr):\n    conversion = ctrl.webhook.Conversion(Game).spoke(Later, to_hub=same, from_hub=same)\n"
        f"    {WEBHOOK}.with_conversion(conversion).complete()"),
        r"bad.Third: version v3 of Game is missing in its conversion, which has v1, v2. Add .spoke\(Third,",
    ),
    "certificates from two places": (
        "OPTIONS = ctrl.webhook.WebhookOptions(development=ctrl.webhook.DevelopmentMode(), cert_dir='/x')",
        "cert_dir together with development or secret; remove one",
    ),
    "a rule that grants nothing it can": (
        "@ctrl.rbac(urls='/metrics', verbs='get', namespace='ops')\nasync def reconcile(request): ...",
        r'@rbac\(urls="/metrics", verbs="get", namespace="ops"\) has URLs .* Remove namespace=',
    ),
    "a module that raises": ("raise RuntimeError('no token')", r"cannot import bad \(bad.py:2\): RuntimeError: no token"),
    "a setup that raises": ("def setup(mgr):\n    raise KeyError('TOKEN')", r"setup failed \(bad.py:3\): KeyError: 'TOKEN'"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_is_an_error_that_says_where_and_what_and_no_traceback(text, message, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "bad", raising=False)
    (tmp_path / "bad.py").write_text(f"import ctrlruntime as ctrl\n{text}\n")

    refused = run("manifests", "--module", "bad", "--output-dir", tmp_path / "config")

    monkeypatch.delitem(sys.modules, "bad", raising=False)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: ")
    assert re.search(message, refused.stderr), refused.stderr
    assert "Traceback" not in refused.stderr
    assert isinstance(refused.exception, SystemExit)
    assert not (tmp_path / "config").exists()


def test_cel_without_bounds_is_a_warning_with_advice(package, tmp_path):
    name = package(api=API.replace("size: int = 1", "names: Annotated[list[str], RULE] = Field(default_factory=list)").replace(
        "import ctrlruntime as ctrl",
        "import ctrlruntime as ctrl\n    from typing import Annotated\n    from pydantic import Field\n"
        "    RULE = ctrl.crd.CEL('self.all(one, self.all(other, one.contains(other)))')",
    ))  # fmt: skip

    made = run("manifests", "--module", name, "--output-dir", tmp_path)

    assert made.exit_code == 0
    assert f"warning: {name}.api.Game.names: the rule 'self.all(" in made.stderr
    assert "Bound its lists, dicts and strings with Field(max_length=…)" in made.stderr


def test_an_operator_of_a_namespace_has_a_role(package, tmp_path):
    setup = """
        import ctrlruntime as ctrl
        from .api import Game, reconcile

        def setup(mgr):
            ctrl.new_controller_managed_by(mgr).for_(Game).complete(reconcile)
    """

    run("manifests", "--module", package(api=API, controller=setup), "--output-dir", tmp_path, "--namespace", "ops")

    roles = (tmp_path / "rbac/role.yaml").read_text()
    assert "kind: Role\nmetadata:\n  name: manager-role\n  namespace: ops" in roles
    assert "kind: ClusterRole" in roles  # what @ctrl.rbac says without a namespace is the whole cluster's


def test_traceback_shows_where_an_error_came_from(package):
    refused = run("--traceback", "manifests", "--module", package(api="raise ValueError('no')"))

    assert refused.exit_code == 1
    assert isinstance(refused.exception.__cause__, ValueError)


@pytest.mark.parametrize(
    "arguments",
    [["manifests", "--rbac"], ["manifests", "--modul", "x"], ["manifest"], ["manifests", "--module", "x", "more"]],
)
def test_wrong_usage_is_code_2(arguments):
    wrong = run(*arguments)

    assert wrong.exit_code == 2
    assert "Usage: ctrl" in wrong.stderr


def test_help_names_every_command_and_the_exit_codes():
    shown = run("--help")

    assert shown.exit_code == 0
    for word in ("manifests", "install", "uninstall", "storage", "Exit codes: 0 success"):
        assert word in shown.stdout


@pytest.mark.parametrize("command", ["manifests", "install", "uninstall", "storage"])
def test_each_command_has_help(command):
    shown = run(command, "--help")

    assert shown.exit_code == 0
    assert f"Usage: ctrl {command}" in shown.stdout


def process(*arguments: str, cwd: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("example", ["memcached", "game", "sidecarset"])
def test_the_committed_files_of_an_example_are_current(example):
    done = process("-m", "ctrlruntime", "manifests", "--check", "--project", f"examples/{example}")

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_console_script_finds_packages_where_it_is_run(tmp_path):
    (tmp_path / "operator_here.py").write_text(
        "import ctrlruntime as ctrl\n" + "@ctrl.rbac(resources='pods', verbs='get')\ndef x(): ...\n"
    )

    # -P: as for a console script, the folder it is run in is not looked into.
    script = "from ctrlruntime.__main__ import main; main()"
    done = process("-P", "-c", script, "manifests", "--module", "operator_here", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, "created config/rbac/role.yaml\n")


def test_without_the_extra_it_is_one_line_that_says_what_to_install():
    script = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "click" else find(name, *rest)
from ctrlruntime.__main__ import main
main()
"""

    done = process("-c", script, "--help")

    assert (done.returncode, done.stderr) == (
        1,
        "error: the command line needs an extra: pip install 'ctrlruntime[cli]'\n",
    )


# In a project


@pytest.fixture
def project(package, tmp_path, monkeypatch):
    name = package(api=API)
    table = f'[tool.ctrlruntime]\nproject-name = "game"\npackage = "{name}"\ndomain = "x.io"\n'
    (tmp_path / "pyproject.toml").write_text(table)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_project_says_by_itself_what_its_tree_is(project):
    first, second, checked = run("manifests"), run("manifests"), run("manifests", "--check")

    assert (first.exit_code, f"created config/{CRD}") == (0, first.stdout.splitlines()[0])
    assert "created config/manager/manager.yaml" in first.stdout.splitlines()
    files = len(texts(project / "config"))
    assert (second.exit_code, second.stdout) == (0, f"{files} files in config: up to date\n")
    assert (checked.exit_code, checked.output) == (0, "")


def test_a_project_is_found_from_below_and_named_from_elsewhere(project, tmp_path_factory, monkeypatch):
    run("manifests")
    below, elsewhere = project / "config/crd", tmp_path_factory.mktemp("elsewhere")

    monkeypatch.chdir(below)
    assert run("manifests", "--check").exit_code == 0
    monkeypatch.chdir(elsewhere)
    assert run("manifests", "--check").exit_code == 1
    assert run("manifests", "--project", project, "--check").exit_code == 0


def test_a_package_is_imported_from_the_folder_the_settings_name(project):
    name = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["ctrlruntime"]["package"]
    (project / "src").mkdir()
    (project / name).rename(project / "src" / name)

    assert run("manifests").stderr.startswith(f"error: module {name} does not exist. ")

    with (project / "pyproject.toml").open("a") as file:
        file.write('source-dir = "src"\n')
    made, checked = run("manifests"), run("manifests", "--check")

    assert (made.exit_code, made.stdout.splitlines()[0]) == (0, f"created config/{CRD}")
    assert (checked.exit_code, checked.output) == (0, "")


def test_a_source_that_is_not_there_is_one_line(project):
    with (project / "pyproject.toml").open("a") as file:
        file.write('source-dir = "sources"\n')

    refused = run("manifests")

    assert refused.exit_code == 1
    assert "[tool.ctrlruntime] source-dir: the folder sources does not exist" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_check_of_a_project_names_what_is_stale_and_writes_nothing(project):
    run("manifests")
    (project / "config" / CRD).write_text((project / "config" / CRD).read_text().replace("size:", "sizes:"))
    (project / "config/manager/manager.yaml").unlink()
    left = project / "config/old/policy.yaml"
    left.parent.mkdir()
    left.write_text((project / "config/rbac/kustomization.yaml").read_text())
    before = texts(project)

    stale = run("manifests", "--check")
    shown = run("manifests", "--diff")

    assert (stale.exit_code, shown.exit_code) == (1, 0)
    assert stale.stderr == (
        f"error: stale: config/{CRD}, config/manager/manager.yaml, config/old/policy.yaml. Run ctrl manifests without --check\n"
    )
    assert stale.stdout == shown.stdout
    assert "--- config/old/policy.yaml\n+++ /dev/null\n" in shown.stdout
    assert texts(project) == before


def test_a_kind_that_is_gone_takes_its_files_along(project, package):
    run("manifests")
    text = (project / "pyproject.toml").read_text()
    other = package(api=API.replace("Game", "Match"))
    (project / "pyproject.toml").write_text(re.sub("package = .*", f'package = "{other}"', text))

    changed = run("manifests")

    assert f"removed config/{CRD}" in changed.stdout.splitlines()
    assert "removed config/rbac/game_viewer_role.yaml" in changed.stdout.splitlines()
    assert run("manifests", "--check").exit_code == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--role-name", "x"], "--role-name requires --module"),
        (["--output-dir", "x"], "--output-dir requires --module"),
        (["--module", "x", "--project", "."], "use --module or --project, not both"),
    ],
)
def test_what_the_settings_decide_is_no_option_in_a_project(project, flags, message):
    wrong = run("manifests", *flags)

    assert wrong.exit_code == 2
    assert message in " ".join(wrong.stderr.split())


@pytest.mark.parametrize("flags", [[], ["--project", "."]])
def test_outside_a_project_it_says_how_to_make_one(tmp_path, monkeypatch, flags):
    monkeypatch.chdir(tmp_path)

    refused = run("manifests", *flags)

    assert refused.exit_code == 1
    assert "Create one with `ctrl init`" in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "folder"), [(["manifests"], "config"), (["bundle", "--version", "0.1.0"], "bundle")]
)
def test_a_file_here_with_the_name_of_a_folder_of_the_project_does_not_count(tmp_path, monkeypatch, command, folder):
    project, here = tmp_path / "shop", tmp_path / "kube"
    assert run("init", "--domain", "x.io", project).exit_code == 0
    here.mkdir()
    (here / folder).write_text("a kubeconfig, say")
    monkeypatch.chdir(here)

    done = run(*command, "--project", project)

    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (["manifests", "--module", "GAME", "--output-dir", "taken"], "manifests"),
        (["bundle", "--version", "0.1.0", "--output-dir", "taken"], "bundle"),
        (["helm", "--output-dir", "taken"], "chart"),
    ],
)
def test_a_file_for_the_folder_of_what_is_made_is_refused(game, tmp_path, monkeypatch, command, what):
    project = tmp_path / "shop"
    assert run("init", "--domain", "x.io", project).exit_code == 0
    (project / "taken").write_text("mine")
    monkeypatch.chdir(project)

    done = run(*(game if word == "GAME" else word for word in command))

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.endswith("taken: it is a file. Use a folder\n")
    assert (project / "taken").read_text() == "mine"
