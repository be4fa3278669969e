"""Query options of lists, watches, writes and deletes: parsed and checked with upstream's messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.go_values import go_name
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.registry import DeleteOptions, WriteOptions
from ctrlruntime.errors import BadRequest, StatusCause
from ctrlruntime.schema.embedded import manager_causes
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import FieldSelector, LabelSelector, parse_fields, parse_labels

_POLICIES = ("Foreground", "Background", "Orphan")
_MATCHES = ("Exact", "NotOlderThan")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a list or watch asks for."""

    labels: LabelSelector
    fields: FieldSelector
    resource_version: str
    match: str
    limit: int
    continue_: str
    timeout: float | None
    allows_bookmarks: bool
    initial_events: bool | None


def list_options(call: Call) -> ListOptions:
    """Raises: BadRequest, Invalid."""
    query = call.query
    try:
        labels = parse_labels(query.get("labelSelector", ""))
        fields = parse_fields(query.get("fieldSelector", ""))
    except ValueError as error:
        # kube-apiserver does not name what is invalid when it is the key.
        raise BadRequest(str(error).replace("requirement: key: ", "requirement: <nil>: ", 1)) from None
    seconds = query.get("timeoutSeconds")
    options = ListOptions(
        labels=labels,
        fields=fields,
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        limit=max(_integer(query.get("limit")), 0),
        continue_=query.get("continue", ""),
        timeout=float(_integer(seconds)) if seconds else None,
        allows_bookmarks=call.asks("allowWatchBookmarks"),
        initial_events=call.asks("sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    causes = _watch_causes(options) if call.is_watch else _list_causes(options)
    if causes:
        raise failures.bad_option("ListOptions", causes)
    return options


def _integer(text: str | None) -> int:
    if not text:
        return 0
    try:
        return int(text)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _list_causes(options: ListOptions) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if options.initial_events is not None:
        causes.append(field_errors.forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if not options.match:
        return causes
    path = "resourceVersionMatch"
    if not options.resource_version:
        text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(field_errors.forbidden_field(path, text))
    if options.continue_:
        causes.append(field_errors.forbidden_field(path, "resourceVersionMatch is forbidden when continue is provided"))
    if options.match not in _MATCHES:
        causes.append(field_errors.not_supported(path, options.match, ("Exact", "NotOlderThan", "")))
    if options.match == "Exact" and options.resource_version == "0":
        text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        causes.append(field_errors.forbidden_field(path, text))
    return causes


def _watch_causes(options: ListOptions) -> list[StatusCause]:
    causes: list[StatusCause] = []
    path = "resourceVersionMatch"
    if options.initial_events is not None:
        if options.match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            causes.append(field_errors.forbidden_field(path, text))
        if options.match not in {"", "NotOlderThan"}:
            causes.append(field_errors.not_supported(path, options.match, ("NotOlderThan",)))
    elif options.match:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(field_errors.forbidden_field(path, text))
    if options.continue_:
        causes.append(field_errors.forbidden_field(path, "resourceVersionMatch is forbidden when continue is provided"))
    return causes


def write_options(call: Call, kind: str) -> WriteOptions:
    """Return the options of a write; `kind` names them in failures (`CreateOptions`, …). Raises: Invalid."""
    query = call.query
    is_apply = kind == "PatchOptions" and "apply" in call.headers.get("Content-Type", "")
    if not query and not is_apply:
        return WriteOptions(field_manager=_manager(call), user=call.user, warnings=call.warnings)
    causes: list[StatusCause] = []
    manager = query.get("fieldManager", "")
    if is_apply and not manager:
        causes.append(field_errors.required("fieldManager", "is required for apply patch"))
    if "force" in query and kind == "PatchOptions" and not is_apply:
        causes.append(field_errors.forbidden_field("force", "may not be specified for non-apply patch"))
    causes += manager_causes(manager, "fieldManager")
    dry_run = _dry_run(call.queries.get("dryRun") or [], causes)
    validation = query.get("fieldValidation") or "Warn"
    if validation not in {"Ignore", "Warn", "Strict"}:
        causes.append(field_errors.not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    if causes:
        raise failures.bad_option(kind, causes)
    return WriteOptions(
        dry_run=dry_run,
        field_validation=validation,
        field_manager=manager or _manager(call),
        named_manager=bool(manager),
        named_validation=query.get("fieldValidation", ""),
        user=call.user,
        warnings=call.warnings,
    )


def _manager(call: Call) -> str:
    """Return the field manager of a client that named none: its user agent up to the first slash, printable, 128 bytes at most."""
    agent = call.headers.get("User-Agent", "").partition("/")[0]
    return "".join(letter for letter in agent if letter.isprintable())[:128] or "unknown"


def _dry_run(values: list[str], causes: list[StatusCause]) -> bool:
    if any(value != "All" for value in values):
        causes.append(field_errors.not_supported("dryRun", values, ("All",)))
    return bool(values)


def delete_options(call: Call, body: Document) -> DeleteOptions:
    """Return the options of a delete: of the body where there is one, else of the query. Raises: BadRequest, Invalid."""
    if body.get("kind") not in {None, "", "DeleteOptions"}:
        raise BadRequest(
            f'no kind "{body["kind"]}" is registered for version "{body.get("apiVersion", "")}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    given: Mapping[str, Any] = body if call.body.strip() else _query_options(call)
    grace = given.get("gracePeriodSeconds")
    if grace is not None and type(grace) is not int:
        what = f"number {grace}" if type(grace) is float else go_name(grace)
        raise BadRequest(
            f"json: cannot unmarshal {what} into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
        )
    causes: list[StatusCause] = []
    policy = given.get("propagationPolicy")
    if policy is not None and policy not in _POLICIES:
        causes.append(field_errors.not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if policy is not None and given.get("orphanDependents") is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(field_errors.invalid_value("propagationPolicy", policy, text))
    dry_run = _dry_run(list(given.get("dryRun") or call.queries.get("dryRun") or []), causes)
    if causes:
        raise failures.bad_option("DeleteOptions", causes)
    preconditions: Mapping[str, Any] = given.get("preconditions") or {}
    return DeleteOptions(
        dry_run=dry_run,
        grace_period_seconds=grace,
        propagation_policy=policy,
        orphan_dependents=given.get("orphanDependents"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        user=call.user,
        warnings=call.warnings,
    )


def _query_options(call: Call) -> Document:
    options: Document = {}
    query = call.query
    if query.get("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = _integer(query["gracePeriodSeconds"])
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        options["orphanDependents"] = call.asks("orphanDependents")
    return options
