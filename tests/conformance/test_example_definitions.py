"""The examples' generated definitions, applied with kubectl on both servers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from example_process import needs_kubectl
from servers import LONGEST_WAIT

from ctrlruntime.testing import eventually

EXAMPLES = Path(__file__).parents[2] / "examples"
KINDS = {
    "memcached": ("memcacheds.cache.example.com", "spec.size"),
    "game": ("games.myapp.qingwave.github.io", "spec.replicas"),
    "sidecarset": ("sidecarsets.apps.chinalhr.github.io", "spec.containers.env"),
}

pytestmark = needs_kubectl


@pytest.mark.parametrize("example", KINDS)
async def test_a_definition_is_applied_without_a_warning_and_the_second_time_nothing_changes(server, example):
    def kubectl(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["kubectl", "--kubeconfig", str(server.kubeconfig_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_WAIT, check=True)

    name, field = KINDS[example]
    apply = ("apply", "--server-side", "--force-conflicts", "-f", str(EXAMPLES / example / "config" / "crd" / "bases"))

    def is_terminating() -> bool:
        found = kubectl("get", "crd", name, "--ignore-not-found", "-o", "json").stdout
        return bool(found) and "deletionTimestamp" in json.loads(found)["metadata"]

    def version() -> tuple[str, int]:
        metadata = json.loads(kubectl("get", "crd", name, "-o", "json").stdout)["metadata"]
        return metadata["resourceVersion"], metadata["generation"]

    # Another file may have installed the same CRD and deleted it, which takes kube-apiserver a while.
    if is_terminating():
        kubectl("wait", "--for=delete", f"crd/{name}", "--timeout=110s")
    assert kubectl(*apply).stderr == ""
    kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")
    first = version()
    assert kubectl(*apply).stderr == ""
    assert version() == first

    def explained() -> bool:
        command = ["kubectl", "--kubeconfig", str(server.kubeconfig_path), "explain", f"{name}.{field}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_WAIT, check=False)
        return done.returncode == 0 and f"FIELD: {field.rpartition('.')[2]}" in done.stdout

    await eventually(explained, interval=0.5)
