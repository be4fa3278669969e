"""`ctrl generate kustomize-manifests`: the base of a bundle, by flags and by questions."""

from __future__ import annotations

import base64

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.generate.documents import read_one
from ctrlruntime.project.config.olm import base_text
from ctrlruntime.project.settings import read_settings

SETTINGS = '[tool.ctrlruntime]\nproject-name = "shop"\npackage = "shop"\ndomain = "x.io"\n'
BASE = "config/manifests/bases/shop.clusterserviceversion.yaml"


def run(*arguments: str, **options):
    return CliRunner().invoke(ctrl, ["generate", "kustomize-manifests", *arguments], **options)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    return tmp_path


@pytest.fixture
def base(project):
    """The base as the scaffold has it, with a comment of a person's."""
    path = project / BASE
    path.parent.mkdir(parents=True)
    path.write_text("# Mine.\n" + base_text(read_settings(project)))
    return path


def spec_of(path) -> dict:
    return read_one(path.read_text(), str(path))["spec"]


def test_a_missing_base_is_that_of_the_scaffold(project):
    first, second = run(), run()

    assert (first.exit_code, first.stdout, first.stderr) == (0, f"created {BASE}\n", "")
    assert (project / BASE).read_text() == base_text(read_settings(project))
    assert (second.exit_code, second.stdout) == (0, f"{BASE}: up to date\n")


def test_each_flag_sets_its_field_and_nothing_else_changes(base, project):
    (project / "logo.svg").write_text("<svg/>")
    (project / "about.md").write_text("# Shop\n\nSells.\n")
    before = read_one(base.read_text(), "")

    done = run(
        "--display-name", "My Shop", "--description-file", "about.md", "--short-description", "Sells.",
        "--provider", "Acme", "--provider-url", "https://acme.example", "--keywords", "shop, sell",
        "--maintainer", "Ada:ada@x.io", "--maintainer", "Bob:bob@x.io", "--link", "Docs=https://x.io/?a=b",
        "--icon", "logo.svg", "--min-kube-version", "1.28.0", "--maturity", "stable",
        "--capabilities", "Deep Insights", "--categories", "Database, Monitoring",
        "--container-image", "x.io/shop:v1", "--repository", "https://x.io/git", "--support", "Acme",
    )  # fmt: skip

    assert (done.exit_code, done.stdout, done.stderr) == (0, f"changed {BASE}\n", "")
    assert base.read_text().startswith("# Mine.\n---\n")
    after = read_one(base.read_text(), "")
    assert after["metadata"]["annotations"] == {
        "alm-examples": "[]",
        "capabilities": "Deep Insights",
        "categories": "Database, Monitoring",
        "containerImage": "x.io/shop:v1",
        "description": "Sells.",
        "repository": "https://x.io/git",
        "support": "Acme",
    }
    said = {
        "description": "# Shop\n\nSells.\n",
        "displayName": "My Shop",
        "icon": [{"base64data": base64.b64encode(b"<svg/>").decode(), "mediatype": "image/svg+xml"}],
        "keywords": ["shop", "sell"],
        "links": [{"name": "Docs", "url": "https://x.io/?a=b"}],
        "maintainers": [{"email": "ada@x.io", "name": "Ada"}, {"email": "bob@x.io", "name": "Bob"}],
        "maturity": "stable",
        "minKubeVersion": "1.28.0",
        "provider": {"name": "Acme", "url": "https://acme.example"},
    }
    assert after["spec"] == before["spec"] | said


def test_the_answers_to_questions_are_set(base):
    answers = "My Shop\nSells\nAcme\nhttps://acme.example\nshop, sell\nAda:ada@x.io, Bob:bob@x.io\n"

    done = run("--interactive", input=answers)

    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Display name [Shop]: ")
    spec = spec_of(base)
    assert (spec["displayName"], spec["description"]) == ("My Shop", "Sells")
    assert (spec["provider"], spec["keywords"]) == (
        {"name": "Acme", "url": "https://acme.example"},
        ["shop", "sell"],
    )
    assert [each["name"] for each in spec["maintainers"]] == ["Ada", "Bob"]


def test_a_question_shows_what_the_base_says_and_enter_keeps_it(base):
    run("--description", "One.\nTwo.\n", "--provider", "Acme", "--maintainer", "Ada:ada@x.io")
    before = base.read_text()

    done = run("--interactive", input="\n" * 6)

    assert (done.exit_code, base.read_text()) == (0, before)
    for shown in ("[Shop]", "[One. … (2 lines)]", "[Acme]", "[https://x.io]", "[shop]", "[Ada:ada@x.io]"):
        assert shown in done.stdout
    assert done.stdout.endswith(f"{BASE}: up to date\n")


def test_the_scaffolds_placeholders_are_no_answers(base):
    done = run("--interactive", input="\n\n\nSells\n\n\nAcme\n\n\n\n")

    assert done.exit_code == 0, done.output
    assert "Provider Name" not in done.stdout
    assert "your@email.com" not in done.stdout
    spec = spec_of(base)
    assert (spec["description"], spec["provider"]["name"], spec["displayName"]) == ("Sells", "Acme", "Shop")


def test_questions_that_are_not_answered_write_nothing(base):
    before = base.read_text()

    done = run("--interactive", input="My Shop\n")

    assert (done.exit_code, base.read_text()) == (1, before)


def test_an_answer_that_a_field_cannot_hold_is_asked_again_with_the_reason(base):
    answers = ["   ", "", "Sells", "", "Acme", "x.io", "https://acme.example", "", "Ada", "Ada:ada@x.io"]

    done = run("--interactive", input="\n".join([*answers, ""]))

    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines() == [
        "error: a value is required",
        "error: a value is required",
        "error: 'x.io' is not a URL. Use one that starts with https://",
        "error: the maintainer 'Ada' must be name:email, as in 'Ada:ada@example.com'",
    ]
    spec = spec_of(base)
    assert (spec["displayName"], spec["description"]) == ("Shop", "Sells")
    assert spec["provider"] == {"name": "Acme", "url": "https://acme.example"}
    assert spec["maintainers"] == [{"email": "ada@x.io", "name": "Ada"}]


@pytest.mark.parametrize(
    ("encoded", "near"), [(b"Gr\xf6\xdfe", r"'Gr\udcf6\udcdfe'"), (b"A" * 99 + b"\xff", r"'AAAAAAAAAA\udcff'")]
)
def test_text_that_is_not_utf_8_is_refused_and_nothing_is_written(base, encoded, near):
    before = base.read_text()

    done = run("--display-name", encoded.decode("utf-8", "surrogateescape"))

    assert (done.exit_code, done.stdout, base.read_text()) == (1, "", before)
    assert done.stderr == f"error: the display name is not UTF-8 text, near {near}. Set the terminal to UTF-8\n"


def test_a_description_loses_the_mark_of_its_byte_order(base, project):
    (project / "about.md").write_bytes(b"\xef\xbb\xbfSells.\n")

    assert run("--description-file", "about.md").exit_code == 0
    assert spec_of(base)["description"] == "Sells.\n"


EMPTY = [
    "--display-name",
    "--description",
    "--short-description",
    "--provider",
    "--support",
    "--categories",
    "--maturity",
]


@pytest.mark.parametrize("option", [*EMPTY, "--keywords", "--maintainer"])
@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_value_is_refused(base, option, value):
    before = base.read_text()

    done = run(option, value)

    assert (done.exit_code, base.read_text()) == (1, before)
    assert done.stderr.startswith("error: cannot set an empty ")
    assert done.stderr.endswith(f". Leave out {option} to keep the value in the base\n")


PICTURES = {
    "text": (b"hello\n", "the icon logo.png is not image/png"),
    "another picture": (b"GIF89a...", "the icon logo.png is not image/png, but image/gif. Rename it"),
    "a large one": (b"\x89PNG\r\n\x1a\n" + bytes(524_288), "the icon logo.png has 524,296 bytes, and the maximum is 524,288. Make it smaller"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "said"), PICTURES.values(), ids=list(PICTURES))
def test_an_icon_has_to_be_the_picture_it_is_named(base, project, content, said):
    (project / "logo.png").write_bytes(content)

    assert run("--icon", "logo.png").stderr == f"error: {said}\n"


@pytest.mark.parametrize("content", [b"", b"\xff"])
def test_a_description_that_is_no_text_is_refused(base, project, content):
    (project / "about.md").write_bytes(content)

    done = run("--description-file", "about.md")

    assert done.stderr in {
        "error: cannot read about.md: it is not UTF-8 text\n",
        "error: cannot set an empty description. Leave out --description to keep the value in the base\n",
    }


def test_a_base_with_a_part_in_braces_keeps_its_comments(base):
    text, _, _ = base.read_text().partition("  provider:\n")
    base.write_text(text + "  provider: {name: Ada}  # mine\n  version: 0.0.0  # a placeholder\n")

    assert run("--provider-url", "https://x.io").stderr == ""
    assert base.read_text() == (
        f"{text}  provider:  # mine\n    name: Ada\n    url: https://x.io\n  version: 0.0.0  # a placeholder\n"
    )


def test_a_category_that_catalogs_do_not_have_is_a_warning(base, monkeypatch):
    monkeypatch.delenv("OPERATOR_BUNDLE_CATEGORIES", raising=False)

    done = run("--categories", "Database, Monitorin")

    assert (done.exit_code, done.stdout) == (0, f"changed {BASE}\n")
    assert done.stderr.startswith("warning: 'Monitorin' is not a category of OperatorHub.io")
    assert "Monitoring" in done.stderr
    assert done.stderr.count("\n") == 1
    monkeypatch.setenv("OPERATOR_BUNDLE_CATEGORIES", "own.json")
    assert run("--categories", "Foo").stderr == ""


def test_what_a_flag_says_is_not_asked(base):
    done = run("--interactive", "--provider", "Acme", "--description", "Sells", input="\n\n\n\n")

    assert done.exit_code == 0, done.output
    assert "Name of the provider" not in done.stdout


def test_a_base_that_cannot_be_edited_in_its_place_says_that_comments_go(base):
    base.write_text("# Mine.\n{kind: ClusterServiceVersion, metadata: {name: a}, spec: {}}\n")

    done = run("--provider", "Acme")

    assert (done.exit_code, spec_of(base)) == (0, {"provider": {"name": "Acme"}})
    assert done.stderr == f"warning: {BASE} was rewritten without its comments\n"


WRONG = {
    "a maintainer without an address": (["--maintainer", "Ada"], "must be name:email"),
    "a maintainer whose address is none": (["--maintainer", "Ada:ada"], "must be name:email"),
    "a link without a URL": (["--link", "Docs"], "must be name=url"),
    "a link to what is not a URL": (["--link", "Docs=x.io"], "'x.io' is not a URL"),
    "a provider's URL that is none": (["--provider-url", "x.io"], "'x.io' is not a URL"),
    "two numbers for Kubernetes": (["--min-kube-version", "1.28"], "as in 1.28.0"),
    "an image that is none": (["--container-image", "foo bar"], "'foo bar' is not a reference to an image"),
    "a repository that is not a URL": (["--repository", "foo"], "'foo' is not a URL"),
    "a picture of an unknown sort": (["--icon", "pyproject.toml"], "must be one of .svg, .png"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=list(WRONG))
def test_what_a_field_cannot_hold_is_one_line_and_writes_nothing(base, arguments, said):
    before = base.read_text()

    done = run(*arguments, "--display-name", "My Shop")

    assert (done.exit_code, done.stdout, base.read_text()) == (1, "", before)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: a: b\n", f"error: {BASE}, line 1: mapping values are not allowed"),
        ("kind: Service\n", f"error: {BASE} is not a ClusterServiceVersion with a spec. Fix it, or delete it to create a new one\n"),
    ],
)  # fmt: skip
def test_a_broken_base_is_one_line(base, text, said):
    base.write_text(text)

    done = run("--provider", "Acme")

    assert (done.exit_code, done.stdout, base.read_text()) == (1, "", text)
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1


def test_an_empty_picture_is_refused(base, project):
    (project / "logo.png").write_bytes(b"")

    assert run("--icon", "logo.png").stderr == "error: the icon logo.png is empty\n"


def test_two_descriptions_are_wrong_usage(base):
    done = run("--description", "a", "--description-file", "pyproject.toml")

    assert (done.exit_code, ", not both" in done.stderr) == (2, True)


def test_outside_a_project_it_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    done = run()

    assert (done.exit_code, done.stdout) == (1, "")
    assert "ctrl init" in done.stderr


def test_another_folder_can_be_named(base, project, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    done = run("--project", str(project), "--provider", "Acme")

    assert (done.exit_code, spec_of(base)["provider"]["name"]) == (0, "Acme")


def test_two_words_do_the_same(base):
    done = CliRunner().invoke(ctrl, ["generate", "kustomize", "manifests", "--provider", "Acme"])

    assert (done.exit_code, done.stdout, spec_of(base)["provider"]["name"]) == (0, f"changed {BASE}\n", "Acme")
