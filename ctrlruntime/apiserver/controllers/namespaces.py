"""Namespaces: emptied and finished when they are deleted; furnished with a ServiceAccount and the cluster's CA while
they live.
"""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import Now, is_deleting, metadata, timestamp, write_status
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.errors import AlreadyExists, APIStatusError, Conflict, NotFound
from ctrlruntime.schema.trees import Document

ROOT_CA: Final = "kube-root-ca.crt"
_ROOT_CA_TEXT: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
    "service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)
_FINALIZER: Final = "kubernetes"
_RETRY: Final = 1.0


class Namespaces:
    """Deletes what is in a terminating Namespace and then lets it go."""

    name = "namespace"

    def __init__(self, now: Now) -> None:
        self._now = now
        self._terminating: set[str] = set()

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [keys_of(api.watch("", "namespaces"), self._namespace), self._contents(api)]

    def _namespace(self, change: Change) -> Iterable[Key]:
        name = str(metadata(change.object)["name"])
        if is_deleting(change.object) and change.type != "DELETED":
            self._terminating.add(name)
            yield ("", name)
        else:
            self._terminating.discard(name)

    async def _contents(self, api: API) -> AsyncIterator[Key]:
        """Yield a terminating Namespace whenever something in it changes."""
        async for _, _, change in api.watch_all():
            name = str(metadata(change.object).get("namespace", ""))
            if name in self._terminating:
                yield ("", name)

    async def reconcile(self, api: API, key: Key) -> float | None:
        namespace = api.get("", "namespaces", *key)
        if namespace is None or not is_deleting(namespace) or _FINALIZER not in _finalizers(namespace):
            return None
        failures = await self._delete_contents(api, key[1])
        left = list(_contents_of(api, key[1]))
        namespace = api.get("", "namespaces", *key)
        if namespace is None:
            return None
        namespace = await write_status(api, "", "namespaces", namespace, self._status(namespace, left, failures))
        if left:
            return _RETRY
        await self._finalize(api, namespace)
        return None

    async def _delete_contents(self, api: API, name: str) -> list[str]:
        failures: list[str] = []
        for group, resource, obj in list(_contents_of(api, name)):
            if is_deleting(obj) and resource != "pods":
                continue
            grace = 0 if resource == "pods" else None
            await asyncio.sleep(0)  # a large namespace must not hold up the server
            try:
                await api.delete(
                    group,
                    resource,
                    name,
                    metadata(obj)["name"],
                    uid=metadata(obj)["uid"],
                    grace_period_seconds=grace,
                    propagation_policy="Background",
                )
            except (NotFound, Conflict):
                continue
            except APIStatusError as error:
                failures.append(str(error))
        return failures

    @staticmethod
    async def _finalize(api: API, namespace: Document) -> None:
        changed = copy.deepcopy(namespace)
        changed["spec"]["finalizers"] = [name for name in _finalizers(namespace) if name != _FINALIZER]
        await api.update("", "namespaces", changed, subresource="finalize")

    def _status(
        self, namespace: Document, left: Sequence[tuple[str, str, Document]], failures: Sequence[str]
    ) -> Document:
        status = copy.deepcopy(namespace.get("status") or {})
        status["phase"] = "Terminating"
        present = {condition["type"]: condition for condition in status.get("conditions") or ()}
        wanted = [
            (
                "NamespaceDeletionDiscoveryFailure",
                False,
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                False,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            _content_failure(failures),
            _content_remaining(left),
            _finalizers_remaining(left),
        ]
        for kind, is_met, reason, message in wanted:
            text, before = "True" if is_met else "False", present.get(kind)
            since = before["lastTransitionTime"] if before and before["status"] == text else timestamp(self._now())
            present[kind] = {
                "type": kind,
                "status": text,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            }
        status["conditions"] = list(present.values())
        return status


class Furniture:
    """Keeps ServiceAccount `default` and ConfigMap `kube-root-ca.crt` in every living Namespace."""

    def __init__(self, name: str, resource: str, content: Document) -> None:
        self.name = name
        self._resource = resource
        self._content = content
        self._object = str(content["metadata"]["name"])

    @staticmethod
    def service_account() -> Furniture:
        content: Document = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        return Furniture("service-account", "serviceaccounts", content)

    @staticmethod
    def root_ca(certificate: str) -> Furniture:
        content: Document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": ROOT_CA, "annotations": {"kubernetes.io/description": _ROOT_CA_TEXT}},
            "data": {"ca.crt": certificate},
        }
        return Furniture("root-ca", "configmaps", content)

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("", "namespaces"), lambda change: [(metadata(change.object)["name"],)]),
            keys_of(api.watch("", self._resource), self._pieces),
        ]

    def _pieces(self, change: Change) -> Iterable[Key]:
        meta = metadata(change.object)
        if meta["name"] == self._object and change.type != "ADDED":
            yield (str(meta["namespace"]),)

    async def reconcile(self, api: API, key: Key) -> float | None:
        namespace = api.get("", "namespaces", "", key[0])
        if namespace is None or is_deleting(namespace):
            return None
        present = api.get("", self._resource, key[0], self._object)
        if present is None:
            try:
                await api.create("", self._resource, key[0], copy.deepcopy(self._content))
            except AlreadyExists:
                return _RETRY
        elif "data" in self._content and present.get("data") != self._content["data"] and not is_deleting(present):
            await api.merge_patch("", self._resource, key[0], self._object, {"data": self._content["data"]})
        return None


def _finalizers(namespace: Document) -> list[str]:
    return list((namespace.get("spec") or {}).get("finalizers") or ())


def _contents_of(api: API, name: str) -> Iterable[tuple[str, str, Document]]:
    """Yield everything in a Namespace; events go last, as the others write some when they go."""
    for group, resource in sorted(set(api.resources()), key=lambda served: (served[1] == "events", served)):
        for obj in api.list(group, resource, name):
            if metadata(obj).get("namespace") == name:
                yield group, resource, obj


def _content_failure(failures: Sequence[str]) -> tuple[str, bool, str, str]:
    kind = "NamespaceDeletionContentFailure"
    if failures:
        return (
            kind,
            True,
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {len(failures)} remaining: {failures[0]}",
        )
    return kind, False, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"


def _content_remaining(left: Sequence[tuple[str, str, Document]]) -> tuple[str, bool, str, str]:
    kind = "NamespaceContentRemaining"
    if not left:
        return kind, False, "ContentRemoved", "All content successfully removed"
    counts = Counter(f"{resource}.{group}" for group, resource, _ in left)
    listed = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(counts.items()))
    return kind, True, "SomeResourcesRemain", f"Some resources are remaining: {listed}"


def _finalizers_remaining(left: Sequence[tuple[str, str, Document]]) -> tuple[str, bool, str, str]:
    kind = "NamespaceFinalizersRemaining"
    counts = Counter(finalizer for _, _, obj in left for finalizer in metadata(obj).get("finalizers") or ())
    if not counts:
        return kind, False, "ContentHasNoFinalizers", "All content-preserving finalizers finished"
    listed = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(counts.items()))
    return kind, True, "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {listed}"
