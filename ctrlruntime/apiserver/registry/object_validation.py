"""Whether an object may be stored: the rules of metadata, of its kind or its schema, and of what its kind adds.

Other modules have the rules; here they are called in kube-apiserver's order, and their causes become one response.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.registry.metadata_rules import is_judged_late, metadata_causes
from ctrlruntime.apiserver.registry.object_warnings import warnings
from ctrlruntime.apiserver.registry.resources import scale_causes
from ctrlruntime.apiserver.registry.validation import validate
from ctrlruntime.apiserver.registry.writes import Hook, Pending
from ctrlruntime.errors import StatusCause
from ctrlruntime.schema.metadata import finalizer_warnings
from ctrlruntime.schema.trees import Document


def validate_object(pending: Pending, hook: Hook) -> None:
    """Validate what a write has come to, and note warnings. Raises: Invalid with every cause."""
    resource, document, old, options = pending.resource, pending.document, pending.old, pending.options
    metadata: Document = document["metadata"]
    group, kind = resource.group, resource.kind
    causes = [*metadata_causes(resource, document, old, pending.subresource)]
    permissions = [*hook.permit(pending)]
    # A strategy asks for them first, but BeforeUpdate looks at the metadata of an update before it calls the strategy.
    causes = [*permissions, *causes] if old is None else [*causes, *permissions]
    if resource.is_custom:
        causes += _custom_causes(pending)
    else:
        found = validate(group, kind, document, old, pending.subresource)
        is_late = bool(found) and old is None and is_judged_late(resource)
        causes = found if is_late else [*causes, *found]
    causes += hook.validate(document, old)
    if causes:
        if not resource.is_custom and pending.given is not None:
            causes = [_as_given(cause, pending.given, kind) for cause in causes]
        raise failures.invalid(kind, resource.stored_as[0], str(metadata.get("name", "")), causes)
    options.warnings.extend(hook.warnings(document, old))
    if resource.is_custom:
        options.warnings.extend(finalizer_warnings(metadata, old["metadata"] if old is not None else {}))
    else:
        options.warnings.extend(warnings(group, kind, document, old, pending.subresource))
    if resource.schema is not None and options.is_apply:
        # kube-apiserver drops the nulls that are left as it reads the object from etcd.
        resource.schema.fit(document, "", [], is_root=True, defaults=False)


_NULL: Final = re.compile(r"(Invalid|Unsupported) value: null(?=: )")
_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_OF_ANOTHER: Final = {("Ingress", "spec"): "spec.rules"}
"""Where a cause shows the value of another field."""


def _as_given(cause: StatusCause, given: Document, kind: str) -> StatusCause:
    """Show an empty list or map that was given as it is, and not as null.

    The typed document does not have it, as what is stored does not. Upstream prints what it has decoded.
    """
    if not _NULL.match(cause.message):
        return cause
    value: Any = given
    for key, name in _STEP.findall(_OF_ANOTHER.get((kind, cause.field), cause.field)):
        if isinstance(value, list):
            value = value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        else:
            value = value.get(key or name) if isinstance(value, dict) else None
    if value not in ([], {}):
        return cause
    return replace(cause, message=_NULL.sub(rf"\1 value: {json.dumps(value)}", cause.message))


def _custom_causes(pending: Pending) -> list[StatusCause]:
    causes: list[StatusCause] = []
    resource, document = pending.resource, pending.document
    if resource.schema is not None:
        verdict = resource.schema.judge_object(document, pending.old, is_status=pending.subresource == "status")
        pending.options.warnings.extend(verdict.warnings)
        causes = verdict.causes
    return [*causes, *scale_causes(resource.scale, document)] if resource.scale is not None else causes
