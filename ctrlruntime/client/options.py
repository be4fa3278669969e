"""Options of the client's methods: as keyword arguments, query parameters, and the body of a delete.

The classes list the options of a method; `interfaces` documents them and their defaults.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, TypeAlias, TypedDict

import msgspec

from ctrlruntime.client.interfaces import Client, Fields, FieldValidation, Labels, PropagationPolicy, SubresourceClient
from ctrlruntime.rest.fence import current_actor


class _Selecting(TypedDict, total=False):
    namespace: str | None
    labels: Labels | None
    fields: Fields | None


class ListOptions(_Selecting, total=False):
    limit: int | None
    continue_token: str


class WatchOptions(_Selecting, total=False):
    resource_version: str


class SubresourceCreateOptions(TypedDict, total=False):
    dry_run: bool
    field_owner: str


class WriteOptions(SubresourceCreateOptions, total=False):
    field_validation: FieldValidation | None


class SubresourceUpdateOptions(WriteOptions, total=False):
    body: object | None


class PatchOptions(WriteOptions, total=False):
    force: bool


class ApplyOptions(SubresourceCreateOptions, total=False):
    force: bool


class _Deleting(TypedDict, total=False):
    dry_run: bool
    grace_period_seconds: int | None
    propagation_policy: PropagationPolicy | None


class DeleteOptions(_Deleting, total=False):
    uid: str
    resource_version: str


class DeleteAllOfOptions(_Selecting, _Deleting, total=False):
    pass


@functools.cache
def default_options(verb: str, *, subresource: bool = False) -> Mapping[str, Any]:
    """Return the options of a method with their defaults, from its signature in `interfaces`."""
    parameters = inspect.signature(getattr(SubresourceClient if subresource else Client, verb)).parameters
    return {name: each.default for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}


WriteParams: TypeAlias = list[tuple[str, str]]
"""Query parameters of a write."""


def default_owner() -> str:
    actor = current_actor()
    return "" if actor is None else actor.controller


def write_options(
    dry_run: bool, field_owner: str, field_validation: FieldValidation | None, *, force: bool = False
) -> WriteParams:
    params: WriteParams = []
    if dry_run:
        params.append(("dryRun", "All"))
    if owner := field_owner or default_owner():
        params.append(("fieldManager", owner))
    if field_validation is not None:
        params.append(("fieldValidation", field_validation))
    if force:
        params.append(("force", "true"))
    return params


def delete_options(
    dry_run: bool,
    grace_period_seconds: int | None,
    propagation_policy: PropagationPolicy | None,
    uid: str,
    resource_version: str,
) -> bytes:
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if dry_run:
        options["dryRun"] = ["All"]
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    if propagation_policy is not None:
        options["propagationPolicy"] = propagation_policy
    preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v}
    if preconditions:
        options["preconditions"] = preconditions
    return msgspec.json.encode(options)
