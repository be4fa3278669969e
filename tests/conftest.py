"""For all tests: the event loop they run on, and packages of operators for tests of what is generated from them."""

from __future__ import annotations

import itertools
import os
import sys
import textwrap

import pytest

_numbers = itertools.count()

if os.environ.get("CTRLRUNTIME_TEST_LOOP") == "uvloop":
    import uvloop

    def pytest_asyncio_loop_factories(config, item):
        return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a package with a name of its own each time, and returns that name."""
    names = []
    monkeypatch.syspath_prepend(str(tmp_path))
    # Python takes byte code for fresh when the text has the size and the second it had: a test may change a digit within one.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(**modules: str) -> str:
        name = f"operator_{next(_numbers)}"
        names.append(name)
        folder = tmp_path / name
        folder.mkdir()
        for module, text in {"__init__": "", **modules}.items():
            path = folder.joinpath(*module.split("__SLASH__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return name

    yield write
    for module in [module for module in sys.modules if module.partition(".")[0] in names]:
        del sys.modules[module]
