"""A small project on disk with its kustomize tree, for tests of what is done with a project."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlruntime.project.config import refresh
from ctrlruntime.project.settings import Features, Resource, Settings, read_settings, write_settings

__all__ = ["Shop", "shop"]

_numbers = itertools.count()

MODULE = """
import ctrlruntime as ctrl

class Cart(ctrl.Object, group="{group}", version="v1"):
    size: int = 1

class Hooks:
    async def default(self, obj): ...

async def reconcile(request): ...

def setup(mgr):
    mgr.scheme.register(Cart)
    ctrl.new_controller_managed_by(mgr).for_(Cart).complete(reconcile)
    if {webhooks}:
        ctrl.new_webhook_managed_by(mgr).for_(Cart).with_defaulter(Hooks()).complete()
"""

MAIN = """
import ctrlruntime as ctrl
from {package}.operator import setup

flags = ctrl.parse_flags()
mgr = ctrl.new_manager(flags.get_config(), flags=flags)
setup(mgr)
ctrl.run(mgr)
"""


class Shop:
    """A project of one kind, Cart. Its names are its own, so many can share a cluster."""

    def __init__(self, folder: Path) -> None:
        number = next(_numbers)
        self.folder = folder
        self.name = f"shop{number}"
        self.package = f"shop_{number}"
        self.group = f"{self.name}.example.com"
        self.crd = f"carts.{self.group}"
        self.namespace = f"{self.name}-system"
        self.deployment = f"{self.namespace}/{self.name}-controller-manager"
        self._imported_from = "."

    @property
    def source(self) -> Path:
        return self.folder / self._imported_from / self.package / "operator.py"

    def write(
        self, *, webhooks: bool = False, cert_manager: bool = False, metrics: bool = True, source: str = "."
    ) -> Shop:
        """Write the project, or write it again with other settings; `source` is the folder its package stands in."""
        self._imported_from = source
        cart = Resource(
            group=self.group, version="v1", kind="Cart", plural="carts", controller=True, defaulting=webhooks
        )
        settings = Settings(
            project_name=self.name,
            package=self.package,
            domain="example.com",
            source_dir=source,
            image=f"{self.name}:v1",
            features=Features(cert_manager=cert_manager, metrics=metrics),
            resources=(cart,),
        )
        self.source.parent.mkdir(parents=True, exist_ok=True)
        (self.source.parent / "__init__.py").touch()
        self.source.write_text(MODULE.format(group=self.group, webhooks=webhooks))
        self.main(MAIN.format(package=self.package))
        (self.folder / "pyproject.toml").write_text(write_settings("", settings))
        self.refresh()
        sample = self.folder / f"config/samples/{self.name}_v1_cart.yaml"
        sample.write_text(sample.read_text().replace("spec: {}", "size: 3"))
        return self

    def main(self, text: str) -> None:
        (self.source.parent / "__main__.py").write_text(textwrap.dedent(text))

    def refresh(self) -> None:
        """Do what `ctrl manifests` does, with the classes as they are in the files now."""
        self.forget()
        refresh(self.folder, read_settings(self.folder), warn=lambda _text: None).apply()

    def forget(self) -> None:
        for module in [module for module in sys.modules if module.partition(".")[0] == self.package]:
            del sys.modules[module]

    def cart(self, name: str = "mine", **metadata: object) -> dict[str, object]:
        return {
            "apiVersion": f"{self.group}/v1",
            "kind": "Cart",
            "metadata": {"name": name, "namespace": "default", **metadata},
            "size": 2,
        }

    @property
    def carts(self) -> str:
        return f"/apis/{self.group}/v1/namespaces/default/carts"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A project that is not written yet; its folder is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # as in the fixture `package`
    made = Shop(tmp_path)
    yield made
    made.forget()
