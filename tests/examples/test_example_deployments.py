"""The examples as their own Deployments start them: the arguments and variables of config/default are what their command line takes."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from pathlib import Path

import pytest

from ctrlruntime.project.kustomize import render
from ctrlruntime.testing import demo
from examples import webhook_flags

pytestmark = pytest.mark.usefixtures("runs_main")

EXAMPLES = Path(__file__).parents[2] / "examples"
CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"


def arguments(example: str) -> list[str]:
    """The arguments of the manager's container, with its variables put in as the kubelet does."""
    [deployment] = [each for each in render(EXAMPLES / example / "config/default") if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each["value"] for each in container["env"]}
    return [re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], each) for each in container["args"]]


class Parsed(Exception):  # noqa: N818 - no error: how far the program is let go
    """Ends the program with the flags it understood."""


@pytest.fixture
def flags_of(monkeypatch):
    @contextlib.contextmanager
    def stop(flags, **_folders):
        raise Parsed(flags)
        yield

    monkeypatch.setattr(demo, "cluster", stop)

    def of(example):
        monkeypatch.setattr(sys, "argv", [example, *arguments(example)])
        with pytest.raises(Parsed) as parsed:
            importlib.import_module(f"examples.{example}.__main__").main()
        return parsed.value.args[0]

    return of


@pytest.mark.parametrize("example", ["memcached", "game", "sidecarset"])
def test_deployed_example_elects_has_probes_secure_metrics_and_debug_pages(flags_of, example):
    flags = flags_of(example)

    assert flags.leader_elect is True
    assert flags.health_probe_bind_address == ":8081"
    assert flags.debug_bind_address == "127.0.0.1:8082"
    assert flags.metrics_bind_address == ":8443"
    assert flags.secure_metrics(None) is not None


@pytest.mark.parametrize("example", ["game", "sidecarset"])
def test_a_deployed_example_serves_its_webhooks_with_the_certificate_that_is_mounted(flags_of, example):
    options = webhook_flags.webhook_options(flags_of(example), is_embedded=False)

    assert (options.cert_dir, options.port) == (CERTIFICATES, 9443)


def test_an_empty_path_is_none(flags_of):
    flags = flags_of("memcached")

    assert "--webhook-cert-path=" in arguments("memcached")
    assert flags.webhook(None) is None
