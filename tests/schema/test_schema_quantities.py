import pytest

from ctrlruntime.quantities import canonical


@pytest.mark.parametrize(
    "text", ["1.500", "+1", "01", "1E3", "1e0", "1.500e3", "0001.500", "+5Ki", "010Ki", "100u", "-1.500"]
)
def test_what_upstream_takes_for_canonical_stays(text):
    assert canonical(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1000m", "1"),
        ("1.000", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1e1", "10"),
        ("12e2", "1200"),
        ("0e0", "0"),
        ("1000", "1k"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("16Ki", "16Ki"),
        ("1024Mi", "1Gi"),
        ("1000000e3", "1e9"),
    ],
)
def test_other_forms_become_canonical(text, shown):
    assert canonical(text) == shown


def test_exponents_of_any_length_are_read():
    assert canonical(f"1e{'9' * 5000}") == f"1e{'9' * 5000}"
