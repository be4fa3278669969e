"""`ctrl catalog`."""

from __future__ import annotations

import json

import pytest
from bundles import csv, several, write
from click.testing import CliRunner

from ctrlruntime.cli import ctrl


def run(*arguments: object, stdin: str | None = None):
    return CliRunner().invoke(ctrl, ["catalog", *map(str, arguments)], input=stdin)


@pytest.fixture
def releases(tmp_path):
    """The folders of two releases of which neither replaces the other."""
    new = several(csv("metadata.name", "kettle.v1.3.0"), csv("spec.version", "1.3.0"))
    return write(tmp_path / "old"), write(tmp_path / "new", new)


def test_a_catalog_that_was_written_passes(tmp_path):
    bundle = write(tmp_path / "bundle")

    written = run(bundle)
    (tmp_path / "catalog.yaml").write_text(written.stdout)
    answer = run("validate", tmp_path / "catalog.yaml")

    assert (written.exit_code, written.stderr) == (0, "")
    assert written.stdout.startswith("---\ndefaultChannel: stable\n")
    assert (answer.exit_code, answer.stdout, answer.stderr) == (0, "", "4 blobs, 0 errors, 0 warnings\n")


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_it_passes_by_way_of_the_standard_input(tmp_path, output):
    written = run(write(tmp_path), "-o", output)

    assert run("validate", "-", stdin=written.stdout).exit_code == 0


def test_render_is_its_long_name(tmp_path):
    bundle = write(tmp_path / "validate")

    assert run("render", bundle).stdout == run(bundle).stdout == run("--default-channel", "stable", bundle).stdout


def test_json_is_one_object_after_the_other(tmp_path):
    text, at, names = run(write(tmp_path), "-o", "json").stdout, 0, []

    while text[at:].strip():
        tree, at = json.JSONDecoder().raw_decode(text, at)
        names.append(tree["name"])
        at += 1

    assert names == ["kettle", "candidate", "stable", "kettle.v1.2.0"]


def test_options_say_images_and_channel(tmp_path):
    answer = run(write(tmp_path), "--image", "q.example.com/{package}:{version}", "--default-channel", "candidate")

    assert "image: q.example.com/kettle:1.2.0\n" in answer.stdout
    assert "defaultChannel: candidate\n" in answer.stdout


def test_a_catalog_that_would_be_refused_is_not_written(releases):
    answer = run(*releases)

    assert (answer.exit_code, answer.stdout) == (1, "")
    head = "no entry replaces or skips kettle.v1.2.0, kettle.v1.3.0. Let one of them replace or skip the others"
    assert answer.stderr.splitlines() == [
        f"error    channel-several-heads  olm.channel/kettle/candidate: entries: {head}",
        f"error    channel-several-heads  olm.channel/kettle/stable: entries: {head}",
        "error: cannot write the catalog: OLM would reject it. Fix the errors above",
    ]


def test_what_is_wrong_in_a_catalog_is_a_line_each(tmp_path):
    file = tmp_path / "catalog.yaml"
    file.write_text("schema: olm.package\nname: k\n---\nschema: x.y\n")

    answer, tree = run("validate", file), run("validate", file, "-o", "json")

    assert (answer.exit_code, tree.exit_code) == (1, 1)
    assert answer.stdout.splitlines() == [
        f"error    default-channel-missing  {file}: olm.package/k: defaultChannel: is missing. Set the channel for users who do not choose one",
        f"error    package-without-channels  {file}: olm.package/k: has no olm.channel, so it cannot be installed. Add one",
        f"warning  schema-unknown  {file}: x.y: OLM does not read this schema. Use one of olm.package, olm.channel, olm.bundle, olm.deprecations",
    ]
    assert answer.stderr == "2 blobs, 2 errors, 1 warning\n"
    found = json.loads(tree.stdout)
    assert (found["passed"], len(found["outputs"])) == (False, 3)
    assert found["outputs"][0] == {
        "type": "error",
        "code": "default-channel-missing",
        "file": str(file),
        "object": "olm.package/k",
        "path": "defaultChannel",
        "message": "is missing. Set the channel for users who do not choose one",
    }


def test_warnings_alone_pass(tmp_path):
    written = run(write(tmp_path / "b"), "-o", "json").stdout + '{"schema": "x.y"}'

    answer = run("validate", "-", stdin=written)

    assert (answer.exit_code, answer.stderr) == (0, "5 blobs, 0 errors, 1 warning\n")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["nothing"], 1, "error: folder nothing does not exist. Create the bundle with `ctrl bundle`\n"),
        (["validate", "nothing"], 1, "error: file or folder nothing does not exist. Create a catalog with"),
        (["validate"], 2, "Missing argument 'FILE|DIR'"),
        (["render"], 2, "Missing argument 'BUNDLE...'"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, code, told):
    answer = run(*arguments)

    assert answer.exit_code == code
    assert told in answer.stderr
