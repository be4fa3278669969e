"""`mgr.discover`: modules take part by being there."""

from __future__ import annotations

import importlib

import pytest

import ctrlruntime as ctrl
from ctrlruntime.errors import ConfigError, NotRegisteredError

KIND = """
    import ctrlruntime as ctrl

    class {kind}(ctrl.Object, group="discovery.example.com", version="v1"):
        size: int = 1
"""
SETUP = """
    def setup_with_manager(mgr):
        mgr.declarations.recorders.append(__name__.partition(".")[2])
"""


@pytest.fixture
def mgr():
    return ctrl.new_manager(ctrl.Config(host="https://no-cluster.invalid"), metrics_bind_address="0")


def called(mgr: ctrl.Manager) -> list[str]:
    return mgr.declarations.recorders


def test_each_module_is_set_up_once_in_the_order_of_names(package, mgr):
    name = package(b=SETUP, a=SETUP, v1__SLASH____init__="", v1__SLASH__c=SETUP, quiet="x = 1")

    mgr.discover(name)

    assert called(mgr) == ["a", "b", "v1.c"]


def test_tests_and_main_are_left_out(package, mgr):
    bad = "raise RuntimeError('imported')"
    name = package(a=SETUP, __main__=bad, tests=bad, conftest=bad, test_a=bad, a_test=bad)

    mgr.discover(name)

    assert called(mgr) == ["a"]


def test_a_module_alone_may_be_discovered(package, mgr):
    name = package(a=SETUP, b=SETUP)

    mgr.discover(f"{name}.b")

    assert called(mgr) == ["b"]


def test_a_function_that_is_imported_is_called_at_home_only(package, mgr):
    name = package(a=SETUP, b="from .a import setup_with_manager")

    mgr.discover(name)

    assert called(mgr) == ["a"]


def test_kinds_are_registered_before_anything_is_set_up(package, mgr):
    early = """
        def setup_with_manager(mgr):
            from .z import Late
            mgr.declarations.recorders.append(mgr.scheme.gvk_for(Late).kind)
    """
    name = package(a=early, z=KIND.format(kind="Late"))

    mgr.discover(name)

    assert called(mgr) == ["Late"]


def test_kinds_may_be_discovered_twice_and_what_is_imported_is_not_registered(package, mgr):
    name = package(a=KIND.format(kind="Here"), b="from ctrlruntime.api.core import Pod\nfrom .a import Here")

    mgr.discover(name)
    mgr.discover(name)

    assert [cls.__name__ for cls in mgr.scheme] == ["Here"]


def test_two_classes_for_one_kind_are_refused(package, mgr):
    name = package(a=KIND.format(kind="Same"), b=KIND.format(kind="Same"))

    with pytest.raises(ConfigError, match=rf"cannot register {name}\.b\.Same: .* is registered as {name}\.a\.Same"):
        mgr.discover(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere_to_be_found", r"\.bad cannot be imported: ModuleNotFoundError: No module named 'nowhere"),
        ("1 / 0", r"\.bad cannot be imported: ZeroDivisionError: division by zero"),
        ("def (", r"\.bad cannot be imported: SyntaxError"),
        ("async def setup_with_manager(mgr): ...", r"\.bad\.setup_with_manager is async"),
        ("def setup_with_manager(): ...", r"\.bad\.setup_with_manager must have one parameter, the manager"),
        ("def setup_with_manager(mgr, client): ...", r"must have one parameter, the manager"),
        ("setup_with_manager = 5", r"\.bad\.setup_with_manager is not a function"),
    ],
)
def test_what_cannot_take_part_is_named_and_nothing_is_set_up(package, mgr, text, message):
    name = package(a=SETUP, bad=text)

    with pytest.raises(ConfigError, match=message) as failed:
        mgr.discover(name)

    assert "\n" not in str(failed.value)
    assert called(mgr) == []


def test_a_package_that_is_not_there_is_named(mgr):
    with pytest.raises(ConfigError, match=r"cannot import package no_such_package\.controllers: it does not exist"):
        mgr.discover("no_such_package.controllers")


def test_what_setup_raises_is_its_own(package, mgr):
    name = package(a="def setup_with_manager(mgr): mgr.register_controller_name('a')")
    mgr.discover(name)

    with pytest.raises(ConfigError, match="cannot add controller a: the manager has one of this name"):
        mgr.discover(name)


def test_a_scheme_that_lacks_a_kind_says_so_before_it_is_discovered(package, mgr):
    name = package(a=KIND.format(kind="Fresh"))
    module = importlib.import_module(f"{name}.a")

    with pytest.raises(NotRegisteredError):
        mgr.scheme.gvk_for(module.Fresh)
    mgr.discover(name)

    assert mgr.scheme.gvk_for(module.Fresh).kind == "Fresh"
