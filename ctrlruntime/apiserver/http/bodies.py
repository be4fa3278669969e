"""Request bodies as trees, checked against the kind that the path names."""

from __future__ import annotations

from typing import Any

import msgspec

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import decode_body, duplicate_fields
from ctrlruntime.apiserver.go_values import go_name
from ctrlruntime.apiserver.http import protobuf
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.negotiation import body_type
from ctrlruntime.apiserver.registry import Resource, WriteOptions
from ctrlruntime.apiserver.yaml_reader import YAMLProblem, read_yaml
from ctrlruntime.errors import BadRequest, StatusCause, UnsupportedMediaType
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.undecodable import undecodable

_SHOWN = 30
_REVIEWED = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
_HEAD = r"""struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"""


def read_object(call: Call, resource: Resource, options: WriteOptions) -> Document:
    """Return the body as an object of the resource. Raises: BadRequest…"""
    kind, api_version = resource.kind, resource.api_version
    document = read_tree(call, kind, is_custom=resource.is_custom, options=options)
    given_kind, given_version = document.get("kind"), document.get("apiVersion")
    if resource.is_custom:
        if not given_kind:
            shown = call.body.decode("utf-8", "replace").strip()
            raise BadRequest(
                f"the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{shown}' "
                f"({_summary(call.body)})"
            )
        if given_version != api_version:
            raise BadRequest(_other_version(given_version, api_version))
        if given_kind != kind:
            cause = StatusCause("FieldValueInvalid", f'Invalid value: "{given_kind}": must be {kind}', "kind")
            name = str((document.get("metadata") or {}).get("name", ""))
            raise failures.invalid(str(given_kind), resource.group, name, [cause])
        return document
    if given_version and given_version != api_version:
        if (given_kind or kind) == kind and was_served(resource.group, given_version, kind):
            raise BadRequest(_other_version(given_version, api_version))
        shown = given_version.rpartition("/")[2]
        if resource.group in _REVIEWED and given_version == "v1":  # reviews are read by a decoder of all kinds
            raise BadRequest(
                f'{given_kind or kind} in version "{shown}" cannot be handled as a {kind}: converting ({shown}.{given_kind or kind}) '
                f"to ({resource.group.partition('.')[0]}.{kind}): unknown conversion"
            )
        raise BadRequest(
            f'{given_kind or kind} in version "{shown}" cannot be handled as a {kind}: no kind "{given_kind or kind}" is '
            f'registered for version "{given_version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if given_kind and given_kind != kind:
        version = api_version.rpartition("/")[2]
        internal = api_version.rpartition("/")[0].partition(".")[0] or "core"
        raise BadRequest(
            f'{given_kind} in version "{version}" cannot be handled as a {kind}: converting ({version}.{given_kind}) to '
            f"({internal}.{kind}): unknown conversion"
        )
    document["kind"], document["apiVersion"] = kind, api_version
    return document


_KNOWN_VERSIONS = {
    "admissionregistration.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "apiextensions.k8s.io": ("v1", "v1beta1"),
    "apiregistration.k8s.io": ("v1", "v1beta1"),
    "apps": ("v1", "v1beta1", "v1beta2"),
    "authentication.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "authorization.k8s.io": ("v1", "v1beta1"),
    "autoscaling": ("v1", "v2"),
    "batch": ("v1", "v1beta1"),
    "certificates.k8s.io": ("v1", "v1beta1"),
    "coordination.k8s.io": ("v1", "v1beta1"),
    "discovery.k8s.io": ("v1", "v1beta1"),
    "events.k8s.io": ("v1", "v1beta1"),
    "flowcontrol.apiserver.k8s.io": ("v1", "v1beta1", "v1beta2", "v1beta3"),
    "networking.k8s.io": ("v1", "v1beta1"),
    "node.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "policy": ("v1", "v1beta1"),
    "rbac.authorization.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "resource.k8s.io": ("v1", "v1beta1", "v1beta2"),
    "scheduling.k8s.io": ("v1", "v1beta1"),
    "storage.k8s.io": ("v1", "v1beta1", "v1alpha1"),
}
"""Versions that kube-apiserver can read, served or not: a body in one of them is understood, and refused as another version."""
_UNKNOWN_THERE = {
    "admissionregistration.k8s.io/v1alpha1": ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    "apps/v1beta1": ("DaemonSet", "ReplicaSet"),
    "authentication.k8s.io/v1alpha1": ("TokenReview",),
    "batch/v1beta1": ("Job",),
    "networking.k8s.io/v1beta1": ("NetworkPolicy",),
    "storage.k8s.io/v1alpha1": ("CSIDriver", "CSINode", "StorageClass"),
}
"""Kinds of a group that one of these versions does not have."""


def was_served(group: str, api_version: str, kind: str) -> bool:
    given, _, version = api_version.rpartition("/")
    is_known = given == group and version in _KNOWN_VERSIONS.get(group, ())
    return is_known and kind not in _UNKNOWN_THERE.get(api_version, ())


def _other_version(given: object, expected: str) -> str:
    return f"the API version in the data ({given or ''}) does not match the expected API version ({expected})"


def _summary(body: bytes) -> str:
    """Return the beginning of a body as upstream's messages show it: JSON as it stands, anything else in hex."""
    if not body:
        return "<empty>"
    more = " ..." if len(body) > _SHOWN else ""
    text = body[:_SHOWN].decode("utf-8", "replace") if body[:1] == b"{" else body[:_SHOWN].hex()
    return text + more


def read_fitted(call: Call, resource: Resource, options: WriteOptions) -> Document:
    """Return the body as the resource's own type holds it; for kinds that are answered and never stored. Raises: BadRequest…"""
    unknown: list[str] = []
    document = resource.fit(read_object(call, resource, options), unknown)
    problems = [f'unknown field "{path}"' for path in unknown]
    problems += [f'duplicate field "{path}"' for path in options.duplicates]
    if problems and options.field_validation == "Strict":
        raise undecodable(resource.kind, resource.version, f"strict decoding error: {', '.join(problems)}")
    if options.field_validation == "Warn":
        options.warnings.extend(problems)
    return document


def read_tree(call: Call, kind: str, *, is_custom: bool = False, options: WriteOptions | None = None) -> Document:
    """Return the body as a JSON object, whatever it is written in. Raises: BadRequest, UnsupportedMediaType."""
    form = body_type(call.headers.get("Content-Type", ""))
    try:
        tree, repeated = _parse(call, form, is_custom)
    except (protobuf.PrefixError, YAMLProblem) as error:
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {kind}): {error} ({_summary(call.body)})"
        ) from None
    except (ValueError, msgspec.DecodeError) as error:
        raise _unrecognized(kind, str(error), call.body) from None
    if tree is None and not is_custom:
        tree = {}
    if not isinstance(tree, dict):
        text = f"json: cannot unmarshal {go_name(tree)} into Go value of type {_HEAD}"
        raise _unrecognized(kind, text, call.body)
    if options is not None and options.field_validation != "Ignore":
        if form == "json":
            options.duplicates = duplicate_fields(call.body, tree)
        elif repeated and options.field_validation == "Strict":
            listed = "".join(f"\n  {line}" for line in repeated)
            version = str(tree.get("apiVersion", "v1")).rpartition("/")[2]
            raise undecodable(kind, version, f"strict decoding error: yaml: unmarshal errors:{listed}")
        else:
            options.warnings.extend(repeated)
    return tree


def _unrecognized(kind: str, why: str, body: bytes) -> BadRequest:
    return BadRequest(
        f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why} "
        f"({_summary(body)})"
    )


def _parse(call: Call, form: str, is_custom: bool) -> tuple[Any, list[str]]:
    """Return the tree, and the lines of a YAML body that give a key again."""
    if form == "protobuf":
        if is_custom:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: application/json, "
                "application/yaml"
            )
        return protobuf.decode(call.body), []
    if form == "yaml":
        return read_yaml(call.body) if call.body.strip() else ({}, [])
    if not call.body.strip():
        if call.method == "DELETE":
            return {}, []
        raise ValueError("unexpected end of JSON input")
    return decode_body(call.body), []
