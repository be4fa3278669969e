"""`ctrl validate`: files, folders and the standard input; a line for each problem."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

RIGHT = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
WRONG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, dta: {}}\n"
FOREIGN = "{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: a}}\n"


def run(*arguments: object, given: str | None = None):
    return CliRunner().invoke(ctrl, ["validate", *(str(argument) for argument in arguments)], input=given)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "right.yaml").write_text(RIGHT)
    (tmp_path / "wrong.yml").write_text(WRONG)
    (tmp_path / "notes.txt").write_text("no manifest")
    (tmp_path / "kustomization.yaml").write_text("resources: [right.yaml]\n")
    return tmp_path


def test_what_is_right_is_silent_but_for_the_count(folder):
    checked = run(folder / "right.yaml")

    assert (checked.exit_code, checked.stdout, checked.stderr) == (0, "", "1 object checked, 0 problems\n")


def test_problems_are_lines_and_code_1(folder):
    checked = run(folder)

    assert (checked.exit_code, checked.stdout) == (1, f"{folder}/wrong.yml: ConfigMap/b: dta: unknown field\n")
    assert checked.stderr == "2 objects checked, 1 problem\n"


def test_validate_reads_subfolders_but_no_patches_charts_or_hidden_files(tmp_path):
    files = {
        "crd/kustomization.yaml": "resources: [all.yaml]\npatches: [{path: patches/a.yaml}]\nconfigurations: [names.yaml]",
        "crd/all.yaml": RIGHT,
        "crd/names.yaml": "nameReference: []",
        "crd/patches/a.yaml": "- {op: remove, path: /a}",
        "chart/Chart.yaml": "name: shop",
        "chart/templates/all.yaml": "{{ if .Values }}",
        ".github/workflows/test.yml": "on: push",
        "deep/er/wrong.yaml": WRONG,
        "deep/er/values.yaml": "replicas: 1",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    checked = run(tmp_path)

    assert checked.stdout == f"{tmp_path}/deep/er/wrong.yaml: ConfigMap/b: dta: unknown field\n"
    assert checked.stderr.splitlines() == [
        f"not checked: {tmp_path}/deep/er/values.yaml: is not an object of Kubernetes",
        "2 objects checked, 1 problem",
    ]


def test_validate_names_a_kustomization_that_is_not_yaml(tmp_path):
    (tmp_path / "kustomization.yaml").write_text("a: [")

    refused = run(tmp_path)

    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"error: {tmp_path}/kustomization.yaml")


def test_a_dash_is_the_standard_input():
    checked = run("-", given=f"{RIGHT}---\n{WRONG}")

    assert (checked.exit_code, checked.stdout) == (1, "standard input: ConfigMap/b: dta: unknown field\n")


def test_unknown_kinds_are_named_and_no_failure():
    checked = run("-", given=FOREIGN)

    assert (checked.exit_code, checked.stdout) == (0, "")
    assert checked.stderr.startswith("not checked: standard input: Issuer/a: cert-manager.io/v1 is unknown")


def test_json_has_problems_and_what_was_not_checked():
    checked = run("-", "--json", given=f"{WRONG}---\n{FOREIGN}")

    found = json.loads(checked.stdout)
    assert checked.exit_code == 1
    assert found["checked"] == 1
    assert found["problems"] == [
        {"file": "standard input", "object": "ConfigMap/b", "path": "dta", "text": "unknown field"}
    ]
    assert [each["object"] for each in found["notChecked"]] == ["Issuer/a"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.yaml", "missing.yaml: No such file or directory"),
        ("empty", "no YAML or JSON files in "),
        ("bad.yaml", "bad.yaml"),
    ],
)
def test_what_cannot_be_read_is_one_line(folder, name, message):
    (folder / "empty").mkdir()
    (folder / "bad.yaml").write_text("a: [")

    refused = run(folder / name)

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1
    assert message in refused.stderr


def test_without_files_it_is_wrong_usage_and_help_has_examples():
    assert run().exit_code == 2
    assert "ctrl render | ctrl validate -" in run("--help").stdout
