"""What a bundle is called, and where it stands in a catalog: from what was given, or what it was before."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundles import write as write_bundle

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.making import Given
from ctrlruntime.olm.making.identity import BundleIdentity, identity_of

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
    assert identity_of(Given(version="1.2.0-rc.1"), None, "shop") == BundleIdentity(
        package="shop", version="1.2.0-rc.1", channels=("candidate",), default_channel="candidate"
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


@pytest.mark.parametrize("version", ["18446744073709551615.0.0", f"1.0.0-{'a' * 51}"])
def test_the_largest_of_versions_are_taken(version):
    assert identity_of(Given(version=version), None, "shop").version == version


CSV = (
    "kind: ClusterServiceVersion\napiVersion: operators.coreos.com/v1alpha1\nmetadata: {name: a}\nspec: {version: %s}\n"
)
UNKNOWN = {
    "two": (
        {"a.yaml": CSV % "1.0.0", "b.yaml": CSV % "2.0.0"},
        "cannot determine the version of the bundle: {}/a.yaml and {}/b.yaml are ClusterServiceVersions",
    ),
    "a wrong version": ({"a.yaml": CSV % "one"}, "{}/a.yaml: spec.version 'one' is not a semantic version"),
    "an empty one": (
        {"a.clusterserviceversion.yaml": ""},
        "cannot determine the version of the bundle: {}/a.clusterserviceversion.yaml has no ClusterServiceVersion",
    ),
    "a broken one": (
        {"a.yaml": "a: b: c"},
        "cannot determine the version of the bundle: cannot read {}/a.yaml (line 1: mapping values are not allowed in this context)",
    ),
    "none": ({"a.yaml": "kind: Service"}, "the bundle has no version yet. Set the version, as in --version 0.1.0"),
}


@pytest.mark.parametrize(("files", "said"), UNKNOWN.values(), ids=list(UNKNOWN))
def test_a_version_that_cannot_be_told_is_said_with_the_file(tmp_path, files, said):
    before = existing(tmp_path)
    folder = tmp_path / "bundle/manifests"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)

    with pytest.raises(ConfigError) as caught:
        identity_of(Given(), read_bundle(before.folder), "shop")

    assert str(caught.value).startswith(said.replace("{}", str(folder)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Set the version, as in --version 0.1.0"),
        ({"version": "v1.2.3"}, "'v1.2.3' is not a semantic version. Write it without v: 1.2.3"),
        ({"version": "1.2"}, "'1.2' is not a semantic version. Write three numbers, as in 0.1.0"),
        ({"version": ""}, "'' is not a semantic version"),
        ({"version": "1.0.0", "channels": []}, "no channel is set"),
        (
            {"version": "1.0.0", "channels": ["a b"]},
            "cannot use the channel 'a b': it must consist of letters, digits, _, . and -, and start",
        ),
        ({"version": "1.0.0", "default_channel": ""}, "cannot use the channel '': it must consist of letters"),
        (
            {"version": "1.0.0", "package": "Shop"},
            "cannot use the package 'Shop': it must consist of lower-case letters, digits, . and -",
        ),
        ({"version": "1.0.0+b1"}, r"'1.0.0\+b1' has build metadata, but a name cannot have a \+. Remove \+b1"),
        ({"version": "1.0.0-RC1"}, "'1.0.0-RC1' has upper-case letters, but a name must be lower case. Use 1.0.0-rc1"),
        ({"version": "99999999999999999999.0.0"}, "has a number above 64 bits"),
        ({"version": "1.0.0-18446744073709551616"}, "has a number above 64 bits"),
        ({"version": f"1.0.0-{'a' * 52}"}, f"shop.v1.0.0-{'a' * 52}: 64 characters, and the maximum is 63"),
        ({"version": f"{'9' * 5000}.0.0"}, "the version has 5004 characters, and a name has at most 63"),
        ({"version": "1.0.0-a.-"}, "shop.v1.0.0-a.-: it is not a DNS name"),
    ],
)
def test_what_no_catalog_takes_is_refused(given, said):
    with pytest.raises(ConfigError, match=said):
        identity_of(Given(**given), None, "shop")
