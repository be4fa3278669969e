"""Error messages of reads that the cache cannot serve: the request, the cached scope, and a fix."""

from __future__ import annotations

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.cache.informer import Informer
from ctrlruntime.cache.scope import Scope
from ctrlruntime.errors import NamespaceNotCachedError, NotFound, ObjectNotCachedError


def outside(gvk: GroupVersionKind, namespace: str, informer: Informer) -> str:
    """Return a message with the cached namespaces, for a read of another one."""
    return (
        f"{gvk.kind} in namespace {namespace!r} is outside the cache, which holds {_namespaces(informer)}. "
        "Read it with api_reader, or add the namespace"
    )


def _namespaces(informer: Informer) -> str:
    return ", ".join(sorted(scope.namespace for scope in informer.scopes)) or "no namespace"


def no_index(gvk: GroupVersionKind, path: str, informer: Informer) -> str:
    """Return a message with the indexed fields of a kind, for a list by another field."""
    have = ", ".join(informer.store.index_names) or "none"
    return (
        f"{gvk.kind} is not indexed by {path} (indexed: {have}). Call cache.index_field({gvk.kind}, {path!r}) first, "
        "or use api_reader"
    )


def unsynced(gvk: GroupVersionKind, informer: Informer, timeout: float) -> str:
    """Return a message with the cause that delays a first list."""
    why = f": {informer.last_error}" if informer.last_error is not None else ""
    return f"{gvk.kind} has not synced within {timeout:g} s{why}"


def not_found(gvk: GroupVersionKind, plural: str, namespace: str, name: str, informer: Informer) -> NotFound:
    """Return the error of a get: the message of the server if the cache can know, else one with the cached scope."""
    resource = f"{plural}.{gvk.group}" if gvk.group else plural
    text = f'{resource} "{name}" not found'
    details = {"name": name, "group": gvk.group, "kind": plural}
    selection = sorted({_selection(scope) for scope in informer.scopes if scope.holds(namespace)} - {""})
    error: NotFound
    if namespace and not informer.has_namespace(namespace):
        error = NamespaceNotCachedError(f"{text}: {outside(gvk, namespace, informer)}", details=details)
    elif selection:
        error = ObjectNotCachedError(
            f"{text} in the cache, which holds only objects with {' or '.join(selection)}. Read it with api_reader, or with "
            "get(…, live_fallback=True)",
            details=details,
        )
    else:
        error = NotFound(text, details=details)
    error.is_answer = True  # it names an object, so a webhook must not return it to its client
    return error


def _selection(scope: Scope) -> str:
    """Return which objects of its namespaces a scope leaves out, as the selectors that say so; empty for none."""
    fields = ",".join(
        term
        for term in scope.fields.split(",")
        if term not in {f"metadata.namespace!={name}" for name in scope.besides}
    )
    terms = [f"labels {scope.labels}" if scope.labels is not None else "", f"fields {fields}" if fields else ""]
    return " and ".join(term for term in terms if term)
