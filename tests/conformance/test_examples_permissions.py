"""The examples use what their roles grant, and nothing else: their own tests, audited."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("example", ["memcached", "game", "sidecarset"])
def test_an_example_lacks_no_permission_and_has_none_too_many(example, forked_pytest):
    command = [
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "embedded",
        f"tests/conformance/test_{example}_operator.py",
        f"--rbac-audit=examples/{example}/config/rbac/role.yaml",
    ]  # fmt: skip

    done = forked_pytest.run(command, cwd=ROOT, env=dict(os.environ))

    assert "nothing missing, nothing unused" in done.stdout, done.stdout
    assert done.returncode == 0, done.stdout
