"""Descriptors from classes: which fields have one, their paths, names, hints and order."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.errors import GenerateError
from ctrlruntime.field import Quantity
from ctrlruntime.markers import Format, JSONValue, RawExtension
from ctrlruntime.olm.csv.descriptors import descriptors_of, spaced

UI = "urn:alm:descriptor:com.tectonic.ui"
OLMDescriptor = ctrl.crd.OLMDescriptor


class Side(StrEnum):
    LEFT = "left"
    RIGHT = "right"


class Port(ctrl.Model):
    number: int = 0
    name: str = ""


class Deep(ctrl.Model):
    value: str = Field(default="", description="Far down.")


class Inner(ctrl.Model):
    deep: Deep = Field(default_factory=Deep)
    ports: list[Port] = Field(default_factory=list)
    note: str | None = None


class CartSpec(ctrl.Model):
    pod_ip: str = Field(default="", description="Where it is.\n\nAnd more.", alias="podIP")
    inner: Inner = Field(default_factory=Inner)
    ports: list[Port] = Field(default_factory=list, description="What is open.")
    names: list[str] = Field(default_factory=list)
    labels: dict[str, str] = Field(default_factory=dict)
    shelves: dict[str, Port] = Field(default_factory=dict)
    containers: list[core.Container] = Field(default_factory=list)
    selector: meta.LabelSelector | None = None
    anything: JSONValue = None
    raw: RawExtension = Field(default_factory=dict)
    left_out: str = Field(default="", exclude=True)


class Cart(ctrl.Object, group="x.io", version="v1"):
    spec: CartSpec = Field(default_factory=CartSpec)


def kind(name: str = "Kind", *, scale: ctrl.crd.ScalePaths | None = None, status: object = None, **fields: object):
    """Return a class whose spec has these fields: annotations."""

    def part(word, annotations):
        return type(f"{name}{word}", (ctrl.Model,), {"__annotations__": annotations, "__module__": __name__})

    body = {"spec": part("Spec", fields), **({"status": part("Status", status)} if status else {})}
    keywords = {"group": "x.io", "version": "v1", **({"scale": scale} if scale else {})}
    return type(name, (ctrl.Object,), {"__annotations__": body, "__module__": __name__}, **keywords)


def spec_of(cls):
    return descriptors_of(cls, {}).spec


def hints(annotation, **more):
    return spec_of(kind(field=annotation, **more))[0].get("x-descriptors", [])


def test_every_field_and_every_value_below_has_one_by_path():
    assert [each["path"] for each in spec_of(Cart)] == [
        "anything",
        "containers",
        "inner",
        "inner.deep.value",
        "inner.note",
        "inner.ports[0].name",
        "inner.ports[0].number",
        "labels",
        "names",
        "podIP",
        "ports",
        "ports[0].name",
        "ports[0].number",
        "raw",
        "selector",
        "shelves",
    ]


def test_names_and_descriptions_are_the_fields():
    by_path = {each["path"]: each for each in spec_of(Cart)}

    assert by_path["podIP"] == {"path": "podIP", "displayName": "Pod IP", "description": "Where it is.\n\nAnd more."}
    assert by_path["inner.deep.value"] == {
        "path": "inner.deep.value",
        "displayName": "Value",
        "description": "Far down.",
    }
    assert by_path["ports"]["description"] == "What is open."


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("size", "Size"),
        ("minReplicas", "Min Replicas"),
        ("podIP", "Pod IP"),
        ("podIPs", "Pod IPs"),
        ("clusterCIDR", "Cluster CIDR"),
        ("HTTPServer", "HTTP Server"),
        ("tlsV12", "Tls V12"),
        ("MemcachedCluster", "Memcached Cluster"),
        ("_", "_"),
    ],
)
def test_a_name_is_words_for_people(name, words):
    assert spaced(name) == words


def test_what_the_descriptor_says_wins():
    said = OLMDescriptor(display="How many", x=["number", "urn:my:own", "fieldGroup:pods", "Secret"])

    (found,) = spec_of(kind(size=Annotated[int, said]))

    assert found == {
        "path": "size",
        "displayName": "How many",
        "x-descriptors": [
            f"{UI}:number",
            "urn:my:own",
            f"{UI}:fieldGroup:pods",
            "urn:alm:descriptor:io.kubernetes:Secret",
        ],
    }


def test_order_comes_first_then_the_path():
    found = spec_of(
        kind(
            z=Annotated[int, OLMDescriptor(order=2)],
            b=int,
            a=int,
            y=Annotated[int, OLMDescriptor(order=1)],
            c=Annotated[int, OLMDescriptor(order=2)],
        )
    )

    assert [each["path"] for each in found] == ["y", "c", "z", "a", "b"]


def test_hidden_leaves_out_a_field_and_all_below_it():
    found = spec_of(
        kind(
            inner=Annotated[Inner, OLMDescriptor(hidden=True)],
            note=Annotated[str, OLMDescriptor(hidden=True)],
            size=int,
        )
    )

    assert [each["path"] for each in found] == ["size"]


def test_an_object_deeper_down_has_one_when_it_is_said():
    class Told(ctrl.Model):
        deep: Annotated[Deep, OLMDescriptor(display="The deep")] = Field(default_factory=Deep)

    assert [(each["path"], each["displayName"]) for each in spec_of(kind(told=Told))] == [
        ("told", "Told"),
        ("told.deep", "The deep"),
        ("told.deep.value", "Value"),
    ]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (bool, [f"{UI}:booleanSwitch"]),
        (bool | None, [f"{UI}:booleanSwitch"]),
        (Literal["a", "b"], [f"{UI}:select:a", f"{UI}:select:b"]),
        (Literal["", "b"], [f"{UI}:select:b"]),
        (Side, [f"{UI}:select:left", f"{UI}:select:right"]),
        (Annotated[str, Format("password")], [f"{UI}:password"]),
        (core.ResourceRequirements | None, [f"{UI}:resourceRequirements"]),
        (core.NodeAffinity | None, [f"{UI}:nodeAffinity"]),
        (list[meta.Condition], ["urn:alm:descriptor:io.kubernetes.conditions"]),
        (int, []),
        (Quantity, []),
        (list[Side], []),
    ],
)
def test_hints_follow_from_the_type(annotation, expected):
    assert hints(annotation) == expected


def test_a_status_is_shown_and_not_edited():
    cls = kind(status={"ready": bool, "side": Side, "conditions": list[meta.Condition]}, size=int)

    assert descriptors_of(cls, {}).status == [
        {
            "path": "conditions",
            "displayName": "Conditions",
            "x-descriptors": ["urn:alm:descriptor:io.kubernetes.conditions"],
        },
        {"path": "ready", "displayName": "Ready"},
        {"path": "side", "displayName": "Side"},
    ]


def test_what_is_scaled_is_a_number_of_pods():
    paths = ctrl.crd.ScalePaths(spec_replicas=".spec.size", status_replicas=".status.replicas")
    cls = kind(scale=paths, status={"replicas": int, "size": int}, size=int, replicas=int)

    found = descriptors_of(cls, {})

    assert [(each["path"], each.get("x-descriptors")) for each in (*found.spec, *found.status)] == [
        ("replicas", None),
        ("size", [f"{UI}:podCount"]),
        ("replicas", [f"{UI}:podCount"]),
        ("size", None),
    ]


@pytest.mark.parametrize(
    ("hint", "urn"),
    [
        ("podCount", f"{UI}:podCount"),
        ("select:a", f"{UI}:select:a"),
        ("fieldDependency:kind:a", f"{UI}:fieldDependency:kind:a"),
        ("ServiceAccount", "urn:alm:descriptor:io.kubernetes:ServiceAccount"),
        ("w3Link", "urn:alm:descriptor:org.w3:link"),
        ("phase", "urn:alm:descriptor:io.kubernetes.phase"),
        ("conditions", "urn:alm:descriptor:io.kubernetes.conditions"),
        ("urn:anything", "urn:anything"),
    ],
)
def test_short_hints_stand_for_urns(hint, urn):
    assert hints(Annotated[str, OLMDescriptor(x=(hint,))]) == [urn]


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ("podcount", "unknown hint 'podcount'; did you mean 'podCount'?"),
        ("Secrets", "did you mean 'Secret'?"),
        ("feildGroup:a", "did you mean 'fieldGroup'?"),
        ("fieldGroup", "the hint fieldGroup requires a name. Write fieldGroup:NAME"),
        ("select:", "the hint select requires a name. Write select:NAME"),
        ("podCount:a", "the hint podCount has no argument. Remove :a"),
        ("zzz", "Use one of advanced, "),
        ("", "unknown hint ''"),
    ],
)
def test_a_hint_no_console_knows_is_refused_with_the_field(hint, message):
    with pytest.raises(GenerateError) as error:
        hints(Annotated[str, OLMDescriptor(x=(hint,))])

    assert message in str(error.value)
    assert "KindSpec.field: " in str(error.value)


def test_a_kind_without_spec_and_status_has_none():
    class Bare(ctrl.Object, group="x.io", version="v1"):
        size: int = 1

    class Loose(ctrl.Object, group="x.io", version="v1"):
        spec: RawExtension = Field(default_factory=dict)

    assert (spec_of(Bare), spec_of(Loose)) == ([], [])
