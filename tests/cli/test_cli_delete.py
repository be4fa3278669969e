"""`ctrl delete`: what `ctrl create` added goes again, and what the user wrote goes only after a question."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.project.scaffold import begin, new_project
from ctrlruntime.project.settings import read_settings

ISSUERS = Path(__file__).parents[1] / "project/third_party/issuers.yaml"
CART = "--group webapp --version v1 --kind Cart"
OLD_CART = "--group webapp --version v1alpha1 --kind Cart"
CACHE = "--group cache --version v1 --kind Memcached"
DEPLOYMENT = "--group apps --version v1 --kind Deployment"
POD = "--group core --version v1 --kind Pod"
ISSUER = "--group cert-manager.io --version v1 --kind Issuer"


def project(folder: Path, *commands: str, multigroup: bool = False) -> Path:
    begin(folder, new_project(folder, domain="x.io", multigroup=multigroup), warn=lambda _text: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in commands:
            assert run(f"create {command}").exit_code == 0
    return folder


@pytest.fixture(scope="module")
def templates(tmp_path_factory) -> dict[str, Path]:
    folder, conversion = tmp_path_factory.mktemp("templates"), f"webhook {CART} --defaulting --validation --conversion"
    return {
        "cart": project(folder / "cart/shop", f"api {CART}"),
        "carts": project(folder / "carts/shop", f"api {CART}", f"api {OLD_CART}", f"{conversion} --spoke v1alpha1"),
    }


@pytest.fixture
def cart(templates, tmp_path, monkeypatch) -> Path:
    """A project with a kind."""
    monkeypatch.chdir(folder := shutil.copytree(templates["cart"], tmp_path / "shop"))
    return folder


@pytest.fixture
def carts(templates, tmp_path, monkeypatch) -> Path:
    """A project with two versions of a kind, webhooks and a conversion."""
    monkeypatch.chdir(folder := shutil.copytree(templates["carts"], tmp_path / "shop"))
    return folder


def run(command: str, **options):
    return CliRunner().invoke(ctrl, command.split(), **options)


def everything(folder: Path) -> dict[str, bytes | None]:
    """The bytes of each file, and the folders."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize(
    ("multigroup", "commands"),
    [
        (False, {
            f"api {CART}": f"api {CART}",
            f"api {OLD_CART} --no-controller": f"api {OLD_CART}",
            f"webhook {CART} --conversion --spoke v1alpha1": f"webhook {CART} --conversion",
        }),
        (True, {
            f"api {CACHE} --image memcached:1.6 --run-as-user 1001": f"api {CACHE}",
            f"webhook {CACHE} --defaulting --validation": f"webhook {CACHE}",
            f"api {DEPLOYMENT} --external": f"api {DEPLOYMENT} --core",
            f"webhook {POD} --validation": f"webhook {POD} --programmatic-validation=true",
        }),
        (True, {
            f"api {ISSUER} --external --external-api-path {ISSUERS}": f"api {ISSUER} --external",
            f"webhook {ISSUER} --external --validation": f"webhook {ISSUER} --external",
        }),
    ],
    ids=["versions", "image and kinds of Kubernetes", "kind of another project"],
)  # fmt: skip
def test_each_deletion_undoes_its_creation_to_the_byte(tmp_path, monkeypatch, multigroup, commands):
    shop = project(tmp_path / "shop", multigroup=multigroup)
    monkeypatch.chdir(shop)
    before = []
    for create in commands:
        before.append(everything(shop))
        done = run(f"create {create}")
        assert done.exit_code == 0, done.output

    for delete, wanted in zip(reversed(commands.values()), reversed(before), strict=True):
        done = run(f"delete {delete}")
        assert (done.exit_code, done.stderr) == (0, "")
        assert everything(shop) == wanted

    done = run("manifests --check")
    assert done.exit_code == 0, done.output


def test_it_says_what_went_and_what_is_left(cart):
    shutil.copy(cart / "tests/test_cart_controller.py", cart / "tests/test_other.py")

    done = run(f"delete api {CART}")

    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert "removed tests/test_cart_controller.py" in lines
    assert "removed config/samples/webapp_v1_cart.yaml" in lines
    assert "changed pyproject.toml" in lines
    assert "removed config/crd/bases/webapp.x.io_carts.yaml" in lines
    assert lines[-1].endswith("run: kubectl delete crd carts.webapp.x.io")
    assert "warning: deleted modules are still imported, in tests/test_other.py:" in done.stderr


def test_a_changed_file_goes_only_after_a_question(cart):
    mine = cart / "shop/controllers/cart.py"
    mine.write_text(mine.read_text() + "# mine\n")
    before = everything(cart)

    refused = run(f"delete api {CART}", input="n\n")
    without_answer = run(f"delete api {CART}")
    untouched = everything(cart)
    done = run(f"delete api {CART}", input="y\n")

    assert (refused.exit_code, without_answer.exit_code) == (1, 1)
    assert untouched == before
    assert "these files have your changes, and will be deleted:\n  shop/controllers/cart.py\nContinue?" in done.stderr
    assert (done.exit_code, mine.exists()) == (0, False)


def test_without_a_question_it_deletes_what_a_script_asks_for(cart):
    (cart / "config/samples/webapp_v1_cart.yaml").write_text("# mine\n")

    assert run(f"delete api {CART} --skip-confirmation").exit_code == 0

    assert not (cart / "config/samples").exists()


def test_modules_of_the_user_keep_their_package(cart):
    package = cart / "shop/api/v1"
    (package / "mine.py").write_text("SIZE = 1\n")
    (package / "__pycache__").mkdir()

    assert run(f"delete api {CART}").exit_code == 0

    assert sorted(path.name for path in package.iterdir()) == ["__init__.py", "__pycache__", "mine.py"]


def test_a_class_that_ctrl_did_not_create_stays(cart):
    run(f"import {ISSUERS} -o shop/issuer.py")
    create = f"create api {ISSUER} --external --external-api-path shop.issuer"
    # In a process of its own, because it imports the package.
    subprocess.run([sys.executable, "-m", "ctrlruntime", *create.split()], stdout=subprocess.DEVNULL, check=True)

    assert run(f"delete api {ISSUER} --external --yes").exit_code == 0

    assert (cart / "shop/issuer.py").exists()
    assert not (cart / "shop/controllers/issuer.py").exists()


def test_compiled_files_go_with_their_package(cart):
    package = cart / "shop/api/v1"
    (package / "__pycache__").mkdir()
    (package / "__pycache__/cart.cpython-311.pyc").write_bytes(b"")

    assert run(f"delete api {CART}").exit_code == 0

    assert not package.exists()


def test_a_file_that_is_gone_already_is_not_missed(cart):
    (cart / "tests/test_cart_controller.py").unlink()

    assert run(f"delete api {CART}").exit_code == 0


def test_one_webhook_of_several_is_taken_out_of_the_code(carts):
    webhooks, test = carts / "shop/webhooks/v1/cart.py", carts / "tests/test_cart_v1_webhook.py"

    done = run(f"delete webhook {CART} --defaulting")

    assert (done.exit_code, done.stderr) == (0, "")
    assert "changed shop/webhooks/v1/cart.py" in done.stdout.splitlines()
    assert ("Defaulter" in webhooks.read_text(), "Validator" in webhooks.read_text()) == (False, True)
    assert "Defaulter" not in test.read_text()
    assert not read_settings(carts).resources[0].defaulting
    assert "/mutate-" not in (carts / "config/webhook/manifests.yaml").read_text()
    steps = run("upgrade --dry-run --force").stdout.splitlines()
    assert {step.split()[0] for step in steps[:-2]} == {"unchanged"}


def test_code_of_the_user_is_kept_while_it_has_other_webhooks(carts):
    webhooks = carts / "shop/webhooks/v1/cart.py"
    webhooks.write_text(webhooks.read_text() + "# mine\n")
    before = webhooks.read_text()

    done = run(f"delete webhook {CART} --conversion")

    assert done.exit_code == 0
    assert "warning: shop/webhooks/v1/cart.py has your changes, so it stays. Remove the deleted webhook" in done.stderr
    assert (
        "Without the conversion in shop/webhooks/v1/cart.py, the versions of Cart are no longer converted."
        in done.stdout
    )
    assert webhooks.read_text() == before
    assert read_settings(carts).resources[0].spokes == ()


def test_code_that_needs_the_kind_stops_it_and_all_is_as_before(carts):
    run(f"delete webhook {CART} --yes")
    (carts / "shop/controllers/order.py").write_text("from shop.api.v1alpha1.cart import Cart\n\nCART = Cart\n")
    before = everything(carts)

    failed = run(f"delete api {OLD_CART}")

    assert failed.exit_code == 1
    assert "`ctrl manifests` would fail: cannot import shop.controllers.order (order.py:1)" in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert everything(carts) == before


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"api {CART}", f"it has webhooks. Run `ctrl delete webhook {CART}` first"),
        (f"api {OLD_CART}", f"v1 converts it. Run `ctrl delete webhook {CART} --conversion` first"),
        (f"webhook {OLD_CART}", "Cart webapp.x.io/v1alpha1 has no webhooks to delete"),
        (
            f"api {CACHE}",
            "this project has no Memcached cache/v1. It has Cart webapp.x.io/v1, Cart webapp.x.io/v1alpha1",
        ),
        (f"webhook {POD}", "this project has no Pod core/v1"),
    ],
)
def test_what_cannot_be_deleted_says_what_to_do_first(carts, command, message):
    before = everything(carts)

    failed = run(f"delete {command} --yes")

    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.startswith("error: ")
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert everything(carts) == before


def test_the_stored_version_stays_while_there_are_others(carts):
    run(f"delete webhook {CART}")

    failed = run(f"delete api {CART}")

    assert failed.exit_code == 1
    assert "its other versions need it. First move `storage=True` to another class" in failed.stderr
    assert [run(f"delete api {each}").exit_code for each in (OLD_CART, CART)] == [0, 0]


def test_a_webhook_that_it_does_not_have_is_named(carts):
    run(f"delete webhook {CART} --defaulting")

    failed = run(f"delete webhook {CART} --defaulting --validation")

    assert failed.stderr == (
        "error: Cart webapp.x.io/v1 has no defaulting webhook to delete. Its webhooks: validation, conversion\n"
    )


def test_a_link_is_left_to_the_user(cart):
    mine = cart / "shop/controllers/cart.py"
    mine.rename(cart / "cart.txt")
    mine.symlink_to(cart / "cart.txt")

    failed = run(f"delete api {CART} --yes")

    assert failed.exit_code == 1
    assert failed.stderr.endswith("is a link. Delete the link by hand, and run this again\n")


@pytest.mark.parametrize("command", ["api --group=webapp --version=v1", f"api {CART} --plugins=go/v4", "nothing"])
def test_wrong_usage_ends_with_2(cart, command):
    assert run(f"delete {command}").exit_code == 2
