"""Predicates: which events pass."""

from __future__ import annotations

import json

import pytest

from ctrlruntime.event import CreateEvent, DeleteEvent, GenericEvent, Snapshot, UpdateEvent
from ctrlruntime.predicate import (
    AnnotationChangedPredicate,
    Funcs,
    GenerationChangedPredicate,
    LabelChangedPredicate,
    LabelSelectorPredicate,
    Predicate,
    ResourceVersionChangedPredicate,
    predicate_of,
)
from ctrlruntime.selector import parse_labels


def never_decoded(raw):
    raise AssertionError("a predicate of ours decoded an object")


def snapshot(version="1", *, name="a", generation=1, labels=None, annotations=None):
    metadata = {"name": name, "namespace": "ns", "resourceVersion": version, "generation": generation}
    if labels is not None:
        metadata["labels"] = labels
    if annotations is not None:
        metadata["annotations"] = annotations
    return Snapshot.of(json.dumps({"metadata": metadata}).encode(), never_decoded)


def update(old, new):
    return UpdateEvent(old, new)


def others():
    return [CreateEvent(snapshot()), DeleteEvent(snapshot()), GenericEvent(snapshot())]


CHANGED = [
    (ResourceVersionChangedPredicate(), {"version": "1"}, {"version": "2"}),
    (GenerationChangedPredicate(), {"generation": 1}, {"generation": 2, "version": "2"}),
    (LabelChangedPredicate(), {"labels": {"a": "1"}}, {"labels": {"a": "2"}, "version": "2"}),
    (AnnotationChangedPredicate(), {"annotations": {"a": "1"}}, {"annotations": {"a": "2"}, "version": "2"}),
]


def test_events_have_the_annotations_of_the_newest_state():
    old, new = snapshot(annotations={"copy": "a"}), snapshot(annotations={"copy": "b"})

    events = [CreateEvent(new), UpdateEvent(old, new), DeleteEvent(new), GenericEvent(new)]

    assert [event.annotations for event in events] == [{"copy": "b"}] * 4
    assert CreateEvent(snapshot()).annotations == {}


@pytest.mark.parametrize(("predicate", "old", "new"), CHANGED, ids=repr)
def test_changed_predicates_pass_updates_that_change_their_part_and_all_other_events(predicate, old, new):
    assert predicate.passes(update(snapshot(**old), snapshot(**new)))
    assert not predicate.passes(update(snapshot(**old), snapshot(**old)))
    assert all(predicate.passes(event) for event in others())


@pytest.mark.parametrize(
    "predicate", [LabelChangedPredicate(), AnnotationChangedPredicate(), GenerationChangedPredicate()]
)
def test_changed_predicates_stop_updates_of_another_part(predicate):
    assert not predicate.passes(update(snapshot("1"), snapshot("2")))


def test_absent_labels_and_annotations_equal_empty_ones():
    assert not LabelChangedPredicate().passes(update(snapshot(), snapshot(labels={})))
    assert not AnnotationChangedPredicate().passes(update(snapshot("1"), snapshot("2", annotations={})))


def test_label_selector_looks_at_the_new_object_of_an_update():
    predicate = LabelSelectorPredicate("app=web")
    web, other = snapshot(labels={"app": "web"}), snapshot(labels={"app": "db"})

    assert predicate.passes(update(other, web))
    assert not predicate.passes(update(web, other))
    assert predicate.passes(DeleteEvent(web))
    assert not predicate.passes(CreateEvent(snapshot()))


@pytest.mark.parametrize("selector", ["app=web", {"app": "web"}, parse_labels("app=web")])
def test_label_selector_is_text_a_mapping_or_parsed(selector):
    assert LabelSelectorPredicate(selector).passes(CreateEvent(snapshot(labels={"app": "web"})))
    assert not LabelSelectorPredicate(selector).passes(CreateEvent(snapshot(labels={"app": "db"})))


def test_and_or_not_combine_predicates_and_plain_functions():
    changed = ResourceVersionChangedPredicate()
    same, other = update(snapshot("1"), snapshot("1")), update(snapshot("1"), snapshot("2", name="b"))

    assert (changed & (lambda event: event.meta.name == "b")).passes(other)
    assert not (changed & (lambda event: event.meta.name == "a")).passes(other)
    assert ((lambda event: event.meta.name == "a") | changed).passes(same)
    assert not (changed | (lambda event: False)).passes(same)
    assert (~changed).passes(same)
    assert not (~changed).passes(CreateEvent(snapshot()))


def test_and_or_stop_at_the_first_verdict():
    def fails(event):
        raise AssertionError("asked without need")

    never, always = predicate_of(lambda event: False), predicate_of(lambda event: True)

    assert not (never & fails).passes(CreateEvent(snapshot()))
    assert (always | fails).passes(CreateEvent(snapshot()))


def test_funcs_pass_events_without_a_function():
    predicate = Funcs(update=lambda event: False, create=lambda event: event.is_in_initial_list)

    assert not predicate.passes(update(snapshot("1"), snapshot("2")))
    assert not predicate.passes(CreateEvent(snapshot()))
    assert predicate.passes(CreateEvent(snapshot(), is_in_initial_list=True))
    assert predicate.passes(DeleteEvent(snapshot()))
    assert predicate.passes(GenericEvent(snapshot()))


def test_a_subclass_overrides_one_sort_of_event():
    class NoDeletes(Predicate):
        def delete(self, event):
            return False

    assert not NoDeletes().passes(DeleteEvent(snapshot()))
    assert NoDeletes().passes(CreateEvent(snapshot()))


async def _async(event):
    return True


class _AsyncCall:
    async def __call__(self, event):
        return True


@pytest.mark.parametrize("function", [_async, _AsyncCall()])
def test_async_functions_are_refused_when_given(function):
    with pytest.raises(TypeError, match="async"):
        predicate_of(function)
    with pytest.raises(TypeError, match="async"):
        Funcs(delete=function)
    with pytest.raises(TypeError, match="async"):
        ResourceVersionChangedPredicate() & function


def test_an_async_method_is_refused_when_its_class_is_made():
    with pytest.raises(TypeError, match=r"Slow\.update is async"):

        class Slow(Predicate):
            async def update(self, event):
                return True


def test_what_is_no_predicate_is_refused_with_advice():
    with pytest.raises(TypeError, match=r"ResourceVersionChangedPredicate\(\)"):
        predicate_of(ResourceVersionChangedPredicate)
    with pytest.raises(TypeError, match="plain function"):
        predicate_of("nonsense")


def test_a_combination_is_named_after_its_parts():
    assert repr(~ResourceVersionChangedPredicate() & GenerationChangedPredicate()) == (
        "(~ResourceVersionChangedPredicate() & GenerationChangedPredicate())"
    )
