"""The order of API versions."""

from __future__ import annotations

from ctrlruntime.api.kind import version_priority


def test_versions_are_ordered_by_stage_then_number_then_name():
    ordered = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
        "foo10",
        "v1beta",
    ]

    shuffled = ordered[::-1]

    assert sorted(shuffled, key=version_priority) == ordered
