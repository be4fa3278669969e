"""The rules of read-your-writes, without I/O: each state of a mark, and random histories against a model of server and cache."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlruntime.api.metadata import Metadata
from ctrlruntime.client import marks as marks_module
from ctrlruntime.client.marks import (
    MAX_KEYS,
    NOT_CACHED,
    SWEEP_AT,
    WHOLE,
    Listing,
    Marks,
    State,
    Verdict,
    unknown,
    verdict,
)

KIND = ("example.com", "Thing")
NS = "ns"


class View:
    """What one informer shows: objects by key, a position for all namespaces, and a label selector."""

    def __init__(self, position=10, selector=None):
        self.at = position
        self.objects = {}
        self.selector = selector
        self.not_cached = set()

    def position(self, namespace):
        return NOT_CACHED if namespace in self.not_cached else self.at

    def entry(self, namespace, name):
        return self.objects.get((namespace, name))

    def entries(self, namespace):
        return [meta for key, meta in self.objects.items() if not namespace or key[0] == namespace]

    def covers(self, namespace, meta):
        return self.selector is None or (meta.labels or {}).items() >= self.selector.items()

    def show(self, *objects, at=None):
        self.objects = {(one.namespace, one.name): one for one in objects}
        self.at = at if at is not None else max((int(o.resource_version) for o in objects), default=self.at)


def meta(version, name="a", uid="uid", labels=None, namespace=NS, deleting=False):
    stamp = "2026-01-01T00:00:00Z" if deleting else None
    return Metadata(
        name=name, namespace=namespace, uid=uid, resource_version=str(version), labels=labels, deletion_timestamp=stamp
    )


@pytest.fixture
def view():
    return View()


@pytest.fixture
def marks(view):
    return Marks(lambda kind: [view] if kind == KIND else [])


def look(marks, view, name="a", namespace=NS):
    needed = marks.needed(KIND, namespace, name)
    return verdict(needed, view, (namespace, name or WHOLE))


def stored(marks, version, name="a", **more):
    marks.stored(KIND, marks.open(KIND, NS, name), meta(version, name, **more))


def lost(marks, name="a"):
    marks.unknown(KIND, marks.open(KIND, NS, name))


# --- stored ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(lambda view: view.show(meta(20)), id="the version"),
        pytest.param(lambda view: view.show(meta(25)), id="a later version"),
        pytest.param(lambda view: view.show(at=20), id="a position behind it"),
        pytest.param(lambda view: view.show(meta(20), at=15), id="the version while a list is being received"),
    ],
)
def test_a_read_waits_until_the_stored_version_is_shown(marks, view, shown):
    stored(marks, 20)
    assert look(marks, view) is Verdict.WAIT
    view.show(meta(12))
    assert look(marks, view) is Verdict.WAIT

    shown(view)

    assert look(marks, view) is Verdict.READ
    marks.drop_shown(KIND, marks.needed(KIND, NS, "a"))
    assert len(marks) == 0


def test_a_version_shown_before_the_answer_arrived_leaves_no_mark(marks, view):
    mark = marks.open(KIND, NS, "a")
    view.show(meta(20))

    marks.stored(KIND, mark, meta(20))

    assert len(marks) == 0
    assert mark.is_shown(view)


def test_other_keys_namespaces_and_kinds_do_not_wait(marks, view):
    stored(marks, 20)

    assert look(marks, view, "b") is Verdict.READ
    assert look(marks, view, "a", "other") is Verdict.READ
    assert look(marks, view, None, "other") is Verdict.READ
    assert marks.needed(("example.com", "Other"), NS, "a") == []
    assert look(marks, view, None) is look(marks, view, None, "") is Verdict.WAIT


def test_a_read_does_not_wait_for_writes_that_are_opened_after_it_began(marks, view):
    stored(marks, 20)
    needed = marks.needed(KIND, NS, "a")
    stored(marks, 30)
    marks.open(KIND, NS, "a")
    lost(marks)

    view.show(meta(20))

    assert verdict(needed, view) is Verdict.READ
    assert look(marks, view) is Verdict.COMPARE


def test_a_read_waits_for_a_write_that_was_open_when_it_began(marks, view):
    mark = marks.open(KIND, NS, "a")
    needed = marks.needed(KIND, NS, "a")
    view.show(meta(50))
    assert verdict(needed, view) is Verdict.WAIT

    marks.stored(KIND, mark, meta(60))
    assert verdict(needed, view) is Verdict.WAIT
    view.show(meta(60))

    assert verdict(needed, view) is Verdict.READ


def test_a_later_version_replaces_the_marks_of_its_key(marks):
    for version in range(20, 40):
        stored(marks, version)

    assert len(marks) == 1


def test_an_object_outside_the_selectors_is_not_waited_for_but_an_older_version_inside_is(marks, view):
    view.selector = {"app": "x"}
    stored(marks, 20, labels={"app": "other"})
    assert look(marks, view) is Verdict.READ

    view.show(meta(15, labels={"app": "x"}))
    assert look(marks, view) is Verdict.WAIT
    view.show(at=20)

    assert look(marks, view) is Verdict.READ


def test_a_namespace_that_is_not_cached_has_no_marks(marks, view):
    view.not_cached.add(NS)
    stored(marks, 20)
    lost(marks, "b")
    marks.deleted(KIND, marks.open(KIND, NS, "c"), "uid")

    assert len(marks) == 0


def test_a_kind_that_no_cache_holds_has_open_marks_only(marks):
    mark = marks.open(("", "Secret"), NS, "a")
    assert len(marks.needed(("", "Secret"), NS, "a")) == 1

    marks.unknown(("", "Secret"), mark)

    assert len(marks) == 0


def test_a_mark_stays_until_every_version_of_the_kind_shows_it():
    one, other = View(), View()
    marks = Marks(lambda kind: [one, other])
    stored(marks, 20)
    one.show(meta(20))
    marks.drop_shown(KIND, marks.needed(KIND, NS, "a"))

    assert look(marks, one) is Verdict.READ
    assert look(marks, other) is Verdict.WAIT


def test_versions_are_integers_of_any_length(marks, view):
    view.show(at=10**30)
    stored(marks, 10**30 + 1)
    assert look(marks, view) is Verdict.WAIT

    view.show(at=10**30 + 1)

    assert look(marks, view) is Verdict.READ


# --- refused ----------------------------------------------------------------------------------------------------------------


def test_a_refused_write_leaves_nothing_and_takes_back_nothing(marks, view):
    refused = marks.open(KIND, NS, "a")
    needed = marks.needed(KIND, NS, "a")
    marks.failed(KIND, refused)
    assert len(marks) == 0
    assert verdict(needed, view) is Verdict.READ

    stored(marks, 20)
    marks.failed(KIND, marks.open(KIND, NS, "a"))

    assert look(marks, view) is Verdict.WAIT


# --- deleted ----------------------------------------------------------------------------------------------------------------


def test_a_read_waits_until_the_deleted_object_is_not_shown(marks, view):
    view.show(meta(10, uid="old"))
    marks.deleted(KIND, marks.open(KIND, NS, "a"), "old")
    view.show(meta(15, uid="old"))
    assert look(marks, view) is Verdict.WAIT

    view.show(meta(16, uid="new"))

    assert look(marks, view) is Verdict.READ


def test_an_object_that_was_created_and_deleted_unseen_is_waited_for_at_both_ends(marks, view):
    stored(marks, 20, uid="second")
    marks.deleted(KIND, marks.open(KIND, NS, "a"), "second")
    assert look(marks, view) is Verdict.WAIT
    view.show(meta(20, uid="second"))
    assert look(marks, view) is Verdict.WAIT

    view.show(at=21)

    assert look(marks, view) is Verdict.READ


def test_a_deleted_object_that_the_cache_never_showed_is_compared(marks, view):
    marks.deleted(KIND, marks.open(KIND, NS, "a"), "of-another-client")

    assert look(marks, view) is Verdict.COMPARE


def test_the_last_version_in_the_answer_tells_when_the_cache_is_past_the_object(marks, view):
    marks.deleted(KIND, marks.open(KIND, NS, "a"), "uid", "15")
    assert look(marks, view) is Verdict.READ
    view.show(meta(15))
    assert look(marks, view) is Verdict.WAIT

    view.show(at=16)
    marks.drop_shown(KIND, marks.needed(KIND, NS, "a"))

    assert len(marks) == 0


# --- unknown and listed ----------------------------------------------------------------------------------------------------


def test_an_unknown_write_is_compared_and_a_quiet_kind_needs_no_position(marks, view):
    view.show(meta(10))
    lost(marks)
    needed = marks.needed(KIND, NS, "a")
    assert verdict(needed, view) is Verdict.COMPARE
    assert unknown(needed, view) == [(NS, "a")]

    marks.compared(KIND, (NS, "a"), Listing("500", {(NS, "a"): "10"}), marks.steps)

    assert verdict(needed, view) is Verdict.READ
    assert len(marks) == 0


def test_an_unknown_write_that_took_effect_is_waited_for_after_the_comparison(marks, view):
    lost(marks)
    marks.compared(KIND, (NS, "a"), Listing("500", {(NS, "a"): "499"}), marks.steps)
    assert look(marks, view) is Verdict.WAIT

    view.show(meta(499))

    assert look(marks, view) is Verdict.READ


def test_a_lost_create_that_never_reached_the_server_holds_back_no_read(marks, view):
    lost(marks)
    marks.compared(KIND, (NS, "a"), Listing("500", {}), marks.steps)
    assert look(marks, view) is Verdict.READ
    assert look(marks, view, None) is Verdict.READ

    # An object as old as the list came and went before it: the cache is behind.
    view.show(meta(450))
    assert look(marks, view) is Verdict.WAIT
    view.show(meta(501, uid="later"))

    assert look(marks, view) is Verdict.READ


def test_a_list_sent_before_the_write_ended_settles_nothing(marks, view):
    mark = marks.open(KIND, NS, "a")
    steps = marks.steps
    marks.unknown(KIND, mark)

    marks.compared(KIND, (NS, "a"), Listing("500", {}), steps)

    assert look(marks, view) is Verdict.COMPARE


def test_an_answer_settles_what_was_unknown_before_it_was_opened_but_not_what_became_unknown_meanwhile(marks, view):
    lost(marks)
    needed = marks.needed(KIND, NS, "a")
    stored(marks, 20)
    assert verdict(needed, view) is look(marks, view) is Verdict.WAIT
    view.show(meta(20))
    assert verdict(needed, view) is look(marks, view) is Verdict.READ

    answered, unanswered = marks.open(KIND, NS, "a"), marks.open(KIND, NS, "a")
    marks.unknown(KIND, unanswered)
    marks.stored(KIND, answered, meta(19))

    assert look(marks, view) is Verdict.COMPARE


def test_versions_that_are_no_integers_are_compared_for_equality(marks, view):
    view.at = -1
    view.objects = {(NS, "a"): meta("x1")}
    stored(marks, "x2")
    assert look(marks, view) is Verdict.WAIT
    view.objects = {(NS, "a"): meta("x2")}
    assert look(marks, view) is Verdict.READ

    lost(marks)
    marks.compared(KIND, (NS, "a"), Listing("opaque", {(NS, "a"): "x3"}), marks.steps)
    assert look(marks, view) is Verdict.WAIT
    view.objects = {(NS, "a"): meta("x3")}
    assert look(marks, view) is Verdict.READ


def test_an_answer_without_a_version_is_unknown(marks, view):
    stored(marks, "")

    assert look(marks, view) is Verdict.COMPARE


# --- collections ------------------------------------------------------------------------------------------------------------


def test_a_collection_delete_is_waited_for_object_by_object(marks, view):
    view.show(meta(5, "a"), meta(6, "b"), meta(7, "c"), at=10)
    mark = marks.open(KIND, NS, WHOLE)
    reading = marks.needed(KIND, NS, None)
    assert look(marks, view, "a") is look(marks, view, "b") is look(marks, view, None, "") is Verdict.WAIT
    assert look(marks, view, "a", "other") is Verdict.READ

    marks.deleted_all(KIND, mark, [meta(5, "a"), meta(6, "b")])
    assert look(marks, view, "c") is Verdict.READ
    view.show(meta(6, "b"), meta(7, "c"), at=11)
    assert look(marks, view, "a") is Verdict.READ
    assert look(marks, view, "b") is verdict(reading, view) is Verdict.WAIT
    # A finalizer keeps it.
    view.show(meta(12, "b", deleting=True), meta(7, "c"))

    assert look(marks, view, "b") is look(marks, view, None) is verdict(reading, view) is Verdict.READ


def test_a_collection_delete_that_matched_nothing_leaves_nothing(marks):
    marks.deleted_all(KIND, marks.open(KIND, NS, WHOLE), [])

    assert len(marks) == 0


@pytest.mark.parametrize("namespace", [NS, ""])
def test_an_unknown_collection_delete_is_compared_with_a_list_of_the_namespace(marks, view, namespace):
    view.show(meta(5, "a"), meta(6, "b"), at=10)
    marks.unknown(KIND, marks.open(KIND, namespace, WHOLE))
    assert unknown(marks.needed(KIND, NS, "a"), view) == [(namespace, WHOLE)]

    marks.compared(KIND, (namespace, WHOLE), Listing("20", {(NS, "b"): "6", (NS, "c"): "19"}), marks.steps)

    assert look(marks, view, "a") is Verdict.WAIT
    assert look(marks, view, "b") is Verdict.READ
    assert look(marks, view, "c") is Verdict.WAIT
    assert look(marks, view, None) is Verdict.WAIT
    view.show(meta(6, "b"), meta(19, "c"))
    assert look(marks, view, None) is look(marks, view, "c") is Verdict.READ


# --- bounds ----------------------------------------------------------------------------------------------------------------


def test_keys_that_are_written_and_never_read_are_dropped_as_they_are_shown(marks, view):
    for number in range(20 * SWEEP_AT):
        stored(marks, 11 + number, f"o{number}")
        view.at = 10 + number

    assert len(marks) <= SWEEP_AT + 1


def test_the_marks_of_a_cache_that_never_lists_are_bounded(marks, view, monkeypatch):
    monkeypatch.setattr(marks_module, "MAX_KEYS", 2 * SWEEP_AT)
    view.at = 0
    still_open = marks.open(KIND, NS, "open")

    for number in range(10 * SWEEP_AT):
        stored(marks, 11 + number, f"o{number}")

    assert len(marks) <= 6 * SWEEP_AT
    assert MAX_KEYS > SWEEP_AT
    assert look(marks, view, "o0") is Verdict.COMPARE
    assert still_open in marks.needed(KIND, NS, "open")
    marks.compared(KIND, ("", WHOLE), Listing("99999", {}), marks.steps)
    view.at = 99999
    assert look(marks, view, "o0") is Verdict.READ


# --- random histories --------------------------------------------------------------------------------------------------------


class Server:
    """Objects with a history. A cache with the selector app=x gets a frame for each change inside the selection."""

    def __init__(self):
        self.revision = 10
        self.objects = {}
        self.history = [(10, {})]
        self.frames = [(10, {})]
        self.view = View(10, {"app": "x"})
        self.cursor = 0

    def change(self, name, found):
        """Store `found` (a function from the new revision to metadata, or None) under a name."""
        self.revision += 1
        before = _inside(self.objects)
        self.objects = {key: one for key, one in self.objects.items() if key != name}
        if found is not None:
            self.objects[name] = found(self.revision)
        self.history.append((self.revision, self.objects))
        if _inside(self.objects) != before:
            self.frames.append((self.revision, _inside(self.objects)))
        return self.revision

    def follow(self, steps):
        self.cursor = min(self.cursor + steps, len(self.frames) - 1)
        revision, objects = self.frames[self.cursor]
        self.view.show(*objects.values(), at=max(self.view.at, revision))

    def bookmark(self):
        if self.cursor == len(self.frames) - 1:
            self.view.at = self.revision

    def listing(self, name):
        found = _inside(self.objects)
        return Listing(
            str(self.revision), {(NS, n): one.resource_version for n, one in found.items() if name in {WHOLE, n}}
        )


def _inside(objects):
    return {name: one for name, one in objects.items() if (one.labels or {}).get("app") == "x"}


def _is_newer_than(server, name, effect):
    """Whether the cache shows the object as the server had it at the effect or later."""
    shown = server.view.entry(NS, name)
    return any(_inside(objects).get(name) == shown for revision, objects in server.history if revision >= effect)


@dataclass
class OwnWrite:
    name: str
    mark: object
    opened: int
    effects: dict = field(default_factory=dict)


@dataclass
class Read:
    name: str | None
    needed: list
    began: int


def _finish(server, marks, write, how, inside, took_effect):
    name = write.name
    labels = {"app": "x" if inside else "other"}
    known = server.objects.get(name)

    def put(uid):
        deleting = known is not None and known.deletion_timestamp is not None
        write.effects[name] = server.change(name, lambda r: meta(r, name, uid, labels, deleting=deleting))
        return server.objects[name]

    match how:
        case _ if name == WHOLE:
            items = list(server.objects.values()) if took_effect else []
            for one in items:
                if inside or one.name == "b":  # a finalizer keeps it
                    if one.deletion_timestamp is None:
                        write.effects[one.name] = server.change(
                            one.name, lambda r, one=one: meta(r, one.name, one.uid, one.labels, deleting=True)
                        )
                else:
                    write.effects[one.name] = server.change(one.name, None)
            if how == "lost":
                marks.unknown(KIND, write.mark)
            else:
                marks.deleted_all(KIND, write.mark, items)
        case "update" if known is not None:
            marks.stored(KIND, write.mark, put(known.uid))
        case "create" if known is None:
            marks.stored(KIND, write.mark, put(f"{name}{server.revision}"))
        case "delete" if known is not None:
            write.effects[name] = server.change(name, None)
            marks.deleted(KIND, write.mark, known.uid, known.resource_version if took_effect else "")
        case "lost":
            if took_effect:
                if known is not None and inside:
                    write.effects[name] = server.change(name, None)
                else:
                    put(known.uid if known is not None else f"{name}{server.revision}")
            marks.unknown(KIND, write.mark)
        case _:
            marks.failed(KIND, write.mark)


def _foreign(server, known, name, inside):
    """Return what another client stores under a name; an object that is terminating remains so."""
    uid = known.uid if known is not None else f"foreign{server.revision}"
    deleting = known is not None and known.deletion_timestamp is not None
    return lambda r: meta(r, name, uid, {"app": "x" if inside else "other"}, deleting=deleting)


def _look(server, marks, read, own, lists):
    """One look of a read; return whether it was served. Every served read is checked against the history."""
    key = (NS, read.name or WHOLE)
    match verdict(read.needed, server.view, key):
        case Verdict.READ:
            for write in own:
                for name, effect in write.effects.items():
                    if write.opened <= read.began and read.name in {None, name}:
                        assert _is_newer_than(server, name, effect)
            marks.drop_shown(KIND, read.needed)
            return True
        case Verdict.COMPARE:
            for compared in unknown(read.needed, server.view):
                lists.append((compared, server.listing(compared[1]), marks.steps))
        case Verdict.WAIT:
            pass
    return False


def play(actions):
    server = Server()
    marks = Marks(lambda _kind: [server.view])
    open_, own, reads, lists = [], [], [], []
    for action, name, number, how, flag, inside in actions:
        match action:
            case "open":
                target = WHOLE if number == 0 else name
                write = OwnWrite(target, marks.open(KIND, NS, target), marks.steps)
                own.append(write)
                open_.append(write)
            case "finish" if open_:
                _finish(server, marks, open_.pop(number % len(open_)), how, inside, flag)
            case "foreign":
                known = server.objects.get(name)
                server.change(name, None if known is not None and flag else _foreign(server, known, name, inside))
            case "other kind":
                server.revision += 1
            case "follow":
                server.follow(number)
            case "bookmark":
                server.bookmark()
            case "read":
                wanted = None if flag else name
                reads.append(Read(wanted, marks.needed(KIND, NS, wanted), marks.steps))
            case "look" if reads:
                read = reads[number % len(reads)]
                if _look(server, marks, read, own, lists):
                    reads.remove(read)
            case "compared" if lists:
                key, listing, steps = lists.pop(number % len(lists))
                marks.compared(KIND, key, listing, steps)
    for write in open_:
        _finish(server, marks, write, "failed", False, False)
    reads += [Read(name, marks.needed(KIND, NS, name), marks.steps) for name in ("a", "b", None)]
    server.revision += 1
    server.follow(len(server.frames))  # and no bookmark: the kind is quiet from here on
    for read in reads:
        if not _look(server, marks, read, own, lists):
            for key, listing, steps in lists:
                marks.compared(KIND, key, listing, steps)
            assert _look(server, marks, read, own, lists)
    server.bookmark()
    marks.drop_shown(KIND, marks.needed(KIND, NS, None))
    assert all(mark.state is State.UNKNOWN for mark in marks.needed(KIND, NS, None))


ACTIONS = st.tuples(
    st.sampled_from(
        ["open", "open", "finish", "finish", "foreign", "other kind", "follow", "bookmark", "read", "look", "compared"]
    ),
    st.sampled_from("ab"),
    st.integers(0, 6),
    st.sampled_from(["create", "update", "delete", "lost", "failed"]),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=1500, deadline=None)
@given(st.lists(ACTIONS, max_size=60))
def test_a_served_read_is_never_older_than_own_writes_and_never_waits_for_a_quiet_kind(actions):
    play(actions)
