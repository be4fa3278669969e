"""`ctrl edit`: pyproject.toml and the tree, both or neither."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.project.settings import read_settings

API = """
    import ctrlruntime as ctrl

    class Game(ctrl.Object, group="g.x.io", version="v1"):
        size: int = 1
"""
PROJECT = """\
# a person's
[project]
name = "game"

[tool.ctrlruntime]
project-name = "game"  # short
package = "PACKAGE"
domain = "x.io"

[[tool.ctrlruntime.resources]]
group = "g.x.io"
version = "v1"
kind = "Game"
plural = "games"
"""


def run(*arguments: object):
    return CliRunner().invoke(ctrl, [str(argument) for argument in arguments])


def texts(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def project(package, tmp_path, monkeypatch):
    name = package(api=API)
    (tmp_path / "pyproject.toml").write_text(PROJECT.replace("PACKAGE", name))
    monkeypatch.chdir(tmp_path)
    assert run("manifests").exit_code == 0
    return tmp_path


def test_a_switch_changes_settings_and_tree(project):
    run("edit", "--no-network-policy")

    done = run("edit", "--network-policy", "--prometheus")

    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "changed pyproject.toml",
        "changed config/default/kustomization.yaml",
        "created config/network-policy/allow-metrics-traffic.yaml",
        "created config/network-policy/kustomization.yaml",
        "created config/prometheus/kustomization.yaml",
        "created config/prometheus/monitor.yaml",
    ]
    text = (project / "pyproject.toml").read_text()
    assert text.startswith('# a person\'s\n[project]\nname = "game"\n')
    assert 'project-name = "game"  # short' in text
    assert run("manifests", "--check").exit_code == 0


def test_and_back(project):
    before = texts(project / "config")
    run("edit", "--no-metrics", "--namespaced", "--image", "registry.example.com/game:v1")

    between = texts(project / "config")
    back = run("edit", "--metrics", "--no-namespaced", "--image", "game:latest")

    assert back.exit_code == 0
    assert "default/metrics_service.yaml" not in between
    assert "default/manager_namespaced_patch.yaml" in between
    assert texts(project / "config") == before


def test_a_switch_takes_the_values_of_go(project):
    assert run("edit", "--namespaced=true", "--metrics=false").exit_code == 0
    between = read_settings(project)

    assert run("edit", "--namespaced=false", "--metrics=t").exit_code == 0

    after = read_settings(project)
    assert (between.namespaced, between.features.metrics) == (True, False)
    assert (after.namespaced, after.features.metrics) == (False, True)


def test_the_image_is_what_the_deployment_runs(project):
    assert run("edit", "--image", "registry.example.com/game:v1").exit_code == 0

    assert "image: registry.example.com/game:v1\n" in run("render").stdout


def test_sharding_sets_the_replicas_and_back(project):
    before = texts(project)

    done = run("edit", "--sharding", "--replicas", "5")
    again = run("edit", "--replicas", "3")
    rendered = run("render").stdout
    back = run("edit", "--no-sharding")

    assert [each.exit_code for each in (done, again, back)] == [0, 0, 0]
    assert [line for line in done.stdout.splitlines() if "sharding" in line] == [
        "created config/default/manager_sharding_patch.yaml",
        "created config/sharding/kustomization.yaml",
        "created config/sharding/pod_disruption_budget.yaml",
    ]
    assert "no controller has sharded=True" in done.stderr
    assert "  replicas: 3\n" in rendered
    assert {path: text for path, text in texts(project).items() if path != "pyproject.toml"} == {
        path: text for path, text in before.items() if path != "pyproject.toml"
    }
    assert not {"sharding", "replicas"} & set((project / "pyproject.toml").read_text().split())


def test_it_works_from_a_folder_below(project, monkeypatch):
    monkeypatch.chdir(project / "config")

    done = run("edit", "--no-cert-manager")

    assert (done.exit_code, done.stdout) == (0, "changed ../pyproject.toml\n")
    assert read_settings(project).features.cert_manager is False


def test_what_is_so_already_is_said(project):
    run("edit", "--metrics")

    again = run("edit", "--metrics")

    assert (again.exit_code, again.stdout) == (0, "nothing to change: the settings already have these values\n")


def test_multigroup_waits_for_no_classes(project):
    without = (project / "pyproject.toml").read_text().partition("[[tool")[0]

    refused = run("edit", "--multigroup")
    (project / "pyproject.toml").write_text(without)
    done = run("edit", "--multigroup")

    assert refused.exit_code == 1
    assert "Game must be moved by hand. Move" in refused.stderr
    assert done.exit_code == 0
    assert read_settings(project).multigroup


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--prometheus", "--no-metrics"], "prometheus requires metrics, which are off"),
        (["--image", ""], "the image '' is not valid. Use REGISTRY/NAME:TAG"),
        (["--image", "a b"], "the image 'a b' is not valid"),
        (["--image", ":v1"], "the image ':v1' is not valid"),
        (["--replicas", "5"], "replicas requires sharding"),
        (["--sharding", "--replicas", "0"], "--replicas is 0: give a number from 1 to 100"),
    ],
)
def test_what_cannot_be_changes_nothing(project, flags, message):
    before = texts(project)

    refused = run("edit", *flags)

    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"error: {message}")
    assert refused.stderr.count("\n") == 1
    assert texts(project) == before


def test_a_package_that_fails_changes_nothing(project, package):
    text = (project / "pyproject.toml").read_text()
    broken = package(api="raise ValueError('no')")
    (project / "pyproject.toml").write_text(text.replace(read_settings(project).package, broken))
    before = texts(project / "config")

    refused = run("edit", "--prometheus")

    assert refused.exit_code == 1
    assert "ValueError: no" in refused.stderr
    assert texts(project / "config") == before
    assert not read_settings(project).features.prometheus


def test_outside_a_project_it_says_how_to_make_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    refused = run("edit", "--metrics")

    assert refused.exit_code == 1
    assert "Create one with `ctrl init`" in refused.stderr


def test_without_a_setting_it_is_wrong_usage_and_help_has_examples(project):
    assert run("edit").exit_code == 2
    assert "ctrl edit --prometheus --no-network-policy" in run("edit", "--help").stdout
