"""Random expressions with random values of any kind, as the CEL of kube-apiserver 1.36.1 compiles and evaluates them."""

from __future__ import annotations

import gzip
import json

import pytest
from values import RECORDED, are_equal, ours

RECORDED_CASES = json.loads(gzip.decompress(RECORDED.read_bytes()))


@pytest.mark.parametrize("kind", ["value", "failed", "program", "compile"])
def test_values_and_failures_are_those_of_kubernetes(kind):
    cases = [case for case in RECORDED_CASES if case[2][0] == kind]
    different = [
        (text, variables, found, expected)
        for text, variables, expected in cases
        if not are_equal(found := ours(text, variables), expected)
    ]

    assert len(cases) > 5
    assert not different
