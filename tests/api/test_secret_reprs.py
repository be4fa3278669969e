"""Of a Secret names and sizes are shown and never values: in reprs, in errors, in logs."""

import base64
import io
import json
import logging
import pprint
import traceback

import pytest
import structlog

from ctrlruntime.api import core, meta
from ctrlruntime.api.object import Object, ObjectList, PartialObjectMetadata, Unstructured
from ctrlruntime.errors import CtrlError

VALUE = base64.b64encode(b"s3cret").decode()
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "db", "annotations": {APPLIED: json.dumps({"data": {"password": VALUE}})}},
    "data": {"password": VALUE},
    "stringData": {"user": "s3cret"},
}
RAW = json.dumps(SECRET).encode()
LIST = {"apiVersion": "v1", "kind": "List", "items": [SECRET]}
SECRET_LIST = {
    "apiVersion": "v1",
    "kind": "SecretList",
    "items": [{"metadata": {"name": "db"}, "data": {"password": VALUE}}],
}


class Holder(Object, group="example.com", version="v1"):
    spec: dict[str, object] = {}  # noqa: RUF012 - pydantic copies it
    secrets: list[core.Secret] = []  # noqa: RUF012


SHOWN = {
    "typed": lambda: core.Secret.from_json(RAW),
    "made": lambda: core.Secret(
        metadata=meta.ObjectMeta(name="db"), data={"password": b"s3cret"}, string_data={"user": "s3cret"}
    ),
    "unstructured": lambda: Unstructured.of("v1", "Secret").from_json(RAW),
    "without a class": lambda: Unstructured.from_json(RAW),
    "list": lambda: ObjectList(core.Secret, [core.Secret.from_json(RAW)]),
    "python list": lambda: [{"a": core.Secret.from_json(RAW)}],
    "kind List": lambda: Unstructured.from_json(json.dumps(LIST)),
    "SecretList": lambda: Unstructured.from_json(json.dumps(SECRET_LIST)),
    "nested": lambda: Holder(
        spec={"template": SECRET, "all": [LIST, SECRET_LIST]}, secrets=[core.Secret.from_json(RAW)]
    ),
    "metadata alone": lambda: PartialObjectMetadata.of(core.Secret).from_json(RAW),
}


@pytest.mark.parametrize("make", SHOWN.values(), ids=SHOWN)
def test_no_repr_shows_values(make):
    value = make()

    for shown in (repr(value), str(value), f"{value}", pprint.pformat(value), "%r" % [value]):
        assert VALUE not in shown
        assert "s3cret" not in shown
        assert "db" in shown


def test_names_and_sizes_are_shown():
    secret = core.Secret(data={"password": b"s3cret"}, string_data={"user": "name"})

    assert "'password': <6 bytes>" in repr(secret)
    assert "'user': <4 characters>" in repr(secret)


def test_other_kinds_show_their_data():
    assert "'a': 'b'" in repr(core.ConfigMap(data={"a": "b"}))
    assert "'a': 'b'" in repr(Unstructured.of("v1", "ConfigMap")(data={"a": "b"}))


def test_the_object_is_as_it_was():
    secret = core.Secret.from_json(RAW)
    repr(secret)

    assert secret.data == {"password": b"s3cret"}
    assert secret.to_dict() == SECRET


@pytest.mark.parametrize("make", SHOWN.values(), ids=SHOWN)
def test_no_log_shows_values(make):
    for renderer in (
        structlog.processors.KeyValueRenderer(),
        structlog.processors.JSONRenderer(),
        structlog.dev.ConsoleRenderer(),
    ):
        out = io.StringIO()
        log = structlog.wrap_logger(structlog.PrintLogger(out), processors=[renderer])
        log.info("seen", secret=make())
        assert "s3cret" not in out.getvalue()
        assert VALUE not in out.getvalue()


def test_a_traceback_in_a_log_shows_no_values(caplog):
    with caplog.at_level(logging.ERROR):
        try:
            core.Secret.from_json(
                RAW.replace(b'"data": {"password": "', b'"immutable": "s3cret", "data": {"password": "')
            )
        except CtrlError:
            logging.getLogger("x").exception("no")

    assert "does not fit" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    ("kind", "tree"),
    [
        (core.Secret, {"data": "s3cret"}),
        (core.Secret, {"data": {"password": ["s3cret"]}}),
        (core.Secret, {"data": {"password": "s3cret!"}}),
        (core.Secret, {"stringData": {"password": {"s3cret": 1}}}),
        (core.Secret, {"immutable": "s3cret"}),
        (core.Secret, {"type": {"a": "s3cret"}}),
        (core.Secret, {"metadata": {"name": "x", "labels": "s3cret"}}),
        (core.ConfigMap, {"kind": "Secret", "data": {"password": ["s3cret"]}}),
    ],
)
def test_what_does_not_fit_is_named_without_its_value(kind, tree):
    with pytest.raises(CtrlError) as caught:
        kind.from_json(json.dumps({"apiVersion": "v1", "kind": "Secret", **tree}))

    assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises((CtrlError, ValueError, TypeError)) as caught:
        kind.from_dict({"apiVersion": "v1", "kind": "Secret", **tree})
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_an_argument_that_does_not_fit_is_named_without_its_value():
    with pytest.raises(ValueError, match="data") as caught:
        core.Secret(data={"password": ["s3cret"]})

    assert "s3cret" not in str(caught.value)


def test_of_other_kinds_the_value_is_told():
    with pytest.raises(CtrlError, match="not 'abc'"):
        core.Pod.from_json(b'{"apiVersion": "v1", "kind": "Pod", "spec": {"priority": "abc"}}')
