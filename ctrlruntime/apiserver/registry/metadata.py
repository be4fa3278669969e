"""The rules of `.metadata` that hold for every kind: names, labels, annotations, finalizers, owner references."""

from __future__ import annotations

import re
from random import Random

from ctrlruntime.apiserver.failures import duplicate, forbidden_field, invalid_value, required
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.errors import StatusCause
from ctrlruntime.selector import label_key_problems, label_value_problems

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SERVICE_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
    "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_PATH_SEGMENT = frozenset(
    {
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
    }
)
_ANNOTATIONS_LIMIT = 262_144
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def generated_name(base: str, random: Random) -> str:
    """Return the base, cut so that five random letters fit into 63."""
    return base[:58] + "".join(random.choices(_ALPHABET, k=5))


def name_problems(group: str, kind: str, name: str) -> list[str]:
    """Return what is wrong with an object's name; empty when nothing is."""
    if (group, kind) in _PATH_SEGMENT:
        if name in {".", ".."}:
            return [f"may not be '{name}'"]
        return [f"may not contain '{character}'" for character in "/%" if character in name]
    if (group, kind) == ("", "Namespace"):
        return (
            []
            if _LABEL.match(name) and len(name) <= 63
            else [_LABEL_TEXT if len(name) <= 63 else "must be no more than 63 bytes"]
        )
    if (group, kind) == ("", "Service"):
        return [] if _SERVICE.match(name) and len(name) <= 63 else [_SERVICE_TEXT]
    problems: list[str] = []
    if len(name) > 253:
        problems.append("must be no more than 253 bytes")
    if not _SUBDOMAIN.match(name):
        problems.append(_SUBDOMAIN_TEXT)
    return problems


def validate_metadata(group: str, kind: str, metadata: Document) -> list[StatusCause]:
    """Return what is wrong with the metadata of an object that is about to be stored."""
    causes: list[StatusCause] = []
    name = metadata.get("name", "")
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    else:
        causes.extend(invalid_value("metadata.name", name, problem) for problem in name_problems(group, kind, name))
    causes.extend(_labels(metadata.get("labels")))
    causes.extend(_annotations(metadata.get("annotations")))
    if metadata.get("ownerReferences"):
        causes.extend(_owners(metadata["ownerReferences"]))
    for finalizer in metadata.get("finalizers") or ():
        causes.extend(
            invalid_value("metadata.finalizers", finalizer, problem) for problem in label_key_problems(finalizer)
        )
    return causes


def finalizer_problems(is_custom: bool, metadata: Document) -> tuple[list[StatusCause], list[str]]:
    """Return (causes, warnings) for finalizers without a domain: refused on built-ins, warned about on custom resources."""
    causes: list[StatusCause] = []
    warnings: list[str] = []
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        if "/" in finalizer or finalizer in _STANDARD_FINALIZERS:
            continue
        if is_custom:
            warnings.append(
                f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name including a path (/) '
                "to avoid accidental conflicts with other finalizer writers"
            )
        elif finalizer.count(".") < 1:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid_value(f"metadata.finalizers[{index}]", finalizer, text))
    return causes, warnings


def validate_metadata_update(metadata: Document, old: Document) -> list[StatusCause]:
    """Return what an update may not do to metadata."""
    causes: list[StatusCause] = []
    if metadata.get("uid") and metadata["uid"] != old.get("uid"):
        causes.append(invalid_value("metadata.uid", metadata["uid"], "field is immutable"))
    if old.get("deletionTimestamp"):
        added = [name for name in metadata.get("finalizers") or () if name not in (old.get("finalizers") or ())]
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
            causes.append(forbidden_field("metadata.finalizers", text))
    return causes


def _labels(labels: dict[str, str] | None) -> list[StatusCause]:
    causes: list[StatusCause] = []
    for key, value in (labels or {}).items():
        causes.extend(invalid_value("metadata.labels", key, problem) for problem in label_key_problems(key))
        causes.extend(invalid_value("metadata.labels", value, problem) for problem in label_value_problems(value))
    return causes


def _annotations(annotations: dict[str, str] | None) -> list[StatusCause]:
    causes: list[StatusCause] = []
    size = 0
    for key, value in (annotations or {}).items():
        causes.extend(
            invalid_value("metadata.annotations", key, problem) for problem in label_key_problems(key.lower())
        )
        size += len(key) + len(value)
    if size > _ANNOTATIONS_LIMIT:
        text = f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes"
        causes.append(StatusCause("FieldValueTooLong", text, "metadata.annotations"))
    return causes


def _owners(owners: list[Document]) -> list[StatusCause]:
    causes: list[StatusCause] = []
    controllers: list[Document] = []
    path = "metadata.ownerReferences"  # upstream gives no index here
    for owner in owners:
        for key, text in (("apiVersion", "version must not be empty"), ("kind", "must not be empty"),
                          ("name", "must not be empty"), ("uid", "must not be empty")):  # fmt: skip
            if not owner.get(key):
                causes.append(invalid_value(f"{path}.{key}", owner.get(key, ""), text))
        if owner.get("controller"):
            controllers.append(owner)
    if len(controllers) > 1:
        first, second = controllers[0], controllers[1]
        text = (
            f'Only one reference can have Controller set to true. Found "true" in references for {first.get("kind")}/'
            f"{first.get('name')} and {second.get('kind')}/{second.get('name')}"
        )
        causes.append(invalid_value("metadata.ownerReferences", owners, text))
    if len({owner.get("uid") for owner in owners}) != len(owners):
        causes.append(duplicate("metadata.ownerReferences", [owner.get("uid") for owner in owners]))
    return causes
