"""`ctrl helm`: it writes a chart, says what it did, and leaves a person's edits alone."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

OPERATOR = """
    import ctrlruntime as ctrl


    class Cart(ctrl.Object, group="webapp.x.io", version="v1"):
        size: int = 1


    @ctrl.rbac(groups="webapp.x.io", resources="carts", verbs="get;list;watch")
    def setup(mgr: ctrl.Manager) -> None:
        return
"""
DEPLOYMENT = "dist/chart/templates/manager/manager.yaml"


def run(*arguments: str):
    return CliRunner().invoke(ctrl, ["helm", *arguments])


@pytest.fixture
def project(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = package(operator=OPERATOR)
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.ctrlruntime]\nproject-name = "shop"\npackage = "{name}"\ndomain = "x.io"\n'
    )
    return tmp_path


def test_a_chart_is_written_and_then_up_to_date(project):
    first, second = run(), run()

    assert first.exit_code == 0, first.output
    assert f"created {DEPLOYMENT}\n" in first.stdout
    assert (project / "dist/chart/Chart.yaml").read_text().splitlines()[1:3] == ["apiVersion: v2", "name: shop"]
    assert (second.exit_code, second.stderr) == (0, "")
    assert second.stdout.endswith(" files in dist/chart: up to date\n")


def test_it_works_from_a_folder_of_the_project_and_into_another_one(project, monkeypatch):
    (project / "deep").mkdir()
    monkeypatch.chdir(project / "deep")

    assert run("--output-dir", "charts/shop").exit_code == 0
    assert (project / "charts/shop/values.yaml").is_file()


def test_a_file_without_the_first_line_is_kept_and_named_until_it_is_forced(project):
    run()
    (project / DEPLOYMENT).write_text("mine\n")

    kept = run()
    assert (kept.exit_code, (project / DEPLOYMENT).read_text()) == (0, "mine\n")
    assert kept.stderr.startswith(f"warning: {DEPLOYMENT}: not changed, because its first line ")
    assert kept.stderr.endswith(" or use --force\n")

    forced = run("--force")
    assert (forced.stdout, forced.stderr) == (f"changed {DEPLOYMENT}\n", "")


def test_a_deleted_file_is_created_again(project):
    run()
    (project / DEPLOYMENT).unlink()

    assert run().output == f"created {DEPLOYMENT}\n"


def test_outside_a_project_it_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    done = run()

    assert (done.exit_code, done.stdout) == (1, "")
    assert "ctrl init" in done.stderr


def test_a_package_that_cannot_be_imported_is_one_line_and_nothing_is_written(project):
    text = (project / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(text.replace('package = "', 'package = "nowhere_'))

    done = run()

    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert not (project / "dist").exists()


@pytest.mark.parametrize("folder", [".", ".."])
def test_the_chart_is_not_the_project(project, folder):
    done = run("--output-dir", folder)

    assert done.exit_code == 1
    assert done.stderr.endswith("it contains the project. Use another folder\n")


def test_a_folder_that_is_a_file_is_refused(project):
    (project / "dist").write_text("")

    done = run()

    assert (done.exit_code, done.stdout) == (1, "")
    assert "cannot write" in done.stderr


def test_the_help_has_examples():
    shown = run("--help")

    assert shown.exit_code == 0
    assert "helm install shop dist/chart" in shown.stdout
