"""A short edition of the soak: constant change, a fault every ten seconds, and nothing is lost or leaked.

It takes twenty seconds, and two minutes with `--all`; `scripts/soak` runs it for long.
"""

from __future__ import annotations

import pytest
from operators.soak import soak


@pytest.mark.slow
async def test_an_operator_under_constant_change_and_faults_loses_and_leaks_nothing(embedded_server, tmp_path, request):
    seconds = 120.0 if request.config.getoption("--all") else 20.0

    report = await soak(embedded_server, tmp_path, seconds, rate=40.0, watch=(4.0, 6.0, 2.0))

    assert not report.complaints(), "\n".join(report.lines())
    assert report.updates > 10 * seconds  # it offers four times as many; a loaded machine does less
