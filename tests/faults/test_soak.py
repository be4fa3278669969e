"""A short edition of the soak: constant change, a fault every ten seconds, and nothing is lost or leaked. `scripts/soak` runs it for long."""

from __future__ import annotations

import os

import pytest
from operators.soak import soak

SECONDS = float(os.environ.get("CTRLRUNTIME_SOAK", "120"))


@pytest.mark.slow
async def test_an_operator_under_constant_change_and_faults_loses_and_leaks_nothing(embedded_server, tmp_path):
    report = await soak(embedded_server, tmp_path, SECONDS, watch=(4.0, 6.0, 2.0))

    assert not report.complaints(), "\n".join(report.lines())
    assert report.updates > 0.9 * SECONDS * 100
