"""The optional validators: each check fails alone under its own, and the good bundle passes them."""

from __future__ import annotations

import base64
import copy
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bundles import CSV, Case, Change, Files, annotation, csv, csv_annotation, good, several, write
from cases_optional import CASES, PLATFORMS

from ctrlruntime.api.groups import MODULES
from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import Bundle, BundleObject, read_bundle
from ctrlruntime.olm.finding import Finding
from ctrlruntime.olm.validation import OPTIONAL, RUNS, Subject
from ctrlruntime.olm.validation.hub import VARIABLE
from ctrlruntime.olm.validation.removed import REMOVED

BY_NAME = {each.name: each for each in OPTIONAL}
SUITE = [each.name for each in OPTIONAL if each.suite == "operatorframework"]


def found(name: str, folder: Path, change: Change | None = None, **values: str) -> list[Finding]:
    """Return the findings of one validator."""
    write(folder, change)
    given = {key.replace("_", "-"): value.replace("{folder}", str(folder)) for key, value in values.items()}
    return list(RUNS[name](Subject(read_bundle(folder), given)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_change_of_the_good_bundle_fails_one_check(case: Case, tmp_path: Path) -> None:
    name = case.select[0].removeprefix("name=")

    findings = found(name, tmp_path, case.change, **case.values)

    assert {each.code for each in findings} == {case.code}
    assert {each.level for each in findings} == {case.level}
    assert {(each.file, each.object, each.path) for each in findings} == case.places
    assert {each.check for each in findings} <= set(BY_NAME[name].checks)
    assert all(each.text and "\n" not in each.text for each in findings)


@pytest.mark.parametrize("name", SUITE)
def test_the_good_bundle_passes_the_suite(name: str, tmp_path: Path) -> None:
    assert found(name, tmp_path) == []


def test_the_suite_is_that_of_operator_framework() -> None:
    assert set(SUITE) == {
        "operatorhubv2",
        "capabilities",
        "categories",
        "alpha-deprecated-apis",
        "good-practices",
    }
    assert set(BY_NAME) - set(SUITE) == {"multiarch", "object"}


def test_every_check_has_a_case() -> None:
    checks = {check.code for each in OPTIONAL for check in each.checks}

    assert checks == {each.code for each in CASES}


def test_findings_tell_file_object_and_field(tmp_path: Path) -> None:
    (finding,) = found("operatorhubv2", tmp_path, csv("spec.links.0.url", "kettle"))

    assert str(finding) == (
        f"{CSV}: ClusterServiceVersion/kettle.v1.2.0: spec.links[0].url:"
        " 'kettle' is not a URL. Write it in full, with https://"
    )


def test_a_level_that_is_nearly_right_is_named(tmp_path: Path) -> None:
    (finding,) = found("capabilities", tmp_path, csv_annotation("capabilities", "autopilot"))

    assert finding.text == "'autopilot' is not a capability level; did you mean 'Auto Pilot'?"


# What nobody wrote cannot be wrong.


@pytest.mark.parametrize("name", ["capabilities", "categories"])
def test_an_annotation_that_is_missing_is_fine(name: str, tmp_path: Path) -> None:
    assert found(name, tmp_path, csv_annotation(name)) == []


def test_without_a_csv_only_objects_are_looked_at(tmp_path: Path) -> None:
    write(tmp_path, lambda files: files.pop(CSV))
    (tmp_path / "manifests/budget.yaml").write_text(
        "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {maxUnavailable: 0}}\n"
    )
    subject = Subject(read_bundle(tmp_path))

    codes = {finding.code for name in BY_NAME for finding in RUNS[name](subject)}

    assert codes == {"api-removed-later", "pdb-max-unavailable-zero"}


# Categories of a catalog's own.


@pytest.mark.parametrize(
    ("annotated", "codes"),
    [("Kitchen", []), ("Kitchen, Garden ", []), ("Database", ["category-unknown"])],
)
def test_a_file_names_other_categories(
    annotated: str, codes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "categories.json"
    path.write_text(json.dumps({"categories": ["Kitchen", "Garden"]}))
    monkeypatch.setenv(VARIABLE, str(path))

    findings = found("categories", tmp_path / "bundle", csv_annotation("categories", annotated))

    assert [each.code for each in findings] == codes


@pytest.mark.parametrize("text", ["[", '["Kitchen"]', '{"categories": "Kitchen"}', '{"categories": [1]}', None])
def test_a_file_of_categories_that_cannot_be_used_is_named(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "categories.json"
    if text is not None:
        path.write_text(text)

    monkeypatch.setenv(VARIABLE, str(path))

    with pytest.raises(ConfigError, match=r"categories\.json, set in OPERATOR_BUNDLE_CATEGORIES"):
        found("categories", tmp_path / "bundle")


# Removed APIs.


@pytest.mark.parametrize("version", ["now", "1.x", "2.0.0", "1"])
def test_a_version_of_kubernetes_that_is_none_is_refused(version: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"invalid k8s-version .*\. Write a Kubernetes version such as 1\.32"):
        found("alpha-deprecated-apis", tmp_path, k8s_version=version)


def test_what_replaces_a_removed_api_is_said(tmp_path: Path) -> None:
    resource = [{"kind": "HorizontalPodAutoscaler", "name": "", "version": "autoscaling/v2beta2"}]
    change = csv("spec.customresourcedefinitions.owned.0.resources", resource)

    (finding,) = found("alpha-deprecated-apis", tmp_path, change)

    assert finding.path == "spec.customresourcedefinitions.owned[0].resources[0]"
    assert finding.text == (
        "HorizontalPodAutoscaler of autoscaling/v2beta2 is not served since Kubernetes 1.26. Use autoscaling/v2"
    )


@pytest.mark.parametrize(("gvk", "removal"), REMOVED.items(), ids=lambda each: str(each).replace(" ", ""))
def test_every_removed_api_is_an_error_from_its_version_on(gvk: Any, removal: Any) -> None:
    document = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": "other"}}
    bundle = Bundle(folder=Path(), objects=(BundleObject("manifests/other.yaml", document),))
    run = RUNS["alpha-deprecated-apis"]

    codes = [
        finding.code
        for minor in (removal.since - 1, removal.since)
        for finding in run(Subject(bundle, {"k8s-version": f"1.{minor}"}))
    ]

    assert codes == ["api-removed-later", "api-removed"]


@pytest.mark.parametrize(("gvk", "removal"), REMOVED.items(), ids=lambda each: str(each).replace(" ", ""))
def test_what_replaces_a_removed_api_is_served_and_it_is_not(gvk: Any, removal: Any) -> None:
    assert (gvk.group, gvk.version) not in MODULES
    if removal.instead:
        group, _, version = removal.instead.rpartition("/")
        assert hasattr(importlib.import_module(MODULES[group, version]), gvk.kind)
    else:
        assert gvk.kind == "PodSecurityPolicy"


# Platforms.


def test_without_a_file_one_warning_says_that_nothing_is_asked(tmp_path: Path) -> None:
    (finding,) = found("multiarch", tmp_path)

    assert finding.code == "multiarch-image-unknown"
    assert "no registry is queried" in finding.text


def _all_over(files: Files) -> None:
    """Support two architectures throughout."""
    images = {each["image"]: ["linux/amd64", "linux/arm64"] for each in files.csv["spec"]["relatedImages"]}
    files[PLATFORMS] = json.dumps(images)
    files.csv["metadata"]["labels"]["operatorframework.io/arch.arm64"] = "supported"
    affinity = files.pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    affinity["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] = ["amd64", "arm64"]


def test_labels_images_and_affinity_that_agree_are_fine(tmp_path: Path) -> None:
    assert found("multiarch", tmp_path, _all_over, image_platforms=f"{{folder}}/{PLATFORMS}") == []


def test_no_label_is_asked_for_that_an_image_could_not_keep(tmp_path: Path) -> None:
    def change(files: Files) -> None:
        _all_over(files)
        offered = json.loads(files[PLATFORMS])
        manager, side = offered
        files[PLATFORMS] = json.dumps({manager: [*offered[manager], "linux/s390x"], side: offered[side]})

    findings = found("multiarch", tmp_path, change, image_platforms=f"{{folder}}/{PLATFORMS}")

    assert [each.code for each in findings] == ["multiarch-image-behind"]
    assert "linux/s390x" in findings[0].text


def test_a_node_selector_places_pods_too(tmp_path: Path) -> None:
    def change(files: Files) -> None:
        del files.pod["affinity"]
        files.pod["nodeSelector"] = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}

    codes = {each.code for each in found("multiarch", tmp_path, change)}

    assert codes == {"multiarch-image-unknown"}


def test_one_term_that_lets_every_node_in_is_enough(tmp_path: Path) -> None:
    def change(files: Files) -> None:
        affinity = files.pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        affinity["nodeSelectorTerms"].append({"matchExpressions": [{"key": "disk", "operator": "Exists"}]})

    codes = {each.code for each in found("multiarch", tmp_path, change)}

    assert codes == {"multiarch-image-unknown", "multiarch-affinity-missing"}


@pytest.mark.parametrize("text", ["[]", "{", '{"a": "linux/amd64"}', '{"a": ["amd64"]}', '{"a": [1]}', None])
def test_a_file_of_platforms_that_cannot_be_used_is_named(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "platforms.json"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ConfigError, match=r"platforms\.json, set in image-platforms"):
        found("multiarch", tmp_path / "bundle", image_platforms=str(path))


# Pictures.


@pytest.mark.parametrize(
    ("media_type", "data", "codes"),
    [
        ("image/png", b"\x89PNG\r\n\x1a\n....", []),
        ("image/gif", b"GIF89a....", []),
        ("image/gif", b"GIF87a....", []),
        ("image/jpeg", b"\xff\xd8\xff\xe0....", []),
        ("image/svg+xml", b'<?xml version="1.0"?>\n<!-- a kettle -->\n<svg/>', []),
        ("image/svg+xml", b"<html/>", ["hub-icon-content"]),
        ("image/jpeg", b"\x89PNG\r\n\x1a\n....", ["hub-icon-content"]),
    ],
)
def test_a_picture_begins_as_its_media_type_has_it(
    media_type: str, data: bytes, codes: list[str], tmp_path: Path
) -> None:
    # `base64` breaks its lines unless it is told not to.
    icon = {"base64data": base64.encodebytes(data).decode(), "mediatype": media_type}

    findings = found("operatorhubv2", tmp_path, csv("spec.icon", [icon]))

    assert [each.code for each in findings] == codes


# Fine, though it looks like what is not.

FINE: list[tuple[str, Change]] = [
    ("operatorhubv2", csv("spec.links.0.url", "mailto:kitchen@example.com")),
    ("operatorhubv2", csv("spec.version", "0.0.1")),
    ("good-practices", annotation("channels.v1", "candidate-v1,fast-v1.2,stable")),
    ("good-practices", csv("metadata.name", "kettle.v1.2.0-rc.1")),
    ("good-practices", csv("metadata.name", "cool.vault.v1.2.0")),
    ("good-practices", several(csv("spec.release", "1"), csv("metadata.name", "kettle-v1.2.0-1"))),
    ("good-practices", several(csv("spec.release", "1"), csv("metadata.name", "cool.vault-v1.2.0-1"))),
    (
        "good-practices",
        csv(
            "spec.install.spec.permissions.0.rules.0",
            {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "list"]},
        ),
    ),
    (
        "object",
        csv(
            "spec.install.spec.permissions.0.rules.0",
            {
                "apiGroups": ["security.openshift.io"],
                "resources": ["securitycontextconstraints"],
                "resourceNames": ["mine"],
                "verbs": ["*"],
            },
        ),
    ),
    (
        "object",
        lambda files: files.update(
            {
                "manifests/budget.yaml": "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b},"
                " spec: {maxUnavailable: 50%}}\n"
            }
        ),
    ),
    ("object", lambda files: files.update({"manifests/role.yaml": "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [1]}\n"})),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change"), FINE, ids=lambda each: each if isinstance(each, str) else "")
def test_what_is_fine_is_not_told(name: str, change: Change, tmp_path: Path) -> None:
    assert found(name, tmp_path, change) == []


# A bundle may hold anything.


def _broken(tree: Any) -> Iterator[Any]:
    """Yield the tree with each of its values, one at a time, taken away, empty, and of another type. It is one tree, changed."""
    root = {"": copy.deepcopy(tree)}

    def walk(place: Any, key: Any) -> Iterator[Any]:
        value = place[key]
        for wrong in (None, [], {}, "", 7, [None], {"a": None}):
            place[key] = wrong
            yield root[""]
        del place[key]
        yield root[""]
        if isinstance(place, list):
            place.insert(key, value)
        else:
            place[key] = value
        for inner in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            yield from walk(value, inner)

    for key in list(root[""]):
        yield from walk(root[""], key)


def test_no_validator_fails_whatever_a_csv_holds() -> None:
    codes: set[str] = set()
    decoded = 0

    for tree in _broken(good().csv):
        subject = Subject(Bundle(folder=Path("/nowhere/bundle"), objects=(BundleObject(CSV, tree),)))
        decoded += subject.csv is not None
        codes.update(finding.code for name in BY_NAME for finding in RUNS[name](subject))

    assert decoded > 500
    assert {"hub-icon-incomplete", "practice-requests-missing", "multiarch-affinity-missing"} <= codes


@pytest.mark.parametrize(
    ("document", "codes"),
    [
        (
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "spec": {"maxUnavailable": 1, "minAvailable": 1},
            },
            set(),
        ),
        (
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1, "globalDefault": False},
            set(),
        ),
        (
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "rules": [{"apiGroups": ["policy"], "resources": ["podsecuritypolicies"], "verbs": ["use"]}],
            },
            {"api-removed-permission"},
        ),
    ],
    ids=lambda each: each.get("kind") if isinstance(each, dict) else "",
)
def test_no_validator_fails_whatever_an_object_holds(document: dict[str, Any], codes: set[str]) -> None:
    written = copy.deepcopy(document)
    found_codes: set[str] = set()

    for tree in _broken(document):
        bundle = Bundle(folder=Path("/nowhere/bundle"), objects=(BundleObject("manifests/a.yaml", tree),))
        found_codes.update(finding.code for name in BY_NAME for finding in RUNS[name](Subject(bundle)))

    assert found_codes == codes
    assert document == written
