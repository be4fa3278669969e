"""A manifest in YAML is the same object for a typed class and for kubectl."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from ctrlruntime.api.object import Unstructured
from ctrlruntime.errors import DecodeError

VALUES = [
    "on",
    "yes",
    "y",
    "~",
    "off",
    "Null",
    "12:30:45",
    "0o14",
    "014",
    "08",
    "0b1",
    "0x1F",
    "1_000",
    "1_",
    "_1",
    "1e3",
    "1.5e3",
    ".5",
    "1e400",
    "9223372036854775807",
    "2001-01-01",
    "0x1p4",
    "1.0",
    "1e20",
    "tRue",
    "'12'",
    "!!str&1",
    "!!int&'1'",
    "=",
]
KEYS = ["on", "no", "1", "012", "0x10", "1.5", "1e3", "2001-01-01", "'~'", "="]
REFUSED = ["a: .nan", "a: -.inf", "~: 1", "[a]: 1", "a: !!int x", "a: b: c", "a: &x [*x]", "a: 'x"]


def manifest(content: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: scalars}}\ncontent:\n{content}\n"


@pytest.fixture
def kubectl(server):
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("needs kubectl")

    def run(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, "--kubeconfig", server.kubeconfig_path, "create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-"],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_scalars_and_keys_are_those_of_kubectl(kubectl):
    lines = [f"  v{n}: {text.replace('&', ' ')}" for n, text in enumerate(VALUES)] + [
        f"  k{n}: {{{key}: 1}}" for n, key in enumerate(KEYS)
    ]
    text = manifest("\n".join(lines))

    made = kubectl(text)

    assert made.returncode == 0, made.stderr
    assert Unstructured.from_yaml(text)["content"] == json.loads(made.stdout)["content"]


@pytest.mark.parametrize("content", REFUSED)
def test_what_kubectl_refuses_is_refused(kubectl, content):
    assert kubectl(manifest(f"  {content}")).returncode != 0
    with pytest.raises(DecodeError):
        Unstructured.from_yaml(manifest(f"  {content}"))
