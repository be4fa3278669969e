"""Which fields changed between two versions."""

from __future__ import annotations

import json

import pytest

from ctrlruntime.changes import changed_paths


def paths(old, new, **options):
    return changed_paths(json.dumps(old).encode(), json.dumps(new).encode(), **options)


def containers(**images):
    return {"spec": {"containers": [{"name": name, "image": image} for name, image in images.items()]}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"spec": {"size": 1}}, {"spec": {"size": 2}}, ["spec.size"]),
        ({"spec": {"size": 1}}, {"spec": {"size": 1}}, []),
        ({"spec": {}}, {"spec": {"size": None}}, ["spec.size"]),
        ({"spec": {"a": {"b": 1}}}, {"spec": {}}, ["spec.a"]),
        ({}, {"status": {"ready": True}}, ["status"]),
        ({"spec": {"on": 1}}, {"spec": {"on": [1]}}, ["spec.on"]),
        (
            {"metadata": {"labels": {"app.kubernetes.io/name": "a"}}},
            {"metadata": {"labels": {"app.kubernetes.io/name": "b"}}},
            ["metadata.labels[app.kubernetes.io/name]"],
        ),
        ({"a": [1, 2]}, {"a": [1, 3, 4]}, ["a[1]", "a[2]"]),
        (containers(app="1", side="1"), containers(app="2", side="1"), ["spec.containers[name=app].image"]),
        (containers(app="1"), containers(side="1", app="1"), ["spec.containers[name=side]"]),
        (containers(app="1", side="1"), containers(side="1", app="1"), ["spec.containers"]),
        (
            {"c": [{"type": "Ready", "status": "False"}]},
            {"c": [{"type": "Ready", "status": "True"}]},
            ["c[type=Ready].status"],
        ),
        ({"c": [{"name": "x", "v": 1}, {"name": "x", "v": 2}]}, {"c": [{"name": "x", "v": 1}]}, ["c[1]"]),
        ({"c": [{"name": {"deep": 1}, "v": 1}]}, {"c": [{"name": {"deep": 1}, "v": 2}]}, ["c[0].v"]),
    ],
)
def test_paths_name_the_fields_that_differ(old, new, expected):
    assert paths(old, new) == expected


def test_what_the_server_changes_with_each_write_is_left_out():
    old = {"metadata": {"resourceVersion": "1", "generation": 1, "managedFields": [], "name": "a"}}
    new = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "2", "generation": 2, "managedFields": [1], "name": "a"},
    }

    assert paths(old, new) == []


def test_there_are_not_more_paths_than_asked_for():
    assert paths({}, {str(number): number for number in range(100)}, limit=3) == ["0", "1", "2"]
    assert len(paths({}, {str(number): number for number in range(100)})) == 32


@pytest.mark.parametrize("bad", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_bytes_that_are_no_json_have_no_paths(bad):
    assert changed_paths(bad, b"{}") == []
    assert changed_paths(b"{}", bad) == []
