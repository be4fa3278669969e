"""`ctrl create`: what is added works at once, and what cannot be added changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.project.scaffold import new_project, scaffold_files
from ctrlruntime.project.scaffold.writing import staged
from ctrlruntime.project.settings import PYPROJECT, read_settings, write_settings

TESTS = "pytest -p no:cacheprovider --rbac-audit config/rbac/role.yaml"
ISSUER = ("--group=cert-manager.io", "--version=v1", "--kind=Issuer")
ISSUERS = Path(__file__).parents[1] / "project/third_party/issuers.yaml"
CART = ("--group", "webapp", "--version", "v1", "--kind", "Cart")


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Path:
    """A project as `ctrl init` makes it, without `config/`, which is not what these tests are about."""
    folder = tmp_path / "shop"
    settings = new_project(folder, domain="x.io")
    files = scaffold_files(settings)
    with staged(folder, files | {PYPROJECT: write_settings(files[PYPROJECT], settings)}):
        pass
    monkeypatch.chdir(folder)
    return folder


def create(*arguments: object):
    return CliRunner().invoke(ctrl, ["create", *map(str, arguments)])


def texts(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def test_a_kind_is_added_and_no_file_of_a_person_is_changed(shop):
    before = texts(shop)

    done = create("api", *CART)

    after = texts(shop)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:5] == [
        "created shop/api/v1/__init__.py",
        "created shop/api/v1/cart.py",
        "created shop/controllers/cart.py",
        "created tests/test_cart_controller.py",
        "changed pyproject.toml",
    ]
    assert done.stdout.splitlines()[-3:] == [
        "Next: add the fields of Cart in shop/api, and implement its controller in shop/controllers",
        "  ctrl manifests",
        "  pytest",
    ]
    assert {path for path in before if after[path] != before[path]} == {"pyproject.toml"}
    assert "config/crd/bases/webapp.x.io_carts.yaml" in after
    assert "config/samples/webapp_v1_cart.yaml" in after


@pytest.mark.parametrize("path", [str(ISSUERS), "shop.api.v1.issuer"])
def test_a_kind_of_another_project_has_a_class_a_controller_and_no_crd(shop, path):
    if path != str(ISSUERS):
        CliRunner().invoke(ctrl, ["import", str(ISSUERS), "-o", "shop/api/v1/issuer.py"])
        (shop / "shop/api/v1/__init__.py").write_text("")

    done = create(
        "api", "--group=cert-manager", "--external-api-domain=io", "--version=v1", "--kind=Issuer", "--external",
        f"--external-api-path={path}",
    )  # fmt: skip
    hooked = create("webhook", *ISSUER, "--validation")

    assert (done.exit_code, hooked.exit_code) == (0, 0), done.output + hooked.output
    controller = (shop / "shop/controllers/issuer.py").read_text()
    assert "\n\nfrom shop.api.v1.issuer import Issuer\n" in controller
    assert "    mgr.scheme.register(Issuer)\n" in controller
    assert "external=True" in (shop / "shop/api/v1/issuer.py").read_text()
    assert 'python-class = "shop.api.v1.issuer.Issuer"' in (shop / "pyproject.toml").read_text()
    assert not (shop / "config/crd").exists()
    assert "issuers/status" in (shop / "config/rbac/role.yaml").read_text()


CRONJOB = ("--group=batch", "--version=v1", "--kind=CronJob")


def test_a_group_is_one_of_the_project_unless_the_kind_is_external(shop):
    own = create("api", *CRONJOB, "--resource=true", "--controller=false", "--namespaced=true")
    hooked = create("webhook", *CRONJOB, "--defaulting=true", "--programmatic-validation=false")
    builtin = create("webhook", *CRONJOB, "--core", "--validation", "--force")

    assert (own.exit_code, hooked.exit_code, builtin.exit_code) == (0, 0, 0), (
        own.output + hooked.output + builtin.output
    )
    assert (
        "CronJob batch.x.io/v1 is a new kind. For a controller of the built-in batch/v1, use --external\n" in own.stdout
    )
    resources = {each.group: each for each in read_settings(shop).resources}
    assert (resources["batch.x.io"].defaulting, resources["batch.x.io"].validation) == (True, False)
    assert not resources["batch.x.io"].controller
    assert (resources["batch"].is_external, resources["batch"].validation) == (True, True)


@pytest.mark.parametrize(
    ("command", "flag", "instead"),
    [
        ("init", "--repo=github.com/x/y", "Use --package"),
        ("init", "--plugins=go/v4", "`ctrl helm`"),
        ("create api", "--make=false", "updates config/ itself"),
        ("create api", "--external-api-module=example.com/x", "--external-api-path"),
        ("create webhook", "--defaulting-path=/x", "`path=` of with_defaulter"),
        ("edit", "--plugins=helm/v2-alpha", "`ctrl helm`"),
        ("edit", "--license=apache2", "Change the file LICENSE"),
        ("edit", "--owner=Ada", "Change owner in [tool.ctrlruntime]"),
        ("edit", "--force", "generated files are always updated"),
    ],
)
def test_flags_of_kubebuilder_without_a_counterpart_say_what_to_use(command, flag, instead):
    done = CliRunner().invoke(ctrl, [*command.split(), flag])

    assert done.exit_code == 2
    assert f"{flag.partition('=')[0]} is a flag of kubebuilder: " in done.stderr
    assert instead in done.stderr


def test_another_version_says_which_one_is_stored(shop):
    create("api", *CART)

    done = create("api", "--group=webapp", "--version=v2", "--kind=Cart")

    assert done.exit_code == 0, done.output
    assert "Cart is stored in v1. To store it in v2, move `storage=True` to that class." in done.stdout
    assert "--version v1 --kind Cart --conversion --spoke v2" in done.stdout
    assert not (shop / "shop/controllers/v2").exists()
    assert "storage=True" not in (shop / "shop/api/v2/cart.py").read_text()


def test_webhooks_are_found_by_being_there_from_below_the_folder_too(shop, monkeypatch):
    create("api", *CART)
    monkeypatch.chdir(shop / "shop" / "api")

    done = create("webhook", *CART, "--defaulting", "--programmatic-validation")

    assert done.exit_code == 0, done.output
    assert f"created {shop}/shop/webhooks/v1/cart.py" in done.stdout.splitlines()
    assert "/validate-webapp-x-io-v1-cart" in (shop / "config/webhook/manifests.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["api", "--group=Webapp", "--version=v1", "--kind=Cart"],
            "the group 'Webapp' is not a DNS name in lower case",
        ),
        (["api", "--group=webapp", "--version=1", "--kind=Cart"], "the version '1' is not one like v1"),
        (["api", "--group=webapp", "--version=v1", "--kind=cart"], "the kind 'cart' is not in PascalCase"),
        (["api", "--group=webapp", "--version=v1", "--kind=Class"], "'class' is a keyword"),
        (
            ["api", *CART, "--plural=Carts"],
            "the plural 'Carts' is not a DNS label in lower case, like carts. Give another --plural",
        ),
        (["api", "--group=core", "--version=v1", "--kind=Pod"], "core is the group of built-in kinds. Add --external"),
        (
            ["webhook", "--group=batch", "--version=v1", "--kind=CronJob", "--defaulting"],
            "or add --external for the built-in kind",
        ),
        (["api", "--group=cert-manager.io", "--version=v1", "--kind=Issuer", "--external"], "nor built in"),
        (
            ["api", *ISSUER, "--external", "--external-api-path=gone.yaml"],
            "cannot read gone.yaml: No such file or directory",
        ),
        (
            [
                "api",
                "--group=cert-manager.io",
                "--version=v2",
                "--kind=Issuer",
                "--external",
                f"--external-api-path={ISSUERS}",
            ],
            "issuers.yaml has no Issuer cert-manager.io/v2. It has cert-manager.io/v1",
        ),
        (["api", *ISSUER, "--external", "--external-api-path=json"], "module json is not in the package shop"),
        (["api", *ISSUER, "--external", "--external-api-path=shop.nothing"], "cannot import shop.nothing"),
        (
            ["api", *ISSUER, "--external", "--external-api-path=shop.operator"],
            "has no Issuer cert-manager.io/v1. It has no kinds",
        ),
        (["api", *CART, "--image=nginx", "--cluster-scoped"], "cannot be used with --cluster-scoped"),
        (["webhook", *CART, "--defaulting"], "this project has no Cart webapp/v1"),
        (["webhook", *CART], "no webhook to create"),
    ],
)
def test_what_cannot_be_added_is_one_line_and_changes_nothing(shop, arguments, message):
    before = texts(shop)

    failed = create(*arguments)

    assert failed.exit_code == 1
    assert failed.stderr.startswith("error: ")
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert texts(shop) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["api", "--group=webapp", "--version=v1"],
        ["api", *CART, "--image-container-port=80"],
        ["api", *CART, "--image=nginx", "--image-container-port=0"],
        ["api", *CART, "--image=nginx", "--run-as-user=0"],
        ["api", *CART, "--image=nginx", "--fleet"],
        ["api", *CART, "--no-resource", "--no-controller"],
        ["api", *ISSUER, "--external-api-path=issuers.yaml"],
        ["webhook", *CART, "--defaulting", "--spoke=v2"],
        ["nothing"],
    ],
)
def test_wrong_usage_ends_with_2(shop, arguments):
    before = texts(shop)

    assert create(*arguments).exit_code == 2
    assert texts(shop) == before


def test_outside_a_project_the_advice_is_init(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    failed = create("api", *CART)

    assert failed.exit_code == 1
    assert "Create one with `ctrl init`" in failed.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_not_overwritten_unless_forced(shop):
    mine = shop / "shop" / "controllers" / "cart.py"
    mine.write_text("# mine\n")
    before = texts(shop)

    refused = create("api", *CART)
    untouched = texts(shop)
    forced = create("api", *CART, "--force")

    assert (refused.exit_code, refused.stderr) == (
        1,
        "error: cannot overwrite shop/controllers/cart.py. Move them, or add --force\n",
    )
    assert untouched == before
    assert forced.exit_code == 0, forced.output
    assert "changed shop/controllers/cart.py" in forced.stdout.splitlines()
    assert "class CartReconciler" in mine.read_text()


def test_code_that_cannot_be_imported_stops_it_and_all_is_as_before(shop):
    (shop / "shop" / "controllers" / "broken.py").write_text("1 / 0\n")
    before = texts(shop)

    failed = create("api", *CART)

    assert failed.exit_code == 1
    assert (
        "`ctrl manifests` would fail: cannot import shop.controllers.broken (broken.py:1): ZeroDivisionError"
        in failed.stderr
    )
    assert failed.stderr.count("\n") == 1
    assert texts(shop) == before
    assert not (shop / "shop/api/v1").exists()


def test_further_webhooks_of_a_version_go_by_hand_or_by_force(shop):
    create("api", *CART)
    create("webhook", *CART, "--defaulting")

    refused = create("webhook", *CART, "--validation")
    forced = create("webhook", *CART, "--validation", "--force")

    assert refused.stderr.startswith("error: cannot overwrite shop/webhooks/v1/cart.py, tests/test_cart_v1_webhook.py.")
    assert forced.exit_code == 0, forced.output
    text = (shop / "shop/webhooks/v1/cart.py").read_text()
    assert "CartDefaulter" in text
    assert "CartValidator" in text


@pytest.mark.parametrize("command", ["api", "webhook"])
def test_help_has_examples(command):
    done = create(command, "--help")

    assert done.exit_code == 0
    assert f"ctrl create {command} --group webapp" in done.stdout


@pytest.mark.slow
def test_a_fresh_project_passes_its_own_checks(tmp_path, monkeypatch, forked_pytest):
    """Three kinds, one that runs an image and one for several clusters, with all webhooks. scripts/check-types has its types checked."""
    folder = tmp_path / "shop"
    run = CliRunner().invoke
    steps = [run(ctrl, ["init", str(folder), "--domain", "x.io"])]
    monkeypatch.chdir(folder)
    image = ("--image", "memcached:1.6", "--image-container-port", "11211", "--run-as-user", "1001")
    steps += [
        create("api", *CART),
        create("api", "--group", "webapp", "--version", "v1alpha1", "--kind", "Cart"),
        create("webhook", *CART, "--defaulting", "--validation", "--conversion", "--spoke", "v1alpha1"),
        create("api", "--group", "cache", "--version", "v1alpha1", "--kind", "Memcached", *image),
        create("api", "--group", "hub", "--version", "v1", "--kind", "Policy", "--fleet"),
    ]
    assert [step.stderr for step in steps if step.exit_code] == []
    assert len(read_settings(folder).resources) == 4

    # The project's tests run `ctrl manifests --check`.
    tests = forked_pytest.run([sys.executable, "-m", *TESTS.split()], cwd=folder, env=dict(os.environ))
    checks = {
        name: subprocess.run([sys.executable, "-m", "ruff", *name.split()], capture_output=True, text=True, check=False)
        for name in ("check", "format --check")
    }

    done = {TESTS: tests, **checks}
    assert {name: each.stdout + each.stderr for name, each in done.items() if each.returncode} == {}
    assert " passed" in tests.stdout
    assert "skipped" not in tests.stdout


def test_a_package_that_stands_elsewhere_is_not_begun_once_more(shop):
    (shop / "src").mkdir()
    (shop / "shop").rename(shop / "src" / "shop")

    done = create("api", "--group", "web", "--version", "v1", "--kind", "Site")

    assert done.exit_code == 1
    assert "has no package shop. If it is in another folder, set source-dir" in done.stderr
    assert not (shop / "shop").exists()
