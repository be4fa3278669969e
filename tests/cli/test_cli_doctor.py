"""`ctrl doctor`: what it prints. What it finds in a cluster is tested on both servers in tests/conformance."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from shop_project import shop

from ctrlruntime.cli import ctrl

__all__ = ["shop"]


def doctor(*arguments: str):
    return CliRunner().invoke(ctrl, ["doctor", *arguments])


def statuses(result) -> dict[str, str]:
    return {check["name"]: check["status"] for check in json.loads(result.stdout)}


def test_help_has_examples():
    helped = doctor("--help")

    assert helped.exit_code == 0
    assert "ctrl doctor --context production --json" in helped.stdout


@pytest.mark.parametrize("source", [".", "src"])
def test_a_healthy_project_is_ok_line_by_line(shop, source):
    shop.write(source=source)

    done = doctor("--local")

    assert done.exit_code == 0, done.stdout
    lines = done.stdout.splitlines()
    assert [line[:5] for line in lines] == ["ok   "] * 6
    assert "ok   manifests: up to date with the code" in lines
    memory = next(line for line in lines if line.startswith("ok   memory: "))
    assert memory.endswith("MiB for an idle operator, before caches; the limit is 256 MiB")


@pytest.mark.parametrize(
    ("gone", "text"),
    [
        ("__main__.py", "has no __main__.py, which `ctrl run` and the image start. Restore it, or copy that of a new"),
        (".", "does not exist. Set package and source-dir in [tool.ctrlruntime], or restore the folder"),
    ],
)
def test_a_project_that_cannot_be_started_fails(shop, gone, text):
    shop.write()
    path = shop.source.parent / gone
    shutil.rmtree(path) if gone == "." else path.unlink()
    shop.forget()

    done = doctor("--local")

    assert done.exit_code == 1
    assert text in next(line for line in done.stdout.splitlines() if line.startswith("fail package: "))


@pytest.mark.parametrize(
    ("made_by", "advice"), [("0.0.1", "Run `ctrl upgrade`"), ("999.0.0", "Install ctrlruntime 999.0.0 or later")]
)
def test_another_version_has_the_advice_that_helps(shop, made_by, advice):
    shop.write()
    text = Path("pyproject.toml").read_text()
    Path("pyproject.toml").write_text(text.replace('scaffold-version = ""', f'scaffold-version = "{made_by}"'))

    done = doctor("--local")

    assert f"but the project was created by {made_by}. {advice}\n" in done.stdout


def test_stale_manifests_and_a_small_limit_are_warnings(shop):
    shop.write()
    manager = Path("config/manager/manager.yaml")
    manager.write_text(manager.read_text().replace("memory: 256Mi", "memory: 32Mi"))
    shop.source.write_text(shop.source.read_text().replace("size: int = 1", "size: int = 7"))
    shop.forget()

    done = doctor("--local", "--json")

    assert done.exit_code == 0
    assert (statuses(done)["manifests"], statuses(done)["memory"]) == ("warn", "warn")


def test_what_cannot_be_loaded_or_rendered_fails_and_the_rest_is_looked_at(shop):
    shop.write()
    shop.source.write_text("raise RuntimeError('no')")
    shop.forget()
    Path("config/default/kustomization.yaml").unlink()

    done = doctor("--local", "--json")

    assert done.exit_code == 1
    found = statuses(done)
    assert (found["config/default"], found["manifests"], found["memory"]) == ("fail", "fail", "warn")
    assert found["python"] == "ok"


@pytest.mark.parametrize(
    ("kubeconfig", "text"),
    [
        ("/nowhere", "kubeconfig /nowhere does not exist; check the path"),
        ("silent", "cannot connect to http://127.0.0.1:1"),
    ],
)
def test_a_cluster_that_is_not_there_fails_after_the_rest(shop, kubeconfig, text):
    shop.write()
    Path("silent").write_text(
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
            }
        )
    )

    done = doctor("--kubeconfig", kubeconfig)

    assert done.exit_code == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith("fail cluster: ")
    assert text in last
