"""`ctrl bundle`: it makes the bundle of a project, says what it did and what is missing, and leaves a person's files alone."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from shop_project import shop

from ctrlruntime.cli import ctrl
from ctrlruntime.generate.documents import read_one
from ctrlruntime.olm.bundle import read_bundle

__all__ = ["shop"]

PREFIX = "operators.operatorframework.io.bundle"
DIGEST = "sha256:" + "ab" * 32


def run(*arguments: str, **options):
    return CliRunner().invoke(ctrl, ["bundle", *arguments], **options)


@pytest.fixture
def project(shop, monkeypatch):
    """A project with a webhook, its tree up to date; the time stands still."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    shop.write(webhooks=True, cert_manager=True)
    return shop


@pytest.fixture
def bundle(project):
    """The project's bundle, made."""
    done = run("--version", "0.1.0")
    assert done.exit_code == 0, done.output
    return project


def texts(folder: Path) -> dict[str, bytes]:
    """All files of the project but its code."""
    return {
        str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".py"
    }


def csv_of(shop) -> dict:
    return read_one((shop.folder / f"bundle/manifests/{shop.name}.clusterserviceversion.yaml").read_text(), "")


def base_of(shop) -> Path:
    return shop.folder / f"config/manifests/bases/{shop.name}.clusterserviceversion.yaml"


def test_a_bundle_is_written_and_then_up_to_date(project):
    first, second, checked = run("--version", "0.1.0"), run(), run("--check")

    assert first.exit_code == 0, first.output
    lines = first.stdout.splitlines()
    assert f"created bundle/manifests/{project.name}.clusterserviceversion.yaml" in lines
    assert f"created bundle/manifests/{project.group}_carts.yaml" in lines
    assert lines[-2:] == ["created bundle.Dockerfile", "created bundle.Dockerfile.dockerignore"]
    current = f"{len(lines)} files in bundle: up to date\n"
    assert (second.exit_code, second.stdout) == (0, current)
    assert (checked.exit_code, checked.stdout, checked.stderr) == (0, current, "")


def test_the_bundle_is_that_of_the_project(bundle):
    found = read_bundle(Path("bundle"))
    csv = csv_of(bundle)

    assert (found.package, found.channels, found.default_channel) == (bundle.name, ("candidate",), "candidate")
    assert (found.unreadable, len(found.definitions)) == ((), 1)
    assert (csv["metadata"]["name"], csv["spec"]["version"]) == (f"{bundle.name}.v0.1.0", "0.1.0")
    assert csv["metadata"]["annotations"]["createdAt"] == "2023-11-14T22:13:20Z"
    assert [each["kind"] for each in csv["spec"]["customresourcedefinitions"]["owned"]] == ["Cart"]
    assert [each["type"] for each in csv["spec"]["webhookdefinitions"]] == ["MutatingAdmissionWebhook"]
    assert not any(each.gvk.group == "cert-manager.io" for each in found.objects)


def test_every_field_that_people_miss_is_a_warning_with_its_place(project):
    done = run("--version", "0.1.0")

    lines = done.stderr.splitlines()
    place = f"warning: config/manifests/bases/{project.name}.clusterserviceversion.yaml: "
    assert (
        f"{place}spec.icon is missing. Set a picture, in a project with `ctrl generate kustomize-manifests --icon logo.svg`"
        in lines
    )
    said = {line.removeprefix(place).partition(". ")[0] for line in lines if line.startswith(place)}
    assert {
        "spec.provider is the scaffold's placeholder",
        "spec.links is the scaffold's placeholder",
        "spec.minKubeVersion is missing",
    } <= said
    assert all(line.startswith("warning: ") for line in lines)


def test_the_bundle_follows_the_classes(bundle):
    bundle.source.write_text(
        bundle.source.read_text().replace("size: int = 1", "spec: dict[str, int] = {}\n    size: int = 1")
    )
    bundle.refresh()
    bundle.forget()

    checked, diffed = run("--check"), run("--diff")

    assert checked.exit_code == 1
    assert f"+++ bundle/manifests/{bundle.group}_carts.yaml (generated)\n" in checked.stdout
    assert checked.stderr.splitlines()[-1].startswith("error: stale: bundle/manifests/")
    assert "createdAt" not in "".join(line for line in checked.stdout.splitlines() if line[0] in "+-")
    assert (diffed.exit_code, diffed.stdout, diffed.stderr) == (0, checked.stdout, "")
    assert run().exit_code == 0
    assert run("--check").exit_code == 0


def test_a_stale_tree_is_a_warning_and_fails_a_check(bundle):
    bundle.source.write_text(bundle.source.read_text().replace("size: int = 1", "size: int = 7"))
    bundle.forget()

    done = run("--check")

    crd = f"config/crd/bases/{bundle.group}_carts.yaml"
    assert done.stderr.splitlines() == [
        f"warning: {crd}: stale, but the bundle is created from these files. Run `ctrl manifests` first",
        f"error: stale: {crd}. Run ctrl manifests, then ctrl bundle",
    ]
    assert done.exit_code == 1
    assert run().exit_code == 0


def test_a_bundle_that_was_pinned_says_so_when_it_is_no_more(bundle):
    Path("digests.json").write_text(json.dumps({f"{bundle.name}:v1": DIGEST}))
    assert run("--image-digests", "digests.json").exit_code == 0

    assert "Add --image-digests or --use-image-digests" in run("--check").stderr
    assert "Add --image-digests or --use-image-digests" in run().stderr
    assert "Add --image-digests or --use-image-digests" not in run().stderr


def test_a_time_of_creation_alone_is_never_stale(bundle, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")

    assert run("--check").exit_code == 0
    assert run().stdout.endswith("files in bundle: up to date\n")
    assert csv_of(bundle)["metadata"]["annotations"]["createdAt"] == "2023-11-14T22:13:20Z"

    run("--version", "0.2.0")
    assert csv_of(bundle)["metadata"]["annotations"]["createdAt"] == "2027-01-15T08:00:00Z"


def test_version_and_channels_stay_until_others_are_named(bundle):
    run("--version", "0.2.0", "--channels", "candidate, stable", "--default-channel", "stable")

    assert run().exit_code == 0

    found = read_bundle(Path("bundle"))
    assert (csv_of(bundle)["spec"]["version"], found.channels, found.default_channel) == (
        "0.2.0",
        ("candidate", "stable"),
        "stable",
    )
    assert f"LABEL {PREFIX}.channels.v1=candidate,stable\n" in Path("bundle.Dockerfile").read_text()


def test_what_a_person_added_stays(bundle):
    annotations = Path("bundle/metadata/annotations.yaml")
    annotations.write_text(annotations.read_text() + '  # Mine.\n  com.redhat.openshift.versions: "v4.14"\n')
    Path("bundle/metadata/dependencies.yaml").write_text("dependencies: []\n")
    Path("bundle/manifests/mine.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n")

    done = run("--version", "0.2.0")

    assert annotations.read_text().endswith('  # Mine.\n  com.redhat.openshift.versions: "v4.14"\n')
    assert "LABEL com.redhat.openshift.versions=v4.14\n" in Path("bundle.Dockerfile").read_text()
    assert Path("bundle/metadata/dependencies.yaml").read_text() == "dependencies: []\n"
    assert Path("bundle/manifests/mine.yaml").exists()
    kept = "bundle/manifests/mine.yaml: not created by `ctrl bundle`, so it is kept as part of the bundle"
    assert f"warning: {kept}" in done.stderr.splitlines()
    assert run("--check").exit_code == 0


def test_the_base_is_a_persons_and_its_words_are_in_the_bundle(bundle):
    text = base_of(bundle).read_text()
    base_of(bundle).write_text("# Mine.\n" + text.replace("maturity: alpha", "maturity: stable\n  release: two"))

    assert run().exit_code == 0

    assert (csv_of(bundle)["spec"]["maturity"], csv_of(bundle)["spec"]["release"]) == ("stable", "two")
    assert base_of(bundle).read_text().startswith("# Mine.\n")


def test_what_is_made_no_more_goes(bundle):
    service = Path(f"bundle/manifests/{bundle.name}-controller-manager-metrics-service_v1_service.yaml")
    assert service.exists()
    bundle.write(webhooks=True, cert_manager=True, metrics=False)
    bundle.forget()

    done = run()

    assert f"removed {service}" in done.stdout.splitlines()
    assert not service.exists()


def test_images_are_pinned(bundle):
    Path("digests.json").write_text(json.dumps({f"{bundle.name}:v1": DIGEST}))

    done = run("--image-digests", "digests.json")

    assert done.exit_code == 0, done.output
    deployment = csv_of(bundle)["spec"]["install"]["spec"]["deployments"][0]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"{bundle.name}@{DIGEST}"
    assert (run("--image-digests", "digests.json", "--check").exit_code, run("--check").exit_code) == (0, 1)


def test_an_image_without_a_digest_is_one_line_and_nothing_is_written(bundle):
    Path("digests.json").write_text("{}")
    before = texts(bundle.folder)

    done = run("--version", "0.2.0", "--image-digests", "digests.json")

    assert (done.exit_code, done.stdout, texts(bundle.folder)) == (1, "", before)
    assert done.stderr.startswith(f"error: digests.json has no digest for {bundle.name}:v1. ")


def test_another_folder_has_a_dockerfile_of_its_own(project):
    done = run("--version", "0.1.0", "--output-dir", "out/olm")

    assert done.exit_code == 0, done.output
    assert "COPY olm/manifests /manifests/\n" in Path("out/olm.Dockerfile").read_text()
    assert Path("out/olm.Dockerfile.dockerignore").read_text().endswith("*\n!olm\n")
    assert not Path("bundle").exists()


def test_the_project_is_found_from_below_and_can_be_named(project, monkeypatch):
    (project.folder / "deep").mkdir()
    monkeypatch.chdir(project.folder / "deep")

    assert "created ../bundle.Dockerfile\n" in run("--version", "0.1.0").stdout
    assert run("--project", "..", "--check").exit_code == 0


def test_objects_of_the_standard_input_make_the_same_bundle(bundle):
    rendered = CliRunner().invoke(ctrl, ["render", "config/manifests"]).stdout

    assert run("--input", "-", "--check", input=rendered).exit_code == 0
    assert run("--input-dir", "config/manifests", "--check").exit_code == 0
    Path("all.yaml").write_text(rendered)
    assert run("--input", "all.yaml", "--check").exit_code == 0


def test_objects_of_another_tool_need_no_project(bundle, tmp_path_factory, monkeypatch):
    rendered = CliRunner().invoke(ctrl, ["render", "config/default"]).stdout
    base = base_of(bundle)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    done = run("--input", "-", "--base", str(base), "--version", "1.0.0", "--package", "store", input=rendered)

    assert done.exit_code == 0, done.output
    found = read_bundle(Path("bundle"))
    assert (found.package, found.scorecard) == ("store", None)
    assert "scorecard" not in Path("bundle.Dockerfile").read_text()


def test_what_is_left_out_of_objects_that_were_given_is_one_line(bundle):
    rendered = CliRunner().invoke(ctrl, ["render", "config/manifests"]).stdout

    said = [line for line in run("--input", "-", input=rendered).stderr.splitlines() if "cert-manager" in line]

    assert len(said) == 1
    for name in (
        "Certificate/{}-serving-cert",
        "Issuer/{}-selfsigned-issuer",
        "the volume webhook-certs of Deployment/{}-",
    ):
        assert name.format(bundle.name) in said[0]
    assert "cert-manager" not in run().stderr


def test_an_empty_standard_input_is_one_line(project):
    done = run("--input", "-", "--version", "0.1.0", input="")

    assert (done.exit_code, done.stderr) == (
        1,
        "error: standard input is empty. Add the operator's manifests\n",
    )


def test_objects_without_the_scorecards_configuration_are_told(bundle):
    (bundle.folder / "config/scorecard/bases/config.yaml").write_text("")

    said = "config/manifests renders no Configuration of the scorecard, so the bundle has no tests for `ctrl scorecard`"
    assert f"warning: {said}. See config/scorecard" in run().stderr.splitlines()


def test_the_objects_can_be_printed(project):
    before = texts(project.folder)

    done = run("--version", "0.1.0", "--stdout")

    assert (done.exit_code, texts(project.folder)) == (0, before)
    assert done.stdout.startswith("---\napiVersion: operators.coreos.com/v1alpha1\n")
    assert f"  name: {project.crd}\n" in done.stdout


def test_permissions_of_further_accounts_are_granted(project):
    (project.folder / "config/manager/more.yaml").write_text(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: helper, namespace: system}\n---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: helper}\n"
        'rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]\n---\n'
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: helper}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: helper}\n"
        "subjects: [{kind: ServiceAccount, name: helper, namespace: system}]\n"
    )
    tree = project.folder / "config/manager/kustomization.yaml"
    tree.write_text(tree.read_text() + "- more.yaml\n")

    done = run("--version", "0.1.0", "--extra-service-accounts", f"{project.name}-helper")

    assert done.exit_code == 0, done.output
    granted = csv_of(project)["spec"]["install"]["spec"]["clusterPermissions"]
    assert f"{project.name}-helper" in [each["serviceAccountName"] for each in granted]


# What goes wrong


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the bundle has no version yet. Set the version, as in --version 0.1.0"),
        (["--version", "v0.1.0"], "the version 'v0.1.0' is not a semantic version. Write it without v: 0.1.0"),
        (["--version", "0.1"], "the version '0.1' is not a semantic version"),
        (["--version", "0.1.0", "--channels", ","], "no channel is set"),
        (["--version", "0.1.0", "--channels", "a b"], "cannot use the channel 'a b': it must"),
        (["--version", "0.1.0", "--package", "My Shop"], "cannot use the package 'My Shop': it must"),
        (["--version", "0.1.0", "--image-digests", "none.json"], "cannot read none.json"),
        (["--version", "0.1.0", "--output-dir", "."], "cannot write the bundle to .: it contains the project"),
        (
            ["--version", "0.1.0", "--output-dir", "config"],
            "cannot write the bundle to config: it is not a bundle, and contains ",
        ),
        (["--version", "0.1.0+b1"], "the version '0.1.0+b1' has build metadata"),
        (["--version", "0.1.0", "--input-dir", "config/default"], "config/default has no ClusterServiceVersion"),
        (["--version", "0.1.0", "--input-dir", "none"], "folder none does not exist"),
        (["--version", "0.1.0", "--input", "none.yaml"], "cannot read none.yaml"),
        (["--version", "0.1.0", "--input-dir", "config/crd"], "config/crd has no ClusterServiceVersion"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_written(project, arguments, said):
    before = texts(project.folder)

    done = run(*arguments)

    assert (done.exit_code, done.stdout, texts(project.folder)) == (1, "", before)
    assert done.stderr.startswith(f"error: {said}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--check", "--diff"],
        ["--check", "--stdout"],
        ["--input", "-", "--input-dir", "config"],
        ["--base", "base.yaml"],
        ["--version", "0.1.0", "validate", "bundle"],
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(project, arguments):
    assert run(*arguments).exit_code == 2


def test_outside_a_project_it_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    done = run("--version", "0.1.0")

    assert (done.exit_code, done.stdout) == (1, "")
    assert "ctrl init" in done.stderr


def test_without_a_base_it_is_said_what_writes_one(bundle):
    base_of(bundle).unlink()

    done = run()

    assert done.exit_code == 1
    assert done.stderr == (
        f"error: base config/manifests/bases/{bundle.name}.clusterserviceversion.yaml does not exist. "
        "Create one with `ctrl generate kustomize-manifests`\n"
    )


BROKEN = {
    "no YAML": ("kind: a: b\n", "line 1"),
    "another kind": ("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n", "is not a ClusterServiceVersion. Delete it, and run `ctrl generate kustomize-manifests`"),
    "nothing": ("", "is empty. Delete it, and run `ctrl generate kustomize-manifests`"),
    "a comment": ("# Mine.\n", "is empty. Delete it, and run `ctrl generate kustomize-manifests`"),
    "no spec": ("apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: a}\n", "has no spec"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_base_is_one_line_and_nothing_is_written(bundle, text, said):
    base_of(bundle).write_text(text)
    before = texts(bundle.folder)

    done = run("--version", "0.2.0")

    assert (done.exit_code, done.stdout, texts(bundle.folder)) == (1, "", before)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_package_that_cannot_be_imported_is_one_line(bundle):
    bundle.source.write_text("raise RuntimeError('no')\n")
    bundle.forget()

    done = run()

    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "RuntimeError: no" in done.stderr


def test_nothing_is_half_written(project):
    (project.folder / "bundle.Dockerfile").mkdir()
    before = texts(project.folder)

    done = run("--version", "0.1.0")

    assert (done.exit_code, done.stdout, texts(project.folder)) == (1, "", before)
    assert done.stderr.startswith("error: cannot read bundle.Dockerfile: ")
    assert not Path("bundle").exists()


def test_the_help_says_what_is_written_and_what_is_below_without_loading_it():
    shown = run("--help")

    assert shown.exit_code == 0
    assert "ctrl bundle --version 0.2.0 --channels candidate,stable --default-channel stable" in shown.stdout
    assert "validate  Validate a bundle" in shown.stdout


class _Digests(BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Docker-Content-Digest", DIGEST)
        self.end_headers()

    def log_message(self, *_):
        return


@pytest.fixture
def registry() -> Iterator[str]:
    """Host and port of a registry that has every image."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Digests) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def _name_image(bundle, image: str) -> None:
    path = Path("config/manager/manager.yaml")
    path.write_text(path.read_text().replace("image: controller:latest", f"image: {image}"))


def test_images_are_pinned_to_what_the_registry_says(bundle, registry):
    _name_image(bundle, f"{registry}/shop:v1")

    done = run("--use-image-digests")

    assert done.exit_code == 0, done.output
    deployment = csv_of(bundle)["spec"]["install"]["spec"]["deployments"][0]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"{registry}/shop@{DIGEST}"
    assert run("--use-image-digests", "--check").exit_code == 0


def test_digests_of_a_file_and_of_registries_exclude_each_other(bundle):
    done = run("--use-image-digests", "--image-digests", "digests.json")

    assert done.exit_code == 2
    assert "use --image-digests or --use-image-digests, not both" in done.stderr


def test_a_registry_that_cannot_be_asked_is_one_line_and_nothing_is_written(bundle):
    _name_image(bundle, "127.0.0.1:1/shop:v1")
    before = texts(bundle.folder)

    done = run("--version", "0.2.0", "--use-image-digests")

    assert (done.exit_code, done.stdout, texts(bundle.folder)) == (1, "", before)
    assert done.stderr.startswith("error: 127.0.0.1:1/shop:v1: cannot reach 127.0.0.1:1: Connection refused")
    assert done.stderr.count("\n") == 1
