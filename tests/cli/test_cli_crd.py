"""`ctrl crd diff`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

API = """
    from typing import Annotated
    import ctrlruntime as ctrl
    from pydantic import Field

    class Spec(ctrl.Model):
        size: Annotated[int, Field(le={limit})] = 1
        {more}

    class Game(ctrl.Object, group="g.example.com", version="v1"):
        spec: Spec = Spec()
"""


def run(*arguments: object, stdin: str | None = None):
    return CliRunner().invoke(ctrl, [str(argument) for argument in arguments], input=stdin)


@pytest.fixture
def released(package, tmp_path):
    """The folder of a definition that was released."""
    module = package(api=API.format(limit=9, more="name: str | None = None"))
    run("manifests", "--module", module, "--output-dir", tmp_path / "config")
    return tmp_path / "config" / "crd"


def test_help_shows_how_it_is_used():
    group, command = run("crd", "--help"), run("crd", "diff", "--help")

    assert group.exit_code == command.exit_code == 0
    assert "diff" in group.stdout
    assert "kubectl get crd websites.docs.example.com -o yaml | ctrl crd diff -\n" in command.stdout


def test_what_did_not_change_passes(released):
    answer = run("crd", "diff", released, released)

    assert (answer.exit_code, answer.stdout) == (0, "no changes\n")


def test_breaking_changes_are_refused_and_said(released, package):
    module = package(api=API.format(limit=5, more="label: str | None = None"))

    answer = run("crd", "diff", released, "--module", module)

    assert answer.exit_code == 1
    assert answer.stdout.splitlines() == [
        "games.g.example.com",
        "  breaking  field-removed at v1 spec.name: string -> nothing",
        "            its data is pruned when an object is read. Mark it as deprecated and keep it.",
        "  breaking  bound-tightened at v1 spec.size: maximum 9 -> maximum 5",
        "            values outside the bound are rejected. Existing values stay valid until they change (Kubernetes 1.30 or later).",
        "  harmless  field-added at v1 spec.label: nothing -> string",
        "            objects without it do not change.",
        "2 breaking, 1 harmless",
    ]


def test_harmless_changes_pass(released, package):
    module = package(api=API.format(limit=12, more="name: str | None = None"))

    answer = run("crd", "diff", released, "--module", module)

    assert (answer.exit_code, answer.stdout.splitlines()[-1]) == (0, "1 harmless")


def test_warnings_about_a_class_are_lines_of_the_command(released, package):
    rule = 'more: Annotated[list[dict[str, str]], ctrl.crd.CEL("self.all(a, self.all(b, a == b))")] = []'
    module = package(api=API.format(limit=9, more=rule))

    answer = run("crd", "diff", released, "--module", module)

    assert answer.stderr.startswith("warning: ")
    assert "GenerateWarning" not in answer.stderr


def test_json_has_the_findings(released, package):
    module = package(api=API.format(limit=5, more="name: str | None = None"))

    answer = run("crd", "diff", released, "--module", module, "--json")

    assert answer.exit_code == 1
    (finding,) = json.loads(answer.stdout)
    assert {key: finding[key] for key in finding if key != "text"} == {
        "definition": "games.g.example.com",
        "code": "bound-tightened",
        "level": "breaking",
        "allowed": False,
        "version": "v1",
        "path": "spec.size",
        "was": "maximum 9",
        "now": "maximum 5",
        "refuses": "new values",
    }


def test_json_of_no_changes_is_an_empty_list(released):
    assert json.loads(run("crd", "diff", released, released, "--json").stdout) == []


def test_allowed_codes_are_printed_and_do_not_fail(released, package):
    module = package(api=API.format(limit=5, more="label: str | None = None"))

    both = run("crd", "diff", released, "--module", module, "--allow", "field-removed", "--allow", "bound-tightened")
    one = run("crd", "diff", released, "--module", module, "--allow", "field-removed")
    as_json = run("crd", "diff", released, "--module", module, "--allow", "field-removed", "--json")

    assert (both.exit_code, one.exit_code, as_json.exit_code) == (0, 1, 1)
    assert "  allowed   field-removed at v1 spec.name: string -> nothing" in both.stdout.splitlines()
    assert both.stdout.splitlines()[-1] == "2 allowed, 1 harmless"
    assert one.stdout.splitlines()[-1] == "1 breaking, 1 allowed, 1 harmless"
    assert [finding["allowed"] for finding in json.loads(as_json.stdout)] == [True, False, False]


@pytest.mark.parametrize(
    ("code", "told"),
    [("field-remove", "; did you mean 'field-removed'?"), ("xyz", ". Use one that the command prints")],
)
def test_a_code_that_is_none_cannot_be_allowed(released, code, told):
    answer = run("crd", "diff", released, released, "--allow", code)

    assert answer.exit_code == 2
    assert f"code '{code}' does not exist{told}" in answer.stderr


def test_the_old_definition_may_come_from_the_standard_input(released):
    (file,) = released.rglob("*.yaml")

    answer = run("crd", "diff", "-", released, stdin=file.read_text())

    assert (answer.exit_code, answer.stdout) == (0, "no changes\n")


def test_one_thing_is_compared_with(released):
    answer = run("crd", "diff", released, "new.yaml", "--module", "shop")

    assert answer.exit_code == 2
    assert "use NEW or --module MODULE, not both" in answer.stderr


def test_crd_diff_compares_with_the_classes_of_the_project(released, package, in_project):
    in_project(package(api=API.format(limit=5, more="name: str | None = None")))

    answer = run("crd", "diff", released)

    assert (answer.exit_code, answer.stdout.splitlines()[-1]) == (1, "1 breaking")


def test_crd_diff_outside_a_project_says_what_to_pass(released, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    answer = run("crd", "diff", released)

    assert answer.exit_code == 2
    assert "this folder is not in a project. Pass NEW or --module MODULE" in answer.stderr


def test_the_standard_input_can_be_read_once():
    answer = run("crd", "diff", "-", "-")

    assert answer.exit_code == 2
    assert "only one of OLD and NEW" in answer.stderr


def test_what_is_not_there_is_named(released, package, tmp_path):
    nothing = run("crd", "diff", tmp_path / "nothing", released)
    empty = run("crd", "diff", "-", released, stdin="kind: ConfigMap")
    no_kinds = run("crd", "diff", released, "--module", package(api="x = 1"))

    assert [answer.exit_code for answer in (nothing, empty, no_kinds)] == [1, 1, 1]
    assert nothing.stderr == f"error: cannot read CRDs from {tmp_path}/nothing: no such file or folder\n"
    assert empty.stderr == "error: no CustomResourceDefinition in standard input\n"
    assert no_kinds.stderr.endswith("defines no kinds\n")
