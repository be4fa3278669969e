"""Matches the kinds and objects of a query; kinds can be written in several ways."""

from __future__ import annotations

from collections.abc import Collection

from ctrlruntime import journal as record
from ctrlruntime.explain.loops import WriteLoop


def is_write_of(what: str, loop: WriteLoop) -> bool:
    """Return whether a call, as text, is for the object of a loop."""
    resource, _, key = what.partition(" ")
    name, _, group = resource.partition("/")[0].partition(".")
    return is_kind(name, loop.kind, "") and group == loop.group and key in {f"{loop.namespace}/{loop.name}", loop.name}


def kind_and_group(text: str) -> tuple[str, str]:
    """Split `Deployment.apps` into kind and group."""
    kind, _, group = text.partition(".")
    return kind, group


def is_event_of(trigger: object, kind: str, namespace: str, name: str, clusters: Collection[str]) -> bool:
    """Return whether a trigger is an event of this object in one of the clusters."""
    if not isinstance(trigger, record.Trigger) or (trigger.namespace, trigger.name) != (namespace, name):
        return False
    return trigger.cluster in clusters and is_kind(kind.partition(".")[0], without_metadata(trigger.source), "")


def without_metadata(name: str) -> str:
    """Return the kind in the name of a class; the class of a kind of which only the metadata is watched has a longer name."""
    return name.removeprefix("PartialObjectMetadata[").removesuffix("]")


def is_kind(asked: str, kind: str, group: str) -> bool:
    """Return whether `asked` names this kind: its name or plural, in any case, with or without its group."""
    if not kind:
        return False
    name, _, rest = asked.lower().partition(".")
    kind = kind.lower()
    return name in {kind, f"{kind}s", f"{kind}es", f"{kind.removesuffix('y')}ies"} and rest in {"", group.lower()}
