"""Pure rules of kinds that are written less often. `tests/conformance/less_common_cases.py` has them all, on both servers."""

import pytest

from ctrlruntime.apiserver.registry.endpoint_validation import endpoint_slice_causes, outer_address_causes
from ctrlruntime.apiserver.registry.flow_validation import flow_schema_causes, priority_level_causes
from ctrlruntime.apiserver.registry.preparation import forget_empty_lists
from ctrlruntime.apiserver.registry.storage_group_validation import csi_node_causes
from ctrlruntime.apiserver.registry.storage_validation import volume_spec_causes
from ctrlruntime.apiserver.registry.strategies import strategy_of
from ctrlruntime.schema.values import lenient_address


def fields(causes):
    return [cause.field for cause in causes]


def messages(causes):
    return [cause.message for cause in causes]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("010.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("FD00::1", "fd00::1"),
        ("1.2.3", None),
        ("fe80::1%eth0", None),
    ],
)
def test_older_fields_read_addresses_leniently(text, read):
    found = lenient_address(text)

    assert (str(found) if found else None) == read


@pytest.mark.parametrize("text", ["127.00.0.1", "::ffff:127.0.0.1", "::", "169.254.0.1", "224.0.0.5", "ff12::1", "x"])
def test_an_address_that_others_do_not_reach_is_refused(text):
    assert fields(outer_address_causes(text, "a")) == ["a"]


def test_a_slice_that_is_too_long_is_not_looked_at():
    document = {"addressType": "IPv4", "endpoints": [{"addresses": []}] * 1001}

    assert messages(endpoint_slice_causes(document, None)) == ["Too many: 1001: must have at most 1000 items"]


def test_endpoints_that_stay_are_not_judged_by_another_type():
    old = {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]}

    assert fields(endpoint_slice_causes({**old, "addressType": "IPv6"}, old)) == ["addressType"]


def test_what_is_mandatory_in_flow_control_keeps_its_spec():
    level = {"metadata": {"name": "exempt"}, "spec": {"type": "Exempt", "exempt": {"lendablePercent": 5}}}
    schema = {
        "metadata": {"name": "catch-all"},
        "spec": {"matchingPrecedence": 5, "priorityLevelConfiguration": {"name": "catch-all"}},
    }

    assert not list(priority_level_causes(level, None))
    assert messages(flow_schema_causes(schema, None))[-1].endswith("spec of 'catch-all' must equal the fixed value")


def test_of_a_driver_of_a_node_only_the_number_of_volumes_changes():
    driver = {"name": "a.b", "nodeID": "n"}
    old = {"spec": {"drivers": [driver]}}

    assert not list(csi_node_causes({"spec": {"drivers": [{**driver, "allocatable": {"count": 5}}]}}, old))
    assert fields(csi_node_causes({"spec": {"drivers": [{**driver, "nodeID": "m"}]}}, old)) == ["spec.drivers"]


def test_a_volume_inside_an_attachment_has_rules_of_its_own():
    spec = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "a.b", "volumeHandle": "h"}}

    assert not list(volume_spec_causes(spec, "spec", is_inline=True))
    assert fields(volume_spec_causes({**spec, "capacity": {"storage": "1"}}, "spec", is_inline=True)) == [
        "spec.capacity"
    ]
    assert fields(volume_spec_causes(spec)) == ["spec.capacity", "spec.capacity"]


def test_which_kinds_count_their_changes():
    classes = strategy_of("scheduling.k8s.io", "priorityclasses", is_custom=False)
    drivers = strategy_of("storage.k8s.io", "csidrivers", is_custom=False)

    assert (classes.has_generation, classes.counts_changes) == (True, False)
    assert (drivers.has_generation, drivers.counts_changes) == (False, True)


def test_an_empty_list_inside_lists_is_forgotten():
    class Resource:
        stored_as = ("flowcontrol.apiserver.k8s.io", "flowschemas")

    document = {"spec": {"rules": [{"resourceRules": [{"namespaces": []}, {"namespaces": ["a"]}]}, {}]}}

    forget_empty_lists(Resource(), document)

    assert document["spec"]["rules"][0]["resourceRules"] == [{"namespaces": None}, {"namespaces": ["a"]}]
