"""What a bundle is called, and where it stands in a catalog: from what was given, or what it was before."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundles import write as write_bundle

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.making import Given
from ctrlruntime.olm.making.identity import Identity, identity_of

PREFIX = "operators.operatorframework.io.bundle"


def existing(tmp_path: Path, **annotations: str):
    """A bundle that is there: `channels`, `package`, `channel_default`."""
    folder = tmp_path / "bundle"
    (folder / "metadata").mkdir(parents=True)
    names = {key.replace("_", "."): value for key, value in annotations.items()}
    lines = "".join(f'  {PREFIX}.{name}.v1: "{value}"\n' for name, value in {"package": "shop", **names}.items())
    (folder / "metadata/annotations.yaml").write_text(f"annotations:\n{lines}")
    return read_bundle(folder)


def test_a_new_bundle_has_the_projects_name_and_is_a_candidate():
    assert identity_of(Given(version="1.2.0-rc.1+7"), None, "shop") == Identity(
        package="shop", version="1.2.0-rc.1+7", channels=("candidate",), default_channel="candidate"
    )


@pytest.mark.parametrize(
    ("before", "given", "expected"),
    [
        ({"channels": "a"}, {}, (("a",), "a")),
        ({"channels": "a,b"}, {}, (("a", "b"), "")),
        ({"channels": "a,b", "channel_default": "b"}, {}, (("a", "b"), "b")),
        ({"channels": "a, b", "channel_default": "b"}, {"channels": ["b", "c"]}, (("b", "c"), "b")),
        ({"channels": "a", "channel_default": "a"}, {"channels": ["c"]}, (("c",), "c")),
        ({"channels": "a", "channel_default": "a"}, {"channels": ["c", "d"]}, (("c", "d"), "")),
        ({"channels": "a", "channel_default": "z"}, {"channels": ["c", "d"]}, (("c", "d"), "z")),
        ({"channels": "a"}, {"default_channel": "z"}, (("a",), "z")),
        ({"channels": "a"}, {"channels": ["c", "c"], "default_channel": "z"}, (("c",), "z")),
    ],
)
def test_channels_stay_until_others_are_named(tmp_path, before, given, expected):
    found = identity_of(Given(version="1.0.0", **given), existing(tmp_path, **before), "shop")

    assert (found.channels, found.default_channel) == expected


def test_the_package_stays_until_another_one_is_named(tmp_path):
    before = existing(tmp_path, package="store")

    assert identity_of(Given(version="1.0.0"), before, "shop").package == "store"
    assert identity_of(Given(version="1.0.0", package="mall"), before, "shop").package == "mall"


def test_the_version_stays_until_another_one_is_given(tmp_path):
    write_bundle(tmp_path)
    before = read_bundle(tmp_path)
    assert before.csv is not None

    assert identity_of(Given(), before, "").version == before.csv.spec["version"]
    assert identity_of(Given(version="9.0.0"), before, "").version == "9.0.0"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give one, as in --version 0.1.0"),
        ({"version": "v1.2.3"}, "'v1.2.3' is no semantic version; give one without its v: 1.2.3"),
        ({"version": "1.2"}, "'1.2' is no semantic version; give one three numbers, as in 0.1.0"),
        ({"version": ""}, "'' is no semantic version"),
        ({"version": "1.0.0", "channels": []}, "no channel is named"),
        ({"version": "1.0.0", "channels": ["a b"]}, "the channel 'a b' has to be letters, digits"),
        ({"version": "1.0.0", "default_channel": ""}, "the channel '' has to be letters"),
        ({"version": "1.0.0", "package": "Shop"}, "the package 'Shop' has to be lower-case letters"),
    ],
)
def test_what_no_catalog_takes_is_refused(given, said):
    with pytest.raises(ConfigError, match=said):
        identity_of(Given(**given), None, "shop")
