"""Query options of lists, watches, writes and deletes: parsed and checked with upstream's messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.go_json import Struct, unmarshal
from ctrlruntime.apiserver.go_values import parse_int
from ctrlruntime.apiserver.http.bodies import parse_body
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.negotiation import body_type
from ctrlruntime.apiserver.options import SHARDED
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
    shard_selector: str = ""


def list_options(call: Call, features: Collection[str] = ()) -> ListOptions:
    """Return the options of a request; `features` are the feature gates that are on. Raises: BadRequest, Invalid."""
    query = call.query
    seconds = query.get("timeoutSeconds")  # upstream reads it before the limit, and both before the selectors
    timeout = None if seconds is None else float(_integer(seconds))
    limit = max(_integer(query.get("limit")), 0)
    try:
        labels = parse_labels(query.get("labelSelector", ""))
        fields = parse_fields(query.get("fieldSelector", ""))
    except ValueError as error:
        raise BadRequest(str(error)) from None
    options = ListOptions(
        labels=labels,
        fields=fields,
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        timeout=timeout,
        limit=limit,
        continue_=query.get("continue", ""),
        allows_bookmarks=call.asks("allowWatchBookmarks"),
        initial_events=call.asks("sendInitialEvents") if "sendInitialEvents" in query else None,
        shard_selector=query.get("shardSelector", "") if SHARDED in features else "",
    )
    is_watch, is_open = call.asks("watch"), options.initial_events is None and not options.match
    if is_watch and is_open and options.resource_version in {"", "0"}:  # SetListOptionsDefaults
        options = replace(options, initial_events=True, match="NotOlderThan")
    # A watch of the old kind (/watch/…) is checked as a list: its path says that it is a watch, not its options.
    causes = _watch_causes(options) if is_watch else _list_causes(options)
    if causes:
        raise failures.bad_option("ListOptions", causes)
    return options


def _integer(text: str | None) -> int:
    """Return the number of a parameter, 0 without one. Raises: BadRequest."""
    if text is None:
        return 0
    try:
        return parse_int(text)
    except ValueError as error:
        raise BadRequest(str(error)) from None


def _list_causes(options: ListOptions) -> list[StatusCause]:
    causes = _match_causes(options) if options.match else []
    if options.initial_events is not None:
        causes.append(field_errors.forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return causes


def _match_causes(options: ListOptions) -> list[StatusCause]:
    causes: list[StatusCause] = []
    path = "resourceVersionMatch"
    if not options.resource_version:
        text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(field_errors.forbidden_field(path, text))
    causes += _forbidden_match(options)
    if options.match not in _MATCHES:
        causes.append(field_errors.not_supported(path, options.match, ("Exact", "NotOlderThan", "")))
    if options.match == "Exact" and options.resource_version == "0":
        text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        causes.append(field_errors.forbidden_field(path, text))
    return causes


def _watch_causes(options: ListOptions) -> list[StatusCause]:
    causes: list[StatusCause] = []
    path = "resourceVersionMatch"
    if options.initial_events is not None and options.match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(field_errors.forbidden_field(path, text))
    if not options.match:
        return causes
    if options.initial_events is None:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(field_errors.forbidden_field(path, text))
    if options.match != "NotOlderThan":
        causes.append(field_errors.not_supported(path, options.match, ("NotOlderThan",)))
    return [*causes, *_forbidden_match(options)]


def _forbidden_match(options: ListOptions) -> list[StatusCause]:
    text = "resourceVersionMatch is forbidden when continue is provided"
    return [field_errors.forbidden_field("resourceVersionMatch", text)] if options.continue_ else []


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


_DELETE_OPTIONS: Final = Struct(
    "DeleteOptions",
    "v1.DeleteOptions",
    {
        "gracePeriodSeconds": "int64",
        "preconditions": Struct(
            "Preconditions", "v1.Preconditions", {"uid": "types.UID", "resourceVersion": "string"}, is_exact=True
        ),
        "orphanDependents": "bool",
        "propagationPolicy": "v1.DeletionPropagation",
        "dryRun": "[]string",
        "ignoreStoreReadErrorWithClusterBreakingPotential": "bool",
    },
    is_exact=True,
)


def delete_options(call: Call) -> DeleteOptions:
    """Return the options of a delete: of the body where there is one, else of the query. Raises: BadRequest, Invalid."""
    form = body_type(call.headers.get("Content-Type", ""))
    try:
        body, _ = parse_body(call, form)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    if body.get("kind") not in {None, "", "DeleteOptions"}:
        raise BadRequest(
            f'no kind "{body["kind"]}" is registered for version "{body.get("apiVersion", "")}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    try:
        given = unmarshal(body if call.body.strip() else _query_options(call), _DELETE_OPTIONS)
    except ValueError as error:
        raise BadRequest(str(error)) from None
    check_delete_options(given)
    return options_to_delete(call, given)


def check_delete_options(given: Mapping[str, Any]) -> None:
    """Raises: Invalid of options that a delete cannot have (ValidateDeleteOptions in apimachinery's pkg/apis/meta/v1/validation)."""
    causes: list[StatusCause] = []
    policy = given.get("propagationPolicy")
    if policy is not None and policy not in _POLICIES:
        causes.append(field_errors.not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if policy is not None and given.get("orphanDependents") is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(field_errors.invalid_value("propagationPolicy", policy, text))
    _dry_run(given.get("dryRun") or [], causes)
    if causes:
        raise failures.bad_option("DeleteOptions", causes)


def options_to_delete(call: Call, given: Mapping[str, Any]) -> DeleteOptions:
    """Return the options as the registry takes them; nothing is checked."""
    preconditions: Mapping[str, Any] = given.get("preconditions") or {}
    return DeleteOptions(
        dry_run=bool(given.get("dryRun")),
        grace_period_seconds=given.get("gracePeriodSeconds"),
        propagation_policy=given.get("propagationPolicy"),
        orphan_dependents=given.get("orphanDependents"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        user=call.user,
        warnings=call.warnings,
    )


def _query_options(call: Call) -> Document:
    options: Document = {}
    query = call.query
    if "gracePeriodSeconds" in query:
        options["gracePeriodSeconds"] = _integer(query["gracePeriodSeconds"])
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        options["orphanDependents"] = call.asks("orphanDependents")
    if "dryRun" in query:
        options["dryRun"] = call.queries["dryRun"]
    return options
