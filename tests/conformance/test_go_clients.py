"""client-go and controller-runtime, as released, on both servers: the checks of `tests/peers`, which know nothing of us.

The same program starts its server by envtest, once from the real binaries and once from the shim that stands for them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctrlruntime.testing import Environment
from ctrlruntime.testing.controlplane import Programs

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "tests" / "peers"

pytestmark = pytest.mark.slow
STARTED = (
    "access/(forbidden-and-granted|impersonation|self-subject-review|token-request-and-review|unauthorized)"
    "|envtest/.*|admission/validator|conversion/webhook|definition/envtest-installs-files|manager/(controller|webhook)"
)
"""The checks that depend on how the server is started: its users, its definitions, the webhooks it calls."""


class Outcome(NamedTuple):
    """What one run of the program printed."""

    succeeded: set[str]
    failed: dict[str, str]  # name of the check → why
    started: float | None  # seconds envtest took to start its server

    def explain(self) -> str:
        lines = [f"FAIL {name}: {why}" for name, why in self.failed.items()]
        return f"{len(lines)} Go checks failed, {len(self.succeeded)} succeeded\n" + "\n".join(lines)


@pytest.fixture(scope="session")
def peers() -> Path:
    """The program; built when it is not in the cache."""
    built = subprocess.run([sys.executable, str(PEERS / "build")], capture_output=True, text=True, check=False)
    if built.returncode and shutil.which("go") is None and os.environ.get("CI") != "true":
        pytest.skip("needs Go: get it at https://go.dev/dl, then again")
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip())


@pytest.fixture(scope="session")
def real_assets(real_programs: Programs) -> Path:
    """The folder of the real binaries; `real_programs` skips, or fails, where there are none."""
    return real_programs.kube_apiserver.parent


@pytest.fixture(scope="session")
def shim_assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the embedded server under the real one's names."""
    folder = tmp_path_factory.mktemp("shim")
    command = [sys.executable, "-m", "ctrlruntime.apiserver", "shim", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def under_envtest(pytestconfig: pytest.Config) -> list[str]:
    """Choose the checks. `--all` runs all."""
    return [] if pytestconfig.getoption("--all") else ["-only", STARTED]


@pytest.fixture(scope="session")
def shim_outcome(peers: Path, shim_assets: Path, under_envtest: list[str]) -> Outcome:
    return run(peers, "-envtest", str(shim_assets), *under_envtest)


@pytest.fixture(scope="session")
def real_outcome(peers: Path, real_assets: Path, under_envtest: list[str]) -> Outcome:
    return run(peers, "-envtest", str(real_assets), *under_envtest)


def run(peers: Path, *arguments: str) -> Outcome:
    """Run all checks; the limit is far beyond what they take."""
    environ = {name: value for name, value in os.environ.items() if not _chooses_server(name)}
    done = subprocess.run(
        [str(peers), "-json", *arguments], env=environ, capture_output=True, text=True, timeout=540, check=False
    )
    entries: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    results = [entry for entry in entries if "name" in entry]
    assert results, f"no check ran: {done.stderr}"
    return Outcome(
        succeeded={entry["name"] for entry in results if entry["ok"]},
        failed={entry["name"]: entry["why"] for entry in results if not entry["ok"]},
        started=next((entry["seconds"] for entry in entries if "started" in entry), None),
    )


def _chooses_server(name: str) -> bool:
    """Tell whether a variable would lead envtest to another server than the one it is given."""
    return name.startswith(("KUBEBUILDER_ASSETS", "TEST_ASSET_", "USE_EXISTING_CLUSTER"))


def test_every_go_check_succeeds(server: Environment, peers: Path) -> None:
    outcome = run(peers, "-kubeconfig", str(server.kubeconfig_path))

    assert not outcome.failed, outcome.explain()


def test_the_go_checks_succeed_under_envtest_and_equally_with_both(
    shim_outcome: Outcome, real_outcome: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    """One test, because the tests of each server run in a process of their own: the shim would run twice."""
    assert shim_outcome.started is not None
    assert real_outcome.started is not None
    with capsys.disabled():
        print(f"\nenvtest started in {shim_outcome.started:.2f} s (shim), {real_outcome.started:.2f} s (real)")

    assert not real_outcome.failed, real_outcome.explain()
    assert not shim_outcome.failed, shim_outcome.explain()
    assert len(real_outcome.succeeded) >= 12
    assert shim_outcome.succeeded == real_outcome.succeeded
