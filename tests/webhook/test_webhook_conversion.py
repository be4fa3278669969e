"""Conversion: any version into any other through the hub, metadata as the API server wants it, errors that name the object."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.api import meta
from ctrlruntime.errors import ConfigError
from ctrlruntime.webhook import ConversionEndpoint, ConversionError

GROUP = "cache.example.com"


class SpecA(ctrl.Model):
    size: int = 0


class SpecB(ctrl.Model):
    replicas: int = 0


class SpecC(ctrl.Model):
    count: str = ""


class A(ctrl.Object, group=GROUP, version="v1alpha1", kind="Memcached"):
    spec: SpecA = Field(default_factory=SpecA)


class B(ctrl.Object, group=GROUP, version="v1beta1", kind="Memcached"):
    spec: SpecB = Field(default_factory=SpecB)


class C(ctrl.Object, group=GROUP, version="v1", kind="Memcached"):
    spec: SpecC = Field(default_factory=SpecC)


class Other(ctrl.Object, group=GROUP, version="v1"):
    pass


def a_up(a: A) -> B:
    return B(spec=SpecB(replicas=a.spec.size))


def a_down(b: B) -> A:
    return A(spec=SpecA(size=b.spec.replicas))


def c_up(c: C) -> B:
    return B(spec=SpecB(replicas=int(c.spec.count or 0)))


def c_down(b: B) -> C:
    return C(spec=SpecC(count=str(b.spec.replicas)))


def conversion() -> ctrl.webhook.Conversion[B]:
    return ctrl.webhook.Conversion(B).spoke(A, to_hub=a_up, from_hub=a_down).spoke(C, to_hub=c_up, from_hub=c_down)


def wire(version: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Memcached",
        "metadata": {"name": "m", "namespace": "ns", "uid": "u", "creationTimestamp": None, **metadata},
        "spec": spec,
    }


def review(desired: str, *objects: Any, version: str = "v1") -> bytes:
    request = {"uid": "u1", "desiredAPIVersion": f"{GROUP}/{desired}", "objects": list(objects)}
    return json.dumps(
        {"kind": "ConversionReview", "apiVersion": f"apiextensions.k8s.io/{version}", "request": request}
    ).encode()


async def ask(body: bytes, *conversions: ctrl.webhook.Conversion[Any], **options: Any) -> dict[str, Any]:
    endpoint = ConversionEndpoint(conversions or [conversion()])
    return json.loads(await endpoint.answer(body, **options))["response"]


FORMS = {"v1alpha1": {"size": 3}, "v1beta1": {"replicas": 3}, "v1": {"count": "3"}}


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(FORMS, 2)))
async def test_any_version_becomes_any_other(source, target):
    response = await ask(review(target, wire(source, FORMS[source])))

    assert response["uid"] == "u1"
    assert response["result"] == {"status": "Success"}
    assert response["convertedObjects"] == [wire(target, FORMS[target])]


async def test_objects_of_several_versions_keep_their_order():
    sent = [wire(version, FORMS[version], name=version) for version in ("v1beta1", "v1alpha1")]
    response = await ask(review("v1", *sent))

    assert [one["metadata"]["name"] for one in response["convertedObjects"]] == ["v1beta1", "v1alpha1"]
    assert all(one["spec"] == {"count": "3"} for one in response["convertedObjects"])


async def test_many_objects_let_others_have_their_turn():
    sent = [wire("v1alpha1", {"size": number}) for number in range(120)]
    response = await ask(review("v1", *sent))

    assert [one["spec"]["count"] for one in response["convertedObjects"]] == [str(number) for number in range(120)]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_review_is_answered_in_its_own_version(version):
    body = await ConversionEndpoint([conversion()]).answer(review("v1", version=version))

    assert json.loads(body)["apiVersion"] == f"apiextensions.k8s.io/{version}"


# Metadata


async def test_metadata_stays_as_it_was_written():
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "ownerReferences": [], "managedFields": [{"x": 1}]}
    response = await ask(review("v1", wire("v1alpha1", {"size": 3}, **metadata)))

    assert response["convertedObjects"][0]["metadata"] == wire("v1", {}, **metadata)["metadata"]


async def test_labels_and_annotations_of_a_converter_are_added():
    def down(b: B) -> A:
        return A(metadata=meta.ObjectMeta(annotations={"lost": "1"}), spec=SpecA(size=b.spec.replicas))

    one = ctrl.webhook.Conversion(B).spoke(A, to_hub=a_up, from_hub=down)
    response = await ask(review("v1alpha1", wire("v1beta1", {}, annotations={"c": "d"}, labels={"a": "b"})), one)

    metadata = response["convertedObjects"][0]["metadata"]
    assert metadata["annotations"] == {"c": "d", "lost": "1"}
    assert metadata["labels"] == {"a": "b"}


async def test_a_converter_that_passes_metadata_on_may_remove_from_it():
    def up(a: A) -> B:
        metadata = a.metadata
        metadata.annotations.pop("lost")
        return B(metadata=metadata, spec=SpecB(replicas=a.spec.size))

    one = ctrl.webhook.Conversion(B).spoke(A, to_hub=up, from_hub=a_down)
    response = await ask(review("v1beta1", wire("v1alpha1", {}, annotations={"c": "d", "lost": "1"})), one)

    assert response["convertedObjects"][0]["metadata"]["annotations"] == {"c": "d"}


NEW_METADATA = {
    "nothing": lambda own: meta.ObjectMeta(),
    "the name": lambda own: meta.ObjectMeta(name=own.name, namespace=own.namespace, generate_name=own.generate_name),
    "the name and the uid": lambda own: meta.ObjectMeta(name=own.name, namespace=own.namespace, uid=own.uid),
}
COPIES = {
    "itself": lambda own: own,
    "deep_copy": lambda own: own.deep_copy(),
    "model_copy": lambda own: own.model_copy(),
    "deep model_copy": lambda own: own.model_copy(deep=True),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
THROUGH_THE_WIRE = {"wire": lambda own: meta.ObjectMeta.from_dict(own.to_dict())}
MAPS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)
IDENTITIES = st.sampled_from(
    [{"name": "m"}, {"generate_name": "m-"}, {}, {"name": "m", "uid": "u", "generation": 2, "resource_version": "7"}]
)


class Converters:
    """Two converters that treat the metadata in one way: they remove labels and annotations, and add some."""

    def __init__(self, way, removed, added):
        self.way, self.removed, self.added = way, removed, added
        self.conversion = ctrl.webhook.Conversion(B)
        for other in (A, C):
            self.conversion.spoke(
                other,
                to_hub=lambda obj: B(metadata=self(obj)),
                from_hub=lambda hub, kind=other: kind(metadata=self(hub)),
            )

    def __call__(self, obj):
        made = {**NEW_METADATA, **COPIES, **THROUGH_THE_WIRE}[self.way](obj.metadata)
        for held in (made.labels, made.annotations):
            for name in self.removed:
                held.pop(name, None)
            held.update(self.added)
        return made

    def expected(self, before, *, has_uid):
        is_copy = self.way in COPIES or (self.way in THROUGH_THE_WIRE and has_uid)
        removed = self.removed if is_copy else ()
        return {name: value for name, value in before.items() if name not in removed} | self.added


CONVERTERS = st.builds(
    Converters, st.sampled_from([*NEW_METADATA, *COPIES, *THROUGH_THE_WIRE]), st.sets(st.sampled_from("abc")), MAPS
)


@given(CONVERTERS, IDENTITIES, MAPS, MAPS, st.sampled_from([B, C]))
def test_labels_and_annotations_go_only_when_the_converter_passes_them_on_without(
    converters, identity, labels, annotations, target
):
    obj = A(metadata=meta.ObjectMeta(**identity, labels=labels, annotations=annotations))
    before = obj.deep_copy()

    result = converters.conversion.convert(obj, target)

    has_uid = "uid" in identity
    assert obj == before
    assert result.metadata.labels == converters.expected(labels, has_uid=has_uid)
    assert result.metadata.annotations == converters.expected(annotations, has_uid=has_uid)
    assert {**result.metadata.to_dict(), "labels": 0, "annotations": 0} == {
        **obj.metadata.to_dict(),
        "labels": 0,
        "annotations": 0,
    }


def test_metadata_that_several_objects_share_is_left_alone():
    shared = meta.ObjectMeta(labels={"added": "1"})
    one = ctrl.webhook.Conversion(B).spoke(A, to_hub=lambda a: B(metadata=shared), from_hub=a_down)

    results = [one.convert(A(metadata=meta.ObjectMeta(name=name, labels={name: "1"})), B) for name in ("a", "b")]

    assert [result.metadata.labels for result in results] == [{"a": "1", "added": "1"}, {"b": "1", "added": "1"}]
    assert shared == meta.ObjectMeta(labels={"added": "1"})


async def test_what_must_not_change_cannot_be_changed():
    def up(a: A) -> B:
        return B(metadata=meta.ObjectMeta(name="another", uid="another"), spec=SpecB())

    one = ctrl.webhook.Conversion(B).spoke(A, to_hub=up, from_hub=a_down)
    response = await ask(review("v1beta1", wire("v1alpha1", {})), one)

    assert response["convertedObjects"][0]["metadata"] == wire("v1beta1", {})["metadata"]


# Errors


async def test_an_error_names_the_object_and_fails_the_review():
    def down(b: B) -> A:
        if b.metadata.name == "n":
            raise ConversionError("too new")
        return a_down(b)

    one = ctrl.webhook.Conversion(B).spoke(A, to_hub=a_up, from_hub=down)
    response = await ask(review("v1alpha1", wire("v1beta1", {}), wire("v1beta1", {}, name="n")), one)

    assert response["result"] == {"status": "Failure", "message": "Memcached ns/n: too new"}
    assert response["convertedObjects"] == []


async def test_an_unexpected_exception_is_hidden_counted_and_logged(capsys):
    endpoint = ConversionEndpoint([conversion()])
    response = json.loads(await endpoint.answer(review("v1beta1", wire("v1", {"count": "many"}))))["response"]

    assert (
        response["result"]["message"] == "Memcached ns/m: the converter failed (ValueError); the webhook's log says why"
    )
    assert endpoint.panics == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (review("v2", wire("v1", {})), "no converter for version v2; there are v1beta1, v1alpha1, v1"),
        (review("v1", {**wire("v1", {}), "kind": "Unknown"}), "no conversion is registered for Unknown"),
        (review("v1", {**wire("v9", {})}), "no converter for version v9"),
        (
            review("v1", wire("v1alpha1", {}), wire("v1", {})),
            "cannot convert to cache.example.com/v1: the object has this version",
        ),
        (review("v1", {**wire("v1", {}), "apiVersion": "other.example.com/v2"}), "stays in its group"),
        (review("v1", wire("v1alpha1", {"size": "many"})), "spec.size"),
        (review("v1", 1), "it is not an API object"),
        (b"", "the body is not a ConversionReview"),
        (b"{}", "a ConversionReview of apiextensions.k8s.io/v1 is needed"),
    ],
)
async def test_what_cannot_be_converted_is_a_failure_that_says_why(body, message):
    response = await ask(body)

    assert response["result"]["status"] == "Failure"
    assert message in response["result"]["message"]


async def test_another_content_type_is_refused():
    assert "content type" in (await ask(review("v1"), content_type="text/xml"))["result"]["message"]


async def test_a_converter_must_return_the_other_version():
    one = ctrl.webhook.Conversion(B).spoke(A, to_hub=lambda a: a, from_hub=a_down)
    response = await ask(review("v1beta1", wire("v1alpha1", {})), one)

    assert "returned a A, not a B" in response["result"]["message"]


# Registering


def test_bad_spokes_are_refused():
    async def asynchronous(a: A) -> B: ...

    hub = ctrl.webhook.Conversion(B)
    with pytest.raises(ConfigError, match="group and kind must be the same"):
        hub.spoke(Other, to_hub=a_up, from_hub=a_down)
    with pytest.raises(ConfigError, match="in this conversion twice"):
        hub.spoke(B, to_hub=a_up, from_hub=a_down)
    with pytest.raises(ConfigError, match="give a plain function"):
        hub.spoke(A, to_hub=asynchronous, from_hub=a_down)
    with pytest.raises(ConfigError, match="give a plain function"):
        hub.spoke(A, to_hub=a_up, from_hub=None)
    with pytest.raises(ConfigError, match="has no other version"):
        ConversionEndpoint([hub])
    with pytest.raises(ConfigError, match=r"a second conversion for Memcached\.cache\.example\.com"):
        ConversionEndpoint([conversion(), conversion()])


def test_objects_convert_without_a_server():
    original = A(metadata=meta.ObjectMeta(name="m", labels={"a": "b"}), spec=SpecA(size=3))
    result = conversion().convert(original, C)

    assert result.spec.count == "3"
    assert result.metadata == original.metadata
    same = conversion().convert(original, A)
    assert same == original
    assert same is not original
    assert [info.version for info in conversion().versions] == ["v1beta1", "v1alpha1", "v1"]
