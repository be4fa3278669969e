"""controller-gen as tests/peers/crdgen pins it, to make goldens of roles and webhook configurations again."""

from __future__ import annotations

import os
import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "peers" / "crdgen"


def regenerated(generator: str, cases: str) -> dict[str, str]:
    """Return what `generator` prints for each folder of cases; skips without Go, unless this is CI."""
    loader = SourceFileLoader("crdgen_make", str(FOLDER / "make"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    make = module_from_spec(spec)
    loader.exec_module(make)
    program = make.built()
    if program is None and os.environ.get("CI") != "true":
        pytest.skip("needs Go")
    assert program is not None
    texts = {}
    for case in sorted(path.name for path in (FOLDER / cases).iterdir()):
        done = subprocess.run(
            [program, generator, f"paths=./{cases}/{case}", "output:stdout"],
            cwd=FOLDER, env={**os.environ, **make.ENVIRONMENT}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        texts[f"{case}.yaml"] = done.stdout
    return texts
