"""One kind in the cache: what the store holds and what subscribers hear, whatever the server does."""

from __future__ import annotations

import asyncio
import itertools
import json
import math

import pytest
from cache_server import (
    HANGS,
    KIND,
    Script,
    Time,
    World,
    added,
    bookmark,
    content,
    deleted,
    drain,
    eventually,
    informer_of,
    modified,
    obj,
    page,
    reflector_of,
    running,
    until,
)
from captured_log import captured_log
from hypothesis import given, settings
from hypothesis import strategies as st
from servers import LONGEST_WAIT

from ctrlruntime.api.metadata import Metadata, envelope_of
from ctrlruntime.cache.contents import MAX_LOGGED
from ctrlruntime.cache.informer import Informer
from ctrlruntime.cache.managed_fields import cut_managed_fields, cut_with_envelope
from ctrlruntime.cache.observer import CacheObserver
from ctrlruntime.cache.reflector import WatchOptions
from ctrlruntime.cache.scope import Scope
from ctrlruntime.cache.store import Index, field_path_index
from ctrlruntime.errors import (
    ConfigError,
    Expired,
    Forbidden,
    InternalError,
    NoMatchError,
    NotCachedError,
    TransportError,
)
from ctrlruntime.event import CreateEvent, DeleteEvent, UpdateEvent
from ctrlruntime.metrics.cache import CacheMetrics
from ctrlruntime.selector import parse_labels


@pytest.fixture
def time():
    return Time()


def version_of(event):
    return int(event.meta.resource_version)


def told(subscription):
    """What a subscriber heard, in short: kind of event, name, version, and whether it was initial or of unknown state."""
    lines = []
    for event in drain(subscription):
        match event:
            case CreateEvent():
                mark = "initial" if event.is_in_initial_list else ""
            case DeleteEvent():
                mark = "unknown" if event.delete_state_unknown else ""
            case UpdateEvent():
                mark = f"from {event.old_meta.resource_version}"
        lines.append((type(event).__name__[:6], event.meta.name, version_of(event), mark))
    return lines


# --- the way of an event ------------------------------------------------------------------------------------------------


async def test_subscribers_hear_the_initial_list_then_every_change_and_can_read_what_they_hear(time):
    script = Script(time, page(obj("a", 1), obj("b", 2), version=5), [[modified("a", 6), deleted("b", 7), added("c", 8)]])  # fmt: skip
    informer = informer_of(script)
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 8)

        assert told(subscription) == [
            ("Create", "a", 1, "initial"),
            ("Create", "b", 2, "initial"),
            ("Update", "a", 6, "from 1"),
            ("Delete", "b", 7, ""),
            ("Create", "c", 8, ""),
        ]
        assert subscription.is_synced
        assert content(informer.store) == {("ns", "a"): obj("a", 6), ("ns", "c"): obj("c", 8)}


async def test_a_late_subscriber_first_gets_what_is_stored(time):
    informer = informer_of(Script(time, page(obj("a", 1), version=5), [[modified("a", 6)], HANGS]))

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 6)
        late = informer.subscribe("late", bytes.decode)

        assert told(late) == [("Create", "a", 6, "initial")]
        assert late.is_synced


async def test_each_subscriber_decodes_for_itself(time):
    informer = informer_of(Script(time, page(obj("a", 1), version=5), [HANGS]))
    first, second = (informer.subscribe(name, json.loads) for name in ("one", "two"))

    async with running(informer):
        await informer.wait_for_sync()
        (one,), (two,) = drain(first), drain(second)

        assert one.object == two.object
        assert one.object is not two.object
        assert one.object is one.object


async def test_a_subscriber_that_stops_hears_nothing_more_and_the_others_go_on(time):
    informer = informer_of(Script(time, page(version=5), [[added("a", 6)], HANGS]))
    leaver, stayer = informer.subscribe("leaver", bytes), informer.subscribe("stayer", bytes)
    leaver.stop()

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 6)

        assert informer.subscriber_count == 1
        assert told(stayer) == [("Create", "a", 6, "")]
        assert len(leaver) == 0


# --- lists that come in pages ------------------------------------------------------------------------------------------


async def test_a_first_list_is_told_page_by_page_and_is_synced_with_its_last_one(time):
    script = Script(time, page(obj("a", 1), version=5, token="t"))
    informer = informer_of(script)
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await eventually(lambda: len(subscription))

        assert told(subscription) == [("Create", "a", 1, "initial")]
        assert not informer.has_listed()
        assert not informer.is_synced
        assert not subscription.is_synced
        assert informer.version("ns") == 0


@pytest.mark.parametrize("failure", [TransportError("reset"), Expired("old token")])
async def test_a_first_list_that_fails_midway_leaves_nothing_that_the_next_one_has_not(time, failure):
    script = Script(
        time,
        page(obj("a", 1), obj("b", 2), version=5, token="t"), failure,
        page(obj("b", 7), obj("c", 8), version=9, token="u"), page(obj("d", 3), version=9), [HANGS],
    )  # fmt: skip
    informer = informer_of(script)
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await informer.wait_for_sync()

        assert content(informer.store) == {("ns", "b"): obj("b", 7), ("ns", "c"): obj("c", 8), ("ns", "d"): obj("d", 3)}
        assert told(subscription) == [
            ("Create", "a", 1, "initial"),
            ("Create", "b", 2, "initial"),
            ("Update", "b", 7, "from 2"),
            ("Create", "c", 8, "initial"),
            ("Create", "d", 3, "initial"),
            ("Delete", "a", 1, "unknown"),
        ]
        assert subscription.is_synced


async def test_a_later_list_is_taken_as_a_whole_or_not_at_all(time):
    script = Script(
        time,
        page(obj("a", 1), obj("b", 2), version=5), Expired("old"),
        page(obj("a", 7), obj("b", 2), version=8, token="t"), TransportError("reset"),
        page(obj("b", 2), version=9, token="u"), page(obj("c", 9), version=9), [HANGS],
    )  # fmt: skip
    informer = informer_of(script)
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 9)

        assert told(subscription)[2:] == [("Create", "c", 9, ""), ("Delete", "a", 1, "unknown")]
        assert content(informer.store) == {("ns", "b"): obj("b", 2), ("ns", "c"): obj("c", 9)}


async def test_a_later_list_keeps_of_its_pages_only_what_is_new(time):
    later = page(obj("a", 1), obj("b", 7), obj("c", 8), version=8, token="t")
    informer = informer_of(Script(time, page(obj("a", 1), obj("b", 2), version=5), Expired("old"), later))

    async with running(informer):
        await informer.wait_for_sync()
        await eventually(lambda: Scope() in informer._contents._lists and informer._contents._lists[Scope()].taken == 3)

        assert [entry.meta.name for entry in informer._contents._lists[Scope()].changed] == ["b", "c"]
        assert content(informer.store) == {("ns", "a"): obj("a", 1), ("ns", "b"): obj("b", 2)}


async def test_a_namespace_that_is_dropped_while_its_list_comes_in_leaves_nothing_behind(time):
    script = Script(time, page(obj("a", 1), version=5, token="t"))
    informer = informer_of({Scope("ns"): script})
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await eventually(lambda: len(subscription))
        informer.rescope([], lambda _scope: None)
        await eventually(lambda: not informer._followers)

        assert told(subscription) == [("Create", "a", 1, "initial"), ("Delete", "a", 1, "unknown")]
        assert len(informer.store) == 0
        assert informer._contents._lists == {}
    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- what must not be believed --------------------------------------------------------------------------------------------


async def test_a_missed_deletion_is_told_as_one_of_unknown_state(time):
    script = Script(time, page(obj("a", 1), obj("b", 2), version=5), Expired("old"), page(obj("b", 2), version=9), [HANGS])  # fmt: skip
    informer = informer_of(script)
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 9)

        assert told(subscription)[2:] == [("Delete", "a", 1, "unknown")]
        assert content(informer.store) == {("ns", "b"): obj("b", 2)}


@pytest.mark.parametrize("how", ["list", "watch"])
async def test_another_uid_under_the_same_key_is_a_deletion_and_a_creation(time, how):
    new = obj("a", 7, uid="new")
    answers = [Expired("old"), page(new, version=9), [HANGS]] if how == "list" else [[[modified("a", 7, uid="new"), bookmark(9)], HANGS]]  # fmt: skip
    informer = informer_of(Script(time, page(obj("a", 1), version=5), *answers))
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 9)

        assert told(subscription)[1:] == [("Delete", "a", 1, "unknown"), ("Create", "a", 7, "")]
        assert content(informer.store) == {("ns", "a"): new}


async def test_an_older_version_is_never_delivered(time):
    repeats = [[modified("a", 4), modified("a", 8), added("a", 2, uid="earlier"), deleted("a", 3, uid="earlier"), bookmark(9)], HANGS]  # fmt: skip
    informer = informer_of(Script(time, page(obj("a", 5), version=7), repeats))
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 9)

        assert told(subscription)[1:] == [("Update", "a", 8, "from 5")]


async def test_versions_are_compared_as_integers_of_any_length(time):
    huge = 10**30
    informer = informer_of(Script(time, page(obj("a", 9), version=9), [[modified("a", huge), modified("a", huge - 1)], HANGS]))  # fmt: skip

    async with running(informer):
        await until(
            informer, lambda: informer.version("ns") == huge - 1
        )  # where the watch stands, as the server said last

        assert informer.store.get("ns", "a").meta.resource_version == str(huge)


async def test_a_deletion_of_a_life_that_was_never_seen_ends_the_one_that_was(time):
    informer = informer_of(Script(time, page(obj("a", 5), version=7), [[deleted("a", 9, uid="later")], HANGS]))
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 9)

        assert told(subscription)[1:] == [("Delete", "a", 5, "unknown")]
        assert len(informer.store) == 0


async def test_the_same_version_again_is_no_event(time):
    informer = informer_of(Script(time, page(obj("a", 5), version=7), [[added("a", 5), bookmark(8)], HANGS]))
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 8)

        assert told(subscription) == [("Create", "a", 5, "initial")]


async def test_a_server_restored_from_a_backup_takes_its_objects_back(time):
    script = Script(time, page(obj("a", 50), version=50), Expired("old"), *[page(obj("a", 20), version=30)] * 4, [HANGS])  # fmt: skip
    informer = informer_of(script)
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 30)

        assert told(subscription)[1:] == [("Update", "a", 20, "from 50")]


async def test_changes_inside_a_streaming_list_are_part_of_it(time):
    stream = [[added("a", 1), added("b", 2), deleted("a", 3), modified("b", 4), added("c", 5), bookmark(5, ends_initial=True)], HANGS]  # fmt: skip
    informer = informer_of(Script(time, stream), options=WatchOptions(streaming_list=True))
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await informer.wait_for_sync()

        assert content(informer.store) == {("ns", "b"): obj("b", 4), ("ns", "c"): obj("c", 5)}
        assert [line[:3] for line in told(subscription)] == [
            ("Create", "a", 1), ("Create", "b", 2), ("Delete", "a", 3), ("Update", "b", 4), ("Create", "c", 5),
        ]  # fmt: skip


# --- one bad object ---------------------------------------------------------------------------------------------------------


async def test_an_object_that_cannot_be_decoded_does_not_stall_the_others(time):
    bad = b'{"metadata":{"name":7}}'
    metrics = CacheMetrics("Thing.v1")
    script = Script(time, page(bad, obj("a", 1), b"{}", version=5), [[bookmark(6)]], [HANGS])
    script.answers[1][0].insert(0, modified("a", 6)._replace(object=bad))
    script.answers[1][0].insert(1, modified("a", 6))
    informer = informer_of(script, metrics=metrics)

    async with running(informer):
        with captured_log() as logs:
            await until(informer, lambda: informer.version("ns") == 6)

        assert content(informer.store) == {("ns", "a"): obj("a", 6)}
        assert metrics.decode_errors == 3
        assert sum("without readable metadata" in line["event"] for line in logs) == 3


THING = {"apiVersion": "v1", "kind": "Thing"}
PARTIAL = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
OTHERS = [
    {"apiVersion": "v1", "kind": "Other"},
    {"apiVersion": "v2", "kind": "Thing"},
    {"apiVersion": "example.com/v1", "kind": "Thing"},
    {"kind": "Other"},
]


@pytest.mark.parametrize("keep_managed_fields", [False, True])
async def test_an_object_of_another_kind_is_skipped_wherever_it_comes_from(time, keep_managed_fields):
    metrics = CacheMetrics("Thing.v1")
    listed = page(
        obj("a", 1, **THING), obj("b", 2), *(obj(f"x{n}", 3, **other) for n, other in enumerate(OTHERS)), version=5
    )
    changes = [
        modified("a", 6, **OTHERS[0]),
        added("c", 7, **OTHERS[1]),
        deleted("b", 8, **PARTIAL),
        added("d", 9, **THING),
    ]
    informer = informer_of(
        Script(time, listed, [changes, HANGS]), metrics=metrics, keep_managed_fields=keep_managed_fields
    )
    subscription = informer.subscribe("test", bytes)

    with captured_log() as logs:
        async with running(informer):
            await until(informer, lambda: informer.version("ns") == 9)

            assert content(informer.store) == {
                ("ns", "a"): obj("a", 1, **THING), ("ns", "b"): obj("b", 2), ("ns", "d"): obj("d", 9, **THING),
            }  # fmt: skip
            assert [event.meta.name for event in drain(subscription)] == ["a", "b", "d"]
    assert metrics.decode_errors == 7
    skipped = [(line["object"], line["found"]) for line in logs if line["event"] == "object of another kind skipped"]
    assert skipped[0] == ("ns/x0", "v1, Kind=Other")
    assert len(skipped) == 7


async def test_a_metadata_only_informer_takes_both_forms_of_its_kind(time):
    listed = page(obj("a", 1, **PARTIAL), obj("b", 2, **THING), obj("c", 3), obj("x", 4, **OTHERS[0]), version=5)
    informer = informer_of(Script(time, listed, [HANGS]), metadata_only=True)

    async with running(informer):
        await informer.wait_for_sync()

        assert {name for _, name in content(informer.store)} == {"a", "b", "c"}


async def test_the_log_names_only_the_first_of_many_skipped_objects(time):
    metrics = CacheMetrics("Thing.v1")
    listed = page(*(obj(f"x{n}", n, **OTHERS[0]) for n in range(1, 2 * MAX_LOGGED)), version=500)
    informer = informer_of(Script(time, listed, [HANGS]), metrics=metrics)

    with captured_log() as logs:
        async with running(informer):
            await informer.wait_for_sync()

    assert metrics.decode_errors == 2 * MAX_LOGGED - 1
    assert sum(line["event"] == "object of another kind skipped" for line in logs) == MAX_LOGGED


def drop_data(tree):
    tree.pop("data", None)
    return tree


async def test_a_transform_changes_what_is_stored(time):
    informer = informer_of(Script(time, page(obj("a", 1, data="x", spec=1), version=5), [HANGS]), transform=drop_data)

    async with running(informer):
        await informer.wait_for_sync()

        assert content(informer.store) == {("ns", "a"): obj("a", 1, spec=1)}


def raising(tree):
    raise RuntimeError("no")


def forgetful(tree):
    drop_data(tree)


def renaming(tree):
    tree["metadata"]["name"] = "other"
    return tree


def versionless(tree):
    del tree["metadata"]["resourceVersion"]
    return tree


@pytest.mark.parametrize("bad", [raising, forgetful, renaming, versionless])
async def test_where_a_transform_fails_the_object_is_kept_as_it_came_and_named_once(time, bad):
    def transform(tree):
        return bad(tree) if tree["metadata"]["name"] == "bad" else drop_data(tree)

    metrics = CacheMetrics("Thing.v1")
    script = Script(time, page(obj("bad", 1, data="x"), obj("good", 2, data="x"), version=5), [[modified("bad", 6, data="y")], HANGS])  # fmt: skip
    informer = informer_of(script, transform=transform, metrics=metrics)

    with captured_log() as logs:
        async with running(informer):
            await until(informer, lambda: informer.version("ns") == 6)

    assert content(informer.store) == {("ns", "bad"): obj("bad", 6, data="y"), ("ns", "good"): obj("good", 2)}
    assert metrics.decode_errors == 2
    assert [line["object"] for line in logs if "transform failed" in line["event"]] == ["ns/bad"]


async def test_an_index_that_fails_for_one_object_does_not_stop_the_list(time):
    informer = informer_of(Script(time, page(obj("a", 1, spec={"x": []}), obj("b", 2, spec={"x": "1"}), version=5), [HANGS]))  # fmt: skip
    failures = []
    informer.add_index(Index("spec.x", field_path_index("spec.x"), on_failure=lambda *failure: failures.append(failure)))  # fmt: skip

    async with running(informer):
        await informer.wait_for_sync()

        assert len(informer.store) == 2
        assert [e.meta.name for e in informer.store.select("", None, [("spec.x", "1")])] == ["b"]
        assert len(failures) == 1


async def test_a_fault_of_ours_is_contained_and_healed_by_a_list(time):
    script = Script(time, page(obj("a", 1), version=5), [[modified("a", 6)]], page(obj("a", 7), version=7), [HANGS])
    informer = informer_of(script)
    put, faults = informer.store.put, [RuntimeError("a bug")]

    def faulty(entry):
        if entry.meta.resource_version == "6" and faults:
            raise faults.pop()
        return put(entry)

    informer.store.put = faulty
    with captured_log() as logs:
        async with running(informer) as task:
            await until(informer, lambda: informer.version("ns") == 7)

            assert not task.done()
            assert content(informer.store) == {("ns", "a"): obj("a", 7)}
            assert informer.last_error is None
    assert any("informer failed" in line["event"] for line in logs)


# --- managed fields ---------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["managedFields", "metadata", "a", '"managedFields":']), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from(["managedFields", "spec", "data"]), JSON, max_size=3),
    st.dictionaries(st.sampled_from(["managedFields", "name", "labels", "x"]), JSON, max_size=4),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :"), (",", ": ")]),
    st.sampled_from([None, 1]),
)
def test_cutting_managed_fields_equals_json_without_the_field(rest, metadata, metadata_first, separators, indent):
    tree = {"metadata": metadata, **rest} if metadata_first else {**rest, "metadata": metadata}
    raw = json.dumps(tree, separators=separators, indent=indent).encode()

    cut = cut_managed_fields(raw)

    del tree["metadata"]
    assert json.loads(cut) == tree | {"metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


TEXTS = st.sampled_from(
    ["", "a", "]", "[", "],", "]}", '"', "\\", '],"', '{"managedFields":[', '"managedFields":[', '"metadata":{', "}", "{", "},"]
) | st.text(max_size=6)  # fmt: skip
FIELDS = st.recursive(
    st.integers() | TEXTS, lambda inner: st.dictionaries(TEXTS, inner, max_size=3) | st.lists(inner, max_size=2), max_leaves=6
)  # fmt: skip


@given(
    st.lists(st.dictionaries(TEXTS, FIELDS, max_size=3), max_size=3),
    st.permutations(["name", "labels", "managedFields", "annotations"]),
    st.permutations(["metadata", "spec", "kind", "metadata2"]),
    st.dictionaries(st.sampled_from(["managedFields", "metadata"]) | TEXTS, FIELDS, max_size=3),
    st.dictionaries(TEXTS, TEXTS, max_size=2),
)
def test_the_field_is_found_whatever_texts_and_orders_stand_around_it(managed, order, members, spec, texts):
    whole = {"name": "a", "labels": texts, "managedFields": managed, "annotations": texts}
    metadata = {name: whole[name] for name in order}
    values = {"metadata": metadata, "spec": spec, "kind": "],", "metadata2": {"managedFields": managed}}
    tree = {name: values[name] for name in members}
    raw = json.dumps(tree, separators=(",", ":")).encode()

    cut, envelope = cut_with_envelope(raw)

    del metadata["managedFields"]
    assert json.loads(cut) == tree
    assert cut_managed_fields(raw) == cut
    assert (envelope.metadata.name, envelope.metadata.labels) == ("a", texts)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"metadata":{"name":"x"},"spec":{"a":1,"managedFields":[{"a":1}],"name":"y"}}',
        b'{"metadata":{"name":"x"},"spec":{"managedFields":[]},"managedFields":[]}',
        b'{"x\\"metadata":{"name":"y","managedFields":[]},"metadata":{"name":"x"}}',
        b'{"metadata":{"name":"x","a\\"managedFields":[1],"b":1}}',
        b'{"metadata":{"name":"x","labels":{"managedFields":"[]"}}}',
        b'{"spec":{"metadata":{"name":"y","managedFields":[]}},"metadata":{"name":"x"}}',
        b'{"metadata":{"name":"x","more":{"b":1,"managedFields":[]}}}',
    ],
)
def test_what_only_looks_like_the_field_stays(raw):
    assert (cut_with_envelope(raw), cut_managed_fields(raw)) == ((raw, envelope_of(raw)), raw)


@pytest.mark.parametrize(
    ("field", "left"),
    [
        (b'{"name":"x","managedFields":[{"f:a]}":{}}]}', b'{"name":"x"}'),
        (b'{"name":"x","managedFields":[{"f:a],":{":":1}}]}', b'{"name":"x"}'),
        (b'{"name":"x","managedFields":[{"f:a],":":1},"},{"b":2}]}', b'{"name":"x"}'),
        (b'{"managedFields":[{"f:a],":{}}],"name":"x"}', b'{"name":"x"}'),
        (b'{"managedFields":[{"k:{\\"name\\":\\"]}\\"}":{}}],"name":"x"}', b'{"name":"x"}'),
        (b'{"managedFields":[],"name":"x"}', b'{"name":"x"}'),
        (b'{"managedFields":[[1],[2]],"name":"x"}', b'{"name":"x"}'),
        (b'{"managedFields":null,"name":"x"}', b'{"name":"x"}'),
        (b'{"name":"x","managedFields" : [ ] }', b'{"name":"x"}'),
    ],
)
def test_brackets_in_its_texts_do_not_end_it(field, left):
    cut, envelope = cut_with_envelope(b'{"kind":"K","metadata":%s,"spec":{"a":[1]}}' % field)

    assert cut == b'{"kind":"K","metadata":%s,"spec":{"a":[1]}}' % left
    assert envelope.metadata.name == "x"


@pytest.mark.parametrize(
    "raw", [b'{"metadata":{"name":1,"managedFields":[]}}', b'{"metadata":[],"managedFields":[]}', b"[]"]
)
def test_metadata_that_cannot_be_read_is_an_error_with_and_without_the_field(raw):
    with pytest.raises(ValueError):
        cut_with_envelope(raw)


async def test_managed_fields_are_cut_unless_they_are_asked_for(time):
    raw = obj("a", 1, metadata={"managedFields": [{"manager": "x"}]})
    cut, kept = (
        informer_of(Script(time, page(raw, version=5), [HANGS]), keep_managed_fields=keep) for keep in (False, True)
    )

    async with running(cut), running(kept):
        await cut.wait_for_sync()
        await kept.wait_for_sync()

        assert content(cut.store) == {("ns", "a"): obj("a", 1)}
        assert content(kept.store) == {("ns", "a"): raw}


# --- scopes -----------------------------------------------------------------------------------------------------------------


async def test_a_set_of_namespaces_is_one_store_and_each_has_its_own_position(time):
    scopes = {
        Scope("x"): Script(
            time, page(obj("a", 1, namespace="x"), version=5), Expired("old"), page(version=20), [HANGS]
        ),
        Scope("y"): Script(time, page(obj("a", 2, namespace="y"), version=6), [HANGS]),
    }
    informer = informer_of(scopes)
    subscription = informer.subscribe("test", bytes.decode)

    async with running(informer):
        await until(informer, lambda: informer.version("x") == 20)

        assert content(informer.store) == {("y", "a"): obj("a", 2, namespace="y")}
        assert (informer.version("y"), informer.version(""), informer.version("z")) == (6, 6, 0)
        assert informer.has_namespace("x")
        assert not informer.has_namespace("z")
        assert not informer.has_namespace("")
        assert informer.covers("x", None)
        assert not informer.covers("z", None)
        assert sorted(line[3] for line in told(subscription)) == ["initial", "initial", "unknown"]


async def test_all_other_namespaces_beside_one_of_its_own_do_not_touch_its_objects(time):
    scopes = {
        Scope("x", labels=parse_labels("l=1")): Script(time, page(obj("a", 1, namespace="x"), version=5), [HANGS]),
        Scope("", besides=("x",)): Script(
            time, page(obj("b", 2, namespace="y"), version=6), Expired("old"), page(version=9), [HANGS]
        ),
    }
    informer = informer_of(scopes)

    async with running(informer):
        await until(informer, lambda: informer.version("y") == 9)

        assert content(informer.store) == {("x", "a"): obj("a", 1, namespace="x")}
        assert (informer.version("x"), informer.version("y"), informer.version("")) == (5, 9, 5)
        assert informer.covers("y", None)
        assert not informer.covers("x", None)
        assert informer.covers("x", Metadata(labels={"l": "1"}))
        assert informer.has_namespace("")


async def test_one_forbidden_namespace_holds_back_the_sync_but_not_the_other_namespaces(time):
    forbidden = Script(time, *[Forbidden("no")] * 3, page(version=9), [HANGS])
    scopes = {Scope("x"): forbidden, Scope("y"): Script(time, page(version=6), [[added("a", 7, namespace="y")], HANGS])}
    informer = informer_of(scopes)
    subscription = informer.subscribe("test", bytes.decode)

    with captured_log() as logs:
        async with running(informer):
            await until(informer, lambda: informer.version("y") == 7)
            assert not informer.is_synced
            assert told(subscription) == [("Create", "a", 7, "")]
            with pytest.raises(Forbidden):
                await informer.wait_readable()

            await asyncio.wait_for(informer.wait_for_sync(), LONGEST_WAIT)
            assert informer.last_error is None

    refusals = [line for line in logs if "forbidden to list and watch" in line["event"]]
    assert [(line["scope"], line["level"]) for line in refusals] == [("namespace x", "error")]
    assert sum("list-watch recovered" in line["event"] for line in logs) == 1


async def test_a_version_that_does_not_parse_is_minus_one(time):
    informer = informer_of(Script(time, page(version="opaque"), [HANGS]))

    async with running(informer):
        await informer.wait_for_sync()

        assert informer.version("ns") == -1
        assert informer.resource_version("ns") == "opaque"


# --- waiting for help ---------------------------------------------------------------------------------------------------------


async def test_a_kind_that_is_not_served_is_reported_once_with_what_to_do_and_synced_once_it_is(time):
    answers = [NoMatchError("no Thing"), NoMatchError("no Thing"), NoMatchError("no Thing")]
    script = Script(time, page(obj("a", 1), version=5), [HANGS])

    async def plan():
        if answers:
            raise answers.pop()
        return {Scope(): reflector_of(script)}

    informer = Informer("Thing.v1", KIND, plan, install_hint=lambda: "install the CRD", clock=time, sleep=time.sleep)
    with captured_log() as logs:
        async with running(informer):
            readable = asyncio.create_task(informer.wait_readable())
            await asyncio.wait_for(informer.wait_for_sync(), LONGEST_WAIT)
            with pytest.raises(NoMatchError):
                await readable

    waits = [line for line in logs if "not served" in line["event"]]
    assert [(line["hint"], line["level"]) for line in waits] == [("install the CRD", "warning")]
    assert max(time.slept) <= 10


async def test_options_that_do_not_fit_the_kind_reach_the_reader(time):
    async def plan():
        raise ConfigError("a cluster-scoped kind has no namespaces")

    informer = informer_of(Script(time), plan=plan, sleep=lambda _: asyncio.sleep(0.01))

    async with running(informer):
        with pytest.raises(ConfigError, match="cluster-scoped"):
            await asyncio.wait_for(informer.wait_readable(), LONGEST_WAIT)


async def test_a_failing_watch_is_one_warning_until_it_recovers(time):
    script = Script(
        time,
        page(version=5), TransportError("down"), TransportError("down"), InternalError("x"), [[bookmark(6)]],
        TransportError("down"), [[bookmark(7)], HANGS],
    )  # fmt: skip
    informer = informer_of(script)

    with captured_log() as logs:
        async with running(informer):
            await until(informer, lambda: informer.version("") == 7)
            assert informer.last_error is None

    warnings = [line["error"] for line in logs if line["level"] == "warning"]
    assert warnings == ["down", "x", "down"]
    assert script.kinds_asked.count("list") == 1


# --- life ---------------------------------------------------------------------------------------------------------------------


async def test_stop_ends_the_run_the_subscriptions_and_those_who_wait(time):
    metrics = CacheMetrics("Thing.v1")
    informer = informer_of({Scope("x"): Script(time, page(obj("a", 1), version=5), [HANGS]), Scope("y"): Script(time)}, metrics=metrics)  # fmt: skip
    subscription = informer.subscribe("test", bytes)
    task = asyncio.create_task(informer.run())
    await until(informer, lambda: informer.version("x") == 5)
    waiting = [asyncio.create_task(informer.wait_for_sync()), asyncio.create_task(informer.wait_readable())]
    await asyncio.sleep(0)
    assert metrics.objects == 1

    informer.stop()

    await asyncio.wait_for(task, LONGEST_WAIT)
    assert subscription.is_stopped
    for waiter in waiting:
        with pytest.raises(NotCachedError, match="removed"):
            await asyncio.wait_for(waiter, LONGEST_WAIT)
    assert metrics.objects == metrics.size_bytes == 0
    assert informer.subscribe("late", bytes).is_stopped


async def test_an_informer_stopped_before_its_task_began_does_not_run(time):
    script = Script(time, page(version=5))
    informer = informer_of(script)
    task = asyncio.create_task(informer.run())

    informer.stop()

    await asyncio.wait_for(task, LONGEST_WAIT)
    assert script.asked == []


async def test_a_resync_shows_every_object_again_without_asking_the_server(time):
    script = Script(time, page(obj("a", 1), obj("b", 2), version=5), [HANGS])
    due, wanted = asyncio.Event(), []

    async def sleep(seconds):
        wanted.append(seconds)
        await due.wait()
        due.clear()

    shown = []

    class Observer(CacheObserver):
        def showing_again(self, kind):
            shown.append((kind.kind, len(subscription)))

    informer = informer_of(script, resync_period=100.0, sleep=sleep, observer=Observer())
    subscription = informer.subscribe("test", bytes.decode)
    async with running(informer):
        await informer.wait_for_sync()
        drain(subscription)
        asked = len(script.asked)

        due.set()
        await eventually(lambda: len(subscription) == 2)

        assert shown == [("Thing", 0)]  # observers hear of it first
        assert sorted(told(subscription)) == [("Update", "a", 1, "from 1"), ("Update", "b", 2, "from 2")]
        assert len(script.asked) == asked
        assert wanted[0] == pytest.approx(100.0)  # 0.9 to 1.1 times the period; the chance here is 0.5


async def test_each_scope_has_its_own_sync_period_and_transform(time):
    due, asked = {10.0: asyncio.Event(), 20.0: asyncio.Event()}, []

    async def sleep(seconds):
        asked.append(seconds)
        if seconds not in due:
            await time.sleep(seconds)
            return
        await due[seconds].wait()
        due[seconds].clear()

    scripts = {
        Scope(namespace, None, "", (), transform, period): Script(
            time, page(obj(f"{namespace}1", 1, namespace=namespace, data="x"), version=5), [HANGS]
        )
        for namespace, transform, period in (("a", drop_data, 10.0), ("b", None, 20.0), ("c", None, 10.0), ("d", None, None))
    }  # fmt: skip

    async def plan():
        return {scope: reflector_of(script) for scope, script in scripts.items()}

    informer = Informer("Thing.v1", KIND, plan, clock=time, rng=lambda: 0.5, sleep=sleep)
    subscription = informer.subscribe("test", bytes)
    async with running(informer):
        await informer.wait_for_sync()
        await eventually(lambda: len(subscription) >= 4)
        drain(subscription)
        stored = {namespace: b'"data"' in raw for (namespace, _), raw in content(informer.store).items()}
        assert stored == {"a": False, "b": True, "c": True, "d": True}

        due[10.0].set()
        await eventually(lambda: len(subscription) == 2)
        assert [event.meta.name for event in drain(subscription)] == ["a1", "c1"]
        due[20.0].set()
        await eventually(lambda: len(subscription) == 1)
        assert [event.meta.name for event in drain(subscription)] == ["b1"]

        kept = [scope for scope in scripts if scope.namespace in {"a", "d"}]
        informer.rescope(kept, lambda _: None)
        drain(subscription)
        due[20.0].set()
        due[10.0].set()
        await eventually(lambda: len(subscription) == 1)
        assert [event.meta.name for event in drain(subscription)] == ["a1"]
        assert informer._resyncing == {10.0}
        assert not informer.holds_whole_objects
        informer.rescope(kept[1:], lambda _: None)
        assert informer.holds_whole_objects


async def test_a_resync_of_never_never_comes(time):
    informer = informer_of(Script(time, page(version=5), [HANGS]), resync_period=math.inf, sleep=asyncio.sleep)

    async with running(informer):
        await asyncio.wait_for(informer.wait_for_sync(), LONGEST_WAIT)


async def test_metrics_tell_what_is_held_and_how_the_watch_fares(time):
    metrics = CacheMetrics("Thing.v1")
    script = Script(time, page(obj("a", 1), version=5), [40], Expired("old"), page(obj("a", 1), obj("b", 2), version=9), [[bookmark(10)], HANGS])  # fmt: skip
    informer = informer_of(script, metrics=metrics)

    async with running(informer):
        await until(informer, lambda: informer.version("ns") == 10)
        await asyncio.sleep(0)

        assert metrics.objects == 2
        assert metrics.size_bytes == len(obj("a", 1)) + len(obj("b", 2))
        assert metrics.relists == 2
        assert metrics.watch_restarts == {"ended": 1, "expired": 1}
        assert metrics.silence() == 0
        time.now += 7
        assert metrics.silence() == 7
    assert metrics.silence is None


async def test_coalesced_events_stay_counted_when_the_subscriber_leaves(time):
    metrics = CacheMetrics("Thing.v1")
    changes = [modified("a", version) for version in range(6, 3000)]
    informer = informer_of(Script(time, page(obj("a", 1), version=5), [changes, [bookmark(5000)], HANGS]), metrics=metrics)  # fmt: skip
    subscription = informer.subscribe("slow", bytes)

    async with running(informer):
        await until(informer, lambda: informer.version("ns") >= 2999)
        subscription.stop()
        await until(informer, lambda: informer.version("ns") == 5000)
        await asyncio.sleep(0)

        assert metrics.events_coalesced > 1000


async def test_a_long_list_does_not_hold_the_loop(time):
    raws = [obj(f"o{n}", n + 1) for n in range(5000)]
    informer = informer_of(Script(time, page(*raws, version=9000), [HANGS]))
    turns = []

    async def other():
        while not informer.is_synced:
            turns.append(len(informer.store))
            await asyncio.sleep(0)

    async with running(informer):
        await asyncio.wait_for(other(), LONGEST_WAIT)

    assert max(b - a for a, b in itertools.pairwise(turns)) <= 256


# --- moving over --------------------------------------------------------------------------------------------------------------


async def test_a_wider_informer_takes_the_subscribers_over_and_tells_what_differs(time):
    narrow = informer_of(
        Script(time, page(obj("same", 1), obj("changed", 2), obj("gone", 3), obj("reborn", 4), version=5), [HANGS])
    )
    wide = informer_of(
        Script(time, page(obj("same", 1), obj("changed", 6), obj("reborn", 7, uid="2"), obj("new", 8), version=9), [HANGS])
    )  # fmt: skip
    subscription = narrow.subscribe("test", bytes.decode)
    async with running(narrow), running(wide):
        await narrow.wait_for_sync()
        await wide.wait_for_sync()
        drain(subscription)
        assert wide.has_caught_up(narrow)
        assert not narrow.has_caught_up(wide)

        wide.adopt(narrow)

        assert sorted(told(subscription)) == [
            ("Create", "new", 8, ""),
            ("Create", "reborn", 7, ""),
            ("Delete", "gone", 3, "unknown"),
            ("Delete", "reborn", 4, "unknown"),
            ("Update", "changed", 6, "from 2"),
        ]
        assert (narrow.subscriber_count, wide.subscriber_count) == (0, 1)
        narrow.stop()
        assert not subscription.is_stopped
        subscription.stop()
        assert wide.subscriber_count == 0


# --- whatever happens -----------------------------------------------------------------------------------------------------------

FAULTS = st.tuples(
    st.sampled_from(["list", "page", "watch", "stream", "stream-middle", "in-stream"]),
    st.sampled_from(
        [Expired("old"), TransportError("reset"), InternalError("boom"), Forbidden("no"), NoMatchError("?")]
    ),
)
ACTIONS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcdefg")),
    st.tuples(st.just("delete"), st.sampled_from("abcdefg")),
    st.tuples(st.just("reborn"), st.sampled_from("abcdefg")),
    st.tuples(st.just("fault"), FAULTS),
    st.tuples(st.just("forget"), st.none()),
    st.tuples(st.just("end"), st.none()),
    st.tuples(st.just("turns"), st.integers(1, 30)),
    st.tuples(st.just("subscribe"), st.none()),
    st.tuples(st.just("drain"), st.none()),
)


def act(world, action, what):
    match action:
        case "put":
            world.put(what)
        case "delete":
            world.delete(what)
        case "reborn":
            world.delete(what)
            world.put(what, uid=f"{what}-{world.revision}")
        case "fault":
            world.faults.append(what)
        case "forget":
            world.forget()
        case "end":
            world.faults.append(("end", None))
            world.wake()


async def play(actions, *, streaming):
    time = Time()
    world = World(time)
    for name in "abc":
        world.put(name)
    informer = informer_of({Scope(): world}, options=WatchOptions(page_size=2, streaming_list=streaming))
    readers = [(informer.subscribe("first", bytes.decode), {})]
    heard = {}
    async with running(informer):
        for action, what in actions:
            if action == "turns":
                for _ in range(what):
                    await asyncio.sleep(0)
            elif action == "subscribe":
                readers.append((informer.subscribe("late", bytes.decode), {}))
            elif action == "drain":
                replay(*readers[0], heard)
            else:
                act(world, action, what)
        world.faults = [("in-stream", Expired("the last shock"))]
        world.forget()
        await eventually(lambda: content(informer.store) == world.content and informer.version("ns") == world.revision)
        # One more life sign through the watch that stands now: it still works.
        world.faults.clear()
        world.put("z")
        await until(informer, lambda: informer.version("ns") == world.revision)
        for subscription, state in readers:
            replay(subscription, state, heard if state is readers[0][1] else {})
            assert state == {entry.meta.name: entry.meta for entry in informer.store}
            assert subscription.is_synced
        assert content(informer.store) == world.content


def replay(subscription, state, newest):
    """Apply events as a subscriber does, and hold them against each other."""
    for event in drain(subscription):
        name, version = event.meta.name, version_of(event)
        match event:
            case DeleteEvent():
                assert state.pop(name).uid == event.meta.uid
                assert version >= newest.get(name, 0)
            case CreateEvent():
                assert name not in state
                state[name] = event.meta
                assert version > newest.get(name, 0)
            case UpdateEvent():
                assert state[name] == event.old_meta
                assert event.old_meta.uid == event.meta.uid
                assert version > version_of(type(event)(event.new_snapshot, event.old_snapshot))
                state[name] = event.meta
        newest[name] = version


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTIONS, max_size=40), st.booleans())
def test_after_any_sequence_of_changes_and_failures_store_and_subscribers_equal_the_server(actions, streaming):
    asyncio.run(play(actions, streaming=streaming))
