"""A cluster for the tests of certificates and registration."""

from __future__ import annotations

import pytest

import ctrlruntime as ctrl
from ctrlruntime.testing import Environment


@pytest.fixture(scope="module")
def environment():
    with Environment(backend="embedded") as running:
        yield running


@pytest.fixture
async def cluster(environment):
    found = ctrl.Cluster(ctrl.get_config(str(environment.kubeconfig_path)))
    yield found
    await found.close()
