"""`ctrl version`: the versions of ctrlruntime, Python and the embedded Kubernetes."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version as version_of

import pytest
import yaml
from click.testing import CliRunner

from ctrlruntime.apiserver.http.pages import VERSION
from ctrlruntime.apiserver.shim.kube_apiserver import VERSION as SHIM_VERSION
from ctrlruntime.cli import ctrl

READERS = {
    "text": lambda text: dict(line.split() for line in text.splitlines()),
    "json": json.loads,
    "yaml": yaml.safe_load,
}


@pytest.mark.parametrize("output", READERS)
def test_each_format_has_the_three_versions(output):
    shown = CliRunner().invoke(ctrl, ["version", *(["-o", output] if output != "text" else [])])

    assert (shown.exit_code, shown.stderr) == (0, "")
    assert READERS[output](shown.stdout) == {
        "ctrlruntime": version_of("ctrlruntime"),
        "python": platform.python_version(),
        "kubernetes": VERSION["gitVersion"].removeprefix("v"),
    }


def test_the_flag_prints_the_same_version_and_the_shim_serves_the_same_kubernetes():
    assert CliRunner().invoke(ctrl, ["--version"]).stdout == f"ctrl {version_of('ctrlruntime')}\n"
    assert VERSION["gitVersion"] == SHIM_VERSION
