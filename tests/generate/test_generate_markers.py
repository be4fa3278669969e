"""Markers stand in the order they are read, and one that cannot mean anything fails where it is written."""

from __future__ import annotations

from typing import Annotated

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import apps
from ctrlruntime.api.object import kind_of
from ctrlruntime.generate.crd import crds
from ctrlruntime.markers import (
    CEL,
    ExternalDocs,
    Flag,
    ListMap,
    RBACRule,
    SchemaType,
    Title,
    class_markers,
    printcolumn,
    printer_columns,
    rbac,
    rbac_rules,
)


@printcolumn("A", ".a")
@printcolumn("B", ".b")
@CEL("self.a")
@CEL("self.b")
class Base(ctrl.Model):
    pass


@CEL("self.c")
class Derived(Base):
    pass


def test_markers_over_a_class_stand_from_the_top_and_its_own_before_its_bases():
    assert class_markers(Base) == (CEL("self.a"), CEL("self.b"))
    assert class_markers(Derived) == (CEL("self.c"), CEL("self.a"), CEL("self.b"))


def test_columns_are_inherited_until_a_class_has_its_own():
    @printcolumn("C", ".c")
    class Own(Base):
        pass

    assert [column.name for column in printer_columns(Derived)] == ["A", "B"]
    assert [column.name for column in printer_columns(Own)] == ["C"]


def test_permissions_are_collected_from_the_top():
    @rbac(groups="apps", resources="deployments;replicasets", verbs="get;list; watch")
    @rbac(resources="pods", verbs=["get"], namespace="games", resource_names="one")
    @rbac(urls="/metrics", verbs="get")
    class Reconciler:
        pass

    assert rbac_rules(Reconciler) == (
        RBACRule(groups=("apps",), resources=("deployments", "replicasets"), verbs=("get", "list", "watch")),
        RBACRule(groups=("",), resources=("pods",), verbs=("get",), resource_names=("one",), namespace="games"),
        RBACRule(urls=("/metrics",), verbs=("get",)),
    )


def test_permissions_stand_over_functions_too():
    @rbac(resources="pods", verbs="get")
    async def reconcile(request: ctrl.Request) -> None: ...

    assert [rule.resources for rule in rbac_rules(reconcile)] == [("pods",)]


def test_a_class_without_markers_has_none():
    class Nothing:
        pass

    assert (class_markers(Nothing), printer_columns(Nothing), rbac_rules(Nothing)) == ((), (), ())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CEL(" "), "needs a rule"),
        (lambda: CEL("true", reason="FieldValueBad"), "CEL reason"),
        (lambda: SchemaType("text"), "SchemaType cannot be 'text'"),
        (lambda: SchemaType("sting"), "did you mean 'string'"),
        (lambda: Flag("Nulable"), "'Nulable' is not a marker; did you mean 'Nullable'"),
        (ListMap, "keys that tell items apart"),
        (lambda: ExternalDocs("docs"), "needs a URL"),
        (lambda: printcolumn("A", "spec.a"), "starts with a dot"),
        (lambda: printcolumn("A", ".a", type="int"), "printcolumn 'A': type"),
        (lambda: printcolumn("A", ".a", format="int16"), "did you mean 'int"),
        (lambda: rbac(resources="pods", verbs=""), "needs verbs"),
        (lambda: rbac(verbs="get"), "needs resources"),
    ],
)
def test_a_marker_that_means_nothing_fails_where_it_is_written(make, words: str):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_marker_without_arguments_may_have_parentheses():
    assert ctrl.crd.ListSet() is ctrl.crd.ListSet
    assert ctrl.crd.Nullable() is ctrl.crd.Nullable


def test_a_marker_over_something_else_than_a_class_is_refused():
    with pytest.raises(TypeError, match="is not a class"):
        Title("x")(3)


def test_class_keywords_that_do_not_exist_name_the_nearest():
    with pytest.raises(TypeError, match="did you mean 'exactly_one_of'"):

        class Wrong(ctrl.Model, exactly_one=[("a", "b")]):
            pass


def test_a_group_of_fields_is_a_sequence():
    with pytest.raises(TypeError, match="is a list of groups"):

        class Wrong(ctrl.Model, exactly_one_of=["ab"]):
            pass


def test_what_is_said_for_consoles_does_not_change_the_definition():
    class Plain(ctrl.Model):
        size: int = 1

    class Told(ctrl.Model):
        size: Annotated[int, ctrl.crd.OLMDescriptor("Pods", x=["podCount"], order=1)] = 1

    class Thing(ctrl.Object, group="g.example.com", version="v1"):
        """A thing."""

        spec: Plain

    class ToldThing(
        ctrl.Object, group="g.example.com", version="v1", kind="Thing", olm=ctrl.crd.OLM(display_name="Thing")
    ):
        """A thing."""

        spec: Told

    assert crds([ToldThing]) == crds([Thing])


def test_what_a_kind_says_for_consoles_stays_with_its_class_and_those_below_it():
    shown = ctrl.crd.OLM(display_name="A thing", resources=[apps.Deployment, ("Pod", "v1")], order=2)

    class Thing(ctrl.Object, group="g.example.com", version="v1", olm=shown):
        """A thing."""

    class Newer(Thing, version="v2"):
        """A thing."""

    assert kind_of(Thing).olm == kind_of(Newer).olm == shown
    assert hash(kind_of(Thing)) != hash(kind_of(Newer))
