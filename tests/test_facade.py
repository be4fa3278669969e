"""`import ctrlruntime as ctrl`: what it names, and what it does not load."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ctrlruntime as ctrl

ROOT = Path(__file__).parents[1]


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_is_the_lazy_table_without_doubles():
    lazy = set(ctrl._HOME) | ctrl._SUBMODULES

    assert sorted(lazy) == sorted(ctrl.__all__)
    assert len(ctrl._HOME) == sum(len(names) for names in ctrl._MODULES.values())


@pytest.mark.parametrize("name", ctrl.__all__)
def test_every_name_can_be_had_and_is_the_one_of_its_module(name):
    value = getattr(ctrl, name)

    if name in ctrl._SUBMODULES:
        assert value is importlib.import_module(f"ctrlruntime.{name}")
    else:
        assert value is getattr(importlib.import_module(f"ctrlruntime.{ctrl._HOME[name]}"), name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'ctrlruntime' has no attribute 'nonsense'"):
        _ = ctrl.nonsense


def test_unknown_name_that_loaded_module_has_is_suggested():
    assert ctrl.errors.AlreadyOwnedError  # which loads the module

    with pytest.raises(AttributeError, match=r"Did you mean: ctrlruntime\.errors\.AlreadyOwnedError\?"):
        _ = ctrl.AlreadyOwnedError


def test_dir_lists_every_name():
    assert set(ctrl.__all__) <= set(dir(ctrl))


def test_names_do_not_depend_on_the_order_they_are_used_in():
    # A submodule that is imported becomes an attribute: `ctrl.manager` must be the module however it was loaded.
    out = run("import ctrlruntime.manager.run, ctrlruntime as ctrl; print(callable(ctrl.run), ctrl.manager.__name__)")

    assert out.split() == ["True", "ctrlruntime.manager"]


def test_all_has_at_most_eighty_names_and_twenty_modules():
    assert len(set(ctrl.__all__) - ctrl._SUBMODULES) <= 80
    assert len(ctrl._SUBMODULES) <= 20


MODULES = sorted(ctrl._SUBMODULES - {"api"})  # which has the kinds of Kubernetes


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_module_can_be_had(module):
    names = getattr(ctrl, module).__all__

    assert names
    assert [name for name in names if not hasattr(getattr(ctrl, module), name)] == []


@pytest.mark.parametrize("module", MODULES)
def test_module_repeats_no_name_of_ctrl_unless_it_defines_it(module):
    has = getattr(ctrl, module)
    repeated = {name for name in has.__all__ if getattr(ctrl, name, None) is getattr(has, name)}
    if module == "log":
        repeated.remove("get_logger")  # which every module of the package asks it for

    assert {name for name in repeated if getattr(ctrl, name).__module__ != f"ctrlruntime.{module}"} == set()


def names_in_reference() -> list[str]:
    """Every name of the two tables in docs/reference/index.md, as `ctrl.Object` or `ctrl.webhook.Admission`."""
    named = []
    for line in (ROOT / "docs/reference/index.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0].startswith("`ctrl."):
            named += [f"{cells[0].strip('`')}.{name}" for name in re.findall(r"`(\w+)`", cells[2])]
        elif line.startswith("|") and len(cells) == 2 and "`" not in cells[0]:
            named += [f"ctrl.{name}" for name in re.findall(r"`(\w+)`", cells[1])]
    return named


def test_reference_has_every_name_once():
    public = [f"ctrl.{name}" for name in ctrl._HOME]
    for module in MODULES:
        public += [f"ctrl.{module}.{name}" for name in set(getattr(ctrl, module).__all__) - set(ctrl._HOME)]

    assert sorted(names_in_reference()) == sorted(public)


def test_importing_it_loads_no_http_no_client_library_and_no_kinds():
    loaded = set(json.loads(run("import json, sys, ctrlruntime; print(json.dumps(sorted(sys.modules)))")))

    heavy = {"aiohttp", "kubernetes_asyncio", "cryptography", "yaml", "structlog", "prometheus_client"}
    assert not loaded & heavy
    kinds = {name for name in loaded if name.startswith("ctrlruntime.api.") and name.count(".") > 2}
    assert kinds <= {"ctrlruntime.api.meta.v1"}


def test_declaring_a_kind_loads_no_http_and_no_kinds_but_meta():
    program = """
import json, sys
import ctrlruntime as ctrl
class Thing(ctrl.Object, group="example.com", version="v1"):
    pass
print(json.dumps(sorted(sys.modules)))
"""
    loaded = set(json.loads(run(program)))

    assert not loaded & {"aiohttp", "kubernetes_asyncio", "cryptography", "yaml"}
    kinds = {name for name in loaded if name.startswith("ctrlruntime.api.") and name.count(".") > 2}
    assert kinds <= {"ctrlruntime.api.meta.v1"}


def documented(name: str, value: object) -> Iterator[tuple[str, str | None]]:
    """Yield what a name of the package leads to, and its docstring: functions, classes with their methods, the names of modules."""
    if inspect.ismodule(value):
        for each in getattr(value, "__all__", ()):
            yield from documented(f"{name}.{each}", getattr(value, each))
        return
    if not str(getattr(value, "__module__", "")).startswith("ctrlruntime") or not (
        inspect.isclass(value) or inspect.isroutine(value)
    ):
        return
    yield name, value.__doc__
    for each, member in list(vars(value).items()) if inspect.isclass(value) else ():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not each.startswith("_") and inspect.isfunction(function) and function.__doc__ is not None:
            yield f"{name}.{each}", function.__doc__


@pytest.mark.parametrize("module", ["ctrlruntime", "ctrlruntime.testing", "ctrlruntime.operatorlib"])
def test_public_names_have_a_docstring_with_a_short_summary(module):
    found = dict(documented(module, importlib.import_module(module)))

    assert len(found) > 10
    assert [name for name, text in found.items() if text is None] == []
    summaries = {name: inspect.cleandoc(text).split("\n")[0] for name, text in found.items()}
    assert {name: text for name, text in summaries.items() if len(text) > 80} == {}
