"""Catalogs: what is written of bundles, and every check, by one catalog that triggers exactly it."""

from __future__ import annotations

import copy
import json

import pytest
from bundles import (
    ANNOTATIONS,
    IMAGE,
    PICTURE,
    SIDE_IMAGE,
    add,
    annotation,
    csv,
    csv_annotation,
    dependency,
    remove,
    several,
    write,
)

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.text import dump_all
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.catalog import CHECKS, blobs_in, read_catalog, render, validate
from ctrlruntime.olm.finding import Level

KETTLE_BUNDLE = "registry.example.com/kitchen/kettle-bundle"


def version(number, **spec):
    """The bundle of a version; what it replaces is given."""
    changes = [csv("metadata.name", f"kettle.v{number}"), csv("spec.version", number), csv("spec.replaces", "")]
    return several(*changes, *(csv(f"spec.{key}", value) for key, value in spec.items()))


def bundle(folder, change=None):
    return read_bundle(write(folder, change))


def of(blobs, schema):
    return [each for each in blobs if each["schema"] == schema]


# Written.


def test_a_bundle_becomes_a_package_its_channels_and_itself(tmp_path):
    blobs = render([bundle(tmp_path)])

    assert [(each["schema"], each["name"]) for each in blobs] == [
        ("olm.package", "kettle"),
        ("olm.channel", "candidate"),
        ("olm.channel", "stable"),
        ("olm.bundle", "kettle.v1.2.0"),
    ]
    assert blobs[0] == {
        "schema": "olm.package",
        "name": "kettle",
        "defaultChannel": "stable",
        "description": "Keeps water hot for every cup that is ordered.",
        "icon": {"base64data": PICTURE, "mediatype": "image/svg+xml"},
    }
    assert blobs[2] == {
        "schema": "olm.channel",
        "package": "kettle",
        "name": "stable",
        "entries": [{"name": "kettle.v1.2.0", "replaces": "kettle.v1.1.0"}],
    }


@pytest.mark.parametrize("icon", [[], [{"base64data": "", "mediatype": ""}]], ids=["none", "scaffolded"])
def test_a_package_without_a_picture_has_no_icon(tmp_path, icon):
    assert "icon" not in render([bundle(tmp_path, csv("spec.icon", icon))])[0]


def test_properties_say_what_a_bundle_is_brings_and_needs(tmp_path):
    change = several(
        csv(
            "spec.customresourcedefinitions.required",
            [{"name": "cups.kitchen.example.com", "version": "v1", "kind": "Cup"}],
        ),
        csv(
            "spec.apiservicedefinitions",
            {"owned": [{"name": "heats", "group": "h.example.com", "version": "v1", "kind": "Heat"}]},
        ),
        csv_annotation("olm.properties", json.dumps([{"type": "olm.maxOpenShiftVersion", "value": "4.20"}])),
        dependency(
            "olm.constraint", {"failureMessage": "no gas", "gvk": {"group": "g", "version": "v1", "kind": "Gas"}}
        ),
        add("metadata/properties.yaml", {"properties": [{"type": "kitchen.colour", "value": {"name": "red"}}]}),
    )

    (blob,) = of(render([bundle(tmp_path, change)]), "olm.bundle")

    found = [(each["type"], each["value"]) for each in blob["properties"] if each["type"] != "olm.csv.metadata"]
    assert found == [
        ("kitchen.colour", {"name": "red"}),
        ("olm.constraint", {"failureMessage": "no gas", "gvk": {"group": "g", "version": "v1", "kind": "Gas"}}),
        ("olm.gvk", {"group": "h.example.com", "kind": "Heat", "version": "v1"}),
        ("olm.gvk", {"group": "kitchen.example.com", "kind": "Kettle", "version": "v1"}),
        ("olm.gvk.required", {"group": "kitchen.example.com", "kind": "Cup", "version": "v1"}),
        ("olm.gvk.required", {"group": "water.example.com", "kind": "Tap", "version": "v1"}),
        ("olm.maxOpenShiftVersion", "4.20"),
        ("olm.package", {"packageName": "kettle", "version": "1.2.0"}),
        ("olm.package.required", {"packageName": "stove", "versionRange": ">=1.0.0 <2.0.0"}),
    ]


def test_a_catalog_has_what_consoles_show_and_not_how_it_is_installed(tmp_path):
    (blob,) = of(render([bundle(tmp_path)]), "olm.bundle")

    (shown,) = [each["value"] for each in blob["properties"] if each["type"] == "olm.csv.metadata"]
    assert set(shown) == {
        *("annotations", "crdDescriptions", "description", "displayName", "installModes", "keywords", "labels"),
        *("links", "maintainers", "maturity", "minKubeVersion", "provider"),
    }
    assert shown["crdDescriptions"]["owned"][0]["name"] == "kettles.kitchen.example.com"
    assert shown["annotations"]["capabilities"] == "Full Lifecycle"


def test_every_image_is_named_once_and_the_bundles_own_too(tmp_path):
    change = several(
        csv("spec.relatedImages", [{"name": "steam", "image": SIDE_IMAGE}]),
        csv(
            "spec.install.spec.deployments.0.spec.template.spec.initContainers",
            [{"name": "i", "image": "a.example.com/i:v1"}],
        ),
    )

    (blob,) = of(render([bundle(tmp_path, change)]), "olm.bundle")

    assert blob["image"] == f"{KETTLE_BUNDLE}:v1.2.0"
    assert blob["relatedImages"] == [
        {"image": "a.example.com/i:v1", "name": ""},
        {"image": f"{KETTLE_BUNDLE}:v1.2.0", "name": ""},
        {"image": IMAGE, "name": ""},
        {"image": SIDE_IMAGE, "name": "steam"},
    ]


@pytest.mark.parametrize(
    ("operator", "template", "image"),
    [
        ("registry.example.com:5000/kettle:v1", "", "registry.example.com:5000/kettle-bundle:v1.2.0"),
        ("registry.example.com:5000/kettle", "", "registry.example.com:5000/kettle-bundle:v1.2.0"),
        (f"kettle:v1@sha256:{'0' * 64}", "", "kettle-bundle:v1.2.0"),
        ("kettle", "quay.io/me/{package}:{version}", "quay.io/me/kettle:1.2.0"),
        ("kettle", "quay.io/me/all:{name}", "quay.io/me/all:kettle.v1.2.0"),
    ],
)
def test_a_bundle_is_named_after_its_operator_or_by_a_template(tmp_path, operator, template, image):
    found = render([bundle(tmp_path, csv_annotation("containerImage", operator))], image=template)

    assert of(found, "olm.bundle")[0]["image"] == image


def test_no_tag_has_a_plus(tmp_path):
    found = render([bundle(tmp_path, version("1.2.0+build.5"))])

    assert of(found, "olm.bundle")[0]["image"] == f"{KETTLE_BUNDLE}:v1.2.0_build.5"


def build(number, **spec):
    """The bundle of a release of 1.2.0."""
    return several(
        csv("metadata.name", f"kettle-v1.2.0-{number}"),
        csv("spec.release", number),
        *(csv(f"spec.{key}", value) for key, value in spec.items()),
    )


def test_releases_of_one_version_are_told_apart_and_stand_in_their_order(tmp_path):
    bundles = [
        bundle(tmp_path / "a", build("10", replaces="kettle-v1.2.0-9")),
        bundle(tmp_path / "b", build("9", replaces="kettle.v1.2.0")),
        bundle(tmp_path / "c", csv("spec.replaces", "")),
    ]

    blobs = render(bundles)

    assert [(each["name"], each["image"]) for each in of(blobs, "olm.bundle")] == [
        ("kettle.v1.2.0", f"{KETTLE_BUNDLE}:v1.2.0"),
        ("kettle-v1.2.0-9", f"{KETTLE_BUNDLE}:v1.2.0-9"),
        ("kettle-v1.2.0-10", f"{KETTLE_BUNDLE}:v1.2.0-10"),
    ]
    own = [
        each["value"]
        for blob in of(blobs, "olm.bundle")
        for each in blob["properties"]
        if each["type"] == "olm.package"
    ]
    assert own == [
        {"packageName": "kettle", "version": "1.2.0"},
        {"packageName": "kettle", "version": "1.2.0", "release": "9"},
        {"packageName": "kettle", "version": "1.2.0", "release": "10"},
    ]
    assert validate(blobs_in([("catalog.yaml", dump_all(blobs))])) == []
    with pytest.raises(
        ConfigError,
        match=r"kettle-v1.2.0-9 and kettle-v1.2.0-10 would both have the image q/k:1.2.0. Use --image with \{name\} in it",
    ):
        render(bundles[:2], image="q/k:{version}")
    named = render(bundles, image="q/k:{name}")
    assert [each["image"] for each in of(named, "olm.bundle")][1:] == ["q/k:kettle-v1.2.0-9", "q/k:kettle-v1.2.0-10"]


def test_releases_stand_in_the_order_of_their_versions(tmp_path):
    bundles = [
        bundle(tmp_path / "a", version("1.10.0", replaces="kettle.v1.9.0", skips=["kettle.v1.8.0"])),
        bundle(tmp_path / "b", several(version("1.9.0"), csv_annotation("olm.skipRange", "<1.9.0"))),
        bundle(tmp_path / "c", several(version("2.0.0-rc.1"), annotation("channels.v1", "candidate"))),
    ]

    blobs = render(bundles)

    candidate, stable = of(blobs, "olm.channel")
    assert stable["entries"] == [
        {"name": "kettle.v1.9.0", "skipRange": "<1.9.0"},
        {"name": "kettle.v1.10.0", "replaces": "kettle.v1.9.0", "skips": ["kettle.v1.8.0"]},
    ]
    assert [each["name"] for each in candidate["entries"]] == ["kettle.v1.9.0", "kettle.v1.10.0", "kettle.v2.0.0-rc.1"]
    assert [each["name"] for each in of(blobs, "olm.bundle")] == [each["name"] for each in candidate["entries"]]


def test_the_order_of_the_folders_changes_nothing(tmp_path):
    one, two = (
        bundle(tmp_path / "a", version("1.0.0")),
        bundle(tmp_path / "b", version("1.1.0", replaces="kettle.v1.0.0")),
    )

    assert dump_all(render([one, two])) == dump_all(render([two, one]))


def test_packages_stand_side_by_side(tmp_path):
    other = several(version("1.0.0"), annotation("package.v1", "teapot"), csv("metadata.name", "teapot.v1.0.0"))

    blobs = render([bundle(tmp_path / "a", other), bundle(tmp_path / "b")], image="q.example.com/{package}:{version}")

    assert [each["name"] for each in of(blobs, "olm.package")] == ["kettle", "teapot"]


@pytest.mark.parametrize(
    ("new", "given", "default"),
    [
        (annotation("channel.default.v1", "candidate"), "", "candidate"),
        (annotation("channel.default.v1"), "", "stable"),  # the older one names it
        (annotation("channel.default.v1"), "candidate", "candidate"),
    ],
    ids=["newest", "older", "given"],
)
def test_the_newest_bundle_that_names_one_has_the_default_channel(tmp_path, new, given, default):
    bundles = [bundle(tmp_path / "a", version("1.0.0")), bundle(tmp_path / "b", several(version("1.1.0"), new))]

    assert render(bundles, default_channel=given)[0]["defaultChannel"] == default


def test_a_single_channel_is_the_default(tmp_path):
    change = several(annotation("channel.default.v1"), annotation("channels.v1", "alpha"))

    assert render([bundle(tmp_path, change)])[0]["defaultChannel"] == "alpha"


REFUSED = [
    (csv("spec.install", 1), "has no readable ClusterServiceVersion. Run `ctrl bundle validate "),
    (csv("spec.version", "v1"), "spec.version 'v1' is not a semantic version such as 1.2.3"),
    (csv("spec.release", "a b"), "spec.release 'a b' is not a release such as 1 or 2.rc-1"),
    (csv_annotation("containerImage", "Kettle:v1"), "'Kettle:v1' is not a reference to an image"),
    (remove(ANNOTATIONS), "has no operators.operatorframework.io.bundle.package.v1. Run `ctrl bundle validate "),
    (annotation("channels.v1", ","), "has no operators.operatorframework.io.bundle.channels.v1"),
    (
        annotation("channel.default.v1"),
        "no bundle of kettle has a default channel. Set --default-channel to one of candidate, stable",
    ),
    (csv_annotation("olm.properties", "["), "the annotation olm.properties is not JSON: "),
    (csv_annotation("olm.properties", "[1]"), "the annotation olm.properties: a property must have type and value"),
    (add("metadata/properties.yaml", {"properties": 1}), "metadata/properties.yaml has no list of properties"),
    (
        dependency("olm.package", 5),
        "metadata/dependencies.yaml: a dependency must have a type, and a value that is a map",
    ),
    (
        several(csv_annotation("containerImage"), csv("spec.install.spec.deployments", [])),
        "has no operator image. Use --image",
    ),
]


@pytest.mark.parametrize(("change", "told"), REFUSED, ids=range(len(REFUSED)))
def test_a_bundle_that_cannot_be_in_a_catalog_is_said(tmp_path, change, told):
    with pytest.raises(ConfigError) as caught:
        render([bundle(tmp_path, change)])

    assert told in str(caught.value)


def test_a_release_is_given_once_and_has_an_image_of_its_own(tmp_path):
    one, two = bundle(tmp_path / "a", version("1.0.0")), bundle(tmp_path / "b", version("1.1.0"))

    with pytest.raises(ConfigError, match=r"are both kettle\.v1\.0\.0. Pass each release once"):
        render([one, two, one])
    with pytest.raises(
        ConfigError,
        match=r"kettle.v1.0.0 and kettle.v1.1.0 would both have the image q/k. Use --image with \{name\} in it",
    ):
        render([one, two], image="q/k")


# Checked.


def good():
    """The blobs of a catalog with three releases, and nothing wrong in it."""
    names = ["k.v1.0.0", "k.v1.1.0", "k.v1.2.0"]
    entries = [
        {"name": names[0]},
        {"name": names[1], "replaces": names[0]},
        {"name": names[2], "replaces": names[1], "skipRange": ">=1.0.0 <1.2.0"},
    ]
    return [
        {"schema": "olm.package", "name": "k", "defaultChannel": "stable"},
        {"schema": "olm.channel", "package": "k", "name": "stable", "entries": entries},
        *(
            {
                "schema": "olm.bundle",
                "package": "k",
                "name": name,
                "image": f"registry.example.com/k:{name}",
                "properties": [
                    {"type": "olm.package", "value": {"packageName": "k", "version": name.removeprefix("k.v")}},
                    {"type": "olm.package.required", "value": {"packageName": "stove", "versionRange": ">1.0.0"}},
                    {"type": "olm.csv.metadata", "value": {}},
                ],
            }
            for name in names
        ),
        {
            "schema": "olm.deprecations",
            "package": "k",
            "entries": [
                {"reference": {"schema": "olm.package"}, "message": "take the stove"},
                {"reference": {"schema": "olm.channel", "name": "stable"}, "message": "take candidate"},
                {"reference": {"schema": "olm.bundle", "name": names[0]}, "message": "take 1.1.0"},
            ],
        },
    ]


def package(**fields):
    return lambda blobs: blobs[0].update(fields)


def entry(number, **fields):
    return lambda blobs: blobs[1]["entries"][number].update(fields)


def release(number, **fields):
    return lambda blobs: blobs[2 + number].update(fields)


def own(number, **fields):
    """Changes the property olm.package of a bundle."""
    return lambda blobs: blobs[2 + number]["properties"][0]["value"].update(fields)


def built(number, version, release):
    """Gives a bundle a release, with the name it then has."""

    def change(blobs):
        old, new = blobs[2 + number]["name"], f"k-v{version}-{release}"
        own(number, version=version, release=release)(blobs)
        blobs[:] = json.loads(json.dumps(blobs).replace(f'"{old}"', f'"{new}"'))

    return change


def properties(*items):
    return lambda blobs: blobs[2]["properties"].extend(items)


def more(blob):
    return lambda blobs: blobs.append(blob)


def deprecation(**fields):
    return lambda blobs: blobs[-1]["entries"].append(fields)


def without(*places):
    def change(blobs):
        for place in sorted(places, reverse=True):
            del blobs[place]

    return change


def both(*changes):
    return lambda blobs: [each(blobs) for each in changes]


def lone(blobs):
    """A package without a channel, and with nothing else that is wrong."""
    del blobs[1:]
    blobs[0]["defaultChannel"] = ""


PACKAGE, CHANNEL, EMPTY = "olm.package/k", "olm.channel/k/stable", "olm.channel/k/empty"
FIRST, SECOND, LAST = (f"olm.bundle/k/k.v1.{number}.0" for number in range(3))
DEPRECATIONS = "olm.deprecations/k"

# The code, what is done to the good catalog, and the blob and the field that are named.
CASES = [
    ("blob-without-schema", more({"name": "x"}), "x", ""),
    ("blob-without-schema", more({"schema": 3}), "", ""),
    ("blob-without-name", more({"schema": "olm.channel", "package": "k", "entries": []}), "olm.channel/k", "name"),
    ("blob-duplicate", lambda blobs: blobs.append(copy.deepcopy(blobs[4])), LAST, ""),
    ("package-missing", lambda blobs: blobs[5].update(package="other"), "olm.deprecations/other", "package"),
    ("default-channel-missing", package(defaultChannel=""), PACKAGE, "defaultChannel"),
    ("default-channel-unknown", package(defaultChannel="fast"), PACKAGE, "defaultChannel"),
    ("channel-empty", more({"schema": "olm.channel", "package": "k", "name": "empty", "entries": []}), EMPTY, "entries"),
    ("channel-empty", more({"schema": "olm.channel", "package": "k", "name": "empty"}), EMPTY, "entries"),
    ("channel-without-head", entry(0, skips=["k.v1.2.0"]), CHANNEL, "entries"),
    ("channel-several-heads", entry(2, replaces="k.v1.0.0"), CHANNEL, "entries"),
    ("channel-cycle", entry(0, replaces="k.v1.1.0"), CHANNEL, "entries"),
    ("channel-cycle", both(entry(1, replaces="k.v1.1.0"), entry(2, skips=["k.v1.0.0"])), CHANNEL, "entries"),
    ("channel-stranded", entry(2, skips=["k.v1.1.0"]), CHANNEL, "entries"),
    ("entry-invalid", lambda blobs: blobs[1]["entries"].append({"replaces": "k.v1.1.0"}), CHANNEL, "entries[3]"),
    ("entry-invalid", lambda blobs: blobs[1]["entries"].append("k.v1.1.0"), CHANNEL, "entries[3]"),
    ("entry-invalid", lambda blobs: blobs[1]["entries"].append({"name": "k.v1.2.1", "skips": [""]}), CHANNEL, "entries[3]"),
    ("entry-invalid", lambda blobs: blobs[1]["entries"].append({"name": {}}), CHANNEL, "entries[3]"),
    ("entry-duplicate", lambda blobs: blobs[1]["entries"].append({"name": "k.v1.0.0"}), CHANNEL, "entries[3]"),
    ("entry-without-bundle", both(lambda blobs: blobs[5]["entries"].pop(), without(2)), CHANNEL, "entries[0]"),
    ("bundle-without-channel", lambda blobs: blobs[1]["entries"].pop(0), FIRST, ""),
    ("bundle-without-image", release(0, image=""), FIRST, "image"),
    ("bundle-package-property", own(0, packageName="other"), FIRST, "properties"),
    ("bundle-package-property", lambda blobs: blobs[2]["properties"].pop(0), FIRST, "properties"),
    ("bundle-package-property", properties({"type": "olm.package", "value": {"packageName": "k", "version": "1.0.0"}}), FIRST, "properties"),
    ("property-invalid", properties({"type": "x"}), FIRST, "properties[3]"),
    ("property-invalid", properties("x"), FIRST, "properties[3]"),
    ("version-invalid", own(0, version="v1.0.0"), FIRST, "properties"),
    ("version-invalid", own(0, version=1), FIRST, "properties"),
    ("version-invalid", own(0, release="a b"), FIRST, "properties"),
    ("version-invalid", own(0, release=0), FIRST, "properties"),
    ("version-invalid", own(0, release="1+2"), FIRST, "properties"),
    ("version-invalid", own(0, version="1.0.0+b", release="1"), FIRST, "properties"),
    ("release-name", own(0, release="1"), FIRST, "name"),
    ("version-duplicate", own(0, version="1.1.0"), SECOND, ""),
    ("range-invalid", entry(2, skipRange="before 1.2"), CHANNEL, "entries[2].skipRange"),
    ("range-invalid", properties({"type": "olm.package.required", "value": {"packageName": "s", "versionRange": "~1"}}), FIRST, "properties[3].value"),
    ("range-invalid", properties({"type": "olm.package.required", "value": "1.0.0"}), FIRST, "properties[3].value"),
    ("deprecation-invalid", deprecation(reference={"schema": "olm.package"}), DEPRECATIONS, "entries[3]"),
    ("deprecation-invalid", deprecation(reference={"schema": "olm.bundle", "name": "k.v9.9.9"}, message="gone"), DEPRECATIONS, "entries[3]"),
    ("deprecation-invalid", deprecation(message="gone"), DEPRECATIONS, "entries[3]"),
    ("schema-unknown", more({"schema": "olm.semver"}), "olm.semver", ""),
    ("replaces-newer", own(0, version="1.1.5"), CHANNEL, "entries"),
    ("replaces-newer", both(built(0, "1.1.0", "2"), built(1, "1.1.0", "1")), CHANNEL, "entries"),
    ("csv-metadata-missing", lambda blobs: blobs[2]["properties"].pop(), FIRST, "properties"),
]  # fmt: skip


def found(blobs):
    return validate(blobs_in([("catalog.yaml", dump_all(blobs))]))


def test_the_good_catalog_has_nothing_wrong():
    assert found(good()) == []


@pytest.mark.parametrize(
    ("code", "change", "object", "path"), CASES, ids=[f"{case[0]}-{number}" for number, case in enumerate(CASES)]
)
def test_what_is_wrong_is_found(code, change, object, path):
    blobs = good()
    change(blobs)

    findings = found(blobs)

    assert [(each.code, each.file, each.object, each.path) for each in findings] == [
        (code, "catalog.yaml", object, path)
    ]
    assert findings[0].text


def test_a_package_without_channels_is_found():
    blobs = good()
    lone(blobs)

    assert {each.code for each in found(blobs)} == {"package-without-channels", "default-channel-missing"}


def test_every_check_has_a_case():
    assert {case[0] for case in CASES} | {"package-without-channels"} == set(CHECKS)


def test_errors_come_before_warnings():
    blobs = good()
    own(0, version="1.1.5")(blobs)
    release(1, image="")(blobs)

    assert [each.level for each in found(blobs)] == [Level.ERROR, Level.WARNING]


ALLOWED = {
    "the last entry may replace what is not in the channel": entry(0, replaces="k.v0.9.0"),
    "what is skipped need not be reached": both(
        lambda blobs: blobs[1]["entries"].append({"name": "k.v1.1.1"}),
        entry(2, skips=["k.v1.1.1"]),
        lambda blobs: blobs.append(json.loads(json.dumps(blobs[4]).replace("1.2.0", "1.1.1"))),
    ),
    "a bundle may skip one that is nowhere": entry(2, skips=["k.v1.1.9"]),
    "a release may be empty": own(0, release=""),
    "one version may have several releases": built(1, "1.0.0", "1"),
    "ten releases come after nine": both(built(0, "1.1.0", "9"), built(1, "1.1.0", "10")),
    "build metadata tells versions apart": own(0, version="1.1.0+a"),
    "a bundle may bring its objects in the place of an image": both(
        release(0, image=""), properties({"type": "olm.bundle.object", "value": {"data": "e30="}})
    ),
}


@pytest.mark.parametrize("change", ALLOWED.values(), ids=ALLOWED)
def test_graphs_that_olm_takes_are_taken(change):
    blobs = good()
    change(blobs)

    assert found(blobs) == []


def in_a_circle(blobs):
    """The two older ones replace each other."""
    entry(0, replaces="k.v1.1.0")(blobs)
    del blobs[1]["entries"][2]["replaces"]


def test_a_circle_of_entries_that_are_skipped_harms_nobody():
    blobs = good()
    in_a_circle(blobs)
    entry(2, skips=["k.v1.0.0", "k.v1.1.0"])(blobs)

    assert [(each.code, each.level) for each in found(blobs)] == [("replaces-newer", Level.WARNING)]


def test_a_circle_that_the_head_does_not_lead_to_is_stranded():
    blobs = good()
    in_a_circle(blobs)

    assert [each.text for each in found(blobs) if each.code == "channel-stranded"] == [
        "the head k.v1.2.0 does not reach k.v1.0.0, k.v1.1.0 by replaces. Let an entry replace or skip each of them"
    ]


def test_a_circle_is_told_from_where_it_is_entered():
    blobs = good()
    entry(0, replaces="k.v1.1.0")(blobs)

    assert found(blobs)[0].text.startswith("k.v1.1.0 -> k.v1.0.0 -> k.v1.1.0 replace each other in a cycle. ")


def test_texts_name_what_is_meant():
    blobs = good()
    entry(2, replaces="k.v1.0.0")(blobs)

    (finding,) = found(blobs)

    assert str(finding) == (
        "catalog.yaml: olm.channel/k/stable: entries: no entry replaces or skips k.v1.1.0, k.v1.2.0. "
        "Let one of them replace or skip the others"
    )


# Read.


def test_a_folder_is_read_with_all_below_it(tmp_path):
    (tmp_path / "k").mkdir()
    (tmp_path / "k" / "package.yaml").write_text(dump_all(good()[:2]))
    (tmp_path / "bundles.json").write_text("".join(json.dumps(each) for each in good()[2:]))
    (tmp_path / "README.md").write_text("no blob")

    catalog = read_catalog(tmp_path)

    assert len(catalog.blobs) == 6
    assert validate(catalog) == []


def test_flow_style_is_yaml_and_no_json():
    assert blobs_in([("c", "{schema: olm.package, name: k}")]).blobs[0].name == "k"


@pytest.mark.parametrize(
    ("text", "told"), [("", "the catalog is empty"), ("a: [", "line 2: "), ("{'a': [", "line 2: ")]
)
def test_what_is_no_catalog_is_said(tmp_path, text, told):
    file = tmp_path / "catalog.yaml"
    file.write_text(text)

    with pytest.raises(ConfigError, match=told):
        read_catalog(file)


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(
        ConfigError, match=r"file or folder .*/no.yaml does not exist\. Create a catalog with `ctrl catalog BUNDLE"
    ):
        read_catalog(tmp_path / "no.yaml")
