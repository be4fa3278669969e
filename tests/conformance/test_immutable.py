"""What is immutable stays, however the object around it is written; on both servers."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.errors import Invalid
from ctrlruntime.generate import crds
from ctrlruntime.markers import Immutable, Nullable

GROUP = "immutable-tests.example.com"


def named(wire: str):
    return Field(None, validation_alias=wire)


class Inner(ctrl.Model, at_most_one_of=[("in_", "a_b")]):
    size: Annotated[int | None, Immutable] = None
    free: int | None = None
    in_: Annotated[int | None, Immutable] = None
    a_b: Annotated[int | None, Immutable] = named("a-b")
    dotted: Annotated[int | None, Immutable] = named("a.b")
    slashed: Annotated[int | None, Immutable] = named("a/b")
    scores: Annotated[int | None, Immutable] = named("__x")
    namespace: Annotated[int | None, Immutable] = None
    self_: Annotated[int | None, Immutable] = named("self")
    old_self: Annotated[int | None, Immutable] = None


class Spec(ctrl.Model):
    inner: Inner | None = None
    hyphened: Inner | None = named("x-y")
    needed: Annotated[int, Immutable] = 0
    note: str = ""


class Odd(ctrl.Model):
    fixed: Annotated[int | None, Immutable] = None


class Seal(ctrl.Object, group=GROUP, version="v1"):
    spec: Spec | None = None
    nullable: Annotated[Odd | None, Nullable] = None


NAMES = ("size", "in", "a-b", "a.b", "a/b", "__x", "namespace", "self", "oldSelf")


@pytest.fixture(scope="module")
def seals(server):
    server.install_crds(crds([Seal]))
    yield f"/apis/{GROUP}/v1"
    server.connection.request("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/seals.{GROUP}")


class Writer:
    def __init__(self, server, namespace, path):
        self._request = server.connection.request
        self._path = f"{path}/namespaces/{namespace}/seals"

    def create(self, **content):
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Seal", "metadata": {"generateName": "seal-"}, **content}
        self.stored = self._request("POST", self._path, body)

    def update(self, **content):
        head = {key: self.stored[key] for key in ("apiVersion", "kind", "metadata")}
        name = self.stored["metadata"]["name"]
        self.stored = self._request("PUT", f"{self._path}/{name}", {**head, **content})


@pytest.fixture
def writer(server, namespace, seals):
    return Writer(server, namespace, seals)


@pytest.mark.parametrize("name", NAMES)
def test_an_immutable_field_is_neither_changed_nor_removed(writer, name):
    writer.create(spec={"inner": {name: 1}})

    for spec in (
        {"inner": {name: 2}},
        {"inner": {}},
        {"inner": {"free": 1}},
        {},
        None,
    ):
        with pytest.raises(Invalid, match="immutable"):
            writer.update(**({} if spec is None else {"spec": spec}))
    writer.update(spec={"inner": {name: 1, "free": 7}, "note": "changed"})


def test_an_object_around_it_with_an_odd_name_stays_too(writer):
    writer.create(spec={"x-y": {"size": 1}})

    with pytest.raises(Invalid, match="field x-y holds immutable fields and cannot be removed"):
        writer.update(spec={})


def test_what_holds_nothing_immutable_may_go(writer):
    writer.create(spec={"inner": {"free": 1}})

    writer.update(spec={})
    writer.update()
    writer.update(spec={"inner": {"size": 3}})
    with pytest.raises(Invalid, match="immutable"):
        writer.update(spec={"inner": {"size": 4}})


@pytest.mark.parametrize("content", [{}, {"nullable": None}])
def test_a_nullable_object_is_neither_removed_nor_made_null(writer, content):
    writer.create(nullable={"fixed": 1})

    with pytest.raises(Invalid, match="cannot be removed"):
        writer.update(**content)


def test_a_nullable_object_that_is_null_may_be_set(writer):
    writer.create(nullable=None)

    writer.update(nullable={"fixed": 1})
    with pytest.raises(Invalid, match="immutable"):
        writer.update(nullable={"fixed": 2})


def test_class_keywords_read_fields_of_any_name(writer):
    with pytest.raises(Invalid, match=r"at most one of the fields in \[in a-b\] may be set"):
        writer.create(spec={"inner": {"in": 1, "a-b": 1}})


def test_a_zero_that_is_immutable_does_not_lock_an_operator_out(writer):
    writer.create(spec={"needed": 0})
    seal = Seal.from_dict(writer.stored)

    seal.spec.note = "changed"
    writer.update(spec=seal.to_dict()["spec"])
    writer.update(spec=Seal(spec=Spec(needed=0, note="made anew")).to_dict()["spec"])

    assert writer.stored["spec"] == {"needed": 0, "note": "made anew"}
    with pytest.raises(Invalid, match="needed"):
        writer.update(spec={"needed": 1})
