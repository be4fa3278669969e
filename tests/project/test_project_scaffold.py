"""The texts of a project, what may be added to it, and writing that is all or nothing."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.scaffold import Container, new_project, scaffold_files, with_api, with_webhook
from ctrlruntime.project.scaffold.files import kind_files
from ctrlruntime.project.scaffold.writing import refresh, staged
from ctrlruntime.project.settings import Resource, Settings

SHOP = Settings(project_name="shop", package="shop", domain="x.io", image="shop:latest", scaffold_version="0.1.0")
IMAGE = Container(image="memcached:1.6", command=("memcached", "-m=64"), port=11211, run_as_user=1001)


def carts(**options) -> Settings:
    return with_api(SHOP, "webapp", "v1", "Cart", **options).settings


def full(settings: Settings) -> Settings:
    """A project with every sort of kind, controller and webhook."""
    settings = with_api(settings, "webapp", "v1", "ShopCart").settings
    settings = with_api(settings, "webapp", "v1alpha1", "ShopCart").settings
    settings = with_api(settings, "webapp", "v2", "ShopCart").settings
    settings = with_webhook(
        settings,
        "webapp",
        "v1",
        "ShopCart",
        defaulting=True,
        validation=True,
        conversion=True,
        spokes=["v2", "v1alpha1"],
    ).settings
    settings = with_api(settings, "cache", "v1beta1", "Memcached", container=IMAGE).settings
    settings = with_webhook(settings, "cache", "v1beta1", "Memcached", validation=True).settings
    settings = with_api(settings, "web", "v1", "Nginx", container=Container(image="nginx:1.27")).settings
    settings = with_api(settings, "hub", "v1", "Copy", fleet=True).settings
    settings = with_api(settings, "hub", "v1", "ClusterConfigurationPolicy", fleet=True).settings
    settings = with_api(settings, "crew", "v1", "Captain", namespaced=False, plural="captaincies").settings
    settings = with_webhook(settings, "crew", "v1", "Captain", defaulting=True).settings
    settings = with_api(settings, "words", "v1", "Namespace").settings  # its variable would hide a fixture
    settings = with_api(settings, "words", "v1", "ValidatingAdmissionPolicyBinding").settings
    settings = with_api(settings, "apps", "v1", "Deployment", is_external=True).settings
    settings = with_api(settings, "autoscaling", "v1", "HorizontalPodAutoscaler", is_external=True).settings
    settings = with_api(settings, "core", "v1", "Node", is_external=True).settings
    return with_webhook(settings, "core", "v1", "Pod", defaulting=True, validation=True).settings


PROJECTS = {
    "plain": SHOP,
    "full": full(SHOP),
    "namespaced": full(replace(SHOP, namespaced=True)),
    "multigroup": full(replace(SHOP, multigroup=True, license="apache2", owner="The Shop Authors")),
}


# Texts


@pytest.mark.parametrize("name", PROJECTS)
def test_the_texts_are_a_function_of_the_settings_and_parse(name):
    files = scaffold_files(PROJECTS[name])

    assert files == scaffold_files(PROJECTS[name])
    assert list(files) == sorted(files)
    for path, text in files.items():
        assert not text or text.endswith("\n"), path
        match Path(path).suffix:
            case ".py":
                ast.parse(text)
            case ".toml":
                tomllib.loads(text)
            case ".yml":
                yaml.safe_load(text)


def test_the_code_is_clean_and_formatted_whatever_the_names_are(tmp_path):
    for name, settings in PROJECTS.items():
        with staged(tmp_path / name, scaffold_files(settings)):
            pass

    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", *PROJECTS],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_where_things_are():
    files = scaffold_files(with_webhook(carts(), "webapp", "v1", "Cart", defaulting=True).settings)

    assert {path for path in files if path.startswith(("shop/", "tests/"))} == {
        "shop/__init__.py",
        "shop/__main__.py",
        "shop/operator.py",
        "shop/api/__init__.py",
        "shop/api/v1/__init__.py",
        "shop/api/v1/cart.py",
        "shop/controllers/__init__.py",
        "shop/controllers/cart.py",
        "shop/webhooks/__init__.py",
        "shop/webhooks/v1/__init__.py",
        "shop/webhooks/v1/cart.py",
        "tests/conftest.py",
        "tests/test_cart_controller.py",
        "tests/test_cart_v1_webhook.py",
        "tests/test_manifests.py",
        "tests/test_operator.py",
    }


def test_groups_are_kept_apart_where_it_was_asked_for():
    files = scaffold_files(PROJECTS["multigroup"])

    assert "shop/api/webapp/v1/shopcart.py" in files
    assert 'named("webapp-shopcart")' in files["shop/controllers/webapp/shopcart.py"]
    assert "shop/controllers/core/node.py" in files
    assert "shop/webhooks/core/v1/pod.py" in files


def test_a_namespaced_operator_asks_for_permissions_in_its_namespace_only():
    files = scaffold_files(PROJECTS["namespaced"])

    rules = re.findall(r"@ctrl\.rbac\((.*)\)", files["shop/controllers/shopcart.py"])
    assert len(rules) == 2
    assert all('namespace="shop-system"' in rule for rule in rules)
    # What a cluster-scoped kind needs is the cluster's.
    assert "namespace=" not in files["shop/controllers/captain.py"]


def test_the_lease_is_another_for_each_project_and_stays():
    def lease(settings: Settings) -> str:
        return re.search(r'LeaderElection\("(.*)"\)', scaffold_files(settings)["shop/operator.py"])[1]

    assert re.fullmatch(r"[0-9a-f]{8}\.x\.io", lease(SHOP))
    assert lease(SHOP) == lease(full(SHOP))
    assert lease(SHOP) != lease(replace(SHOP, project_name="other"))


def test_the_image_runs_as_nobody_from_a_pinned_base():
    text = scaffold_files(SHOP)["Dockerfile"]

    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert re.search(r"^ARG BASE=python:3\.\d+\.\d+-slim-\w+$", text, re.MULTILINE)
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["65532:65532"]
    assert 'ENTRYPOINT ["/venv/bin/python", "-m", "shop"]' in text
    assert "pip install --no-cache-dir --require-hashes --requirement requirements.lock" in text
    assert "pip install --no-cache-dir --no-index --no-deps --no-build-isolation ." in text
    assert "!requirements.lock" in scaffold_files(SHOP)[".dockerignore"].splitlines()
    assert "--generate-hashes" in scaffold_files(SHOP)["Makefile"]
    assert scaffold_files(SHOP)[".dockerignore"].splitlines()[1] == "*"


@pytest.mark.parametrize("name", ["e2e", "lint", "test"])
def test_a_workflow_may_nothing_it_does_not_say_and_pins_its_actions(name):
    workflow = yaml.safe_load(scaffold_files(SHOP)[f".github/workflows/{name}.yml"])

    assert workflow["permissions"] == {}
    assert [job["permissions"] for job in workflow["jobs"].values()] == [{"contents": "read"}]
    uses = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert uses
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in uses)


def test_the_license_stands_in_each_file_and_in_the_project():
    files = scaffold_files(PROJECTS["multigroup"])

    assert "Apache License" in files["LICENSE"]
    assert tomllib.loads(files["pyproject.toml"])["project"]["license"] == "Apache-2.0"
    assert all(
        text.startswith("# Copyright The Shop Authors\n# SPDX-License-Identifier: Apache-2.0\n\n")
        for path, text in files.items()
        if path.endswith(".py") and text and not path.endswith("__init__.py")
    )
    assert "LICENSE" not in scaffold_files(SHOP)


def test_what_an_image_does_not_need_is_not_there():
    files = scaffold_files(PROJECTS["full"])

    assert "port:" not in files["shop/api/v1/nginx.py"]
    assert "command" not in files["shop/controllers/nginx.py"]
    assert "run_as_user" not in files["shop/controllers/nginx.py"]
    assert "run_as_user=1001" in files["shop/controllers/memcached.py"]


# What may be added


def test_names_follow_from_the_folder():
    settings = new_project(Path("/somewhere/My_Shop"), domain="x.io")

    assert (settings.project_name, settings.package, settings.image) == ("my-shop", "my_shop", "my-shop:latest")


def test_the_first_version_is_stored_and_has_the_controller():
    settings = with_api(carts(), "webapp", "v1alpha1", "Cart").settings

    assert [(each.version, each.storage, each.controller) for each in settings.resources] == [
        ("v1", True, True),
        ("v1alpha1", False, False),
    ]


@pytest.mark.parametrize("group", ["webapp", "webapp.x.io"])
def test_a_group_may_be_given_with_the_domain(group):
    assert with_api(SHOP, group, "v1", "Cart").resource.group == "webapp.x.io"


def test_a_controller_may_come_later():
    addition = with_api(carts(controller=False), "webapp", "v1", "Cart", resource=False)

    assert addition.parts == {"controller"}
    assert addition.resource.controller


def test_webhooks_come_one_after_the_other():
    first = with_webhook(carts(), "webapp", "v1", "Cart", defaulting=True).settings

    second = with_webhook(first, "webapp", "v1", "Cart", validation=True)

    assert (second.resource.defaulting, second.resource.validation, second.parts) == (True, True, {"webhook"})


def test_writing_a_kind_anew_keeps_its_webhooks_and_where_it_is_stored():
    settings = with_webhook(carts(), "webapp", "v1", "Cart", defaulting=True).settings

    addition = with_api(settings, "webapp", "v1", "Cart", force=True)

    assert (addition.resource.defaulting, addition.resource.storage) == (True, True)
    assert addition.parts == {"api", "controller"}


def test_a_kind_of_kubernetes_has_the_plural_and_scope_it_has():
    pod = with_webhook(SHOP, "core", "v1", "Pod", defaulting=True).resource
    node = with_api(SHOP, "core", "v1", "Node", is_external=True).resource

    assert pod == Resource(group="", version="v1", kind="Pod", plural="pods", is_external=True, defaulting=True)
    assert (node.plural, node.namespaced, node.controller) == ("nodes", False, True)


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda: with_api(carts(), "webapp", "v1", "Cart"), "is already in this project. Use --force"),
        (lambda: with_api(carts(), "webapp", "v2", "Cart", controller=True), "already has a controller, for version v1"),
        (lambda: with_api(carts(), "webapp", "v2", "Cart", namespaced=False), "Cart is namespaced in version v1, and all versions of a kind must have the same scope. Add --namespaced"),
        (lambda: with_api(carts(), "webapp", "v2", "Cart", plural="cartz"), "has the plural carts in version v1"),
        (lambda: with_api(carts(), "webapp", "v1", "Karren", plural="carts"), "Cart already has the plural carts in webapp.x.io"),
        (lambda: with_api(carts(), "crew", "v1", "Cart"), "would have the same modules as Cart webapp.x.io/v1"),
        (lambda: with_api(carts(), "webapp", "v1", "CART"), "already has the plural carts"),
        (lambda: with_api(carts(), "webapp", "v1", "Cart", resource=False), "already has a controller"),
        (lambda: with_api(SHOP, "core", "v1", "Pod"), "core is the group of built-in kinds. Add --external"),
        (lambda: with_api(SHOP, "apps", "v1", "Nothing", is_external=True), "neither in this project nor built in"),
        (lambda: with_api(SHOP, "apps", "v1", "Deployment", is_external=True, controller=False), "nothing to create"),
        (lambda: with_api(full(SHOP), "apps", "v1", "Deployment", is_external=True), "Deployment already has a controller"),
        (lambda: with_api(SHOP, "apps", "v1", "Deployment", is_external=True, container=IMAGE), "because it creates a kind"),
        (lambda: with_api(SHOP, "apps", "v1", "Deployment", is_external=True, fleet=True), "--fleet cannot be used with --external or --no-resource"),
        (lambda: with_api(carts(controller=False), "webapp", "v1", "Cart", resource=False, fleet=True), "--fleet cannot be used with --external or --no-resource"),
        (lambda: with_api(carts(controller=False), "webapp", "v1", "Cart", resource=False, container=IMAGE), "--image cannot be used with"),
        (lambda: carts(fleet=True, controller=False), "--fleet cannot be used with --no-controller"),
        (lambda: carts(fleet=True, namespaced=False), "--fleet cannot be used with --cluster-scoped, because it creates a ConfigMap"),
        (lambda: carts(container=IMAGE, controller=False), "cannot be used with --no-controller"),
        (lambda: carts(container=IMAGE, namespaced=False), "cannot be used with --cluster-scoped"),
        (lambda: carts(container=Container(image="UPPER CASE")), "is not valid. Use a reference such as registry.example.com/shop:v1"),
        (lambda: with_webhook(carts(), "webapp", "v1", "Cart"), "no webhook to create"),
        (lambda: with_webhook(carts(), "webapp", "v2", "Cart", defaulting=True), "this project has no Cart webapp/v2"),
        (lambda: with_webhook(carts(), "webapp", "v1", "Cart", conversion=True), "has only the version"),
        (lambda: with_webhook(full(SHOP), "webapp", "v1", "ShopCart", conversion=True), "Add --spoke v1alpha1,v2"),
        (lambda: with_webhook(full(SHOP), "webapp", "v1", "ShopCart", conversion=True, spokes=["v3"]), "has no version v3"),
        (lambda: with_webhook(full(SHOP), "webapp", "v1", "ShopCart", conversion=True, spokes=["v1"]), "v1 is the hub"),
        (lambda: with_webhook(full(SHOP), "webapp", "v2", "ShopCart", conversion=True, spokes=["v1"]), "To make v2 the hub, first run `ctrl delete webhook --group webapp"),
        (lambda: with_webhook(SHOP, "core", "v1", "Pod", conversion=True), "not a kind of this project"),
        (lambda: new_project(Path("/x/2048"), domain="x.io"), "must begin with a letter. Give another --project-name"),
        (lambda: new_project(Path("/x/shop"), domain="x.io", image="a b"), "is not valid. Use a reference such as registry.example.com/shop:v1"),
        (lambda: new_project(Path("/x/json"), domain="x.io"), "would hide a module of that name. Give another --package"),
        (lambda: new_project(Path("/x/shop"), domain="x.io", owner="a\nb"), "the owner"),
        (lambda: new_project(Path("/x/shop"), domain="x.io", owner='a"b'), "must be one line without double quotes"),
        (lambda: new_project(Path("/x/shop"), domain="x.io", project_name="a" * 29), "would be too long. Give another --project-name"),
        (lambda: with_api(carts(), "Webapp", "v1", "Cart"), "like webapp. Give another --group"),
        (lambda: with_api(carts(), "webapp", "1", "Cart"), "v2beta3. Give another --version"),
        (lambda: with_api(carts(), "webapp", "v1", "Field"), "in the generated code. Give another --kind"),
        (lambda: with_webhook(carts(), "webapp", "v1", "cart", defaulting=True), "ShopCart. Give another --kind"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line_that_says_what_to_do(add, message):
    with pytest.raises(ConfigError) as failed:
        add()

    assert message in str(failed.value)
    assert "\n" not in str(failed.value)


# Writing


def everything(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_fails_leaves_everything_as_it_was(tmp_path):
    (tmp_path / "a").write_text("old")
    before = everything(tmp_path)

    def fail() -> None:
        with staged(tmp_path, {"a": "new", "b/c/d": "new"}):
            assert everything(tmp_path / "b") == {"c/d": "new"}
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert everything(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_works_is_told_and_leaves_nothing_beside(tmp_path):
    (tmp_path / "a").write_text("old")

    with staged(tmp_path, {"a": "new", "b/c": "new"}) as written:
        told = [(each.path, each.is_new) for each in written]

    assert told == [("a", False), ("b/c", True)]
    assert everything(tmp_path) == {"a": "new", "b/c": "new"}


def test_a_folder_where_a_file_goes_stops_it_before_anything_is_changed(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_text("old")

    with (
        pytest.raises(ConfigError, match=r"cannot write .*: it is a folder"),
        staged(tmp_path, {"a": "new", "b": "x"}),
    ):
        pass

    assert everything(tmp_path) == {"a": "old"}


def test_a_file_where_a_folder_goes_is_named(tmp_path):
    (tmp_path / "b").write_text("old")

    with (
        pytest.raises(ConfigError, match="b is a file"),
        staged(tmp_path, {"a": "new", "b/c": "x"}),
    ):
        pass

    assert everything(tmp_path) == {"b": "old"}


def test_what_ctrl_manifests_says_is_handed_on(tmp_path):
    warnings: list[str] = []

    with pytest.raises(
        ConfigError, match=r"nothing was written, because `ctrl manifests` would fail: .* is not in a project"
    ):
        refresh(tmp_path, warnings.append)

    assert warnings == []


# The program


@pytest.fixture
def main(tmp_path, monkeypatch):
    """The `__main__` of a project without kinds."""
    settings = replace(SHOP, package="scaffolded_shop")
    with staged(tmp_path, scaffold_files(settings)):
        pass
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("scaffolded_shop.__main__")
    for name in [name for name in sys.modules if name.partition(".")[0] == "scaffolded_shop"]:
        del sys.modules[name]


def test_webhooks_take_files_unless_told_otherwise(main, monkeypatch):
    monkeypatch.delenv("WEBHOOK_SECRET", raising=False)

    files, made_here = main.webhook_options("files"), main.webhook_options("development")

    assert (files.development, files.secret) == (None, None)
    assert made_here.development is not None


def test_without_cert_manager_the_deployment_names_the_secret(main, monkeypatch):
    for name, value in {
        "WEBHOOK_SECRET": "shop-webhook-server-cert",
        "POD_NAMESPACE": "shop-system",
        "WEBHOOK_SERVICE": "shop-webhook-service",
        "WEBHOOK_VALIDATING": "shop-validating-webhook-configuration",
        "WEBHOOK_DEFINITIONS": "carts.x.io,ships.x.io",
    }.items():
        monkeypatch.setenv(name, value)

    secret = main.webhook_options("files").secret

    assert (secret.name, secret.namespace, secret.service) == (
        "shop-webhook-server-cert",
        "shop-system",
        "shop-webhook-service",
    )
    assert (list(secret.mutating), list(secret.validating)) == ([], ["shop-validating-webhook-configuration"])
    assert list(secret.definitions) == ["carts.x.io", "ships.x.io"]


def test_the_program_has_the_flags_of_every_operator(main, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["shop", "--help"])

    with pytest.raises(SystemExit) as ended:
        main.main()

    said = capsys.readouterr().out
    assert ended.value.code == 0
    for flag in (
        "--webhooks",
        "--leader-elect",
        "--metrics-bind-address",
        "--health-probe-bind-address",
        "--zap-devel",
    ):
        assert flag in said


def test_nothing_is_scaffolded_for_a_package_that_stands_elsewhere():
    elsewhere = replace(full(SHOP), source_dir="src")

    with pytest.raises(ConfigError, match=r"the source-dir of this project is 'src'"):
        scaffold_files(elsewhere)
    with pytest.raises(ConfigError, match=r"Write the classes by hand"):
        kind_files(elsewhere, elsewhere.resources[0], ["api"])

    assert scaffold_files(replace(elsewhere, source_dir="./")) == scaffold_files(full(SHOP))
