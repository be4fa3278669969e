"""The field manager: what needs a clock of the test, or trees that no client can make."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.apiserver.apply import Compiler, FieldManager, Type, read_configuration
from ctrlruntime.apiserver.apply.fieldsets import parse
from ctrlruntime.apiserver.apply.resets import Reset, reset_of
from ctrlruntime.apiserver.apply.scale import path_of, to_object, to_scale
from ctrlruntime.errors import APIStatusError, BadRequest, Conflict

NO_RESET = Reset(frozenset())
TEXT = {"type": "string"}
META = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "labels": {"type": "object", "additionalProperties": TEXT},
        "annotations": {"type": "object", "additionalProperties": TEXT},
    },
}
SPEC = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class OtherVersions:
    """v2 calls field a of v1 by the name of b."""

    def __init__(self, kind):
        self.kind = kind

    def type_of(self, api_version):
        return self.kind if api_version == "x/v2" else None

    def convert(self, document, api_version):
        if document["apiVersion"] == api_version:
            return document
        converted = {**document, "apiVersion": api_version}
        if "spec" in document:
            other = {"a": "b", "b": "a"}
            converted["spec"] = {other.get(key, key): value for key, value in document["spec"].items()}
        return converted


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def manager(clock):
    compiler = Compiler()
    meta = compiler.custom(META, Type())
    kind = compiler.custom({"type": "object", "properties": {"spec": SPEC}}, meta)
    return FieldManager(
        kind, "x/v1", "X", zero={"metadata": {}}, versions=OtherVersions(kind), sorts_fields=True, now=clock
    )


def thing(**spec):
    return {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec}


def copy(document):
    return json.loads(json.dumps(document))


def update(manager, live, by, **spec):
    new = {**copy(live), "spec": spec} if live else thing(**spec)
    manager.updated(live, new, manager=by, subresource="", reset=NO_RESET)
    return new


def apply(manager, live, by, *, force=False, **spec):
    config = thing(**spec)
    return copy(manager.applied(live, config, manager=by, force=force, subresource="", reset=NO_RESET))


def times(document):
    return {entry["manager"]: entry.get("time") for entry in document["metadata"]["managedFields"]}


def test_the_time_moves_only_when_something_is_set(manager, clock):
    first = update(manager, None, "one", a=1, b=1)
    clock.now = 60.0
    removed = update(manager, first, "one", a=1)
    clock.now = 120.0
    changed = update(manager, removed, "one", a=2)

    assert times(first) == times(removed) == {"one": "1970-01-01T00:00:00Z"}
    assert times(changed) == {"one": "1970-01-01T00:02:00Z"}


def test_the_oldest_updaters_become_ancient_changes(manager, clock):
    live = update(manager, None, "m0", a=0)
    live["metadata"]["managedFields"] += [
        {**copy(live["metadata"]["managedFields"][0]), "manager": f"m{n}", "time": f"1970-01-01T00:00:{n:02}Z"}
        for n in range(1, 10)
    ]
    clock.now = 50.0

    changed = update(manager, live, "m10", a=0, b=1)

    entries = {entry["manager"]: entry for entry in changed["metadata"]["managedFields"]}
    assert list(entries) == ["ancient-changes", *(f"m{n}" for n in range(2, 11))]
    assert entries["ancient-changes"]["time"] == "1970-01-01T00:00:01Z"


def test_fields_of_another_version_are_compared_in_it(manager):
    live = thing(a=1, c=1)
    live["metadata"]["managedFields"] = [
        {
            "manager": "later",
            "operation": "Apply",
            "apiVersion": "x/v2",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:b": {}, "f:c": {}}},
        }
    ]

    with pytest.raises(Conflict, match=r'conflict with "later": \.spec\.b'):
        apply(manager, live, "one", a=2)
    taken = apply(manager, live, "one", a=2, force=True)

    assert [entry["fieldsV1"] for entry in taken["metadata"]["managedFields"] if entry["manager"] == "later"] == [
        {"f:spec": {"f:c": {}}}
    ]


def test_what_a_manager_applied_in_another_version_is_pruned(manager):
    live = thing(a=1, c=1)
    live["metadata"]["managedFields"] = [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "x/v2",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:b": {}, "f:c": {}}},
        }
    ]

    assert apply(manager, live, "one", c=1)["spec"] == {"c": 1}


def test_owners_in_a_version_that_is_gone_go_with_the_next_change(manager):
    live = update(manager, None, "one", a=1)
    live["metadata"]["managedFields"].append(
        {
            "manager": "old",
            "operation": "Update",
            "apiVersion": "x/v0",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:a": {}}},
        }
    )

    assert times(update(manager, live, "two", a=1, b=1)).keys() == {"one", "two"}


def test_an_apply_changes_neither_the_live_object_nor_the_configuration(manager):
    live = update(manager, None, "one", a=1)
    before, config = copy(live), thing(b=2)

    manager.applied(live, config, manager="two", force=False, subresource="", reset=NO_RESET)

    assert live == before
    assert config == thing(b=2)


def test_resets_of_subresources():
    assert reset_of("apps", "deployments", "", has_status=True, is_custom=False).roots == {"status"}
    assert reset_of("", "configmaps", "", has_status=False, is_custom=False).roots == set()
    assert reset_of("apps", "deployments", "status", has_status=True, is_custom=False).paths is not None
    assert reset_of("x.io", "things", "status", has_status=True, is_custom=True).roots == {"spec", "metadata"}


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "<", "k:"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name", "kind", ""]), inner),
    max_leaves=8,
)
MIXED = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "b": {
            "type": "array",
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "name": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "kind": {"x-kubernetes-int-or-string": True},
        "": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
    },
}


@given(st.lists(ANY, min_size=1, max_size=4))
def test_whatever_is_applied_is_applied_or_refused(configs):
    compiler = Compiler()
    kind = compiler.custom({"type": "object", "properties": {"spec": MIXED}}, compiler.custom(META, Type()))
    fields = FieldManager(
        kind, "x/v1", "X", zero={"metadata": {}}, versions=OtherVersions(kind), sorts_fields=True, now=Clock()
    )
    live = None
    for number, spec in enumerate(configs):
        config = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec}
        by = f"m{number % 2}"
        try:
            live = fields.applied(live, config, manager=by, force=True, subresource="", reset=NO_RESET)
        except APIStatusError:  # refused with a status, and nothing else
            continue
        entries = live["metadata"].get("managedFields", [])
        assert [entry["manager"] for entry in entries if parse(entry["fieldsV1"]) != entry["fieldsV1"]] == []
        assert json.loads(json.dumps(live)) == live


def entry(manager, operation, version, fields, **rest):
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **rest,
    }


def test_owners_of_the_count_go_to_scale_and_back():
    count = path_of(".spec.replicas")
    entries = [
        entry(
            "applier", "Apply", "apps/v1", {"f:spec": {"f:paused": {}, "f:replicas": {}}}, time="1970-01-01T00:00:00Z"
        ),
        entry("other", "Update", "apps/v1", {"f:spec": {"f:paused": {}}}),
    ]

    shown = to_scale(entries, {"apps/v1": count})
    taken = [entry("scaler", "Update", "autoscaling/v1", {"f:spec": {"f:replicas": {}}}, subresource="scale")]

    assert [(e["manager"], e["apiVersion"]) for e in shown] == [("applier", "autoscaling/v1")]
    assert to_object(entries, shown, {"apps/v1": count}, "apps/v1", sorts_fields=True) == entries
    after = to_object(entries, taken, {"apps/v1": count}, "apps/v1", sorts_fields=True)
    assert {e["manager"]: e["fieldsV1"] for e in after} == {
        "applier": {"f:spec": {"f:paused": {}}},
        "other": {"f:spec": {"f:paused": {}}},
        "scaler": count,
    }


def test_a_configuration_is_read_from_json_and_yaml():
    assert read_configuration(b'{"a": 1}') == ({"a": 1}, [])
    assert read_configuration(b"a: 1\nb: [x]\n") == ({"a": 1, "b": ["x"]}, [])
    assert read_configuration(b"1: x\n") == ({"1": "x"}, [])
    assert read_configuration(b"true: x\n") == ({"true": "x"}, [])
    assert read_configuration(b"") == ({}, [])


def test_only_the_first_document_counts():
    assert read_configuration(b"a: 1\n---\nb: 2\n") == ({"a": 1}, [])


def test_what_is_said_twice_is_told_with_its_line():
    body = b"a: 1\nb:\n  q: 1\n  q: 2\n"

    assert read_configuration(body) == ({"a": 1, "b": {"q": 2}}, ['line 4: key "q" already set in map'])
    assert read_configuration(b'{"a": 1, "a": 2}') == ({"a": 2}, ['line 1: key "a" already set in map'])


@pytest.mark.parametrize("body", [b"a: [", b"- a", b"text", b"{", b"a: &a [*a]", b"[" * 3000, b"{" * 3000])
def test_what_is_no_configuration_is_refused(body):
    with pytest.raises(BadRequest, match="error decoding YAML"):
        read_configuration(body)


def test_aliases_that_grow_without_bound_are_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]

    with pytest.raises(BadRequest, match="excessive aliasing"):
        read_configuration("\n".join(lines).encode())
