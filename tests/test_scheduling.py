"""tests/scheduling.py: which tests of a parallel run stay together."""

from __future__ import annotations

import pytest
from scheduling import unit_of


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/a/test_x.py::test_it", "tests/a/test_x.py"),
        ("tests/a/test_x.py::test_it[real]", "tests/a/test_x.py[real]"),
        ("tests/a/test_x.py::test_it[real-v1 Pod]", "tests/a/test_x.py[real]"),
        ("tests/a/test_x.py::test_it[some case-embedded]", "tests/a/test_x.py[embedded]"),
        ("tests/a/test_x.py::test_it[a real case]", "tests/a/test_x.py"),
    ],
)
def test_tests_of_one_file_on_one_server_stay_together(test, unit):
    assert unit_of(test) == unit
