"""`ctrl import`: what it prints, writes and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

CRONTAB = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  names: {kind: CronTab, plural: crontabs, shortNames: [ct]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [schedule]
            properties:
              schedule: {type: string, description: When to run.}
              replicas: {type: integer, format: int32, default: 1}
"""


def run(*arguments: object, text: str | None = None):
    return CliRunner().invoke(ctrl, ["import", *(str(argument) for argument in arguments)], input=text)


@pytest.fixture
def crd(tmp_path: Path) -> Path:
    path = tmp_path / "crd.yaml"
    path.write_text(CRONTAB)
    return path


def test_the_help_has_examples():
    done = run("--help")

    assert done.exit_code == 0
    assert "ctrl import crontab.yaml -o shop/crontab.py" in done.stdout
    assert "import " in CliRunner().invoke(ctrl, ["--help"]).stdout


def test_the_module_is_written(crd: Path, tmp_path: Path):
    out, own = tmp_path / "shop" / "crontab.py", tmp_path / "own.py"

    done = run(crd, "-o", out)
    run(crd, "--own", "-o", own)

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{out}: CronTab\n"
    head = 'class CronTab(ctrl.Object, group="stable.example.com", version="v1", short_names=["ct"]'
    assert f"{head}, external=True):" in out.read_text()
    assert f"{head}):" in own.read_text()
    assert [path.name for path in out.parent.iterdir()] == ["crontab.py"]


def test_folders_of_module_in_package_become_packages(crd: Path, tmp_path: Path):
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()

    done = run(crd, "--own", "-o", package / "api/v1/cart.py")
    run(crd, "-o", tmp_path / "elsewhere/cart.py")

    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("__init__.py")) == [
        "shop/__init__.py", "shop/api/__init__.py", "shop/api/v1/__init__.py",
    ]  # fmt: skip
    made = [line.removeprefix("created ") for line in done.stdout.splitlines()[1:]]
    assert [Path(path).resolve() for path in made] == [package / "api/v1/__init__.py", package / "api/__init__.py"]


def test_without_output_the_module_is_printed(crd: Path):
    done = run(crd)

    assert done.exit_code == 0
    assert "    replicas: ctrl.Int32 = 1\n" in done.stdout
    compile(done.stdout, "crontab.py", "exec")


def test_a_definition_is_read_from_standard_input_and_prefixed():
    done = run("-", "--class-prefix", "Old", text=CRONTAB)

    assert done.exit_code == 0
    assert "class OldCronTabSpec(ctrl.Model):" in done.stdout


def test_what_cannot_be_said_is_a_warning(crd: Path):
    crd.write_text(CRONTAB + "              either: {type: string, oneOf: [{minLength: 1}]}\n")

    done = run(crd)

    assert done.exit_code == 0
    assert done.stderr.startswith("warning: crontabs.stable.example.com: v1 .spec.either: oneOf ")


def test_a_kind_is_chosen(crd: Path):
    crd.write_text(CRONTAB + "---" + CRONTAB.replace("CronTab", "Other").replace("crontabs", "others"))

    assert run(crd, "--kind", "Other").stdout.count("(ctrl.Object") == 1
    missing = run(crd, "--kind", "Third")
    assert missing.exit_code == 1
    assert missing.stderr == "error: the file has no CRD of the kind 'Third'. Use one of CronTab, Other\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: Deployment\n", "the file has no CustomResourceDefinition (only Deployment). Pass the file of a CRD"),
        (CRONTAB.replace("k8s.io/v1", "k8s.io/v1beta1"), "Convert it to apiextensions.k8s.io/v1"),
        (
            CRONTAB.replace("{type: string, ", "{"),
            "the schema of v1 is not structural, so the API server rejects it: .spec.schedule has no type",
        ),
        ("a: [\n", "crd.yaml, line 2: "),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_in_one_line(crd: Path, tmp_path: Path, text: str, told: str):
    crd.write_text(text)

    done = run(crd, "-o", tmp_path / "out.py")

    assert done.exit_code == 1
    assert told in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out.py").exists()


def test_a_file_that_is_there_is_kept_without_force(crd: Path, tmp_path: Path):
    out = tmp_path / "out.py"
    out.write_text("mine")

    refused = run(crd, "-o", out)

    assert refused.exit_code == 1
    assert refused.stderr == f"error: cannot write {out}: it exists. Use another name, or --force\n"
    assert out.read_text() == "mine"
    assert run(crd, "-o", out, "--force").exit_code == 0
    assert "class CronTab(" in out.read_text()


def test_a_missing_file_and_a_wrong_prefix_are_refused(crd: Path, tmp_path: Path):
    missing, prefix = run(tmp_path / "none.yaml"), run(crd, "--class-prefix", "x-")

    assert (missing.exit_code, prefix.exit_code) == (1, 2)
    assert "No such file or directory" in missing.stderr
    assert "'x-' cannot start the name of a class" in prefix.stderr
