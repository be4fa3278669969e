"""Whether an object may be stored: the rules of metadata, of its kind or its schema, and of what its kind adds.

Other modules have the rules; here they are called in kube-apiserver's order, and their causes become one response.
"""

from __future__ import annotations

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.registry.metadata_rules import metadata_causes
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
    if resource.is_custom:
        causes += _custom_causes(pending)
    else:
        causes += validate(group, kind, document, old, pending.subresource)
    causes += hook.validate(document, old)
    if causes:
        raise failures.invalid(kind, resource.stored_as[0], str(metadata.get("name", "")), causes)
    options.warnings.extend(hook.warnings(document, old))
    if resource.is_custom:
        options.warnings.extend(finalizer_warnings(metadata, old["metadata"] if old is not None else {}))
    else:
        options.warnings.extend(warnings(group, kind, document, old, pending.subresource))
    if resource.schema is not None and options.is_apply:
        # kube-apiserver drops the nulls that are left as it reads the object from etcd.
        resource.schema.fit(document, "", [], is_root=True, defaults=False)


def _custom_causes(pending: Pending) -> list[StatusCause]:
    causes: list[StatusCause] = []
    resource, document = pending.resource, pending.document
    if resource.schema is not None:
        verdict = resource.schema.judge_object(document, pending.old, is_status=pending.subresource == "status")
        pending.options.warnings.extend(verdict.warnings)
        causes = verdict.causes
    return [*causes, *scale_causes(resource.scale, document)] if resource.scale is not None else causes
