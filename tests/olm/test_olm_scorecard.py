"""The scorecard: each of its six tests on the good bundle, and on one that is wrong in what it looks at."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from bundles import CRD, SCORECARD, add, crd, csv, csv_annotation, drop, put, remove, several, write

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.scorecard import (
    Configuration,
    Outcome,
    State,
    Test,
    configuration_of,
    documents,
    junit,
    read_configuration,
    run,
    selected,
)
from ctrlruntime.selector import parse_labels

NAMES = [
    "basic-check-spec",
    "olm-bundle-validation",
    "olm-crds-have-validation",
    "olm-crds-have-resources",
    "olm-spec-descriptors",
    "olm-status-descriptors",
]
OWNED = "spec.customresourcedefinitions.owned"


def results(folder, change=None):
    bundle = read_bundle(write(folder, change))
    return {each.test.name: each for each in run(bundle, configuration_of(bundle).tests)}


def examples(*trees):
    return csv_annotation("alm-examples", json.dumps(trees))


def kettle(**parts):
    base = {"apiVersion": "kitchen.example.com/v1", "kind": "Kettle", "metadata": {"name": "breakfast"}}
    return {**base, **parts}


SPEC = {"litres": 2, "cups": [{"name": "blue"}]}


def test_the_good_bundle_passes_all_six(tmp_path):
    found = results(tmp_path)

    assert list(found) == NAMES
    assert {each.state for each in found.values()} == {State.PASS}
    assert not any(each.errors or each.suggestions for each in found.values())


FAILURES = [
    (
        "olm-bundle-validation",
        csv("spec.installModes", []),
        "installModes",
    ),
    (
        "olm-crds-have-validation",
        examples(kettle(spec={**SPEC, "lid": True})),
        "Kettle/breakfast: spec.lid is not in the schema of kitchen.example.com/v1, so it is dropped. Correct or remove it",
    ),
    (
        "olm-crds-have-validation",
        examples(kettle(spec=SPEC, status={"steam": 1})),
        "Kettle/breakfast: status.steam is not in the schema of kitchen.example.com/v1, so it is dropped. Correct or remove it",
    ),
    (
        "olm-crds-have-validation",
        remove(CRD),
        "Kettle/breakfast: no CRD in the bundle has Kettle in kitchen.example.com/v1. Add the CRD, or remove the example",
    ),
    (
        "olm-crds-have-resources",
        csv(f"{OWNED}.0.resources", []),
        "kettles.kitchen.example.com v1 has no resources. List the kinds that its controller creates",
    ),
    (
        "olm-spec-descriptors",
        csv(f"{OWNED}.0.specDescriptors", [{"path": "cups"}]),
        "Kettle/breakfast: spec.litres has no descriptor in kettles.kitchen.example.com v1",
    ),
    (
        "olm-spec-descriptors",
        csv(f"{OWNED}.0.specDescriptors", [{"path": "litres"}, {"path": "cups[0].name"}]),
        "Kettle/breakfast: spec.cups has no descriptor in kettles.kitchen.example.com v1",
    ),
    (
        "olm-spec-descriptors",
        csv(f"{OWNED}.0.version", "v2"),
        "Kettle/breakfast: Kettle in kitchen.example.com/v1 is not in spec.customresourcedefinitions.owned. Add it there",
    ),
    (
        "olm-spec-descriptors",
        csv(f"{OWNED}.0.name", "kettles.other.example.com"),
        "Kettle/breakfast: Kettle in kitchen.example.com/v1 is not in spec.customresourcedefinitions.owned. Add it there",
    ),
    (
        "olm-status-descriptors",
        several(examples(kettle(spec=SPEC, status={"degrees": 1})), csv(f"{OWNED}.0.statusDescriptors", [])),
        "Kettle/breakfast: status.degrees has no descriptor in kettles.kitchen.example.com v1",
    ),
]


@pytest.mark.parametrize(("name", "change", "told"), FAILURES, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(FAILURES)])
def test_what_is_wrong_fails_its_test_and_is_said(tmp_path, name, change, told):
    found = results(tmp_path, change)[name]

    assert found.state is State.FAIL
    assert any(told in error for error in found.errors), found.errors


PASSES = [
    (
        "olm-crds-have-validation",
        crd("spec.versions.0.schema.openAPIV3Schema", {"x-kubernetes-preserve-unknown-fields": True}),
    ),
    (
        "olm-crds-have-validation",
        crd(
            "spec.versions.0.schema.openAPIV3Schema.properties.spec",
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        ),
    ),
    (
        "olm-crds-have-validation",
        crd(
            "spec.versions.0.schema.openAPIV3Schema.properties.spec",
            {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True}},
        ),
    ),
    ("olm-status-descriptors", examples(kettle(spec=SPEC, status={"degrees": 1}))),
]


@pytest.mark.parametrize(("name", "change"), PASSES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(PASSES)])
def test_what_is_right_in_another_way_passes(tmp_path, name, change):
    assert results(tmp_path, change)[name].state is State.PASS


def test_an_example_without_a_spec_is_a_suggestion_only(tmp_path):
    found = results(tmp_path, examples(kettle()))

    assert found["basic-check-spec"].state is State.PASS
    assert found["basic-check-spec"].suggestions == (
        "Kettle/breakfast has no spec. Add one for the desired state, unless the kind only holds data",
    )
    assert found["olm-spec-descriptors"].state is State.PASS


def test_fields_that_no_example_shows_are_suggested_a_descriptor(tmp_path):
    found = results(tmp_path, csv(f"{OWNED}.0.statusDescriptors", []))["olm-status-descriptors"]

    assert (found.state, found.suggestions) == (
        State.PASS,
        ("kettles.kitchen.example.com v1: status.degrees has no descriptor",),
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (examples(), "the annotation alm-examples has no object. Add a sample to config/samples"),
        (csv_annotation("alm-examples", "[{"), "the annotation alm-examples is not JSON: "),
        (csv_annotation("alm-examples", '{"kind": "Kettle"}'), "the annotation alm-examples is not a list of objects"),
        (
            csv("spec.install", 1),
            "the bundle has no readable ClusterServiceVersion. Run `ctrl bundle validate` for details",
        ),
    ],
    ids=["none", "no-json", "no-list", "no-csv"],
)
def test_what_cannot_be_looked_at_is_an_error_and_no_failure(tmp_path, change, told):
    found = results(tmp_path, change)["olm-spec-descriptors"]

    assert found.state is State.ERROR
    assert found.errors[0].startswith(told)


def test_examples_may_stand_in_the_other_annotation(tmp_path):
    change = several(
        csv_annotation("alm-examples"), csv_annotation("olm.examples", json.dumps([kettle(spec={"lid": 1})]))
    )

    assert results(tmp_path, change)["olm-crds-have-validation"].state is State.FAIL


@pytest.mark.parametrize(
    "change",
    [
        crd("spec.names", "Kettle"),
        crd("spec.versions", "v1"),
        crd("spec.versions", ["v1"]),
        crd("spec.versions.0.schema", []),
        crd("spec.versions.0.schema.openAPIV3Schema.properties", 3),
    ],
    ids=["names", "versions", "version", "schema", "properties"],
)
def test_a_definition_of_any_shape_ends_in_a_failure(tmp_path, change):
    assert results(tmp_path, change)["olm-crds-have-validation"].state is State.FAIL


# The configuration.


def configured(tmp_path, *tests):
    stages = [{"tests": list(tests)}]
    document = {"apiVersion": "scorecard.operatorframework.io/v1alpha3", "kind": "Configuration", "stages": stages}
    return read_bundle(write(tmp_path, add(SCORECARD, document)))


def test_a_test_of_another_image_is_not_run(tmp_path):
    bundle = configured(tmp_path, {"image": "registry.example.com/kuttl:v2", "entrypoint": ["kuttl-test", "steam"]})

    (outcome,) = run(bundle, configuration_of(bundle).tests)

    assert (outcome.test.name, outcome.state, outcome.is_bad) == ("steam", State.NOT_RUN, False)
    assert outcome.log == "it runs in the image registry.example.com/kuttl:v2, which needs a cluster"


def test_a_test_that_the_program_does_not_have_is_an_error(tmp_path):
    bundle = configured(tmp_path, {"image": "i", "entrypoint": ["/bin/scorecard-test", "olm-spec-descriptor"]})

    (outcome,) = run(bundle, configuration_of(bundle).tests)

    assert (outcome.state, outcome.is_bad) == (State.ERROR, True)
    assert outcome.errors == ("scorecard-test has no test 'olm-spec-descriptor'; did you mean 'olm-spec-descriptors'?",)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("", NAMES),
        ("suite=basic", NAMES[:1]),
        ("suite=olm,test!=olm-bundle-validation-test", NAMES[2:]),
        ("test in (basic-check-spec-test, olm-spec-descriptors-test)", [NAMES[0], NAMES[4]]),
        ("nothing", []),
    ],
)
def test_labels_select_tests_in_the_order_of_the_stages(tmp_path, labels, names):
    configuration = configuration_of(read_bundle(write(tmp_path)))

    assert [each.name for each in selected(configuration, parse_labels(labels))] == names


BROKEN = [
    (remove(SCORECARD), "the scorecard configuration is missing. Add a Configuration to config/scorecard or"),
    (add(SCORECARD, "a: [b"), "line 2: "),
    (put(SCORECARD, "kind", "Config"), ": not a Configuration of scorecard.operatorframework.io/v1alpha3"),
    (put(SCORECARD, "apiVersion", "v1"), ": not a Configuration of scorecard.operatorframework.io/v1alpha3"),
    (put(SCORECARD, "stages", []), "the stages have no tests. Add one"),
    (put(SCORECARD, "stages", 3), "stages"),
    (drop(SCORECARD, "stages.0.tests.1.entrypoint"), "test 2 has no entrypoint. Set the command of the test"),
]


@pytest.mark.parametrize(("change", "told"), BROKEN, ids=range(len(BROKEN)))
def test_a_configuration_that_is_wrong_is_refused_with_its_file(tmp_path, change, told):
    bundle = read_bundle(write(tmp_path, change))

    with pytest.raises(ConfigError) as caught:
        configuration_of(bundle)

    assert str(caught.value).startswith(f"{tmp_path}/tests/scorecard/config.yaml: ")
    assert told in str(caught.value)


def test_a_configuration_can_stand_elsewhere(tmp_path):
    write(tmp_path)

    assert len(read_configuration(tmp_path / SCORECARD).tests) == 6
    with pytest.raises(ConfigError, match="cannot read"):
        read_configuration(tmp_path / "nothing.yaml")


# What other programs read.


def outcome(name, state, **parts):
    test = Test(image="i:v1", entrypoint=["scorecard-test", name], labels={"suite": "olm"})
    return Outcome(test, state, **parts)


OUTCOMES = [
    outcome("one", State.PASS, log="l", suggestions=("do",)),
    outcome("two", State.FAIL, errors=("bad \x1b<&>", "worse")),
    outcome("three", State.ERROR, errors=("broken",)),
    outcome("four", State.NOT_RUN, log="cluster"),
    outcome("five", None),
]


def test_json_is_a_list_of_tests():
    tree = documents(OUTCOMES)

    assert (tree["apiVersion"], tree["kind"]) == ("scorecard.operatorframework.io/v1alpha3", "TestList")
    assert {each["kind"] for each in tree["items"]} == {"Test"}
    assert tree["items"][1]["spec"] == {
        "image": "i:v1", "entrypoint": ["scorecard-test", "two"], "labels": {"suite": "olm"},
    }  # fmt: skip
    assert [each["status"] for each in tree["items"]] == [
        {"results": [{"name": "one", "state": "pass", "log": "l", "suggestions": ["do"]}]},
        {"results": [{"name": "two", "state": "fail", "errors": ["bad \x1b<&>", "worse"]}]},
        {"results": [{"name": "three", "state": "error", "errors": ["broken"]}]},
        {"results": [{"name": "four", "state": "not-run", "log": "cluster"}]},
        {},
    ]


def test_xml_counts_what_failed():
    (suite,) = ET.fromstring(junit(OUTCOMES))

    assert suite.attrib == {"name": "olm", "tests": "5", "failures": "1", "errors": "1", "skipped": "2"}
    assert [[child.tag for child in case] for case in suite] == [
        ["system-out"], ["failure"], ["error"], ["skipped"], ["skipped"],
    ]  # fmt: skip
    assert suite[1][0].text == "bad \N{REPLACEMENT CHARACTER}<&>\nworse"


def test_a_configuration_without_labels_has_tests_in_no_suite():
    assert Outcome(Configuration.from_dict({"stages": [{"tests": [{"image": "i"}]}]}).tests[0]).suite == ""
