"""`ctrl bundle compare`."""

from __future__ import annotations

import json

import pytest
from bundles import crd, csv, several, write
from click.testing import CliRunner

from ctrlruntime.cli.bundle_compare import compare
from ctrlruntime.errors import ConfigError

LITRES = "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.litres"


def run(*arguments: object, stdin: str | None = None):
    return CliRunner().invoke(compare, [str(argument) for argument in arguments], input=stdin)


def release(folder, *changes):
    base = (csv("metadata.name", "kettle.v1.3.0"), csv("spec.version", "1.3.0"), csv("spec.replaces", "kettle.v1.2.0"))
    return write(folder, several(*base, *changes))


@pytest.fixture
def old(tmp_path):
    return write(tmp_path / "old")


@pytest.fixture
def new(tmp_path):
    """A release that breaks somebody."""
    return release(tmp_path / "new", crd(f"{LITRES}.maximum", 9), csv("spec.minKubeVersion", "1.31.0"))


def test_a_release_that_breaks_nothing_passes(old, tmp_path):
    answer = run(old, release(tmp_path / "new"))

    assert (answer.exit_code, answer.stdout) == (0, "no changes\n")


def test_what_changes_is_said_below_what_it_changes(old, new):
    answer = run(old, new)

    assert answer.exit_code == 1
    assert answer.stdout.splitlines() == [
        "kettle.v1.2.0 -> kettle.v1.3.0",
        "  risky     min-kube-version-raised at spec.minKubeVersion: 1.30.0 -> 1.31.0",
        "            on older clusters the new ClusterServiceVersion stays Pending, and the subscription is stuck until they are upgraded.",
        "kettles.kitchen.example.com",
        "  breaking  bound-tightened at v1 spec.litres: nothing -> maximum 9",
        "            values outside the bound are rejected. Existing values stay valid until they change (Kubernetes 1.30 or later).",
        "1 breaking, 1 risky",
    ]


def test_what_is_allowed_passes(old, new):
    answer = run(old, new, "--allow", "bound-tightened")

    assert (answer.exit_code, answer.stdout.splitlines()[-1]) == (0, "1 allowed, 1 risky")


def test_objects_come_from_files_and_the_standard_input(old, new, tmp_path):
    kettle = {
        "apiVersion": "kitchen.example.com/v1",
        "kind": "Kettle",
        "metadata": {"name": "big"},
        "spec": {"litres": 12},
    }
    (tmp_path / "kettle.yaml").write_text(json.dumps(kettle))

    answers = [
        run(old, new, "--object", tmp_path / "kettle.yaml"),
        run(old, new, "--object", "-", stdin=json.dumps(kettle)),
    ]

    for answer in answers:
        assert answer.exit_code == 1
        assert "  breaking  object-refused at object Kettle/big spec.litres: fits -> Invalid value: 12" in answer.stdout


def test_stored_versions_are_given(old, tmp_path):
    answer = run(old, release(tmp_path / "new", crd("spec.versions.0.name", "v2")), "--stored", "v1")

    assert "  breaking  stored-version-removed at v1" in answer.stdout
    assert answer.exit_code == 1


def test_json_has_every_change(old, new):
    answer = run(old, new, "--json", "--allow", "bound-tightened")

    assert answer.exit_code == 0
    assert [
        {key: each[key] for key in ("object", "code", "level", "allowed", "path")} for each in json.loads(answer.stdout)
    ] == [
        {
            "object": "kettle.v1.2.0 -> kettle.v1.3.0",
            "code": "min-kube-version-raised",
            "level": "risky",
            "allowed": False,
            "path": "spec.minKubeVersion",
        },
        {
            "object": "kettles.kitchen.example.com",
            "code": "bound-tightened",
            "level": "breaking",
            "allowed": True,
            "path": "spec.litres",
        },
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--allow", "install-mode-remove"], "did you mean 'install-mode-removed'?"),
        (["--allow", "field-remove"], "did you mean 'field-removed'?"),
        (["--object", "-", "--object", "-"], "standard input can be read only once"),
    ],
)
def test_wrong_usage_is_said(old, new, arguments, told):
    answer = run(old, new, *arguments)

    assert answer.exit_code == 2
    assert told in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{old}", "{new}", "--stored", "v7"], "cannot use --stored v7"),
        (["{old}", "{new}", "--object", "nothing.yaml"], "cannot read nothing.yaml"),
        (["{old}", "nothing"], "folder nothing does not exist"),
    ],
)
def test_what_cannot_be_read_is_an_error_of_one_line(old, new, arguments, told):
    answer = run(*(each.format(old=old, new=new) for each in arguments))

    assert isinstance(answer.exception, ConfigError)
    assert told in str(answer.exception)
    assert "\n" not in str(answer.exception)
