"""What comes of patches beyond their plain cases, and what is said of one whose result is no object; random ones run on both servers."""

from __future__ import annotations

import json

import pytest

from ctrlruntime.apiserver.encoding import as_written
from ctrlruntime.apiserver.http.patch_tests import check_tests
from ctrlruntime.errors import PatchError
from ctrlruntime.patch import apply_json_patch
from ctrlruntime.schema import Structural
from ctrlruntime.schema.typed import Misfit, typed


@pytest.mark.parametrize("path", ["/a/-", "/a/-1", "/a/2", "/a/+2", "odd/a/2"])
def test_an_item_is_added_at_the_end(path):
    assert apply_json_patch({"a": [1, 2]}, [{"op": "add", "path": path, "value": 3}]) == {"a": [1, 2, 3]}


@pytest.mark.parametrize("path", ["/a/ 1", "/a/1_0", "/a/\u0661", "/a/3", "/a/-4", "/a/" + "9" * 5000])
def test_what_is_no_index_adds_nothing(path):
    with pytest.raises(PatchError):
        apply_json_patch({"a": [1, 2]}, [{"op": "add", "path": path, "value": 3}])


def test_a_whole_document_is_not_replaced_by_a_scalar():
    with pytest.raises(PatchError):
        apply_json_patch({}, [{"op": "replace", "path": "", "value": "text"}])


@pytest.mark.parametrize(
    ("text", "is_same"), [('"<"', False), ('"\\u003c"', True), ('["<"]', False), ('["\\u003c"]', True), ("1", True)]
)
def test_texts_are_compared_as_go_writes_them(text, is_same):
    value = json.loads(text)
    body = f'[{{"op": "test", "path": "/a", "value": {text}}}]'.encode()

    def check():
        check_tests({"a": value}, json.loads(body), body)

    if is_same:
        check()
    else:
        with pytest.raises(PatchError):
            check()


def test_what_the_patch_wrote_before_is_not_compared_with_go():
    body = b'[{"op": "add", "path": "/a", "value": "<"}, {"op": "test", "path": "/a", "value": "<"}]'
    check_tests({"a": "<"}, json.loads(body), body)


def test_a_number_is_told_as_it_was_sent():
    why = "json: cannot unmarshal number 100.0 into Go struct field X.a of type int32"
    assert as_written(why, b'{"a": 1e2}') == why.replace("100.0", "1e2")
    assert as_written(why, b'{"a": 100.0, "b": 1e2}') == why


def misfit(body) -> Misfit:
    with pytest.raises(Misfit) as caught:
        typed("k8s.io.api.core.v1.PodSpec").read(body, "spec", [])
    return caught.value


def test_what_a_type_says_itself_comes_before_what_the_decoder_says():
    limits = {"resources": {"limits": {"cpu": "x"}}}
    found = misfit({"dnsPolicy": 1, "containers": [{"name": 1}, {"name": "a"}, limits]})
    assert str(found).startswith("quantities must match")
    assert "PodSpec.spec.dnsPolicy" in str(found.first)  # a conversion stops there


@pytest.mark.parametrize(
    ("text", "at"), [("aGk=x", 4), ("a", 0), ("aG", 0), ("aGk", 0), ("aG=k", 2), ("=", 0), ("aGk*", 3), ("aGk=\nx", 5)]
)
def test_base64_is_refused_where_go_refuses_it(text, at):
    with pytest.raises(Misfit, match=rf"illegal base64 data at input byte {at}$"):
        typed("k8s.io.api.core.v1.Secret").read({"data": {"a": text}}, "", [])


def test_bytes_may_be_a_list_of_numbers():
    assert typed("k8s.io.api.core.v1.Secret").read({"data": {"a": [104, 105]}}, "", [])["data"] == {"a": "aGk="}


def test_objects_of_a_set_are_the_same_in_any_order_of_keys():
    items = {"type": "object", "x-kubernetes-map-type": "atomic"}
    schema = Structural({"type": "array", "x-kubernetes-list-type": "set", "items": items})
    assert [cause.field for cause in schema.duplicates([{"a": 1, "b": 2}, {"b": 2, "a": 1}])] == ["[1]"]


def test_a_null_in_a_keyed_list_has_no_key():
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    schema = Structural({"type": "array", **keyed, "items": {"type": "object"}})
    assert schema.duplicates([None]) == []
    assert [cause.field for cause in schema.duplicates([None, {}])] == ["[1]"]
