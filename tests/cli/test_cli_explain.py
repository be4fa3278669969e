"""`ctrl explain`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

API = '''
    import ctrlruntime as ctrl
    from pydantic import Field

    class Spec(ctrl.Model):
        size: int = Field(1, description="How many.")

    class Game(ctrl.Object, group="g.example.com", version="v1"):
        """A game."""

        spec: Spec
'''


def run(*arguments: object):
    return CliRunner().invoke(ctrl, [str(argument) for argument in arguments])


@pytest.fixture
def game(package):
    return package(api=API)


def test_help_shows_how_it_is_used():
    answer = run("explain", "--help")

    assert answer.exit_code == 0
    assert "ctrl explain website.spec.image --module shop" in answer.stdout


def test_a_field_is_explained(game):
    answer = run("explain", "game.spec", "--module", game)

    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout.splitlines() == [
        "GROUP:      g.example.com",
        "KIND:       Game",
        "VERSION:    v1",
        "",
        "FIELD: spec <Object>",
        "",
        "",
        "DESCRIPTION:",
        "    <empty>",
        "FIELDS:",
        "  size\t<integer>",
        "    How many.",
        "",
        "",
    ]


def test_json_has_the_fields_of_fields_when_asked(game):
    flat = json.loads(run("explain", "Game", "--module", game, "--output", "json").stdout)
    deep = json.loads(run("explain", "Game", "--module", game, "--output", "json", "--recursive").stdout)

    assert (flat["group"], flat["kind"], flat["version"], flat["path"]) == ("g.example.com", "Game", "v1", "")
    assert flat["description"] == "A game."
    spec = {"name": "spec", "type": "Object", "required": True, "description": ""}
    assert flat["fields"][-1] == spec
    size = {"name": "size", "type": "integer", "required": False, "description": "How many."}
    assert deep["fields"][-1] == {**spec, "fields": [size]}


def test_a_built_in_kind_needs_no_module_and_has_no_descriptions():
    answer = run("explain", "Deployment.spec.template")

    assert answer.exit_code == 0
    assert "FIELD: template <PodTemplateSpec>" in answer.stdout
    assert (
        answer.stderr
        == "note: built-in kinds have no descriptions here. Run kubectl explain to get them from a cluster\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["Gmae"], "kind 'Gmae' does not exist; did you mean 'Game'?"),
        (["game.spec.siez"], "Game.spec has no field 'siez'; did you mean 'size'?"),
        (["game.spec.zzz"], "Game.spec has no field 'zzz'. Use one of size"),
        (["game.spec.size.x"], "Game.spec.size has no field 'x', because it has no fields"),
        (["game", "--api-version", "v2"], "Game has no version 'v2'. Set --api-version to one of g.example.com/v1"),
    ],
)
def test_what_is_not_there_is_one_line_with_near_names(game, arguments, says):
    answer = run("explain", *arguments, "--module", game)

    assert (answer.exit_code, answer.stdout, answer.stderr) == (1, "", f"error: {says}\n")


def test_explain_reads_the_classes_of_the_project(game, in_project):
    in_project(game)

    answer = run("explain", "game.spec.size")

    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "How many." in answer.stdout


def test_explain_knows_built_in_kinds_in_a_project_that_cannot_be_imported(package, in_project):
    in_project(package(api="import nothing_of_that_name"))

    answer = run("explain", "Pod.spec")

    assert answer.exit_code == 0
    assert answer.stderr.splitlines()[0].startswith("warning: only built-in kinds are known: cannot import ")


def test_explain_outside_a_project_says_to_pass_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    near, far = run("explain", "Podd"), run("explain", "Xyzzy.spec")

    hint = "For a kind of your own, pass --module MODULE, or run this command in a project\n"
    assert (near.exit_code, near.stderr) == (1, f"error: kind 'Podd' does not exist; did you mean 'Pod'? {hint}")
    assert far.stderr.endswith(f". {hint}")


def test_a_form_it_does_not_have_is_wrong_usage(game):
    assert run("explain", "game", "--module", game, "--output", "yaml").exit_code == 2
