"""`ctrl run`: the operator as a child, on an embedded server and on a cluster."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from shop_project import shop

from ctrlruntime.cli import ctrl
from ctrlruntime.project.running import DEBUG_ADDRESS
from ctrlruntime.rest.kubeconfig import contexts
from ctrlruntime.testing import Environment

__all__ = ["shop"]

WAITS_FOR_A_CART = """
    import asyncio, os, sys
    import ctrlruntime as ctrl
    from ctrlruntime.testing import eventually
    from {package}.operator import Cart

    async def main():
        cluster = ctrl.Cluster(ctrl.get_config(), scheme=ctrl.Scheme(Cart))
        client = cluster.unfenced_client()
        carts = await eventually(lambda: client.list(Cart), timeout=120)
        await cluster.close()
        return carts[0].size

    print(os.environ.get("ENABLE_WEBHOOKS"), *sys.argv[1:], file=open("said", "w"))
    sys.exit(asyncio.run(main()))
"""
SAYS_ITS_ARGUMENTS = """
    import os, sys
    print(os.environ.get("ENABLE_WEBHOOKS"), os.environ["KUBECONFIG"], *sys.argv[1:], file=open("said", "w"))
    sys.exit(4)
"""
LISTS_CLUSTERS = """
    import asyncio
    import ctrlruntime as ctrl
    from ctrlruntime.testing import eventually

    async def main():
        flags = ctrl.parse_flags()
        mgr = ctrl.new_manager(flags.get_config(), flags=flags)
        async with ctrl.running(mgr):
            await eventually(lambda: [mgr.fleet.status(name).state.value for name in mgr.fleet.names()] == ["Engaged"])
            print(*mgr.fleet.names(), file=open("said", "w"))

    asyncio.run(main())
"""
ASKS_WHY = """
    import asyncio, subprocess, sys
    import ctrlruntime as ctrl
    from {package}.operator import Cart

    async def main():
        flags = ctrl.parse_flags()
        mgr = ctrl.new_manager(flags.get_config(), flags=flags, scheme=ctrl.Scheme(Cart))
        reconciled = asyncio.Event()

        async def reconcile(request):
            reconciled.set()

        ctrl.new_controller_managed_by(mgr).for_(Cart).complete(reconcile)
        async with ctrl.running(mgr):
            await reconciled.wait()
            command = [sys.executable, "-m", "ctrlruntime", "why", "carts", "cart-sample"]
            with open("said", "w") as out:
                process = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=subprocess.STDOUT)
                await process.wait()

    asyncio.run(main())
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Environment]:
    with Environment(backend="embedded") as environment:
        yield environment


def run(*arguments: str):
    return CliRunner().invoke(ctrl, ["run", *arguments])


def test_help_has_examples():
    helped = run("--help")

    assert helped.exit_code == 0
    assert "ctrl run --embedded --reload" in helped.stdout


def test_embedded_it_has_the_definitions_and_the_samples_and_ends_with_the_operator_s_code(shop):
    shop.write()
    shop.main(WAITS_FOR_A_CART.format(package=shop.package))

    done = run("--embedded", "--kubeconfig-out", "kubeconfig", "--", "--flag", "x")

    assert done.exit_code == 3, done.output  # the size in the sample
    assert f"installed {shop.crd}" in done.stderr.splitlines()
    assert "kubectl --kubeconfig kubeconfig get carts" in done.stderr
    assert Path("said").read_text() == "None --flag x\n"
    assert Path("kubeconfig").stat().st_mode & 0o077 == 0


def test_ctrl_why_finds_it(shop):
    shop.write()
    shop.main(ASKS_WHY.format(package=shop.package))

    done = run("--embedded")

    assert done.exit_code == 0, done.output
    assert Path("said").read_text().startswith("Cart default/cart-sample  (controller cart"), Path("said").read_text()
    assert not Path(DEBUG_ADDRESS).exists()


def test_a_package_in_the_src_layout_runs_in_the_project_s_folder(shop):
    shop.write(source="src")
    shop.main(WAITS_FOR_A_CART.format(package=shop.package))

    done = run("--embedded")

    assert done.exit_code == 3, done.output
    assert f"installed {shop.crd}" in done.stderr.splitlines()
    assert (shop.folder / "said").is_file()


def test_on_a_cluster_it_gets_the_kubeconfig_and_webhooks_are_off(shop, server):
    shop.write(webhooks=True)
    shop.main(SAYS_ITS_ARGUMENTS)

    done = run("--kubeconfig", str(server.kubeconfig_path), "--", "--leader-elect")

    assert done.exit_code == 4, done.output
    assert Path("said").read_text() == f"false {server.kubeconfig_path} --leader-elect\n"
    assert "installed" not in done.output


def test_webhooks_in_development_are_asked_of_the_operator_by_a_flag(shop, server):
    shop.write(webhooks=True)
    shop.main(SAYS_ITS_ARGUMENTS)

    run("--kubeconfig", str(server.kubeconfig_path), "--webhooks", "development")

    assert Path("said").read_text() == f"None {server.kubeconfig_path} --webhooks development\n"


def test_a_package_without_a_project_is_run_by_its_name(shop, server):
    shop.write()
    shop.main(SAYS_ITS_ARGUMENTS)
    Path("pyproject.toml").unlink()

    done = run("--module", shop.package, "--install", "--kubeconfig", str(server.kubeconfig_path))

    assert done.exit_code == 4, done.output
    assert f"installed {shop.crd}" in done.stderr.splitlines()


def test_clusters_are_passed_on_to_the_operator(shop, server):
    shop.write()
    shop.main(SAYS_ITS_ARGUMENTS)
    hub = ("--kubeconfig", str(server.kubeconfig_path))
    Path("fleet").mkdir()
    shutil.copy(server.kubeconfig_path, "fleet/eu.yaml")

    done = run(*hub, "--clusters", "fleet", "--", "--leader-elect")

    assert done.exit_code == 4, done.output
    assert Path("said").read_text() == f"None {server.kubeconfig_path} --clusters {shop.folder}/fleet --leader-elect\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "{fleet} has no clusters"),
        ({"eu.yaml": "clusters: ["}, "kubeconfig {fleet}/eu.yaml is not YAML"),
        ({"eu.yaml": "contexts: []"}, "{fleet}/eu.yaml: no current-context is set"),
        (None, "cannot read kubeconfig {fleet} (No such file or directory)"),
    ],
)
def test_clusters_that_are_not_there_are_told_before_anything_runs(shop, server, files, message):
    shop.write()
    shop.main(SAYS_ITS_ARGUMENTS)
    if files is not None:
        Path("fleet").mkdir()
    for name, text in (files or {}).items():
        Path("fleet", name).write_text(text)

    refused = run("--kubeconfig", str(server.kubeconfig_path), "--clusters", "fleet")

    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"error: --clusters: {message.format(fleet=shop.folder / 'fleet')}")
    assert refused.stderr.count("\n") == 1
    assert not Path("said").exists()


def test_an_operator_sees_the_other_clusters(shop, server):
    shop.write()
    shop.main(LISTS_CLUSTERS)

    done = run("--embedded", "--clusters", str(server.kubeconfig_path))

    assert done.exit_code == 0, done.output
    assert Path("said").read_text() == f"files/{contexts(str(server.kubeconfig_path))[0]}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--module", "nonsense_here"], 1, "error: package nonsense_here does not exist. "),
        (["--module", "json"], 1, "error: cannot run json: it has no __main__.py"),
        (["--embedded", "--context", "x"], 2, "--embedded cannot be used with --kubeconfig"),
        (["--kubeconfig-out", "x"], 2, "--kubeconfig-out requires --embedded"),
        (["--webhooks", "some"], 2, "Invalid value for '--webhooks'"),
        (["--kubeconfig", "/nowhere"], 1, "error: kubeconfig /nowhere does not exist"),
        (["--embedded", "--kubeconfig-out", "pyproject.toml/x"], 1, "error: cannot write pyproject.toml/x"),
    ],
)
def test_what_cannot_be_run_is_told(shop, arguments, code, message):
    shop.write()

    refused = run(*arguments)

    assert refused.exit_code == code
    assert message in refused.stderr
    assert "Traceback" not in refused.output


def test_a_class_that_makes_no_definition_is_one_line_before_anything_runs(shop):
    shop.write()
    shop.source.write_text(shop.source.read_text().replace("size: int = 1", "size: float = 1"))
    shop.main(SAYS_ITS_ARGUMENTS)

    refused = run("--embedded")

    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1].startswith("error: ")
    assert "Cart" in refused.stderr.splitlines()[-1]
    assert not Path("said").exists()
