"""`ctrl explain` prints of a class what kubectl explain prints of the kind once it is installed.

The descriptions of `apiVersion`, `kind` and `metadata` are left out: the real server puts its own in the place of the definition's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import Annotated, Literal

import pytest
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.generate.crd import crds
from ctrlruntime.project import load
from ctrlruntime.project.fields import explain, plaintext
from ctrlruntime.testing import Environment

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl in the PATH")

LONG = "word " * 30 + "https://example.com/" + "path/" * 20 + " after   three spaces and a very " + "l" * 75 + " one. "


class Step(ctrl.Model):
    """One step of many; each of them has a name that nobody else has, and this goes on beyond the line."""

    name: str
    mode: Literal["", "a", "b", "c", "d"] = "a"
    sizes: dict[str, list[int]] = Field(default_factory=dict)


class SamplerSpec(ctrl.Model):
    long: str = Field("", description=LONG)
    lines: str = Field("", description=f"First line.\n\nSecond {LONG}\n  an indented one")
    mode: Literal["on", "off"] = Field("on", description="Whether it is on.")
    level: Annotated[Literal[1, 2, 3], Field(description="How much.")] = 1
    steps: list[Step] = Field(default_factory=list, description="What is done.")
    by_name: dict[str, Step] = Field(default_factory=dict, description="Steps by name.")
    limits: dict[str, ctrl.Quantity] = Field(default_factory=dict)
    port: ctrl.IntOrString = 80
    anything: Annotated[dict[str, ctrl.crd.JSONValue] | None, Field(description="Whatever you like.")] = None
    template: core.PodTemplateSpec | None = None


class Sampler(ctrl.Object, group="explain.example.com", version="v1beta1", short_names=["smp"], storage=False):
    """Has a field of every sort."""

    spec: SamplerSpec


class SamplerV1(
    ctrl.Object, group="explain.example.com", version="v1", kind="Sampler", short_names=["smp"], storage=True
):
    """Has a field of every sort, and is of another version than the first one, so that this line is wrapped.

    A second paragraph.
    """

    spec: SamplerSpec


@pytest.fixture(scope="module")
def explained() -> Callable[..., str]:
    kinds = [kind for name in ("memcached", "game", "sidecarset") for kind in load(f"examples.{name}").kinds]

    def text(what: str, api_version: str = "", *, recursive: bool = False) -> str:
        found = explain(what, [*kinds, Sampler, SamplerV1], api_version=api_version, recursive=recursive)
        return plaintext(found, recursive=recursive)

    return text


@pytest.fixture
def kubectl(server: Environment, tmp_path) -> Callable[..., str]:
    def ask(what: str, api_version: str = "", *, recursive: bool = False) -> str:
        arguments = [
            "kubectl",
            "--kubeconfig",
            str(server.kubeconfig_path),
            "--cache-dir",
            str(tmp_path),
            "explain",
            what,
        ]
        arguments += [f"--api-version={api_version}"] if api_version else []
        arguments += ["--recursive"] if recursive else []
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    definitions = [
        *(crd for name in ("memcached", "game", "sidecarset") for crd in crds(load(f"examples.{name}").kinds)),
        *crds([Sampler, SamplerV1]),
    ]
    for definition in definitions:
        server.install_crds(definition)
        for version in definition["spec"]["versions"]:
            described(server, f"apis/{definition['spec']['group']}/{version['name']}")
    return ask


def described(server: Environment, path: str) -> None:
    """Wait: the real server's OpenAPI document, which kubectl explain reads, follows seconds later."""
    deadline = time.monotonic() + 60
    while path not in server.connection.request("GET", "/openapi/v3")["paths"]:
        assert time.monotonic() < deadline, f"{server.backend}: no OpenAPI document of {path} within a minute"
        time.sleep(0.1)


def without_heads(text: str) -> str:
    """Without the descriptions of the fields every object has."""
    return re.sub(r"^(  (?:apiVersion|kind|metadata)\t<\w+>.*\n)(?:    .*\n)+", r"\1", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("example", "paths"),
    [
        ("memcached", ["Memcached.spec.size"]),
        ("game", ["games.status.phase", "game.metadata.labels"]),
        ("sidecarset", ["sidecarsets.spec.containers.env"]),
    ],
)
def test_the_examples_are_explained_as_kubectl_does(kubectl, explained, example, paths):
    # kubectl is told the version: other tests may have left kinds of these names in other groups.
    version = crds(load(f"examples.{example}").kinds)[0]["spec"]
    version = f"{version['group']}/{version['versions'][0]['name']}"

    assert without_heads(f"{explained(example)}\n") == without_heads(kubectl(example, version))
    assert f"{explained(example, recursive=True)}\n" == kubectl(example, version, recursive=True)
    for part in ("spec", "status"):
        assert f"{explained(f'{example}.{part}')}\n" == kubectl(f"{example}.{part}", version)
    for path in paths:
        assert described_less(f"{explained(path)}\n") == described_less(kubectl(path, version))


def described_less(text: str) -> str:
    """Without what the real server says of metadata; the recorded documents have no descriptions."""
    return re.sub(r"(?s)(FIELD: labels .*DESCRIPTION:\n).*", r"\1", text)


def test_every_sort_of_field_is_explained_as_kubectl_does(kubectl, explained):
    assert without_heads(f"{explained('smp')}\n") == without_heads(kubectl("smp"))
    assert f"{explained('samplers', recursive=True)}\n" == kubectl("samplers", recursive=True)
    for field in ("", ".long", ".lines", ".mode", ".level", ".steps", ".steps.mode", ".byName", ".byName.sizes", ".limits",
                  ".port", ".anything", ".template", ".template.spec.containers"):  # fmt: skip
        assert f"{explained(f'sampler.spec{field}')}\n" == kubectl(f"sampler.spec{field}"), field


def test_a_version_is_explained_as_kubectl_does(kubectl, explained):
    version = "explain.example.com/v1beta1"

    assert without_heads(f"{explained('sampler', version)}\n") == without_heads(kubectl("sampler", version))


def test_the_types_of_built_in_kinds_are_those_of_kubectl(kubectl, explained):
    for what in ("deployment", "pod.spec", "customresourcedefinition.spec.versions.schema"):
        ours, theirs = explained(what, recursive=True), kubectl(what, recursive=True)
        assert fields(ours) == fields(theirs)


def fields(text: str) -> str:
    return text.partition("FIELDS:\n")[2].rstrip("\n")
