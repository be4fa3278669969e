"""`ctrl bundle validate`: a line for each finding, or JSON; codes 0, 1 and 2."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

BUNDLES = Path(__file__).parent.parent / "olm"


@pytest.fixture(scope="module")
def bundles():
    """The builder of bundles, which stands beside the tests of the checks."""
    sys.path.insert(0, str(BUNDLES))
    try:
        import bundles
    finally:
        sys.path.remove(str(BUNDLES))
    return bundles


def run(*arguments: object):
    return CliRunner().invoke(ctrl, ["bundle", "validate", *(str(argument) for argument in arguments)])


def test_a_valid_bundle_is_said_to_be(bundles, tmp_path):
    checked = run(bundles.write(tmp_path))

    assert (checked.exit_code, checked.stdout, checked.stderr) == (0, "", f"{tmp_path} is valid\n")


def test_the_folder_is_bundle_when_none_is_named(bundles, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bundles.write(tmp_path / "bundle")

    checked = run()

    assert (checked.exit_code, checked.stderr) == (0, "bundle is valid\n")


def test_an_error_is_a_line_and_code_1(bundles, tmp_path):
    checked = run(bundles.write(tmp_path, bundles.csv("spec.version", "v1")))

    assert checked.exit_code == 1
    assert checked.stdout == (
        "error: manifests/kettle.clusterserviceversion.yaml: ClusterServiceVersion/kettle.v1.2.0: spec.version: "
        "'v1' is not a semantic version. Write three numbers with dots and without v, such as 1.2.3 [csv-version]\n"
    )
    assert checked.stderr == f"{tmp_path}: 1 error, 0 warnings\n"


def test_warnings_alone_pass(bundles, tmp_path):
    change = bundles.several(bundles.csv("spec.keywords"), bundles.csv("spec.maintainers"))

    checked = run(bundles.write(tmp_path, change))

    assert checked.exit_code == 0
    assert [line.split(":")[0] for line in checked.stdout.splitlines()] == ["warning", "warning"]
    assert checked.stderr == f"{tmp_path}: 0 errors, 2 warnings\n"


@pytest.mark.parametrize("form", ["json", "json-alpha1"])
def test_json_has_the_same(bundles, tmp_path, form):
    checked = run(bundles.write(tmp_path, bundles.csv("spec.version", "v1")), "-o", form)

    assert checked.exit_code == 1
    assert json.loads(checked.stdout) == {
        "passed": False,
        "outputs": [
            {
                "type": "error",
                "code": "csv-version",
                "checkType": "CSVFileNotValid",
                "message": "'v1' is not a semantic version. Write three numbers with dots and without v, such as 1.2.3",
                "file": "manifests/kettle.clusterserviceversion.yaml",
                "object": "ClusterServiceVersion/kettle.v1.2.0",
                "path": "spec.version",
            }
        ],
    }
    assert checked.stderr == ""


def test_json_of_a_valid_bundle(bundles, tmp_path):
    checked = run(bundles.write(tmp_path), "-o", "json")

    assert (checked.exit_code, json.loads(checked.stdout)) == (0, {"passed": True, "outputs": []})


def test_optional_checks_run_when_they_are_selected(bundles, tmp_path):
    folder = bundles.write(tmp_path, bundles.csv_annotation("capabilities", "Superb"))

    assert run(folder).exit_code == 0
    for selector in ("name=capabilities", "suite=operatorframework", "name in (capabilities, categories)"):
        checked = run(folder, "--select-optional", selector)
        assert checked.exit_code == 1
        assert "Superb" in checked.stdout


def test_values_reach_the_check_that_asks_for_them(bundles, tmp_path):
    budget = {
        "apiVersion": "policy/v1beta1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kettle"},
        "spec": {"minAvailable": 1},
    }
    folder = bundles.write(
        tmp_path,
        bundles.several(bundles.add("manifests/budget.yaml", budget), bundles.csv("spec.minKubeVersion", "1.24.0")),
    )
    selected = (folder, "--select-optional", "name=alpha-deprecated-apis")

    assert run(*selected).exit_code == 0
    assert run(*selected, "--optional-values", "k8s-version=1.25").exit_code == 1


def test_optional_checks_are_listed_without_a_bundle(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    listed = run("--list-optional")
    as_json = run("--list-optional", "-o", "json")

    assert listed.exit_code == as_json.exit_code == 0
    names = [each["name"] for each in json.loads(as_json.stdout)]
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [f"name={name}" for name in names]
    assert {"capabilities", "good-practices", "operatorhubv2"} <= set(names)
    assert "(suite=operatorframework)" in listed.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--select-optional", "name=good-practises"), "did you mean 'good-practices'?"),
        (("--select-optional", "suite=operator"), "unknown optional validator: suite 'operator'"),
        (("--select-optional", "good-practices"), "Write name=NAME, suite=SUITE, or 'name in (NAME, NAME)'"),
        (("--optional-values", "1.36"), "expected NAME=VALUE, got '1.36'"),
        (("--optional-values", "k8s-versoin=1.36"), "did you mean 'k8s-version'?"),
        (("-o", "yaml"), "'yaml' is not one of"),
    ],
)
def test_wrong_usage_is_code_2(bundles, tmp_path, arguments, text):
    checked = run(bundles.write(tmp_path), *arguments)

    assert checked.exit_code == 2
    assert text in checked.stderr
    assert checked.stdout == ""


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    checked = run(tmp_path / "none")

    assert checked.exit_code == 1
    assert checked.stderr == f"error: folder {tmp_path / 'none'} does not exist. Create the bundle with `ctrl bundle`\n"


def test_an_empty_folder_has_findings_and_no_traceback(tmp_path):
    checked = run(tmp_path)

    assert checked.exit_code == 1
    assert [line.rpartition("[")[2] for line in checked.stdout.splitlines()] == [
        "manifests-missing]",
        "metadata-missing]",
    ]
