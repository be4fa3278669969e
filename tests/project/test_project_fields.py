"""The fields of a kind, as `kubectl explain` prints them: what needs no server to be seen."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.fields import Explanation, explain, plaintext


class Size(ctrl.Model):
    """How big."""

    mode: Literal["", "a", "b", "c", "d"] = "a"


class ToySpec(ctrl.Model):
    sizes: list[Size] = Field(default_factory=list)
    by_name: dict[str, Size] = Field(default_factory=dict)
    color: Literal["red", "blue"] = "red"


class ToyV1Beta1(
    ctrl.Object,
    group="toys.example.com",
    version="v1beta1",
    kind="Toy",
    plural="toys",
    short_names=["ty"],
    storage=False,
):
    spec: ToySpec = ToySpec()


class Toy(ctrl.Object, group="toys.example.com", version="v1", plural="toys", short_names=["ty"], storage=True):
    spec: ToySpec = ToySpec()


class ToyV2(
    ctrl.Object,
    group="toys.example.com",
    version="v2",
    kind="Toy",
    plural="toys",
    short_names=["ty"],
    storage=False,
    served=False,
):
    spec: ToySpec = ToySpec()


TOYS = [ToyV1Beta1, Toy, ToyV2]


@pytest.mark.parametrize("name", ["Toy", "toy", "toys", "ty"])
def test_a_kind_goes_by_all_its_names(name):
    assert explain(name, TOYS).kind.kind == "Toy"


def test_the_served_version_of_the_highest_priority_is_taken_unless_one_is_asked_for():
    assert explain("toy", TOYS).kind.version == "v1"
    assert explain("toy", TOYS, api_version="toys.example.com/v1beta1").kind.version == "v1beta1"
    assert explain("toy", TOYS, api_version="v2").kind.version == "v2"
    assert explain("toy", [ToyV2]).kind.version == "v2"


def test_a_version_that_is_not_there_names_those_that_are():
    with pytest.raises(ConfigError, match=r"Set --api-version to one of toys\.example\.com/v1, "):
        explain("toy", TOYS, api_version="v3")


def test_ones_own_kind_goes_before_a_built_in_one():
    class Deployment(ctrl.Object, group="toys.example.com", version="v1"): ...

    assert explain("deployment", [Deployment]).kind.group == "toys.example.com"
    assert explain("deployment", [Deployment], api_version="apps/v1").kind.group == "apps"


def test_paths_go_through_lists_and_maps():
    found = explain("toy.spec.byName.mode", TOYS)

    assert (found.type, found.enum, found.path) == ("string", ("", "a", "b", "c", "d"), ("spec", "byName", "mode"))


def test_types_are_named_as_kubectl_names_them():
    types = {field.name: field.type for field in explain("toy.spec", TOYS).fields}

    assert types == {"sizes": "[]Object", "byName": "map[string]Object", "color": "string"}


def test_enums_beside_a_field_are_cut_after_four_and_whole_on_its_own_page():
    beside = plaintext(explain("toy.spec.sizes", TOYS))
    own = plaintext(explain("toy.spec.sizes.mode", TOYS))

    assert '  mode\t<string>\n  enum: "", a, b, c, ....\n    <no description>\n' in beside
    assert 'FIELD: mode <string>\nENUM:\n    ""\n    a\n    b\n    c\n    d\n\n' in own


def test_fields_of_fields_are_there_when_asked_for():
    flat = explain("toy", TOYS)
    deep = explain("toy", TOYS, recursive=True)

    assert not any(field.fields for field in flat.fields)
    spec = next(field for field in deep.fields if field.name == "spec")
    assert [field.name for field in spec.fields] == ["byName", "color", "sizes"]


def test_a_type_that_contains_itself_ends():
    found = explain("customresourcedefinition.spec.versions.schema", [], recursive=True)

    assert found.is_builtin
    assert "openAPIV3Schema" in plaintext(found, recursive=True)


@given(st.text(alphabet=st.sampled_from("ab \n"), max_size=400))
def test_wrapping_keeps_the_words_and_the_width(text):
    kind = GroupVersionKind("g.example.com", "v1", "K")
    shown = plaintext(Explanation(kind=kind, description=text)).partition("DESCRIPTION:\n")[2]

    assert shown.split() == (text.split() if text else ["<empty>"])
    words = [word for word in text.split() if len(word) >= 76]
    assert words or all(len(line) <= 4 + 76 for line in shown.split("\n"))
