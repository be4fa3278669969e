"""`ctrl scorecard`."""

from __future__ import annotations

import json

import pytest
from bundles import SCORECARD, csv, put, write
from click.testing import CliRunner

from ctrlruntime.cli import ctrl


def run(*arguments: object):
    return CliRunner().invoke(ctrl, ["scorecard", *map(str, arguments)])


def test_the_tests_of_a_good_bundle_pass(tmp_path):
    answer = run(write(tmp_path))

    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout.splitlines() == [
        "basic-check-spec          pass",
        "olm-bundle-validation     pass",
        "olm-crds-have-validation  pass",
        "olm-crds-have-resources   pass",
        "olm-spec-descriptors      pass",
        "olm-status-descriptors    pass",
        "6 tests: 6 passed",
    ]


def test_a_failure_is_said_and_the_exit_code(tmp_path):
    write(tmp_path, csv("spec.customresourcedefinitions.owned.0.specDescriptors", [{"path": "cups"}]))

    answer = run(tmp_path, "-l", "suite=olm,test!=olm-bundle-validation-test")

    assert answer.exit_code == 1
    assert answer.stdout.splitlines() == [
        "olm-crds-have-validation  pass",
        "olm-crds-have-resources   pass",
        "olm-spec-descriptors      fail",
        "  Kettle/breakfast: spec.litres has no descriptor in kettles.kitchen.example.com v1",
        "olm-status-descriptors    pass",
        "4 tests: 3 passed, 1 failed",
    ]


def test_the_folder_is_bundle_when_none_is_named(tmp_path, monkeypatch):
    write(tmp_path / "bundle")
    monkeypatch.chdir(tmp_path)

    assert run("-l", "suite=basic").exit_code == 0


def test_json_has_six_results(tmp_path):
    answer = run(write(tmp_path), "-o", "json")

    items = json.loads(answer.stdout)["items"]
    assert answer.exit_code == 0
    assert [result["state"] for each in items for result in each["status"]["results"]] == ["pass"] * 6


def test_xunit_is_xml(tmp_path):
    answer = run(write(tmp_path), "-o", "xunit", "-l", "suite=basic")

    assert answer.exit_code == 0
    assert answer.stdout.splitlines() == [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<testsuites name="scorecard">',
        '  <testsuite name="basic" tests="1" failures="0" errors="0" skipped="0">',
        '    <testcase name="basic-check-spec" classname="basic" />',
        "  </testsuite>",
        "</testsuites>",
    ]


def test_tests_that_need_a_cluster_fail_nothing(tmp_path):
    write(tmp_path, put(SCORECARD, "stages.0.tests.1.entrypoint", ["kuttl", "steam"]))

    answer = run(tmp_path)

    assert answer.exit_code == 0
    assert "steam                     not-run" in answer.stdout.splitlines()
    assert (
        "  it runs in the image registry.example.com/scorecard:v1, which needs a cluster" in answer.stdout.splitlines()
    )
    assert answer.stdout.splitlines()[-1] == "6 tests: 5 passed, 1 not run"


def test_the_list_runs_nothing(tmp_path):
    write(tmp_path, csv("spec.install", 1))

    text, tree = run(tmp_path, "--list", "-l", "suite=basic"), run(tmp_path, "-L", "-o", "json")

    assert (text.exit_code, text.stdout) == (0, "basic-check-spec  suite=basic,test=basic-check-spec-test\n")
    assert [each["status"] for each in json.loads(tree.stdout)["items"]] == [{}] * 6


def test_another_configuration_may_be_given(tmp_path):
    write(tmp_path / "bundle", put(SCORECARD, "stages", []))
    write(tmp_path / "other")

    own, given = run(tmp_path / "bundle"), run(tmp_path / "bundle", "-c", tmp_path / "other" / SCORECARD, "-L")

    assert (own.exit_code, own.stderr) == (
        1, f"error: {tmp_path}/bundle/tests/scorecard/config.yaml: the stages have no tests. Add one\n",
    )  # fmt: skip
    assert (given.exit_code, len(given.stdout.splitlines())) == (0, 6)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["nothing"], 1, "error: folder nothing does not exist. Create the bundle with `ctrl bundle`\n"),
        (
            ["{bundle}", "-l", "suite=none"],
            1,
            "error: no test has the labels suite=none. List the tests with ctrl scorecard --list\n",
        ),
        (["{bundle}", "-l", "a=b=c"], 2, "Invalid value for '-l'"),
        (["{bundle}", "-o", "yaml"], 2, "'yaml' is not one of 'text', 'json', 'xunit'"),
    ],
    ids=["no-folder", "no-test", "no-selector", "no-format"],
)
def test_what_cannot_be_done_is_said(tmp_path, arguments, code, told):
    bundle = write(tmp_path)

    answer = run(*(argument.format(bundle=bundle) for argument in arguments))

    assert answer.exit_code == code
    assert told in answer.stderr
