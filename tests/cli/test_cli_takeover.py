"""`ctrl init --from`: a kubebuilder project in Go becomes one in Python, and what cannot be taken over is one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.project_file import project_file
from ctrlruntime.project.settings import Features, Resource, read_settings

GO = Path(__file__).parents[1] / "project" / "go_multigroup"
DOMAIN = "harbour.example"
KIND = "{version: v1, kind: Cart, group: shop, domain: x.io, api: {crdVersion: v1, namespaced: true}}"


def run(*arguments: object):
    return CliRunner().invoke(ctrl, list(map(str, arguments)))


def init(*arguments: object):
    return run("init", *arguments)


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def python(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def taken(tmp_path_factory) -> Path:
    """The project that was taken over into an empty folder."""
    folder = tmp_path_factory.mktemp("taken") / "anything"
    before = texts(GO)

    done = init(folder, "--from", GO)

    assert (done.exit_code, done.stderr) == (
        0,
        "warning: these plugins of PROJECT are not taken over: helm.kubebuilder.io/v2-alpha\n",
    ), done.output
    assert f"  ctrl crd diff {GO}/config/crd/bases config/crd/bases\n" in done.stdout
    assert texts(GO) == before
    return folder


@pytest.fixture
def go(tmp_path) -> Path:
    """A copy of the project in Go, to be changed."""
    return Path(shutil.copytree(GO, tmp_path / "go"))


def resource(group: str, version: str, kind: str, plural: str, **more) -> Resource:
    module = f"quay_operator.api.{group.partition('.')[0]}.{version}.{kind.lower()}"
    return Resource(
        group=group, version=version, kind=kind, plural=plural, **{"python_class": f"{module}.{kind}", **more}
    )


def test_names_and_kinds_are_those_of_the_project_in_go(taken):
    settings = read_settings(taken)

    assert (settings.project_name, settings.package, settings.domain) == ("quay-operator", "quay_operator", DOMAIN)
    assert (settings.multigroup, settings.namespaced) == (True, False)
    assert settings.features == Features(network_policy=False)
    certificate = "quay_operator.api.pki_example_org.v1.certificate.Certificate"
    hooks = {"defaulting": True, "validation": True}
    filled = {"defaulting": True, "defaulting_path": "/fill-crates", "spokes": ("v1alpha1",)}
    assert settings.resources == (
        Resource(group="", version="v1", kind="Pod", plural="pods", is_external=True, validation=True),
        Resource(group="apps", version="v1", kind="Deployment", plural="deployments", is_external=True, controller=True),
        resource(f"berth.{DOMAIN}", "v1", "Berth", "berths", storage=True, controller=True, **hooks),
        resource(f"cargo.{DOMAIN}", "v1", "Crate", "crates", storage=True, controller=True, **filled),
        resource(f"cargo.{DOMAIN}", "v1alpha1", "Crate", "crates"),
        resource(f"crew.{DOMAIN}", "v1beta1", "Captain", "captaincies", storage=True, namespaced=False),
        resource(f"crew.{DOMAIN}", "v1beta1", "Shift", "shifts", storage=True, controller=True),
        resource("pki.example.org", "v1", "Certificate", "certificates", is_external=True, controller=True, python_class=certificate),
    )  # fmt: skip


def test_the_manifests_are_up_to_date_and_no_crd_breaks(taken):
    checked = python(taken, "ctrlruntime", "manifests", "--check")
    compared = run("crd", "diff", GO / "config/crd/bases", taken / "config/crd/bases")

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert compared.exit_code == 0, compared.output
    lines = compared.stdout.splitlines()
    changes = [line.split()[1].strip(":") for line in lines if line.startswith("  ") and line[2] != " "]
    assert set(changes) == {"documentation-changed", "conversion-added"}
    assert not (taken / "config/crd/bases/pki.example.org_certificates.yaml").exists()


def test_webhooks_have_the_names_paths_and_rules_of_the_project_in_go(taken):
    def webhooks(folder: Path) -> list[tuple[str, str, object]]:
        documents = yaml.safe_load_all((folder / "config/webhook/manifests.yaml").read_text())
        return [
            (each["name"], each["clientConfig"]["service"]["path"], each["rules"])
            for document in documents
            for each in document["webhooks"]
        ]

    assert webhooks(taken) == webhooks(GO)


def test_an_upgrade_leaves_the_imported_classes_alone(taken):
    done = python(taken, "ctrlruntime", "upgrade", "--dry-run")

    assert done.returncode == 0, done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()[:-2]} == {"unchanged"}
    assert "api/berth" not in done.stdout


@pytest.mark.slow
def test_the_project_passes_its_own_checks(taken, forks, forked_pytest):
    done = {command: python(taken, *command.split()) for command in ("ruff check", "ruff format --check")}
    for forked, command in ((forks, "ctrlruntime doctor --local"), (forked_pytest, "pytest -q -p no:cacheprovider")):
        done[command] = forked.run([sys.executable, "-m", *command.split()], cwd=taken, env=dict(os.environ))

    assert {command: each.stdout + each.stderr for command, each in done.items() if each.returncode} == {}
    assert "11 passed, 1 skipped" in done["pytest -q -p no:cacheprovider"].stdout  # the conversion is to be written


def test_versions_of_the_crd_that_project_lacks_are_taken_over_too(go, tmp_path):
    project = yaml.safe_load((go / "PROJECT").read_text())
    project["resources"] = [each for each in project["resources"] if each["version"] != "v1alpha1"]
    (go / "PROJECT").write_text(yaml.safe_dump(project))

    done = init(tmp_path / "py", "--from", go)

    assert done.exit_code == 0, done.output
    assert (tmp_path / "py/quay_operator/api/cargo/v1alpha1/crate.py").is_file()
    assert [each.version for each in read_settings(tmp_path / "py").resources if each.kind == "Crate"] == [
        "v1",
        "v1alpha1",
    ]


def test_parts_without_a_crd_have_a_command(go, tmp_path):
    (go / "config/crd/bases/crew.harbour.example_shifts.yaml").unlink()
    shutil.rmtree(go / "config/crd/external")
    other = (go / "config/crd/bases/crew.harbour.example_captaincies.yaml").read_text()
    (go / "config/crd/bases/other.yaml").write_text(other.replace("Captain", "Pilot").replace("captaincies", "pilots"))

    done = init(tmp_path / "py", "--from", go)

    assert done.exit_code == 0, done.output
    _, missing, external, unknown = done.stderr.splitlines()
    assert "config/crd/bases has no CRD of Shift crew.harbour.example/v1beta1" in missing
    assert "Run `make manifests` in the project in Go" in missing
    command = (
        "create api --group pki.example.org --version v1 --kind Certificate --external --external-api-path CRD.yaml"
    )
    assert f"`ctrl {command}`" in external
    assert f"`ctrl import {go}/config/crd/bases/other.yaml --own -o FILE.py`" in unknown
    shift = next(each for each in read_settings(tmp_path / "py").resources if each.kind == "Shift")
    assert (shift.storage, shift.controller, shift.python_class) == (True, True, "")
    assert "An example field." in (tmp_path / "py/quay_operator/api/crew/v1beta1/shift.py").read_text()
    assert not (tmp_path / "py/quay_operator/controllers/pki_example_org").exists()


def test_the_command_for_an_external_kind_works(go, tmp_path, monkeypatch):
    crd = shutil.move(go / "config/crd/external/pki.example.org_certificates.yaml", tmp_path / "CRD.yaml")
    text = init(tmp_path / "py", "--from", go).stderr
    monkeypatch.chdir(tmp_path / "py")

    done = run(*text.partition("`ctrl ")[2].partition("`")[0].replace("CRD.yaml", str(crd)).split())

    assert done.exit_code == 0, done.output
    assert "class CertificateReconciler" in Path("quay_operator/controllers/pki_example_org/certificate.py").read_text()


def test_options_replace_the_settings_of_project(go, tmp_path):
    (go / "PROJECT").write_text(
        "version: '3'\nprojectName: a-name-that-is-too-long-for-our-rules\nplugins: {a: {}, b: {}}\n"
    )

    refused = [init(tmp_path / "py", "--from", go), init(tmp_path / "py", "--from", go, "--domain", "x.io")]
    done = init(tmp_path / "py", "--from", go, "--domain", "x.io", "--project-name", "short", "--namespaced")

    assert (
        refused[0].stderr
        == f"error: the file PROJECT in {go} has no domain. Add --domain, such as --domain example.com\n"
    )
    assert (
        "longer than 28 characters, so derived names would be too long. Give another --project-name"
        in refused[1].stderr
    )
    assert done.exit_code == 0, done.output
    settings = read_settings(tmp_path / "py")
    assert (settings.project_name, settings.domain, settings.namespaced) == ("short", "x.io", True)


@pytest.mark.parametrize(
    "command",
    [
        "init", "init --force --from .", "edit --prometheus", "create api --group a --version v1 --kind B",
        "create webhook --group a --version v1 --kind B --defaulting", "manifests", "doctor --local", "run", "helm",
    ],
)  # fmt: skip
def test_in_a_project_in_go_each_command_names_the_one_that_works(go, monkeypatch, command):
    before = texts(go)
    monkeypatch.chdir(go)

    failed = run(*command.split())
    advice = failed.stderr.partition("`ctrl ")[2].partition("`")[0]
    done = run(*advice.split())

    assert failed.exit_code == 1
    assert failed.stderr.endswith(f"Take it over into a new folder: `ctrl init {go}-python --from {go}`\n")
    assert failed.stderr.count("\n") == 1
    assert texts(go) == before
    assert done.exit_code == 0, done.output
    assert read_settings(Path(f"{go}-python")).project_name == "quay-operator"


# Bad input

BY_HAND = "and add each kind with `ctrl import CRD.yaml --own -o FILE.py`"
CORRECT = "Correct the file, or restore it from version control"


BAD = [
    ("[", "PROJECT is not YAML: ", CORRECT),
    ("a: 1\n---\nb: 2", "PROJECT is not YAML: line 1: 2 documents where one is expected", CORRECT),
    ("- a", "PROJECT is not a PROJECT file of kubebuilder, because it has no version", CORRECT),
    ("version: '2'\ndomain: x.io", "PROJECT has version '2', and only version 3 can be read", BY_HAND),
    ("version: '3'\nlayout: [ansible.sdk.operatorframework.io/v1]", "has the layout 'ansible.sdk.operatorframework.io/v1'", BY_HAND),
    ("version: '3'\nlayout: helm.sdk.operatorframework.io/v1", "has the layout 'helm.sdk.operatorframework.io/v1'", BY_HAND),
    ("version: '3'\nlayout: [{}]", "has the layout '{}'", BY_HAND),
    ("version: '3'\nprojectName: shop", "has no domain", "Add --domain, such as --domain example.com"),
    ("version: '3'\ndomain: localhost", "the domain 'localhost' is not a DNS name with a dot", "Give another --domain"),
    ("version: '3'\ndomain: x.io\nprojectName: json", "the package 'json' would hide a module", "Give another --package"),
    ("version: '3'\nprojectName: [shop]", "projectName must be text, not ['shop']", CORRECT),
    ("version: '3'\nmultigroup: 1", "multigroup must be true or false, not 1", CORRECT),
    ("version: '3'\nplugins: []", "plugins must be a map, not []", CORRECT),
    ("version: '3'\nresources: {}", "resources must be a list, not {}", CORRECT),
    ("version: '3'\nresources: [Cart]", "resources[0] must be a map, not 'Cart'", CORRECT),
    ("version: '3'\nresources: [{version: v1}]", "resources[0] has no kind", CORRECT),
    ("version: '3'\nresources: [{kind: Cart}]", "resources[0] has no version", CORRECT),
    (f"version: '3'\nresources: [{KIND}, {{kind: yes, version: v1}}]", "resources[1].kind must be text, not True", CORRECT),
    ("version: '3'\nresources: [{kind: A, version: v1, api: {namespaced: 'no'}}]", "resources[0].api.namespaced must be true or false, not 'no'", CORRECT),
    ("version: '3'\nresources: [{kind: A, version: v1, webhooks: {spoke: v2}}]", "resources[0].webhooks.spoke must be a list, not 'v2'", CORRECT),
    ("version: '3'\nresources: [{kind: A, version: '1', group: x}]", "resources[0]: the version '1' is not one like v1", "Remove the entry"),
    ("version: '3'\nresources: [{kind: Field, version: v1, group: x}]", "conflicts with a name in the generated code", "Remove the entry"),
    (f"version: '3'\ndomain: x.io\nresources: [{KIND}, {KIND.replace('shop', 'web')}]", "Cart would have the same modules as Cart shop.x.io/v1", "`ctrl init --multigroup`"),
    ("a" * (2**20 + 1), "PROJECT is larger than 1 MiB", "Restore it from version control"),
    (None, "has no file PROJECT", "Pass the folder of a kubebuilder project"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "problem", "advice"), BAD, ids=[problem for _, problem, _ in BAD])
def test_a_project_that_cannot_be_taken_over_is_one_line_with_advice(tmp_path, monkeypatch, text, problem, advice):
    monkeypatch.chdir(tmp_path)
    Path("go").mkdir()
    if text is not None:
        Path("go/PROJECT").write_text(text)

    failed = init("py", "--from", "go")

    assert failed.exit_code == 1, failed.output
    error = failed.stderr.splitlines()[-1]
    assert error.startswith("error: ")
    assert problem in error
    assert advice in error
    assert failed.stderr.count("error: ") == 1
    assert "Traceback" not in failed.output
    assert not Path("py").exists()


def test_a_crd_that_cannot_be_imported_is_one_line_and_nothing_is_written(go, tmp_path):
    file = go / "config/crd/bases/crew.harbour.example_shifts.yaml"
    file.write_text(file.read_text().replace("type: array", "type: list"))

    failed = init(tmp_path / "py", "--from", go)

    assert failed.exit_code == 1
    assert f"{file}: shifts.crew.harbour.example: the schema of v1beta1 is not structural" in failed.stderr
    assert failed.stderr.splitlines()[-1].startswith("error: ")
    assert not (tmp_path / "py").exists()


# Old files


def test_files_of_older_versions_of_kubebuilder_mean_the_same():
    hook = "webhooks: {conversion: true, webhookVersion: v1}"
    api = "api: {crdVersion: v1, namespaced: true}"
    project = project_file(
        f"""
version: "3"
layout: go.kubebuilder.io/v3
domain: x.io
resources:
- {{group: shop, domain: x.io, version: v1, kind: Cart, {api}, {hook}}}
- {{group: shop, domain: x.io, version: v1beta1, kind: Cart, {api}, {hook}}}
- {{domain: x.io, version: v1, kind: Till, {api}, controllers: [{{name: a}}, {{name: b}}]}}
- {{group: apps, version: v1, kind: Deployment, path: k8s.io/api/apps/v1, controller: true}}
- {{group: core, version: v1, kind: Pod, path: k8s.io/api/core/v1, webhooks: {{defaulting: true}}}}
""",
        "PROJECT",
    )

    assert [(each.group, each.version, each.is_external, each.spokes) for each in project.resources] == [
        ("shop.x.io", "v1", False, ("v1beta1",)),
        ("shop.x.io", "v1beta1", False, ()),
        ("x.io", "v1", False, ()),
        ("apps", "v1", True, ()),
        ("", "v1", True, ()),
    ]
    assert project.notes == ("Till has 2 controllers, and one is created. Add the others by hand",)


def test_a_huge_number_of_values_is_refused():
    with pytest.raises(ConfigError, match=r"is not YAML: .*values"):
        project_file("version: '3'\na: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(f"{c}: &{c} [{', '.join(['*' + p] * 10)}]\n" for p, c in zip("abcdef", "bcdefg", strict=True)), "PROJECT")  # fmt: skip
