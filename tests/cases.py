"""Which cases of a test run always, and which with `--all` only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest


def seeds(all: range, few: int) -> list[object]:
    """Return the seeds of a random test. Without `--all` the first `few` run."""
    return [*all[:few], *(pytest.param(seed, marks=pytest.mark.thorough) for seed in all[few:])]


def on_both_servers(cases: Mapping[str, object] | Sequence[str], *, real: Collection[str]) -> list[object]:
    """Return (server, case) for each server and case, for `indirect=["server"]`.

    For cases in which the servers hardly differ, as a proxy in front of them fails. Without `--all` the real server runs those named in
    `real`. `cases` has values by their names, or texts that are both.
    """
    values = cases if isinstance(cases, Mapping) else {name: name for name in cases}
    assert values.keys() >= set(real)
    return [
        pytest.param(
            server,
            case,
            id=f"{server}-{name}",
            marks=pytest.mark.thorough if server == "real" and name not in real else (),
        )
        for server in ("embedded", "real")
        for name, case in values.items()
    ]
