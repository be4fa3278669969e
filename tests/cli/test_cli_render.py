"""`ctrl render`: it prints, writes and compares, and ends in one line when it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

MAP = "apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  name: my-map\n  namespace: shop\n"
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: my-web\n  namespace: shop\n"


def run(*arguments: object, given: str | None = None):
    return CliRunner().invoke(ctrl, ["render", *(str(argument) for argument in arguments)], input=given)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "config/default"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text("namespace: shop\nnamePrefix: my-\nresources: [a.yaml]\n")
    (folder / "a.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: map}, data: {a: b}}\n"
        "---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}\n"
    )
    return folder


def test_the_objects_are_printed(folder):
    shown = run(folder)

    assert (shown.exit_code, shown.output) == (0, f"{ACCOUNT}---\n{MAP}")


def test_without_a_folder_it_is_that_of_the_default(folder, monkeypatch):
    monkeypatch.chdir(folder.parents[1])

    assert run().stdout == f"{ACCOUNT}---\n{MAP}"


def test_json_is_a_list(folder):
    shown = run(folder, "--json")

    assert [each["kind"] for each in json.loads(shown.stdout)] == ["ServiceAccount", "ConfigMap"]


def test_a_file_is_written(folder, tmp_path):
    done = run(folder, "-o", tmp_path / "dist/all.yaml")

    assert (done.exit_code, done.stdout) == (0, f"2 objects in {tmp_path}/dist/all.yaml\n")
    assert (tmp_path / "dist/all.yaml").read_text() == f"{ACCOUNT}---\n{MAP}"


@pytest.mark.parametrize(("flags", "ending"), [((), "yaml"), (("--json",), "json")])
def test_a_file_for_each_object_is_written(folder, tmp_path, flags, ending):
    done = run(folder, "-o", f"{tmp_path}/dist/", *flags)

    assert done.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "dist").iterdir()) == [
        f"v1_configmap_shop_my-map.{ending}",
        f"v1_serviceaccount_shop_my-web.{ending}",
    ]


def test_the_image_is_set_in_what_is_printed_written_and_compared(folder, tmp_path):
    deployment = """\
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [
  {name: manager, image: old}, {name: proxy, image: proxy}]}}}}
"""
    (folder / "a.yaml").write_text(deployment)

    printed = run(folder, "--image", "registry.example.com/shop:v1", "-o", tmp_path / "dist/install.yaml")

    text = (tmp_path / "dist/install.yaml").read_text()
    assert (printed.exit_code, text.count("image: registry.example.com/shop:v1\n"), "old" in text) == (0, 1, False)
    assert run(folder, "--image", "registry.example.com/shop:v1").stdout == text
    assert run(folder, "--image=registry.example.com/shop:v1", "--compare", tmp_path / "dist/install.yaml").output == ""


def test_an_image_without_a_deployment_is_refused(folder):
    refused = run(folder, "--image", "shop:v1")

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == "error: cannot set the image: no Deployment has a container 'manager'\n"


def test_equal_objects_in_any_order_compare_silently(folder):
    compared = run(folder, "--compare", "-", given=f"{MAP}---\n{ACCOUNT}")

    assert (compared.exit_code, compared.output) == (0, "")


def test_a_difference_is_shown_and_fails(folder, tmp_path):
    (tmp_path / "old.yaml").write_text(f"{MAP.replace('a: b', 'a: c')}---\n{ACCOUNT}")

    compared = run(folder, "--compare", tmp_path / "old.yaml")

    assert compared.exit_code == 1
    assert compared.stdout.startswith(f"--- v1 ConfigMap shop/my-map ({tmp_path}/old.yaml)\n")
    assert "-  a: c\n+  a: b\n" in compared.stdout


def test_a_missing_object_is_a_difference(folder):
    compared = run(folder, "--compare", "-", given=MAP)

    assert compared.exit_code == 1
    assert "+kind: ServiceAccount" in compared.stdout


def test_a_folder_without_a_kustomization_is_refused(tmp_path):
    refused = run(tmp_path)

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert (
        refused.stderr == f"error: cannot render {tmp_path}: it has no kustomization.yaml, but must have exactly one\n"
    )


def test_what_is_left_to_kubectl_is_refused(folder, tmp_path):
    (folder / "kustomization.yaml").write_text("helmCharts: [{name: x}]\n")

    refused = run(folder, "-o", tmp_path / "all.yaml")

    assert (refused.exit_code, (tmp_path / "all.yaml").exists()) == (1, False)
    assert refused.stderr.endswith("helmCharts is not supported. Use `kubectl kustomize`\n")


@pytest.mark.parametrize("text", [None, "a: [b"])
def test_what_cannot_be_compared_with_is_refused(folder, tmp_path, text):
    if text is not None:
        (tmp_path / "other.yaml").write_text(text)

    refused = run(folder, "--compare", tmp_path / "other.yaml")

    assert refused.exit_code == 1
    assert f"{tmp_path}/other.yaml" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_comparing_and_writing_do_not_go_together(folder):
    assert run(folder, "--compare", "-", "--json").exit_code == 2


def test_the_help_has_examples():
    shown = run("--help")

    assert shown.exit_code == 0
    assert "kubectl kustomize config/default | ctrl render --compare -" in shown.stdout
