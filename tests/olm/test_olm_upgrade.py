"""From one bundle to the next: each change by itself, with its code."""

from __future__ import annotations

import copy
import json

import pytest
from bundles import CRD, add, annotation, crd, csv, csv_annotation, put, remove, several, write

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.definitions import read_definitions
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.upgrade import RULES, Code, compare, given_objects, stored_versions
from ctrlruntime.project.compatibility import Level

STRATEGY = "spec.install.spec"
RULES_AT = f"{STRATEGY}.clusterPermissions.0.rules"
SPEC = "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties"
NEXT = several(
    csv("metadata.name", "kettle.v1.3.0"), csv("spec.version", "1.3.0"), csv("spec.replaces", "kettle.v1.2.0")
)
"""A release that changes nothing but what it has to."""


def between(tmp_path, new=None, old=None, **options):
    """What `compare` says, as (level, code, version, path, was, now)."""
    before, after = write(tmp_path / "old", old), write(tmp_path / "new", several(NEXT, *([new] if new else [])))
    found = compare(read_bundle(before), read_bundle(after), **options)
    return [
        (each.level, each.code, each.version, each.path, each.was, each.now) for one in found for each in one.findings
    ]


def second_version(*, name="v2", storage=False, changed=None, conversion=None):
    """Adds a version to the definition."""

    def change(files):
        spec = files.crd["spec"]
        version = copy.deepcopy(spec["versions"][0])
        version["name"], version["storage"] = name, storage
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] |= changed or {}
        spec["versions"][0]["storage"] = not storage
        spec["versions"].append(version)
        if conversion:
            spec["conversion"] = conversion

    return change


def without_version(number):
    def change(files):
        del files.crd["spec"]["versions"][number]

    return change


def conversion_webhook(files):
    webhook = copy.deepcopy(files.csv["spec"]["webhookdefinitions"][0])
    del webhook["rules"]
    webhook |= {"type": "ConversionWebhook", "generateName": "ckettle.kb.io", "webhookPath": "/convert"}
    files.csv["spec"]["webhookdefinitions"].append(webhook | {"conversionCRDs": ["kettles.kitchen.example.com"]})


def test_a_release_that_changes_nothing_else_has_nothing_to_say(tmp_path):
    assert between(tmp_path) == []


GRANT = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "create"]}
RELEASE = [
    (annotation("package.v1", "teapot"), (Level.BREAKING, Code.PACKAGE_CHANGED, "", "", "kettle", "teapot")),
    (
        several(csv("metadata.name", "kettle.v1.2.0"), csv("spec.replaces", "x"), csv_annotation("olm.skipRange", "<1.3.0")),
        (Level.BREAKING, Code.NAME_NOT_CHANGED, "", "metadata.name", "kettle.v1.2.0", "kettle.v1.2.0"),
    ),
    (csv("spec.version", "1.2.0"), (Level.BREAKING, Code.VERSION_NOT_HIGHER, "", "spec.version", "1.2.0", "1.2.0")),
    (csv("spec.version", "1.2.0-rc.1"), (Level.BREAKING, Code.VERSION_NOT_HIGHER, "", "spec.version", "1.2.0", "1.2.0-rc.1")),
    (
        several(csv("spec.version", "1.2.0"), csv("spec.release", "1"), csv("metadata.name", "kettle-v1.2.0-1"), annotation("channels.v1", "stable")),
        (Level.RISKY, Code.CHANNEL_LEFT, "", "", "candidate", None),
    ),
    (csv("spec.replaces", "kettle.v1.1.0"), (Level.RISKY, Code.NOT_REACHED, "", "spec.replaces", "kettle.v1.2.0", "kettle.v1.1.0")),
    (
        several(csv("spec.replaces"), csv_annotation("olm.skipRange", "<1.2.0")),
        (Level.RISKY, Code.NOT_REACHED, "", "spec.replaces", "kettle.v1.2.0", None),
    ),
    (annotation("channels.v1", "stable"), (Level.RISKY, Code.CHANNEL_LEFT, "", "", "candidate", None)),
    (
        csv("spec.installModes.3.supported", False),
        (Level.BREAKING, Code.MODE_REMOVED, "", "spec.installModes", "AllNamespaces", None),
    ),
    (
        csv("spec.installModes.0.supported", True),
        (Level.HARMLESS, Code.MODE_ADDED, "", "spec.installModes", None, "OwnNamespace"),
    ),
    (csv("spec.minKubeVersion", "1.31.0"), (Level.RISKY, Code.KUBERNETES_RAISED, "", "spec.minKubeVersion", "1.30.0", "1.31.0")),
    (
        csv("spec.customresourcedefinitions.required", [{"name": "cups.k.example.com", "version": "v1", "kind": "Cup"}]),
        (Level.RISKY, Code.REQUIREMENT_ADDED, "", "cups.k.example.com", None, "Cup v1"),
    ),
    (
        csv("spec.apiservicedefinitions", {"required": [{"name": "heats", "group": "h", "version": "v1", "kind": "Heat"}]}),
        (Level.RISKY, Code.REQUIREMENT_ADDED, "", "heats.h", None, "Heat v1"),
    ),
    (
        lambda files: files.strategy["clusterPermissions"][0]["rules"].append(GRANT),
        (Level.HARMLESS, Code.PERMISSIONS_GROWN, "", "clusterPermissions of kettle-manager: jobs.batch", None, "get, create"),
    ),
    (
        lambda files: files.strategy["permissions"][0]["rules"].append(
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["key"], "verbs": ["get"]}
        ),
        (Level.HARMLESS, Code.PERMISSIONS_GROWN, "", "permissions of kettle-manager: secrets key", None, "get"),
    ),
    (
        lambda files: files.strategy["clusterPermissions"][0]["rules"].append({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}),
        (Level.HARMLESS, Code.PERMISSIONS_GROWN, "", "clusterPermissions of kettle-manager: /metrics", None, "get"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("change", "finding"), RELEASE, ids=[f"{f[1]}-{n}" for n, (_, f) in enumerate(RELEASE)])
def test_what_changes_in_a_release_is_said(tmp_path, change, finding):
    assert between(tmp_path, change) == [finding]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "1", []),
        ("9", "10", []),
        ("1.rc-1", "1.rc-2", []),
        ("2", "2", [(Code.VERSION_NOT_HIGHER, "spec.release", "1.2.0-2", "1.2.0-2")]),
        ("10", "9", [(Code.VERSION_NOT_HIGHER, "spec.release", "1.2.0-10", "1.2.0-9")]),
        ("1", "", [(Code.VERSION_NOT_HIGHER, "spec.release", "1.2.0-1", "1.2.0")]),
    ],
)
def test_a_release_of_the_same_version_has_to_be_higher(tmp_path, old, new, expected):
    def build(release):
        return several(csv("spec.version", "1.2.0"), csv("spec.release", release))

    found = between(tmp_path, build(new), build(old))

    assert [each[1:2] + each[3:] for each in found] == expected


REACHED = {
    "replaces": csv("spec.replaces", "kettle.v1.2.0"),
    "skips": several(csv("spec.replaces", "kettle.v1.1.0"), csv("spec.skips", ["kettle.v1.2.0"])),
    "skipRange": several(csv("spec.replaces"), csv_annotation("olm.skipRange", ">=1.0.0 <1.3.0")),
}


@pytest.mark.parametrize("change", REACHED.values(), ids=REACHED)
def test_a_release_is_reached_by_each_of_the_three_edges(tmp_path, change):
    assert between(tmp_path, change) == []


COVERED = {
    "a verb of all": ({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}, GRANT | {"apiGroups": ["apps"], "resources": ["deployments"]}),
    "every group and resource": ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "create"]}, GRANT),
    "every name": (GRANT, GRANT | {"resourceNames": ["one"]}),
    "every path": ({"nonResourceURLs": ["*"], "verbs": ["get"]}, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}),
}  # fmt: skip


@pytest.mark.parametrize(("had", "rule"), COVERED.values(), ids=COVERED)
def test_what_was_granted_by_another_rule_is_nothing_new(tmp_path, had, rule):
    assert between(tmp_path, put_rules(rule), put_rules(had)) == []


NEW = {
    "another name": (GRANT | {"resourceNames": ["one"]}, GRANT | {"resourceNames": ["two"]}),
    "all names": (GRANT | {"resourceNames": ["one"]}, GRANT),
    "another group": (GRANT, GRANT | {"apiGroups": ["apps"]}),
    "a subresource": (GRANT, GRANT | {"resources": ["jobs/status"]}),
    "every verb": (GRANT, GRANT | {"verbs": ["*"]}),
}


@pytest.mark.parametrize(("had", "rule"), NEW.values(), ids=NEW)
def test_what_no_rule_granted_is_new(tmp_path, had, rule):
    assert [each[1] for each in between(tmp_path, put_rules(rule), put_rules(had))] == [Code.PERMISSIONS_GROWN]


def test_what_one_account_may_is_new_for_another(tmp_path):
    change = csv(f"{STRATEGY}.clusterPermissions.0.serviceAccountName", "kettle-helper")

    assert {each[1] for each in between(tmp_path, change)} == {Code.PERMISSIONS_GROWN}


def test_what_was_granted_in_a_namespace_is_new_in_the_cluster(tmp_path):
    def wider(files):
        rules = files.strategy["permissions"][0]["rules"]
        files.strategy["clusterPermissions"][0]["rules"].append(rules.pop())

    assert [each[3] for each in between(tmp_path, wider)] == [
        "clusterPermissions of kettle-manager: leases.coordination.k8s.io"
    ]


@pytest.mark.parametrize("version", ["1.29.0", "1.30.0", "", "1.31"])
def test_a_kubernetes_that_is_not_newer_asks_nothing_of_anybody(tmp_path, version):
    assert between(tmp_path, csv("spec.minKubeVersion", version)) == []


def test_what_was_granted_in_the_cluster_is_in_the_namespace_too(tmp_path):
    def narrower(files):
        rules = files.strategy["clusterPermissions"][0]["rules"]
        files.strategy["permissions"][0]["rules"].append(rules.pop())

    assert between(tmp_path, narrower) == []


def put_rules(rule):
    def change(files):
        files.strategy["clusterPermissions"][0]["rules"] = [rule]

    return change


# Definitions.


def test_changes_of_a_definition_are_those_of_crd_diff(tmp_path):
    found = between(tmp_path, crd(f"{SPEC}.litres.maximum", 9))

    assert found == [(Level.BREAKING, "bound-tightened", "v1", "spec.litres", None, "maximum 9")]


def test_a_definition_that_is_missing_is_said(tmp_path):
    found = between(tmp_path, remove(CRD))

    assert [each[:2] for each in found] == [(Level.BREAKING, "definition-removed")]


def test_a_version_that_goes_while_it_is_stored_is_refused(tmp_path):
    found = between(
        tmp_path,
        several(second_version(storage=True), without_version(0)),
        second_version(),
    )

    assert [each[:3] for each in found] == [
        (Level.BREAKING, "stored-version-removed", "v1"),
        (Level.RISKY, "storage-version-changed", ""),
        (Level.RISKY, Code.NOT_DEPRECATED, "v1"),
    ]


@pytest.mark.parametrize("stored", ["v2", "kettles.kitchen.example.com=v2"])
def test_a_version_that_nothing_is_stored_in_may_go(tmp_path, stored):
    old = several(
        second_version(storage=True),
        put(CRD, "spec.versions.0.served", False),
    )

    found = between(tmp_path, several(second_version(storage=True), without_version(0)), old, stored=[stored])

    assert [each[:3] for each in found] == [(Level.HARMLESS, "migrated-version-removed", "v1")]


def test_stored_versions_that_are_given_count_more_than_what_is_stored_now(tmp_path):
    old = several(second_version(storage=True), put(CRD, "spec.versions.0.served", False))
    new = several(second_version(storage=True), without_version(0))

    found = between(tmp_path, new, old, stored=["v1", "v2"])

    assert [each[:3] for each in found] == [(Level.BREAKING, "stored-version-removed", "v1")]


@pytest.mark.parametrize("stored", ["v3", "kettles.kitchen.example.com=v3", "cups.kitchen.example.com=v1"])
def test_nothing_is_stored_in_a_version_that_is_not_there(tmp_path, stored):
    definitions = read_definitions(write(tmp_path) / "manifests")

    with pytest.raises(ConfigError) as caught:
        stored_versions(definitions, [stored])

    assert str(caught.value) == f"cannot use --stored {stored}: kettles.kitchen.example.com has v1"


def test_who_was_warned_is_not_told_again(tmp_path):
    old = several(second_version(storage=True), put(CRD, "spec.versions.0.deprecated", True))
    new = several(old, put(CRD, "spec.versions.0.served", False))

    found = between(tmp_path, new, old, stored=["v2"])

    assert [each[:3] for each in found] == [(Level.BREAKING, "version-not-served", "v1")]


LID = {"lid": {"type": "boolean"}}


def test_versions_that_differ_need_a_conversion(tmp_path):
    found = between(tmp_path, second_version(changed=LID))

    assert [each[:3] for each in found] == [
        (Level.BREAKING, Code.CONVERSION_MISSING, "v1 and v2"),
        (Level.HARMLESS, "version-added", "v2"),
    ]


CONVERTED = {
    "by the definition": second_version(changed=LID, conversion={"strategy": "Webhook"}),
    "by the ClusterServiceVersion": several(second_version(changed=LID), conversion_webhook),
    "not needed": second_version(),
    "not needed for descriptions": second_version(
        changed={"litres": {"type": "integer", "minimum": 1, "description": "x"}}
    ),
}


@pytest.mark.parametrize("change", CONVERTED.values(), ids=CONVERTED)
def test_versions_that_are_converted_or_alike_go_together(tmp_path, change):
    assert Code.CONVERSION_MISSING not in [each[1] for each in between(tmp_path, change)]


def test_a_version_that_is_not_served_needs_no_conversion(tmp_path):
    found = between(tmp_path, several(second_version(changed=LID), put(CRD, "spec.versions.1.served", False)))

    assert [each[1] for each in found] == ["version-added"]


def test_a_conversion_that_was_missing_before_is_nothing_new(tmp_path):
    assert between(tmp_path, second_version(changed=LID), second_version(changed=LID)) == []


def test_a_conversion_that_goes_from_the_release_is_said(tmp_path):
    old = several(second_version(changed=LID), conversion_webhook)

    found = between(tmp_path, second_version(changed=LID), old)

    assert [each[:2] for each in found] == [
        (Level.BREAKING, "conversion-removed"),
        (Level.BREAKING, Code.CONVERSION_MISSING),
    ]


MOVED = {
    "another path": ({"webhookPath": "/convert2"}, True),
    "another port": ({"containerPort": 8443}, True),
    "another Deployment": ({"deploymentName": "kettle-webhook"}, True),
    "another port of the Pods": ({"targetPort": 10000}, False),
}


@pytest.mark.parametrize(("fields", "is_change"), MOVED.values(), ids=MOVED)
def test_a_conversion_that_moves_is_said(tmp_path, fields, is_change):
    def moved(files):
        conversion_webhook(files)
        files.csv["spec"]["webhookdefinitions"][-1].update(fields)

    old = several(second_version(changed=LID), conversion_webhook)

    found = between(tmp_path, several(second_version(changed=LID), moved), old)

    assert [each[1] for each in found] == (["conversion-changed"] if is_change else [])


# Objects.


def kettle(**spec):
    return {"apiVersion": "kitchen.example.com/v1", "kind": "Kettle", "metadata": {"name": "mine"}, "spec": spec}


def test_the_examples_of_the_old_release_stand_for_objects(tmp_path):
    found = between(tmp_path, crd(f"{SPEC}.litres.maximum", 1))

    refused = [each for each in found if each[1] is Code.OBJECT_REFUSED]
    assert [(each[3], each[5]) for each in refused] == [
        ("example Kettle/breakfast spec.litres", "Invalid value: 2: spec.litres in body should be less than or equal to 1")
    ]  # fmt: skip


def test_objects_are_asked_after_where_a_webhook_converts_them_too(tmp_path):
    old = several(second_version(changed=LID), conversion_webhook)

    found = between(tmp_path, several(old, crd(f"{SPEC}.litres.maximum", 1)), old)

    assert [each[1] for each in found] == ["bound-tightened", Code.OBJECT_REFUSED]


def test_an_example_that_fits_no_longer_is_no_matter_when_its_version_is_gone(tmp_path):
    found = between(tmp_path, several(second_version(storage=True), without_version(0)), second_version(storage=True))

    assert not {each[1] for each in found} & {Code.OBJECT_REFUSED, Code.OBJECT_NOT_CHECKED}


OBJECTS = [
    (kettle(litres=12), [(Code.OBJECT_REFUSED, "object Kettle/mine spec.litres")]),
    (kettle(litres=2, lid=True), [(Code.OBJECT_PRUNED, "object Kettle/mine spec.lid")]),
    (kettle(litres=2), []),
    ({**kettle(), "apiVersion": "kitchen.example.com/v9"}, [(Code.OBJECT_NOT_CHECKED, "object Kettle/mine")]),
    (
        {
            **kettle(litres=2),
            "metadata": {"name": "mine", "namespace": "tea", "uid": "u", "resourceVersion": "5", "managedFields": [{}]},
        },
        [],
    ),
]


@pytest.mark.parametrize(("given", "expected"), OBJECTS, ids=range(len(OBJECTS)))
def test_objects_that_exist_are_asked_after(tmp_path, given, expected):
    found = between(tmp_path, crd(f"{SPEC}.litres.maximum", 9), objects=[given])

    assert [(each[1], each[3]) for each in found if each[1] != "bound-tightened"] == expected


def test_objects_are_read_from_lists_and_documents():
    many = json.dumps({"kind": "List", "apiVersion": "v1", "items": [kettle(), kettle(litres=1)]})

    assert [each["spec"] for each in given_objects([("a", many), ("b", json.dumps(kettle(litres=2)))])] == [
        {}, {"litres": 1}, {"litres": 2},
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["3", "a: 1", '{"kind": "List", "items": [1]}'])
def test_what_is_no_object_is_said(text):
    with pytest.raises(ConfigError, match="b: a document is not an object: it must be a map with apiVersion and kind"):
        given_objects([("b", text)])


def test_a_bundle_that_cannot_be_read_is_said(tmp_path):
    good, bad = read_bundle(write(tmp_path / "a")), read_bundle(write(tmp_path / "b", csv("spec.version", "1")))

    with pytest.raises(ConfigError, match=r"spec\.version '1' is not a semantic version"):
        compare(good, bad)


WRONG = [
    ("spec.versions.0.schema", "x"),
    ("spec.names", {"kind": "Kettle", "plural": "cups"}),
    ("spec.versions.0.name", []),
]


@pytest.mark.parametrize(("path", "value"), WRONG, ids=[path for path, _ in WRONG])
@pytest.mark.parametrize("is_old", [True, False], ids=["old", "new"])
def test_with_a_definition_that_no_server_takes_nothing_is_compared(tmp_path, path, value, is_old):
    wrong = crd(path, value)

    with pytest.raises(ConfigError) as caught:
        between(tmp_path, *((None, wrong) if is_old else (wrong, None)))

    assert str(caught.value).startswith(f"{tmp_path}/{'old' if is_old else 'new'}/manifests")
    assert "\n" not in str(caught.value)


def test_files_that_are_no_definitions_change_nothing(tmp_path):
    assert between(tmp_path, add("manifests/more.yaml", {"apiVersion": "v1", "kind": "Secret"})) == []


def test_every_code_has_a_rule_and_a_case():
    shown = {finding[1] for _, finding in RELEASE} | {code for _, several in OBJECTS for code, _ in several}

    assert set(RULES) == set(Code) == shown | {Code.NOT_DEPRECATED, Code.CONVERSION_MISSING}
