"""Every check by a bundle in which one thing is wrong; the cases stand in the `cases_` modules beside this one."""

from __future__ import annotations

import ast
import copy
import dataclasses
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from bundles import (
    DEPENDENCIES,
    SCORECARD,
    Case,
    Change,
    Files,
    add,
    annotation,
    csv,
    csv_annotation,
    dependency,
    good,
    put,
    remove,
    several,
    write,
)
from cases_csv import CONVERSION
from checks_page import PAGE, page
from installing import Installation, InstallationError

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm import validation
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.finding import Level
from ctrlruntime.olm.validation import ALWAYS, CHECKS, OPTIONAL, RUNS, VALIDATORS, VALUES, select, validate

MODULES = [import_module(path.stem) for path in sorted(Path(__file__).parent.glob("cases_*.py"))]
CASES: list[Case] = [case for module in MODULES for case in module.CASES]
REFUSED = {"csv-webhook-twice", "csv-webhook-rule", "csv-webhook-name", "csv-conversion-empty"}
"""The checks of what OLM itself refuses of webhooks."""

OF_OPTIONAL = {check.code for validator in OPTIONAL for check in validator.checks}


@pytest.mark.parametrize("case", [case for case in CASES if case.code not in OF_OPTIONAL], ids=str)
def test_one_change_is_one_finding(case, tmp_path):
    found = validate(read_bundle(write(tmp_path, case.change)))

    assert {(each.code, each.level) for each in found} == {(case.code, case.level)}
    assert {(each.file, each.object, each.path) for each in found} == case.places
    for each in found:
        assert each.text
        assert "\n" not in str(each)
        assert not each.text.endswith(".")


def test_a_file_that_is_not_text_is_named_once(tmp_path):
    bundle = write(tmp_path)
    (bundle / "manifests/broken.yaml").write_bytes(b"\xff")

    found = validate(read_bundle(bundle))

    assert [(each.file, each.text) for each in found] == [("manifests/broken.yaml", "it is not UTF-8 text")]


def test_nothing_is_wrong_with_the_good_bundle(tmp_path):
    assert validate(read_bundle(write(tmp_path))) == []


def test_every_check_has_a_case():
    assert {case.code for case in CASES} == set(CHECKS)


def test_names_of_cases_are_distinct():
    assert len({str(case) for case in CASES}) == len(CASES)


def test_a_code_in_the_table_is_used_in_a_module_and_the_reverse():
    modules = [path for path in Path(validation.__file__).parent.glob("*.py") if path.name != "checks.py"]
    nodes = [node for path in modules for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    # A finding has its code first: `yield "code", path, text` or `about("code", …)`.
    first = [node.value.elts[0] for node in nodes if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple)]
    first += [node.args[0] for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "about"]
    codes = {
        node.value for node in first if isinstance(node, ast.Constant) and node.value.strip(".") == node.value != ""
    }

    assert set(CHECKS) - texts == set()
    assert codes - set(CHECKS) == set()
    assert len(codes) > 80


def test_codes_are_stable_words_of_one_check_each():
    checks = [check for validator in VALIDATORS for check in validator.checks]

    assert all(CHECKS[check.code] is check for check in checks), "two checks with one code"
    for check in checks:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", check.code)
        assert check.summary
        assert not check.summary.endswith(".")
        assert check.type


def test_errors_come_first(tmp_path):
    def change(files: Files) -> None:
        del files.csv["spec"]["description"]
        files.csv["spec"]["replaces"] = "-"

    found = validate(read_bundle(write(tmp_path, change)))

    assert [each.level for each in found] == [Level.ERROR, Level.WARNING]


def test_a_finding_says_file_object_field_and_what_to_do(tmp_path):
    def change(files: Files) -> None:
        files.csv["spec"]["installModes"][3]["suported"] = True

    (found,) = validate(read_bundle(write(tmp_path, change)))

    assert str(found) == (
        "manifests/kettle.clusterserviceversion.yaml: ClusterServiceVersion/kettle.v1.2.0: spec.installModes[3].suported: "
        "is unknown to OLM, which drops it; did you mean 'supported'?"
    )


def test_a_finding_of_two_validators_is_reported_once(tmp_path):
    """A removed API is a check of `operatorhubv2` and of `alpha-deprecated-apis`."""
    budget = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "kettle"}}
    bundle = read_bundle(write(tmp_path, add("manifests/budget.yaml", {**budget, "spec": {"minAvailable": 1}})))

    found = validate(bundle, optional=["name in (operatorhubv2, alpha-deprecated-apis)"])

    assert [each.code for each in found] == ["api-removed"]


def test_an_optional_validator_runs_when_it_is_asked_for(tmp_path):
    case = next(case for case in CASES if case.code in OF_OPTIONAL and case.select and not case.values)
    bundle = read_bundle(write(tmp_path, case.change))

    assert case.code not in {each.code for each in validate(bundle)}
    assert case.code in {each.code for each in validate(bundle, optional=case.select)}


def test_selectors_take_names_and_suites():
    assert select([]) == ()
    for each in OPTIONAL:
        assert select([f"name={each.name}"]) == (each,)
    suite = next(each.suite for each in OPTIONAL if each.suite)
    assert select([f"suite={suite}", f"name={OPTIONAL[0].name}"]) == tuple(
        each for each in OPTIONAL if each.suite == suite or each is OPTIONAL[0]
    )


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("name in (capabilities,categories)", {"capabilities", "categories"}),
        ("name in (capabilities, categories), suite=operatorframework", {"capabilities", "categories"}),
        ("suite=operatorframework,name!=capabilities", {
            "operatorhubv2", "categories", "alpha-deprecated-apis", "good-practices"
        }),
        ("!suite", {each.name for each in OPTIONAL if not each.suite}),
        ("name", {each.name for each in OPTIONAL}),
    ],
)  # fmt: skip
def test_selectors_are_those_of_labels(selector, names):
    assert {each.name for each in select([selector])} == names


@pytest.mark.parametrize("selector", ["", "goodpractices", "kind=x", "!name", "name=multiarch,suite=operatorframework"])
def test_a_selector_that_selects_nothing_is_refused(selector):
    with pytest.raises(ConfigError, match=r"selects no validator\. Write name=NAME, suite=SUITE, or 'name in"):
        select(["name=capabilities", selector])


@pytest.mark.parametrize("selector", ["name in capabilities", "name=a=b", "name=(", "na me=x"])
def test_a_selector_that_is_none_is_refused(selector):
    with pytest.raises(ConfigError, match=r"is not a selector: .*\. Write name=NAME"):
        select([selector])


def test_an_unknown_name_is_refused_with_the_nearest():
    name = OPTIONAL[0].name

    with pytest.raises(ConfigError, match=rf"unknown optional validator: name '{name}x'; did you mean '{name}'\?"):
        select([f"name={name}x"])
    with pytest.raises(ConfigError, match=r"\. Use one of "):
        select(["suite=qqqq"])
    with pytest.raises(ConfigError, match=r"name 'multiarhc'; did you mean 'multiarch'\?"):
        select(["name in (capabilities, multiarhc)"])


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("operatorhub", "Select suite=operatorframework"),
        ("package-manifest", "OLM replaced package manifests by bundles"),
    ],
)
def test_a_validator_that_upstream_deprecated_is_unknown_with_advice(name, advice):
    with pytest.raises(ConfigError, match=rf"^unknown optional validator: name '{name}'\. {advice}$"):
        select([f"name={name}"])


def test_names_of_validators_are_distinct_and_each_has_a_function():
    assert [each.name for each in VALIDATORS] == list(RUNS)
    assert not any(each.suite for each in ALWAYS)


def test_nulls_are_absent_as_for_go(tmp_path):
    def change(files: Files) -> None:
        files.csv["spec"].update(cleanup=None, labels=None, skips=None)
        files.csv["metadata"]["creationTimestamp"] = None
        files.csv["status"] = None

    assert validate(read_bundle(write(tmp_path, change))) == []


@pytest.mark.parametrize(
    "change",
    [
        csv("spec.customresourcedefinitions.owned.0.resources.0", {"kind": "Deployment", "version": "apps/v1"}),
        csv("spec.customresourcedefinitions.owned.0.statusDescriptors.0.value", {"any": ["thing"]}),
        csv("spec.icon", [{"base64data": "", "mediatype": ""}]),
        csv("spec.apiservicedefinitions", {}),
        csv("spec.install.spec.deployments.0.spec.template.spec.containers.0.resources.requests.cpu", 1),
        csv("metadata.namespace", "placeholder"),
        annotation("metadata.v1", "metadata"),
        dependency("olm.constraint", {"failureMessage": "no", "all": {"constraints": [
            {"package": {"packageName": "stove", "versionRange": ">=1.0.0"}},
            {"not": {"constraints": [{"gvk": {"group": "a.example.com", "version": "v1", "kind": "A"}}]}},
            {"cel": {"rule": "properties.exists(p, p.type == 'certified' && semver_compare(p.value, '1.0.0') >= 0)"}},
        ]}}),
        dependency("olm.label", {"label": "hot"}),
        several(csv("spec.release", "rc-1.2"), csv("metadata.name", "kettle-v1.2.0-rc-1.2")),
        several(csv("spec.release", "20-characters-of-its"), csv("metadata.name", "kettle-v1.2.0-20-characters-of-its")),
        lambda files: files.csv["spec"]["webhookdefinitions"].append(
            {key: value for key, value in CONVERSION.items() if key != "webhookPath"}
        ),
        csv_annotation("olm.skipRange", ">=1.0.0 <1.2.0"),
        csv_annotation("operators.openshift.io/infrastructure-features", '["disconnected"]'),
        csv_annotation("operatorframework.io/initialization-resource", '{"kind": "Kettle"}'),
        add("manifests/monitor.yaml", {
            "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "kettle"}, "spec": {"any": 1}
        }),
        add("manifests/budget.yaml", {
            "apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "kettle"}, "spec": {"minAvailable": 1}
        }),
        add("metadata/properties.yaml", {"properties": [{"type": "olm.maxOpenShiftVersion", "value": "4.20"}]}),
        several(remove(DEPENDENCIES), remove(SCORECARD)),
    ],
)  # fmt: skip
def test_what_bundles_may_hold_is_no_finding(change, tmp_path):
    assert validate(read_bundle(write(tmp_path, change))) == []


# OLM in tests


def _installation(change: Change | None = None) -> Installation:
    files = good()
    if change is not None:
        change(files)
    return Installation(csv=files.csv, namespace="kitchen")


@pytest.mark.parametrize("case", [case for case in CASES if case.code in REFUSED], ids=str)
def test_what_tests_install_is_refused_as_bundles_are(case):
    with pytest.raises(InstallationError):
        _installation(case.change).objects()


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.code.startswith("csv-webhook") and case.code not in REFUSED], ids=str
)
def test_what_only_a_server_refuses_is_not_refused_before(case):
    assert _installation(case.change).objects()


def test_configurations_are_labelled_and_named_after_their_webhooks():
    (configuration,) = [each for each in _installation().objects() if each["kind"] == "ValidatingWebhookConfiguration"]

    assert configuration["metadata"] == {
        "name": "vkettle.kb.io-kitchen",
        "labels": {"olm.owner": "kettle.v1.2.0", "olm.webhook-description-generate-name": "vkettle.kb.io"},
    }


def test_several_things_are_all_told(tmp_path):
    change = several(add("manifests/a.txt", ""), add("manifests/b.txt", ""), add("metadata/c.yaml", "["))

    found = validate(read_bundle(write(tmp_path, change)))

    assert [(each.code, each.file) for each in found] == [
        ("manifests-foreign-file", "manifests/a.txt"),
        ("manifests-foreign-file", "manifests/b.txt"),
        ("metadata-unreadable", "metadata/c.yaml"),
    ]


def test_findings_are_values(tmp_path):
    def change(files: Files) -> None:
        files.csv["spec"]["replaces"] = "-"

    (found,) = validate(read_bundle(write(tmp_path, change)))

    assert dataclasses.replace(found) == found
    assert len({found, dataclasses.replace(found)}) == 1


def test_what_a_bundle_holds_does_not_break_a_line(tmp_path):
    (found,) = validate(read_bundle(write(tmp_path, csv("spec.replaces", "a\nb"))))

    assert "\n" not in str(found)
    assert "'a\\nb' is not a valid name" in found.text


@pytest.mark.parametrize("value", [None, [], {}, 1, "", True, [1], {"a": 1}, [None], "a\n"], ids=repr)
def test_a_value_of_any_type_in_any_place_is_a_finding_or_none(tmp_path, value):
    """One place in eleven, another eleventh for each value; what is found is not looked at, but that something comes back is."""
    places = [(file, path) for file, tree in good().items() for path in _paths(tree)]
    names = [f"name={each.name}" for each in OPTIONAL]
    for index, (file, path) in enumerate(places[len(repr(value)) :: 11]):
        found = validate(
            read_bundle(write(tmp_path / str(index), put(file, path, copy.deepcopy(value)))), optional=names
        )

        assert all("\n" not in str(each) for each in found), f"{file} {path}"


def _paths(tree: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of a tree that `put` can name."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        if "." not in str(key):
            yield (here := f"{path}.{key}".lstrip("."))
            yield from _paths(value, here)


def test_a_value_no_validator_asks_for_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"unknown value 'k8s-versoin' in --optional-values; did you mean 'k8s-version'\?"
    ):
        validate(read_bundle(write(tmp_path)), values={"k8s-versoin": "1.36"})
    with pytest.raises(ConfigError, match=r"\. Use one of image-platforms, k8s-version"):
        validate(read_bundle(write(tmp_path)), values={"qqq": "1.36"})


def test_all_values_that_cases_use_are_known():
    assert {name for case in CASES for name in case.values} == set(VALUES)


def test_the_page_of_all_checks_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python tests/olm/checks_page.py"
