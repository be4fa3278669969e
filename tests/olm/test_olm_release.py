"""Releases: names, and the order of the builds of one version."""

from __future__ import annotations

from itertools import pairwise

import pytest
from bundles import csv, several, write

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.release import csv_of, name_for, order_of, package_of, release_of
from ctrlruntime.olm.semver import parse


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("shop.v1.2.0", "shop"),
        ("shop.v1.2.0-rc.1", "shop"),
        ("shop-v1.2.0-1", "shop"),
        ("shop-v1.2.0-rc.1-2", "shop"),
        ("shop.vX.Y.Z", "shop"),
        ("cool.vault.v0.1.0", "cool.vault"),
        ("cool.vault-v0.1.0-1", "cool.vault"),
        ("cool.v2.v0.1.0", "cool.v2"),
        ("cool.vault", "cool.vault"),
        ("shop-v1.2.0", "shop-v1.2.0"),
        (".v1.2.0", ".v1.2.0"),
        ("shop", "shop"),
        ("", ""),
    ],
)
def test_a_name_begins_with_the_package(name, package):
    assert package_of(name) == package


@pytest.mark.parametrize(
    ("parts", "name"),
    [(("cool.vault", "0.1.0"), "cool.vault.v0.1.0"), (("shop", "0.1.0-rc.1", "2"), "shop-v0.1.0-rc.1-2")],
)
def test_a_name_is_made_of_what_it_is_taken_apart_to(parts, name):
    assert name_for(*parts) == name
    assert package_of(name) == parts[0]


def test_releases_follow_their_version_and_go_before_the_next():
    order = [("1.0.0-rc.1", "7"), ("1.0.0", ""), ("1.0.0", "1"), ("1.0.0", "1.1"), ("1.0.0", "2"), ("1.0.0", "10"), ("1.0.0", "a"), ("1.0.1", "")]  # fmt: skip

    places = [order_of(version, release) for text, release in order if (version := parse(text))]

    assert len(places) == len(order)
    assert all(one < other for one, other in pairwise(places))


def test_a_bundle_is_a_release_when_it_has_a_version(tmp_path):
    found = release_of(
        read_bundle(write(tmp_path, several(csv("spec.release", "3"), csv("metadata.name", "kettle-v1.2.0-3"))))
    )

    assert (found.package, found.name, found.label) == ("kettle", "kettle-v1.2.0-3", "1.2.0-3")


def test_what_cannot_be_decoded_is_none(tmp_path):
    bundle = read_bundle(write(tmp_path, csv("spec.install", 1)))

    assert csv_of(bundle) is None
    with pytest.raises(ConfigError, match="has no readable ClusterServiceVersion"):
        release_of(bundle)
