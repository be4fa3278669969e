"""Definitions beyond the goldens: what controller-gen has no word for, or where ours differs on purpose."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core, meta
from ctrlruntime.generate import ConversionWebhook, Options, SchemaWalker, crds
from ctrlruntime.markers import NoDescriptions, PreserveUnknownFields, Schemaless, SchemaType


class GameSpec(ctrl.Model):
    replicas: int = 1
    image: str = ""


class Tree(ctrl.Model):
    name: str
    child: Annotated[Tree | None, Schemaless, SchemaType("object"), PreserveUnknownFields] = None


class GameStatus(ctrl.Model):
    phase: str = ""


class Game(ctrl.Object, group="games.example.com", version="v1", storage=True):
    """A game."""

    spec: GameSpec = Field(default_factory=GameSpec)
    status: GameStatus = Field(default_factory=GameStatus)


class GameOld(ctrl.Object, group="games.example.com", version="v1beta1", kind="Game"):
    """An older game."""


def properties(annotation: Any, *default: Any, options: Options | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"__module__": __name__, "__annotations__": {"value": annotation}}
    if default:
        body["value"] = default[0]
    cls = type(ctrl.Object)("One", (ctrl.Object,), body, group="x.example.com", version="v1")
    return SchemaWalker(options).of_kind(cls)["properties"]["value"]


def test_a_default_is_written_where_it_says_something_and_the_parent_gets_one_too():
    schema = SchemaWalker().of_kind(Game)["properties"]

    assert schema["spec"]["default"] == {}
    assert schema["spec"]["properties"]["replicas"]["default"] == 1
    assert "default" not in schema["spec"]["properties"]["image"]
    assert "default" not in schema["status"]


def test_a_null_is_never_a_default():
    assert "default" not in properties(str | None, None)


def test_a_zero_is_a_default_where_the_field_may_also_be_absent():
    assert properties(int | None, 0)["default"] == 0


def test_the_same_bound_twice_stands_once():
    inner = Annotated[int, Field(le=10)]

    assert properties(Annotated[inner, Field(le=10)]) == {"type": "integer", "maximum": 10}


def test_a_conversion_stands_where_there_are_versions_to_convert():
    webhook = {("games.example.com", "Game"): ConversionWebhook(service_namespace="games", port=9443)}

    (both,) = crds([Game, GameOld], conversions=webhook)
    (single,) = crds([Game], conversions=webhook)

    assert both["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "service": {"name": "webhook-service", "namespace": "games", "path": "/convert", "port": 9443}
            },
            "conversionReviewVersions": ["v1"],
        },
    }
    assert "conversion" not in single["spec"]


def test_a_conversion_may_stand_at_a_url():
    webhook = {("games.example.com", "Game"): ConversionWebhook(url="https://127.0.0.1:9443/convert", ca_bundle="QQ==")}

    (definition,) = crds([Game, GameOld], conversions=webhook)

    assert definition["spec"]["conversion"]["webhook"]["clientConfig"] == {
        "url": "https://127.0.0.1:9443/convert",
        "caBundle": "QQ==",
    }


def test_definitions_are_sorted_by_name_and_classes_of_a_kind_go_together():
    class Ball(ctrl.Object, group="games.example.com", version="v1"):
        pass

    names = [definition["metadata"]["name"] for definition in crds([Game, Ball, GameOld])]

    assert names == ["balls.games.example.com", "games.games.example.com"]


def test_the_generator_is_named_only_when_asked():
    (plain,) = crds([Game])
    (marked,) = crds([Game], options=Options(generated_by="1.0"))

    assert "annotations" not in plain["metadata"]
    assert marked["metadata"]["annotations"] == {"ctrlruntime.dev/generated-by": "1.0"}


def test_descriptions_can_be_left_out_below_a_field():
    class Told(ctrl.Model):
        a: str = Field("", description="Gone.")

    schema = properties(Annotated[Told, NoDescriptions], Field(description="Stays."))

    assert schema["description"] == "Stays."
    assert schema["properties"] == {"a": {"type": "string"}}


def test_a_plain_pydantic_model_keeps_its_names_and_says_with_extra_that_it_keeps_unknown_fields():
    class Foreign(BaseModel):
        model_config = ConfigDict(extra="allow")
        snake_case: str
        renamed: str = Field(alias="other")

    assert properties(Foreign) == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"snake_case": {"type": "string"}, "other": {"type": "string"}},
        "required": ["other", "snake_case"],
    }


def test_a_hook_gives_the_schema_of_a_class():
    class Hooked(BaseModel):
        @classmethod
        def __ctrl_schema__(cls) -> dict[str, Any]:
            return {"type": "string", "maxLength": 3}

    assert properties(Hooked) == {"type": "string", "maxLength": 3}


def test_a_recursion_can_be_cut():
    schema = properties(Tree)

    assert schema["properties"]["child"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_an_alias_type_is_what_it_stands_for():
    name = TypeAliasType("Name", Annotated[str, Field(max_length=63)])

    assert properties(name) == {"type": "string", "maxLength": 63}


def test_docstrings_of_attributes_are_descriptions():
    class Documented(ctrl.Model):
        model_config = ConfigDict(use_attribute_docstrings=True)

        size: int = 0
        """How many."""

    assert properties(Documented)["properties"]["size"]["description"] == "How many."


def test_metadata_inside_has_its_fields_unless_told():
    assert set(properties(meta.ObjectMeta)["properties"]) == {
        "annotations",
        "finalizers",
        "labels",
        "name",
        "namespace",
    }
    assert properties(meta.ObjectMeta, options=Options(embedded_metadata=False)) == {"type": "object"}


@pytest.mark.parametrize("cls", [core.Container, core.PodTemplateSpec, apps.DeploymentSpec, core.Pod])
def test_a_built_in_type_has_no_references_enums_or_descriptions(cls: type[ctrl.Model]):
    text = repr(properties(cls))

    assert "$ref" not in text
    assert "'enum': [" not in text
    assert "allOf" not in text


def test_built_in_schemas_are_not_shared_between_uses():
    first, second = properties(core.LocalObjectReference), properties(core.LocalObjectReference)
    first["properties"]["name"]["default"] = "changed"

    assert second["properties"]["name"]["default"] == ""


@pytest.mark.parametrize(
    ("path", "column_type"),
    [
        (r".metadata.labels.app\.kubernetes\.io/name", "string"),
        (r".metadata.annotations['example\.com/x']", "string"),
        (".spec['replicas']", "integer"),
        (".metadata.finalizers[0]", "string"),
        (".metadata.finalizers[*]", "string"),
    ],
)
def test_the_type_of_a_column_follows_from_its_path(path, column_type):
    class One(ctrl.Object, group="games.example.com", version="v1", kind="One"):
        spec: GameSpec = Field(default_factory=GameSpec)
        status: GameStatus = Field(default_factory=GameStatus)

    (made,) = crds([ctrl.crd.printcolumn("C", path)(One)])

    assert made["spec"]["versions"][0]["additionalPrinterColumns"] == [
        {"name": "C", "jsonPath": path, "type": column_type}
    ]
