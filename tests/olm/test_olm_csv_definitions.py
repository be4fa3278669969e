"""Owned definitions of a ClusterServiceVersion: an entry for each version, from classes, from schemas, and from the base."""

from __future__ import annotations

import pytest
from csv_objects import definition

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.object import kind_of
from ctrlruntime.errors import GenerateError
from ctrlruntime.olm.csv.definitions import owned_definitions
from ctrlruntime.olm.csv.objects import Objects


class BasketSpec(ctrl.Model):
    size: int = 1
    """Ignored: descriptions stand in Field."""


class Basket(ctrl.Object, group="x.io", version="v1"):
    """A basket, for people who buy."""

    spec: BasketSpec


class ShopCart(
    ctrl.Object,
    group="x.io",
    version="v1",
    plural="shopcarts",
    olm=ctrl.crd.OLM(
        display_name="Cart of a shop",
        description="What is bought.",
        resources=[apps.Deployment, core.Service, ("Ingress", "v1"), ("Basket", "v1", "baskets.x.io")],
        order=1,
        actions=[ctrl.crd.OLMAction(path="spec.restart", description="Start again.", x=["booleanSwitch"], value=True)],
    ),
):
    spec: BasketSpec


def owned(*definitions, said=(), kinds=(), owns=None, warn=pytest.fail):
    return owned_definitions(Objects(definitions), list(said), kinds, owns or {}, warn)


def test_a_kind_without_a_word_is_told_by_its_class():
    owns = {kind_of(Basket).gvk: [kind_of(core.Service).gvk, kind_of(apps.Deployment).gvk, kind_of(core.Service).gvk]}

    (entry,) = owned(definition("Basket"), kinds=[Basket], owns=owns)

    assert entry == {
        "name": "baskets.x.io",
        "version": "v1",
        "kind": "Basket",
        "displayName": "Basket",
        "description": "A basket, for people who buy.",
        "resources": [
            {"kind": "Deployment", "name": "", "version": "v1"},
            {"kind": "Service", "name": "", "version": "v1"},
        ],
        "specDescriptors": [{"path": "size", "displayName": "Size"}],
    }


def test_what_a_controller_of_one_version_owns_comes_with_every_version():
    owns = {
        kind_of(Basket).gvk: [kind_of(core.Service).gvk],
        GroupVersionKind("y.io", "v1", "Basket"): [kind_of(apps.Deployment).gvk],
    }

    found = owned(definition("Basket", "v1", "v2"), owns=owns)

    assert [each["resources"] for each in found] == [[{"kind": "Service", "name": "", "version": "v1"}]] * 2


def test_what_the_class_says_to_consoles_wins_over_what_follows():
    owns = {kind_of(ShopCart).gvk: [GroupVersionKind("apps", "v1", "DaemonSet")]}

    (entry,) = owned(definition("ShopCart"), kinds=[ShopCart], owns=owns)

    assert (entry["displayName"], entry["description"]) == ("Cart of a shop", "What is bought.")
    assert entry["resources"] == [
        {"kind": "Deployment", "name": "", "version": "v1"},
        {"kind": "Service", "name": "", "version": "v1"},
        {"kind": "Ingress", "name": "", "version": "v1"},
        {"kind": "Basket", "name": "baskets.x.io", "version": "v1"},
    ]
    assert entry["actionDescriptors"] == [
        {
            "path": "spec.restart",
            "displayName": "Restart",
            "description": "Start again.",
            "x-descriptors": ["urn:alm:descriptor:com.tectonic.ui:booleanSwitch"],
            "value": True,
        }
    ]


def test_entries_are_by_order_then_name_then_version_newest_first():
    found = owned(
        definition("Basket", "v1", "v1beta1", "v2"),
        definition("Apple"),
        definition("ShopCart"),
        kinds=[Basket, ShopCart],
    )

    assert [(each["kind"], each["version"]) for each in found] == [
        ("ShopCart", "v1"),
        ("Apple", "v1"),
        ("Basket", "v2"),
        ("Basket", "v1"),
        ("Basket", "v1beta1"),
    ]


def test_a_version_that_is_not_served_is_not_offered():
    old = definition("Basket", "v1", "v2")
    old["spec"]["versions"][0]["served"] = False

    assert [each["version"] for each in owned(old)] == ["v2"]


def test_the_base_wins_field_by_field_and_keeps_its_places():
    said = [
        {
            "name": "baskets.x.io",
            "version": "v1",
            "kind": "Basket",
            "displayName": "My basket",
            "description": "",
            "specDescriptors": [
                {"path": "more", "displayName": "More"},
                {"path": "size", "displayName": "How many", "description": ""},
            ],
        },
    ]

    found = owned(definition("Apple"), definition("Basket"), kinds=[Basket], said=said)

    assert [each["kind"] for each in found] == ["Basket", "Apple"]
    assert (found[0]["displayName"], found[0]["description"]) == ("My basket", "A basket, for people who buy.")
    assert found[0]["specDescriptors"] == [
        {"path": "more", "displayName": "More"},
        {"path": "size", "displayName": "How many"},
    ]


def test_a_kind_the_base_describes_and_nobody_defines_is_left_out_with_a_warning():
    warnings: list[str] = []
    said = [{"name": "gones.x.io", "version": "v1", "kind": "Gone"}]

    assert owned(definition("Apple"), said=said, warn=warnings.append)[0]["kind"] == "Apple"
    assert warnings == [
        "the base describes Gone v1 (gones.x.io), but no CRD serves it, so it is left out. Remove it from the base"
    ]


def test_without_a_class_the_schema_tells():
    texts = {"type": "string", "enum": ["a", "b"], "description": "One of two."}
    spec = {"type": "object", "properties": {"on": {"type": "boolean"}, "size": {"type": "integer"}, "one": texts}}
    status = {
        "type": "object",
        "properties": {"conditions": {"type": "array"}, "ok": {"type": "boolean"}, "size": {"type": "integer"}},
    }
    schema = {"type": "object", "description": "From elsewhere.", "properties": {"spec": spec, "status": status}}
    foreign = definition("Apple", schema=schema)
    foreign["spec"]["versions"][0]["subresources"] = {"scale": {"specReplicasPath": ".spec.size"}}

    (entry,) = owned(foreign)

    ui = "urn:alm:descriptor:com.tectonic.ui"
    assert entry["description"] == "From elsewhere."
    assert entry["specDescriptors"] == [
        {"path": "on", "displayName": "On", "x-descriptors": [f"{ui}:booleanSwitch"]},
        {
            "path": "one",
            "displayName": "One",
            "description": "One of two.",
            "x-descriptors": [f"{ui}:select:a", f"{ui}:select:b"],
        },
        {"path": "size", "displayName": "Size", "x-descriptors": [f"{ui}:podCount"]},
    ]
    assert entry["statusDescriptors"] == [
        {
            "path": "conditions",
            "displayName": "Conditions",
            "x-descriptors": ["urn:alm:descriptor:io.kubernetes.conditions"],
        },
        {"path": "ok", "displayName": "Ok"},
        {"path": "size", "displayName": "Size"},
    ]


def test_a_hint_of_an_action_that_no_console_knows_is_refused():
    class Odd(
        ctrl.Object,
        group="x.io",
        version="v1",
        olm=ctrl.crd.OLM(actions=[ctrl.crd.OLMAction(path="spec.a", x=["swich"])]),
    ):
        pass

    with pytest.raises(GenerateError, match=r"Odd: the action spec.a: unknown hint 'swich'"):
        owned(definition("Odd"), kinds=[Odd])
