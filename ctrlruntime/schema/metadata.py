"""The rules of `.metadata` that hold for every kind: names, labels, annotations, finalizers, owner references."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, required
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    annotations_causes,
    canonical_address_problems,
    key_problems,
    label_problems,
    labels_causes,
    subdomain_problems,
)

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LABEL_NAMED = frozenset({("", "Namespace"), ("", "Service"), ("apps", "StatefulSet")})
"""Kinds whose names become DNS labels."""
_PATH_SEGMENT = frozenset(
    {
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("apiregistration.k8s.io", "APIService"),
        ("policy", "PodDisruptionBudget"),
        ("", "Event"),
    }
)
_LONG_NAMED = frozenset({("", "ReplicationController"), ("resource.k8s.io", "DeviceClass")})
"""Kinds whose names are judged by the rule of declarative validation (LongName): what names are made from is not judged there."""
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def generated_name(base: str, random: Random) -> str:
    """Return the base, cut so that five random letters fit into 63."""
    return base[:58] + "".join(random.choices(_ALPHABET, k=5))


def name_problems(group: str, kind: str, name: str) -> list[str]:
    """Return what is wrong with an object's name; empty when nothing is."""
    if (group, kind) in _PATH_SEGMENT:
        return segment_problems(name)
    if (group, kind) in _LABEL_NAMED:
        return label_problems(name)
    if (group, kind) == ("networking.k8s.io", "IPAddress"):
        return canonical_address_problems(name)
    problems = subdomain_problems(name)
    if (group, kind) in _LONG_NAMED:
        return [problem.replace("253 characters", "253 bytes") for problem in problems]
    return problems


def segment_problems(name: str) -> list[str]:
    """Return what keeps a name from being a part of a path."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def segment_causes(name: str, path: str) -> Iterator[StatusCause]:
    """A name that becomes one segment of a URL."""
    yield from (invalid_value(path, name, problem) for problem in segment_problems(name))


def validate_metadata(group: str, kind: str, metadata: Document) -> list[StatusCause]:
    """Return what is wrong with the metadata of an object that is about to be stored."""
    if (group, kind) in _LONG_NAMED:
        metadata = {**metadata, "generateName": None}
    return metadata_causes(metadata, lambda name: name_problems(group, kind, name))


def metadata_causes(metadata: Document, name_problems: Callable[[str], list[str]]) -> list[StatusCause]:
    """Return what is wrong with metadata whose names are judged by `name_problems`."""
    causes: list[StatusCause] = []
    name, base = metadata.get("name", ""), metadata.get("generateName")
    if base:  # it ends where the random letters begin
        problems = name_problems(_as_name(base))
        causes.extend(invalid_value("metadata.generateName", base, problem) for problem in problems)
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    else:
        causes.extend(invalid_value("metadata.name", name, problem) for problem in name_problems(name))
    namespace = metadata.get("namespace")
    if namespace:
        problems = label_problems(namespace)
        causes.extend(invalid_value("metadata.namespace", namespace, problem) for problem in problems)
    generation = metadata.get("generation")
    if type(generation) is int and generation < 0:
        causes.append(invalid_value("metadata.generation", generation, "must be greater than or equal to 0"))
    causes.extend(labels_causes(metadata.get("labels"), "metadata.labels"))
    causes.extend(annotations_causes(metadata.get("annotations"), "metadata.annotations"))
    if metadata.get("ownerReferences"):
        causes.extend(_owners(metadata["ownerReferences"]))
    for finalizer in metadata.get("finalizers") or ():
        causes.extend(invalid_value("metadata.finalizers", finalizer, problem) for problem in key_problems(finalizer))
    finalizers = metadata.get("finalizers")
    if finalizers and {"orphan", "foregroundDeletion"} <= set(finalizers):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(invalid_value("metadata.finalizers", finalizers, text))
    return causes


def _as_name(base: str) -> str:
    """Return a name that is as good as the beginning of one: a letter for a dash at its end (maskTrailingDash), and for what is before it."""
    if base in {".", ".."}:
        return f"{base}a"
    return f"{base[:-2]}a" if len(base) > 1 and base[-1] == "-" else base


def finalizer_causes(metadata: Document) -> Iterator[StatusCause]:
    """The finalizers of a built-in kind that have no domain."""
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(f"metadata.finalizers[{index}]", finalizer, text)


def finalizer_warnings(metadata: Document, old: Document) -> Iterator[str]:
    """The finalizers without a domain that a write adds to a custom resource."""
    for finalizer in sorted({*(metadata.get("finalizers") or ())} - {*(old.get("finalizers") or ()), ""}):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in finalizer else ""
            yield (
                f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name{path} to avoid accidental '
                "conflicts with other finalizer writers"
            )


def drop_repeated_owners(metadata: Document, *, is_patch: bool = False) -> list[str]:
    """Leave of owner references that say the same only the first; return the warning about it, if there were any.

    Upstream looks at patches only after mutating admission (dedupOwnerReferencesAndAddWarning in apiserver's endpoints/handlers/rest.go).
    """
    owners: list[Document] = metadata.get("ownerReferences") or []
    if len(owners) < 2:
        return []
    kept: list[Document] = []
    repeated: list[str] = []
    for owner in owners:
        if owner in kept:
            repeated.append(str(owner.get("uid", "")))
        else:
            kept.append(owner)
    if not repeated:
        return []
    metadata["ownerReferences"] = kept
    when = " after mutating admission happens" if is_patch else ""
    text = (
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject "
        "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
    )
    return [text + ", ".join(dict.fromkeys(repeated))]


def change_causes(metadata: Document, old: Document) -> Iterator[StatusCause]:
    """What an update may not do to metadata, and may not leave in it (ValidateObjectMetaAccessorUpdate in apimachinery)."""
    if old.get("deletionTimestamp"):
        added = [name for name in metadata.get("finalizers") or () if name not in (old.get("finalizers") or ())]
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
            yield forbidden_field("metadata.finalizers", text)
    yield from labels_causes(metadata.get("labels"), "metadata.labels")
    yield from annotations_causes(metadata.get("annotations"), "metadata.annotations")
    yield from _owners(metadata.get("ownerReferences") or [])


def identity_causes(metadata: Document, old: Document) -> list[StatusCause]:
    """Return what a patch may not do to what makes an object this one; a PUT that tries is a conflict, and never comes here."""
    return [
        invalid_value(f"metadata.{key}", metadata[key], "field is immutable")
        for key in ("uid", "deletionTimestamp")
        if metadata.get(key) and metadata[key] != old.get(key)
    ]


def _owners(owners: list[Document]) -> list[StatusCause]:
    causes: list[StatusCause] = []
    controllers: list[Document] = []
    path = "metadata.ownerReferences"  # upstream gives no index here
    for owner in owners:
        for key, text in (("apiVersion", "version must not be empty"), ("kind", "must not be empty"),
                          ("name", "must not be empty"), ("uid", "must not be empty")):  # fmt: skip
            if not owner.get(key):
                causes.append(invalid_value(f"{path}.{key}", owner.get(key, ""), text))
        if str(owner.get("apiVersion", "")).count("/") > 1:
            causes.append(invalid_value(f"{path}.apiVersion", owner["apiVersion"], "version must not be empty"))
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            causes.append(invalid_value(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            controllers.append(owner)
    if len(controllers) > 1:
        first, second = controllers[0], controllers[1]
        text = (
            f'Only one reference can have Controller set to true. Found "true" in references for {first.get("kind")}/'
            f"{first.get('name')} and {second.get('kind')}/{second.get('name')}"
        )
        causes.append(invalid_value("metadata.ownerReferences", owners, text))
    return causes
