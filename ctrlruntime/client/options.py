"""Options of writes as the API takes them: query parameters, and the body of a delete."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from ctrlruntime.client.interfaces import FieldValidation, Propagation
from ctrlruntime.rest.fence import current_actor

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
    dry_run: bool, grace_period_seconds: int | None, propagation: Propagation | None, uid: str, resource_version: str
) -> bytes:
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if dry_run:
        options["dryRun"] = ["All"]
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    if propagation is not None:
        options["propagationPolicy"] = propagation
    preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v}
    if preconditions:
        options["preconditions"] = preconditions
    return msgspec.json.encode(options)
