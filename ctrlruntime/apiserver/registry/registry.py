"""The registry: which resources are served, and the server's inside door (`API`) for its own controllers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from random import Random
from typing import Generic, TypeAlias, TypeVar

from ctrlruntime.api.kind import version_priority
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.authorization import User
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.interfaces import DEFINITIONS, PODS, Change
from ctrlruntime.apiserver.registry.bindings import bind, binding_of
from ctrlruntime.apiserver.registry.definitions import Definitions
from ctrlruntime.apiserver.registry.device_permissions import DevicePermissions
from ctrlruntime.apiserver.registry.device_rules import CLAIM_TEMPLATES, CLAIMS
from ctrlruntime.apiserver.registry.extensions import WriteExtensions
from ctrlruntime.apiserver.registry.resources import Resource, built_in
from ctrlruntime.apiserver.registry.scales import scale_of, write_scale
from ctrlruntime.apiserver.registry.services import ServiceAddresses
from ctrlruntime.apiserver.registry.writer import Writer
from ctrlruntime.apiserver.registry.writes import DeleteOptions, WriteOptions, Written
from ctrlruntime.apiserver.storage import Record, Store
from ctrlruntime.patch import apply_merge_patch
from ctrlruntime.schema.trees import Document, copy_tree

T = TypeVar("T")
_CONTROLLER = User("system:kube-controller-manager", ("system:authenticated",))
"""Who writes through the inside door."""
Listed: TypeAlias = list[T]
"""`list` inside the class is its method."""
_COMPONENTS = ("", "componentstatuses")


class Registry:
    """All served resources by group, version and plural; implements `API`."""

    def __init__(self, store: Store, *, now: Callable[[], float] = time.time, rng: Random | None = None) -> None:
        self.store = store
        rng = rng or Random()  # noqa: S311 - name suffixes, not secrets
        self._now = now
        self.extensions = WriteExtensions(ServiceAddresses(rng=rng))
        self.writer = Writer(store, self, self.extensions, now=now, rng=rng)
        self.definitions = Definitions(self, self.writer, store, now=now)
        self.extensions.hooks[DEFINITIONS] = self.definitions
        devices = DevicePermissions(self, self.extensions)
        self.extensions.hooks.update({CLAIMS: devices, CLAIM_TEMPLATES: devices})
        self.generation = 0
        """Counts changes of what is served; discovery and OpenAPI are cached by it."""
        self.features: frozenset[str] = frozenset()
        """The feature gates that are on."""
        self._served: dict[tuple[str, str, str], Resource] = {}
        self._canonical: dict[tuple[str, str], Resource] = {}
        self._by_definition: dict[str, list[Resource]] = {}
        for resource in built_in():
            self._served[resource.group, resource.version, resource.plural] = resource
            if resource.from_canonical is None:
                self._canonical[resource.group, resource.plural] = resource

    # What is served

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._served.get((group, version, plural))

    def find_kind(self, group: str, version: str, kind: str) -> Resource | None:
        for resource in self._served.values():
            if (resource.group, resource.version, resource.kind) == (group, version, kind):
                return resource
        return None

    def canonical(self, group: str, plural: str) -> Resource:
        """Return the resource by which the inside reads a table. Raises: NotFound."""
        resource = self._canonical.get((group, plural))
        if resource is None:
            raise failures.no_such_resource()
        return resource

    def equivalents(self, resource: Resource) -> Listed[Resource]:
        """Return every served version of the objects that `resource` serves."""
        return [other for other in self._served.values() if other.stored_as == resource.stored_as]

    def served_together(self, group: str, plural: str) -> Listed[tuple[str, str]]:
        """Return the (group, plural) pairs under which the same objects are served, e.g. of events."""
        tables = {r.stored_as for r in self._served.values() if (r.group, r.plural) == (group, plural)}
        return sorted({(r.group, r.plural) for r in self._served.values() if r.stored_as in tables})

    def all_resources(self) -> Iterator[Resource]:
        return iter(self._served.values())

    def custom_resources(self) -> list[Resource]:
        return [resource for resources in self._by_definition.values() for resource in resources]

    def has_built_in(self, group: str) -> bool:
        """Tell whether a group is one of the server's own, and not only of definitions."""
        return any(not resource.is_custom and resource.group == group for resource in self._served.values())

    def serve(self, definition: str, resources: list[Resource]) -> None:
        """Replace what a definition serves."""
        self.stop_serving(definition)
        if not resources:
            return
        self._by_definition[definition] = resources
        for resource in resources:
            self._served[resource.group, resource.version, resource.plural] = resource
        stored = min(resources, key=lambda resource: version_priority(resource.version))
        if stored.conversion is not None:
            stored = stored.storage  # the inside reads without asking a webhook
        self._canonical[stored.group, stored.plural] = stored
        self.generation += 1

    def stop_serving(self, definition: str) -> list[Resource]:
        resources = self._by_definition.pop(definition, [])
        for resource in resources:
            self._served.pop((resource.group, resource.version, resource.plural), None)
            self._canonical.pop((resource.group, resource.plural), None)
        if resources:
            self.generation += 1
        return resources

    def served_by(self, definition: str) -> list[Resource]:
        return self._by_definition.get(definition, [])

    def leave_out(self, names: Collection[str]) -> None:
        """Stop serving built-in group versions (`batch/v1`) and resources of them (`batch/v1/cronjobs`). The inside still reads them."""
        wanted = set(names)
        for key, resource in list(self._served.items()):
            if wanted & {resource.api_version, f"{resource.api_version}/{resource.plural}"}:
                del self._served[key]
                self.generation += 1

    def record(self, resource: Resource, namespace: str, name: str) -> Record:
        """Return the stored record. Raises: NotFound."""
        record = self.store.table(*resource.stored_as).records.get((namespace, name))
        if record is None:
            # pkg/registry/core/componentstatus/rest.go names its own resource so.
            plural = "componentstatus" if resource.stored_as == _COMPONENTS else resource.plural
            raise failures.not_found(plural, resource.group, name)
        return record

    # API: the inside door

    def get(self, group: str, resource: str, namespace: str, name: str) -> Document | None:
        found = self._canonical.get((group, resource))
        if found is None:
            return None
        record = self.store.table(*found.stored_as).records.get((namespace, name))
        return None if record is None else found.tree(record)

    def list(
        self, group: str, resource: str, namespace: str = "", *, labels: Mapping[str, str] | None = None
    ) -> list[Document]:
        found = self._canonical.get((group, resource))
        if found is None:
            return []
        if found.computed is not None:
            records = iter(found.computed.records(namespace, []))
        else:
            table = self.store.table(*found.stored_as)
            records = (table.records[key] for key in table.keys(namespace))
        if labels:
            wanted = labels.items()
            return [found.tree(record) for record in records if record.labels and wanted <= record.labels.items()]
        return [found.tree(record) for record in records]

    def resources(self) -> Listed[tuple[str, str]]:
        return [key for key, resource in self._canonical.items() if "watch" in resource.verbs]

    async def watch(self, group: str, resource: str) -> AsyncIterator[Change]:
        found = self.canonical(group, resource)
        table = self.store.table(*found.stored_as)
        queue = _Queue[Change]()
        stop = table.listen(queue.put)
        try:
            for change in [self._added(found, table.records[key]) for key in table.keys("")]:
                yield change
            while True:
                yield await queue.take()
        finally:
            stop()

    async def watch_all(self, *, with_present: bool = True) -> AsyncIterator[tuple[str, str, Change]]:
        queue = _Queue[tuple[str, str, Change]]()

        def listener(group: str, plural: str, change: Change) -> None:
            queue.put((group, plural, change))

        self.extensions.on_change.append(listener)
        try:
            for group, plural in self.resources() if with_present else ():
                found = self.canonical(group, plural)
                table = self.store.table(*found.stored_as)
                for change in [self._added(found, table.records[key]) for key in table.keys("")]:
                    yield group, plural, change
            while True:
                yield await queue.take()
        finally:
            self.extensions.on_change.remove(listener)

    def plural_of(self, group: str, kind: str) -> str | None:
        return next((key[1] for key, one in self._canonical.items() if (key[0], one.kind) == (group, kind)), None)

    def scale(self, group: str, resource: str, namespace: str, name: str) -> Document:
        found = self._scaled(group, resource)
        return scale_of(found, found.tree(self.record(found, namespace, name)))

    async def set_scale(self, group: str, resource: str, namespace: str, name: str, replicas: int) -> None:
        def change(scale: Document) -> Document:
            return {**scale, "spec": {**scale["spec"], "replicas": replicas}}

        found = self._scaled(group, resource)
        fields, options = self.extensions.fields, self._options()
        await write_scale(self.writer, fields, found, namespace, name, change, options)

    def _scaled(self, group: str, resource: str) -> Resource:
        found = self.canonical(group, resource)
        if "scale" not in found.subresources:
            raise failures.no_such_resource()
        return found

    async def create(self, group: str, resource: str, namespace: str, document: Document) -> Document:
        found = self.canonical(group, resource)
        written = await self.writer.create(found, namespace, _headed(found, document), self._options())
        return self._answer(found, written)

    async def update(self, group: str, resource: str, document: Document, *, subresource: str = "") -> Document:
        found = self.canonical(group, resource)
        metadata = document.get("metadata") or {}
        namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
        written = await self.writer.update(
            found, namespace, name, lambda _: _headed(found, document), self._options(), subresource
        )
        return self._answer(found, written)

    async def merge_patch(
        self, group: str, resource: str, namespace: str, name: str, patch: Document, *, subresource: str = ""
    ) -> Document:
        found = self.canonical(group, resource)

        def edit(old: Document | None) -> Document:
            return copy_tree(apply_merge_patch(old or {}, patch))

        options = self._options()
        options.is_patch = True
        written = await self.writer.update(found, namespace, name, edit, options, subresource)
        return self._answer(found, written)

    async def bind(self, pod: Document, node: str) -> None:
        metadata: Document = pod["metadata"]
        binding = binding_of(metadata, node)
        namespace, name = metadata["namespace"], metadata["name"]
        pods = self.canonical(*PODS)
        admitted = await self.writer.admit(pods, namespace, name, binding, self._options(), subresource="binding")
        bind(self.writer, pods, admitted, timestamp(self._now()))

    async def apply(
        self, group: str, resource: str, namespace: str, name: str, config: Document, *, manager: str
    ) -> Document:
        found, fields = self.canonical(group, resource), self.extensions.fields
        assert fields is not None
        wanted = _headed(
            found, {**config, "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}}
        )

        def edit(old: Document | None) -> Document:
            return copy_tree(fields.apply(found, old, wanted, manager=manager, force=True, subresource=""))

        options = self._options()
        options.field_manager = manager
        options.is_patch = options.is_apply = True
        return self._answer(found, await self.writer.update(found, namespace, name, edit, options))

    async def delete(
        self,
        group: str,
        resource: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
    ) -> Document:
        found = self.canonical(group, resource)
        options = DeleteOptions(
            uid=uid or None,
            grace_period_seconds=grace_period_seconds,
            propagation_policy=propagation_policy,
            user=_CONTROLLER,
        )
        return self._answer(found, await self.writer.delete(found, namespace, name, options))

    @staticmethod
    def _options() -> WriteOptions:
        return WriteOptions(field_manager="kube-controller-manager", user=_CONTROLLER, is_inside=True)

    @staticmethod
    def _answer(resource: Resource, written: Written) -> Document:
        return resource.tree(written.record)

    @staticmethod
    def _added(resource: Resource, record: Record) -> Change:
        return Change("ADDED", resource.tree(record), None, record.revision)


class _Queue(Generic[T]):
    """A deque and an event: what a write leaves for a reader inside the server."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._wake = asyncio.Event()

    def put(self, item: T) -> None:
        self._items.append(item)
        self._wake.set()

    async def take(self) -> T:
        while not self._items:
            self._wake.clear()
            await self._wake.wait()
        return self._items.popleft()


def _headed(resource: Resource, document: Document) -> Document:
    """Return a copy that names its kind; callers inside may leave that out and keep their tree."""
    return copy_tree({**document, "kind": resource.kind, "apiVersion": resource.api_version})
