"""Commands that talk to a cluster: an embedded server for each module, and `ctrl` called with its kubeconfig."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.testing import Environment


@pytest.fixture(scope="module")
def server() -> Iterator[Environment]:
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture
def run(server):
    def command(*arguments: str, **options):
        return CliRunner().invoke(ctrl, [*arguments, "--kubeconfig", str(server.kubeconfig_path)], **options)

    return command
