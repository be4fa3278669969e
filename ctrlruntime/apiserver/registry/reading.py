"""A document as a client sent it becomes one of the server's types: unknown and repeated fields, defaults, name and namespace.

Takes decoded bodies (and what mutating webhooks made of them) and hands them to the steps of a write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctrlruntime.apiserver.registry.defaults import default
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.writes import WriteOptions
from ctrlruntime.errors import BadRequest
from ctrlruntime.schema.metadata import drop_repeated_owners
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.undecodable import undecodable


def read(resource: Resource, document: Document, options: WriteOptions) -> Document:
    """Return the document as the server's types hold it, with the defaults of a decoded object.

    Raises: BadRequest for fields that strict validation refuses, and for what no field of the type can hold.
    """
    unknown: list[str] = []
    given = document.get("metadata")
    options.clears_owners = type(given) is dict and given.get("managedFields") == []
    fitted = resource.fit(document, unknown, keeps_nulls=options.is_apply)  # what was applied is not decoded again
    if fitted.get("metadata") is None:
        fitted["metadata"] = {}
    # A field that an apply may not have is an error of the field manager before (pkg/util/managedfields in apimachinery).
    judge_fields(resource, document, [] if options.is_apply else unknown, options)
    if resource.deprecation_warning:
        options.warnings.append(resource.deprecation_warning)
    if not options.is_patch:
        options.warnings.extend(drop_repeated_owners(fitted["metadata"]))
    if not resource.is_custom:
        default(resource.group, resource.kind, fitted)
    return fitted


def set_namespace(resource: Resource, metadata: Document, namespace: str) -> None:
    """Set the namespace of the request. Raises: BadRequest when the body says another."""
    if not resource.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def check_named(document: Document, name: str) -> None:
    """Raises: BadRequest when the body has no name."""
    if not (document.get("metadata") or {}).get("name"):
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")


def check_name(document: Document, name: str) -> None:
    """Raises: BadRequest when the body names another object than the request."""
    metadata = document.get("metadata") or {}
    given = metadata.get("name")
    if given and given != name:
        raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")


def judge_fields(resource: Resource, document: Document, unknown: list[str], options: WriteOptions) -> None:
    """Refuse unknown and repeated fields or warn about them, as the client asked."""
    found = [f'unknown field "{path}"' for path in unknown]
    if options.is_patch:  # what the patch itself repeats comes first
        problems = [*options.duplicates, *_in_order(resource, found, document, options)]
    else:
        problems = _in_order(resource, [*options.duplicates, *found], document, options)
    if problems:
        if options.field_validation == "Strict":
            raise undecodable(resource.kind, resource.version, f"strict decoding error: {', '.join(problems)}")
        if options.field_validation == "Warn":
            options.warnings.extend(problems)


def _in_order(resource: Resource, problems: list[str], document: Document, options: WriteOptions) -> list[str]:
    """Return what was found wrong in the order in which upstream's decoder meets it: that of the body.

    That of a custom resource is looked at elsewhere, and has an order of its own.
    """
    if len(problems) < 2 or resource.is_custom:
        return problems
    read_as = document if options.order is None else options.order(document)
    places = {path: index for index, path in enumerate(_paths(read_as, ""))}

    def place(problem: str) -> int:
        return (
            -1 if problem.startswith(("yaml: ", "line ")) else places.get(problem.partition('"')[2][:-1], len(places))
        )

    return sorted(problems, key=place)


def _paths(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            inner = f"{path}.{key}" if path else key
            yield inner
            yield from _paths(value, inner)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _paths(value, f"{path}[{index}]")
