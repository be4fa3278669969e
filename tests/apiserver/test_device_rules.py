from __future__ import annotations

import copy

import pytest

from ctrlruntime.apiserver.registry import device_rules, device_status, resource_slices
from ctrlruntime.apiserver.registry.device_parts import attribute_name_causes, pool_name_causes, share_causes
from ctrlruntime.apiserver.registry.device_selectors import selector_list_causes
from ctrlruntime.apiserver.registry.internal_types import is_equal
from ctrlruntime.apiserver.registry.preparation import prepare_update
from ctrlruntime.apiserver.registry.resources import built_in
from ctrlruntime.apiserver.registry.strategies import strategy_of

UID = "00000000-0000-4000-8000-000000000001"
DEVICE = {"driver": "d.example.com", "pool": "p", "device": "x"}


def texts(causes):
    return [f"{cause.field}: {cause.message}" for cause in causes]


def expression_problems(*expressions):
    return texts(selector_list_causes([{"cel": {"expression": each}} for each in expressions], "s"))


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "d"',
        'device.attributes["d"].a',
        'cel.bind(d, device.attributes["d"], d.a && d.b)',
        'device.capacity["d"].m.compareTo(quantity("1Gi")) >= 0',
        "device.allowMultipleAllocations",
        "[1, 2, 3].map(x, x * 2).all(x, x in [2, 4, 6])",
    ],
)
def test_expressions_that_select_devices(expression):
    assert expression_problems(expression) == []


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ('"a"', "must evaluate to bool or the unknown type, not string"),
        ("dyn(1)", "must evaluate to bool or the unknown type, not dyn"),
        ("device.attributes", "must evaluate to bool or the unknown type, not map(string, map(string, google.protobuf.Any))"),
        ("device.x", "compilation failed: ERROR: <input>:1:7: undefined field 'x'"),
        ("device.attributes['d'].a.all(x, x)", "expression of type 'any' cannot be range of a comprehension"),
        ("cel.bind(a.b, 1, true)", "cel.bind() variable names must be simple identifiers"),
        ("device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a == d))))", "exceeds cost"),
        ("true" + " " * 10240, "Too long: may not be more than 10240 bytes"),
    ],
)  # fmt: skip
def test_expressions_that_do_not_select_devices(expression, text):
    [problem] = expression_problems(expression)

    assert text in problem


def test_of_too_many_selectors_nothing_else_is_said():
    assert expression_problems(*["1"] * 33) == ["s: Too many: 33: must have at most 32 items"]


@pytest.mark.parametrize("name", ["a", "A_1", "d.example.com/a", "D.Example.com/a", "a/b/c"])
def test_names_of_attributes(name):
    assert texts(attribute_name_causes(name, "a")) == []


@pytest.mark.parametrize(
    ("name", "count"), [("", 1), ("a b", 1), ("/", 2), ("d/", 1), ("/a", 1), ("a_/b", 1), ("a" * 33, 1), ("d" * 64 + "/" + "1" * 33, 3)]
)  # fmt: skip
def test_names_that_attributes_cannot_have(name, count):
    assert len(texts(attribute_name_causes(name, "a"))) == count


@pytest.mark.parametrize(
    ("uid", "text"),
    [
        (UID, ""),
        (None, ""),
        ("", "invalid UUID length: 0"),
        (UID.replace("-", ""), "RFC 4122 normalized form"),
        (f"{{{UID}}}", "RFC 4122 normalized form"),
        (f"({UID})", "invalid bracketed UUID format"),
        (f"urn:uuid:{UID}", "RFC 4122 normalized form"),
        (f"urn:xxid:{UID}", 'invalid urn prefix: "urn:xxid:"'),
        (UID.replace("0", "x"), "invalid UUID format"),
        ("x" * 32, "invalid UUID format"),
        (UID.replace("4", "A"), "RFC 4122 normalized form"),
    ],
)
def test_ids_of_shares(uid, text):
    found = texts(share_causes(uid, "shareID"))

    assert text in "".join(found)
    assert bool(found) == bool(text)


def test_names_of_pools_are_subdomains_between_slashes():
    assert texts(pool_name_causes("a/b.c/d", "p")) == []
    assert len(texts(pool_name_causes("A//" + "b" * 253, "p"))) == 3
    assert texts(pool_name_causes("", "p")) == ["p: Required value"]


def test_what_upstream_holds_equal_is_equal():
    assert is_equal({"a": [], "b": {"c": None}}, {"a": None, "b": {"c": {}}})
    assert not is_equal({"a": [0]}, {"a": [None]})
    assert not is_equal({"a": 0}, {"a": None})
    assert not is_equal([1], [1, 2])


def test_requests_of_one_name_are_said_after_what_is_wrong_with_them():
    requests = [{"name": "a", "exactly": {"deviceClassName": "c"}}, {"name": "a", "exactly": {"count": -1}}]
    claim = {"spec": {"devices": {"requests": requests}}}
    device_rules.default_claim(claim)

    assert texts(device_rules.claim_causes(claim, None)) == [
        "spec.devices.requests[1].exactly.deviceClassName: Required value",
        "spec.devices.requests[1].exactly.count: Invalid value: -1: must be greater than zero",
        'spec.devices.requests[1]: Duplicate value: "a"',
    ]


def test_a_configuration_that_is_stored_may_be_too_large():
    config = [{"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}}]
    old = {"spec": {"config": config}}

    assert texts(device_rules.class_causes(copy.deepcopy(old), old)) == []
    assert "Too long" in texts(device_rules.class_causes(old, None))[0]


def test_what_is_said_of_freed_devices_goes():
    resource = next(each for each in built_in() if each.plural == "resourceclaims" and each.version == "v1")
    other = {**DEVICE, "device": "y"}
    allocation = {"devices": {"results": [{"request": "a", **DEVICE}, {"request": "a", **other}]}}
    old = {"metadata": {"name": "a"}, "spec": {}, "status": {"allocation": allocation, "devices": [DEVICE, other]}}
    kept = {"devices": {"results": [{"request": "a", **other}]}}
    document = {"metadata": {"name": "a"}, "status": {"allocation": kept, "devices": [DEVICE, other]}}

    prepare_update(resource, strategy_of(*resource.stored_as, is_custom=False), document, old, "status")

    assert document["status"] == {"allocation": kept, "devices": [other]}
    device_status.forget_freed_devices(document | {"status": {"devices": [other]}}, document)


def test_new_users_are_refused_to_a_claim_that_ends():
    user, other = ({"resource": "pods", "name": name, "uid": name} for name in "pq")
    status = {"allocation": {"devices": {}}, "reservedFor": [user]}
    old = {"metadata": {"deletionTimestamp": "x"}, "status": status}

    assert texts(device_status.claim_status_causes(old, old)) == []
    more = {**old, "status": {**status, "reservedFor": [user, other]}}
    assert "new entries may not be added" in texts(device_status.claim_status_causes(more, old))[0]


def test_taints_of_slices_have_a_time():
    document = {"spec": {"devices": [{"taints": [{"key": "a"}, {"key": "b", "timeAdded": "2026-01-02T03:04:05Z"}]}]}}

    resource_slices.default_slice(document)

    first, second = document["spec"]["devices"][0]["taints"]
    assert first["timeAdded"].startswith("20")
    assert second["timeAdded"] == "2026-01-02T03:04:05Z"


def test_a_step_of_nothing_is_not_looked_at():
    interval = {"min": "1", "step": "0"}
    policy = {"default": "1", "validRange": interval}
    device = {"name": "a", "allowMultipleAllocations": True, "capacity": {"a": {"value": "1", "requestPolicy": policy}}}
    spec = {"driver": "d", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}, "devices": [device]}

    assert texts(resource_slices.slice_causes({"spec": spec}, None)) == []
