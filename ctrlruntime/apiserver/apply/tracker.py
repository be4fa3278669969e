"""The server's field managers: one for each served version of a kind, made when its first object is written.

Takes the registry (which versions there are) and the recorded OpenAPI documents or the schema of a definition (how fields merge); the
writer asks it to note who set what, the HTTP handlers to apply configurations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.apply.fieldsets import FieldSet
from ctrlruntime.apiserver.apply.manager import FieldManager
from ctrlruntime.apiserver.apply.ownership import same_but_times
from ctrlruntime.apiserver.apply.resets import Reset, reset_of
from ctrlruntime.apiserver.apply.scale import path_of, to_object, to_scale
from ctrlruntime.apiserver.apply.types import Compiler, Schemas, Type, UnfitError
from ctrlruntime.apiserver.apply.validation import listed, problems
from ctrlruntime.apiserver.discovery.openapi import recorded
from ctrlruntime.apiserver.encoding import decode
from ctrlruntime.apiserver.interfaces import DEFINITIONS
from ctrlruntime.apiserver.registry import Registry, Resource
from ctrlruntime.apiserver.registry.defaults import default
from ctrlruntime.schema.trees import Document, copy_tree

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_WORKLOADS: Final = "apis/apps/v1"
"""A document that has ObjectMeta and Scale."""
_NO_RESET = Reset(frozenset())
_COMPILER: Final = Compiler()
_COMPILING: Final = Lock()
"""Held while a type is compiled: the built-in ones are shared by all servers of the process."""


class ManagedFieldsTracker:
    """Who owns which field, for all kinds of the server."""

    def __init__(self, registry: Registry, *, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._now = now
        self._managers: WeakKeyDictionary[Resource, FieldManager] = WeakKeyDictionary()
        self._types: WeakKeyDictionary[Resource, Type] = WeakKeyDictionary()
        self._resets: WeakKeyDictionary[Resource, dict[str, Reset]] = WeakKeyDictionary()
        self._scale: FieldManager | None = None

    def track(
        self,
        resource: Resource,
        live: Document | None,
        document: Document,
        *,
        manager: str,
        subresource: str,
        is_cleared: bool = False,
    ) -> None:
        """Note in `document` what `manager` set or changed against `live`."""
        self.manager_of(resource).updated(
            live,
            document,
            manager=manager,
            subresource=subresource,
            reset=self.reset_of(resource, subresource),
            is_cleared=is_cleared and not resource.is_custom,  # of a custom resource an empty list says nothing
        )

    def apply(
        self,
        resource: Resource,
        live: Document | None,
        config: Document,
        *,
        manager: str,
        force: bool,
        subresource: str,
    ) -> Document:
        """Return the object after an apply. Raises: APIStatusError as a client would see it."""
        return self.manager_of(resource).applied(
            live,
            config,
            manager=manager,
            force=force,
            subresource=subresource,
            reset=self.reset_of(resource, subresource),
        )

    def scale(
        self,
        resource: Resource,
        live: Document,
        scale: Document,
        change: Callable[[Document], Document],
        *,
        manager: str,
        force: bool | None,
    ) -> tuple[Document, list[Document]]:
        """Return the Scale after a change, and the entries that the scaled object `live` then has.

        `scale` shows the object; `change` makes the new Scale from it, or the configuration where `force` is given, which makes it an
        apply. Raises: APIStatusError as a client would see it.
        """
        counts = self._counts(resource)
        entries: list[Document] = live["metadata"].get("managedFields") or []
        shown = to_scale(entries, counts)
        before = {**scale, "metadata": {**scale["metadata"], **({"managedFields": shown} if shown else {})}}
        if force is None:
            after = change(copy_tree(before))
            if not isinstance(after.get("metadata"), dict):
                after["metadata"] = {}
            self.scale_manager().updated(before, after, manager=manager, subresource="scale", reset=_NO_RESET)
        else:
            if resource.is_custom and not shown:
                raise failures.plain_internal(
                    f"failed to create manager for existing fields: {_unconverted('live', None)}"
                )
            after = self.scale_manager().applied(
                before, change(before), manager=manager, force=force, subresource="scale", reset=_NO_RESET
            )
            if resource.is_custom and after.get("spec") != scale["spec"]:
                raise failures.plain_internal(_unconverted("new", scale))
        left: list[Document] = after["metadata"].get("managedFields") or []
        return after, to_object(entries, left, counts, resource.api_version, sorts_fields=not resource.is_custom)

    def _counts(self, resource: Resource) -> dict[str, FieldSet]:
        """Return where each served version keeps the replica count."""
        counts: dict[str, FieldSet] = {}
        for other in self._registry.all_resources():
            if other.stored_as == resource.stored_as and "scale" in other.subresources:
                counts[other.api_version] = path_of(other.scale.spec_replicas if other.scale else ".spec.replicas")
        return counts

    @staticmethod
    def keep_times(document: Document, old: Document) -> None:
        """Restore the old entries if only their times differ: a write without a change does not count."""
        new, before = document["metadata"].get("managedFields"), old["metadata"].get("managedFields")
        if new and before and new != before and same_but_times(new, before):
            document["metadata"]["managedFields"] = before
            if document != old:
                document["metadata"]["managedFields"] = new

    def manager_of(self, resource: Resource) -> FieldManager:
        found = self._managers.get(resource)
        if found is None:
            found = self._managers[resource] = FieldManager(
                self.type_of(resource),
                resource.api_version,
                resource.kind,
                zero=_zero(resource),
                versions=_Versions(self._registry, self, resource),
                sorts_fields=not resource.is_custom,
                now=self._now,
                settles=resource.is_custom and self._has_changed(resource),
            )
        return found

    def _has_changed(self, resource: Resource) -> bool:
        """Tell whether the definition of a custom resource was changed since it was made."""
        record = self._registry.store.table(*DEFINITIONS).records.get(("", resource.definition_name))
        return record is not None and decode(record.body)["metadata"].get("generation", 1) > 1

    def scale_manager(self) -> FieldManager:
        """Return the manager of Scale objects, whatever they scale."""
        if self._scale is None:
            self._scale = FieldManager(
                _named("io.k8s.api.autoscaling.v1.Scale", _schemas(_WORKLOADS)),
                "autoscaling/v1",
                "Scale",
                zero={"metadata": {}, "spec": {}, "status": {"replicas": 0}},
                versions=_NoVersions(),
                sorts_fields=True,
                now=self._now,
            )
        return self._scale

    def reset_of(self, resource: Resource, subresource: str) -> Reset:
        known = self._resets.get(resource)
        if known is None:
            known = self._resets[resource] = {}
        found = known.get(subresource)
        if found is None:
            group, plural = resource.group, resource.plural
            found = known[subresource] = reset_of(
                group, plural, subresource, has_status=resource.has_status, is_custom=resource.is_custom
            )
        return found

    def type_of(self, resource: Resource) -> Type:
        """Return how the fields of a kind merge."""
        found = self._types.get(resource)
        if found is None:
            found = self._types[resource] = (
                self._custom_type(resource)
                if resource.is_custom
                else _built_in_type(resource.group, resource.version, resource.kind)
            )
        return found

    def _custom_type(self, resource: Resource) -> Type:
        record = self._registry.store.table(*DEFINITIONS).records.get(("", resource.definition_name))
        schema: Mapping[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        if record is not None:
            for version in decode(record.body)["spec"]["versions"]:
                if version["name"] == resource.version:
                    schema = (version.get("schema") or {}).get("openAPIV3Schema") or schema
        return _COMPILER.custom(schema, _meta())


@cache
def _built_in_type(group: str, version: str, kind: str) -> Type:
    key = f"apis/{group}/{version}" if group else f"api/{version}"
    if key in recorded():
        schemas = _schemas(key)
        wanted = {"group": group, "version": version, "kind": kind}
        for name, schema in schemas.items():
            if wanted in (schema.get("x-kubernetes-group-version-kind") or ()):
                return _named(name, schemas)
    return _COMPILER.custom({"x-kubernetes-preserve-unknown-fields": True, "type": "object"}, _meta())


def _named(name: str, schemas: Schemas) -> Type:
    with _COMPILING:
        return _COMPILER.named(name, schemas)


@cache
def _meta() -> Type:
    return _named(_META, _schemas(_WORKLOADS))


def _schemas(key: str) -> Schemas:
    document: Document = decode(recorded()[key])
    found: Schemas = document["components"]["schemas"]
    return found


def _zero(resource: Resource) -> Document:
    """Return the object from which a create begins: of a built-in kind what Go writes of an empty one."""
    shape = resource.shape
    return shape.zero() if shape is not None else {"metadata": {}}


def _unconverted(which: str, scale: Document | None) -> str:
    """Return why an apply to the Scale of a custom resource fails: kube-apiserver 1.36 cannot do it."""
    metadata: Document = scale["metadata"] if scale else {}
    named = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return (
        f"failed to convert {which} object ({named}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR "
        "to an invalid group/version: autoscaling/v1"
    )


class _Versions:
    """The other served versions of a resource in its group: upstream converts through the internal type of a group."""

    def __init__(self, registry: Registry, fields: ManagedFieldsTracker, resource: Resource) -> None:
        self._registry = registry
        self._fields = fields
        self._group = resource.group
        self._plural = resource.plural
        self._stored_as = resource.stored_as
        self._version = resource.api_version

    def _resource(self, api_version: str) -> Resource | None:
        group, _, version = api_version.rpartition("/")
        found = self._registry.find(group, version, self._plural)
        is_same_kind = found is not None and found.stored_as == self._stored_as and group == self._group
        return found if is_same_kind else None

    def type_of(self, api_version: str) -> Type | None:
        found = self._resource(api_version)
        return None if found is None else self._fields.type_of(found)

    def convert(self, document: Document, api_version: str) -> Document:
        source, target = self._resource(document.get("apiVersion", self._version)), self._resource(api_version)
        if source is None or target is None or source is target:
            return document
        converted = _convert(document, source, target)
        # A webhook would make it fit. Of a built-in kind every version fits.
        if (
            target.is_custom
            and target.conversion is None
            and (wrong := problems(self._fields.type_of(target), converted))
        ):
            raise UnfitError(listed(wrong))
        return converted


class _NoVersions:
    """Scale has one version."""

    def type_of(self, _api_version: str) -> Type | None:
        return None

    def convert(self, document: Document, _api_version: str) -> Document:
        return document


def _convert(document: Document, source: Resource, target: Resource) -> Document:
    """Return a tree in another version. A conversion webhook is not asked: there only the apiVersion changes."""
    if target.is_custom:
        return {**document, "apiVersion": target.api_version}
    document = source.fit(copy_tree(document), [])  # a pruned object may lack what its type always has
    default(source.group, source.kind, document)
    if source.to_canonical is not None:
        document = source.to_canonical(document)
    if target.from_canonical is not None:
        document = target.from_canonical(document)
    return target.fit({**document, "kind": target.kind, "apiVersion": target.api_version}, [])


__all__ = ["ManagedFieldsTracker"]
