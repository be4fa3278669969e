"""Versions and ranges as OLM reads them."""

from __future__ import annotations

import pytest

from ctrlruntime.olm.semver import Version, parse, parse_range


def version(text: str) -> Version:
    found = parse(text)
    assert found is not None
    return found


def test_versions_are_ordered_by_precedence():
    ordered = ["0.9.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0",
               "1.2.0", "1.10.0", "2.0.0"]  # fmt: skip

    assert [str(each) for each in sorted(map(version, reversed(ordered)))] == ordered


def test_build_metadata_counts_for_nothing():
    assert version("1.0.0+a") == version("1.0.0+b")
    assert hash(version("1.0.0+a")) == hash(version("1.0.0+b"))
    assert version("1.0.0") <= version("1.0.0+b")
    assert version("1.0.0") != "1.0.0"


def test_a_version_has_numbers_and_knows_what_it_is():
    assert version("1.2.3-rc.1").numbers == (1, 2, 3)
    assert version("1.2.3-rc.1").is_prerelease
    assert not version("1.2.3+rc").is_prerelease


@pytest.mark.parametrize(
    "text", ["", "1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0 ", "1.0.0.0", "\u0661.0.0"]
)
def test_what_is_no_version(text):
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "within", "without"),
    [
        ("1.2.3", ["1.2.3"], ["1.2.4", "1.2.3-a"]),
        ("==1.2.3", ["1.2.3"], ["1.2.4"]),
        ("!=1.2.3", ["1.2.4"], ["1.2.3"]),
        ("!1.2.3", ["1.2.4"], ["1.2.3"]),
        (">=1.0.0 <2.0.0", ["1.0.0", "1.9.9"], ["0.9.9", "2.0.0", "1.0.0-rc.1"]),
        (">= 1.0.0  < 2.0.0", ["1.5.0"], ["2.0.0"]),
        ("<1.0.0 || >=3.0.0 !4.2.1", ["0.1.0", "3.0.0"], ["1.0.0", "4.2.1"]),
        ("1.2.x", ["1.2.0", "1.2.9"], ["1.3.0", "1.1.9"]),
        ("1.x", ["1.0.0", "1.9.0"], ["2.0.0"]),
        ("1.x.x", ["1.0.0", "1.0.9"], ["1.1.0"]),
        (">1.2.x", ["1.3.0"], ["1.2.9"]),
        (">=1.2.x", ["1.2.0"], ["1.1.9"]),
        ("<1.2.x", ["1.1.9"], ["1.2.0"]),
        ("<=1.x", ["1.9.9"], ["2.0.0"]),
        ("!=1.2.x", [], ["1.1.0", "1.2.0", "1.3.0"]),
        (">1.0.0-rc.1", ["1.0.0", "1.0.0-rc.2"], ["1.0.0-rc.1"]),
    ],
)
def test_ranges_hold_what_they_say(text, within, without):
    found = parse_range(text)

    assert found is not None
    assert [each for each in (*within, *without) if version(each) in found] == within
    assert str(found) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1.0",
        "~1.2.0",
        "^1.0.0",
        "x",
        "*",
        "<1.0.0||>2.0.0",
        "|| 1.0.0",
        "1.0.0 ||",
        "=>1.0.0",
        ">v1.0.0",
        "latest",
    ],
)
def test_what_is_no_range(text):
    assert parse_range(text) is None
