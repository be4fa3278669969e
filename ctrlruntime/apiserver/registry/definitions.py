"""CustomResourceDefinitions as live kinds.

A definition is checked, its names are accepted, and its versions are served before the answer to its create leaves. A changed spec
closes the watches of its resources; deletion takes the instances first. `definition_checks` judges what is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from ctrlruntime.api.kind import version_priority
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.interfaces import DEFINITIONS
from ctrlruntime.apiserver.registry.definition_checks import (
    approval,
    check_definition,
    check_status,
    definition_warnings,
)
from ctrlruntime.apiserver.registry.resources import Resource, ScalePaths, Subresource
from ctrlruntime.apiserver.registry.schema_cache import compiled
from ctrlruntime.apiserver.registry.webhook_conversion import Caller, WebhookConversion
from ctrlruntime.apiserver.registry.writer import Writer
from ctrlruntime.apiserver.registry.writes import DeleteOptions, Hook, WriteOptions
from ctrlruntime.apiserver.storage import Store
from ctrlruntime.errors import APIStatusError, StatusCause
from ctrlruntime.schema.trees import Document

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_SUBRESOURCE_VERBS = ("get", "patch", "update")


class Served(Protocol):
    """Where the live kinds are kept: the registry."""

    def serve(self, definition: str, resources: list[Resource]) -> None: ...

    def stop_serving(self, definition: str) -> list[Resource]: ...

    def served_by(self, definition: str) -> list[Resource]: ...

    def all_resources(self) -> Iterator[Resource]: ...

    def canonical(self, group: str, plural: str) -> Resource: ...


class Definitions(Hook):
    """The hook of CustomResourceDefinition."""

    def __init__(self, served: Served, writer: Writer, store: Store, *, now: Callable[[], float] = time.time) -> None:
        self._served = served
        self._writer = writer
        self._store = store
        self._now = now
        self.caller: Caller | None = None
        """Who calls conversion webhooks; None converts by the apiVersion alone."""

    # Steps of a write

    def prepare(self, document: Document, old: Document | None) -> None:
        spec: Document = document.setdefault("spec", {})
        names: Document = spec.setdefault("names", {})
        kind: str = names.get("kind", "")
        if kind:
            names["singular"] = names.get("singular") or kind.lower()
            names["listKind"] = names.get("listKind") or f"{kind}List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        for version in spec.get("versions") or ():
            scale = (version.get("subresources") or {}).get("scale")
            if scale is not None and scale.get("labelSelectorPath") == "":
                del scale["labelSelectorPath"]
        storage = [version["name"] for version in spec.get("versions") or () if version.get("storage")]
        status: Document = document.get("status") or {}
        document["status"] = status
        if old is None:
            status["conditions"] = None
            status["acceptedNames"] = {"plural": "", "kind": ""}
        stored: list[str] = status.get("storedVersions") or []
        if storage and storage[0] not in stored and (not stored or old is None or old["spec"] != spec):
            status["storedVersions"] = [*stored, storage[0]]

    def validate(self, document: Document, old: Document | None) -> list[StatusCause]:
        if old is not None and old["spec"] == document["spec"]:
            return check_status(document)
        return check_definition(document, old)

    def warnings(self, document: Document, old: Document | None) -> list[str]:
        return definition_warnings(document, old)

    def written(self, document: Document, old: Document | None) -> None:
        name: str = document["metadata"]["name"]
        if "deletionTimestamp" in document["metadata"]:
            self._delete_instances(document)
            return
        has_new_spec = old is None or old["spec"] != document["spec"]
        status = self._accepted(document)
        present: Document = document["status"]
        if not has_new_spec and status["acceptedNames"] == present.get("acceptedNames"):
            status = present  # what a client did to the conditions stays until the names are looked at again
        if any(status.get(key) != present.get(key) for key in ("conditions", "acceptedNames")):
            self._update_status(document, status)
            document = {**document, "status": status}
        self._serve(document, closes_watches=old is not None and has_new_spec, name=name)
        if has_new_spec:
            self._settle_others(document)

    def deleting(self, document: Document) -> None:
        finalizers: list[str] = document["metadata"].setdefault("finalizers", [])
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)
        text = "CustomResource deletion is in progress"
        conditions = [c for c in document["status"].get("conditions") or () if c["type"] != "Terminating"]
        conditions.append(self._condition("Terminating", "True", "InstanceDeletionInProgress", text))
        document["status"]["conditions"] = conditions

    def removed(self, document: Document) -> None:
        """Act on a removed definition, or on the last instance of a terminating one."""
        if document.get("kind") == "CustomResourceDefinition":
            for resource in self._served.stop_serving(document["metadata"]["name"]):
                self._store.drop(self._store.table(*resource.stored_as))
            self._settle_others(document)
            return
        group = document["apiVersion"].rpartition("/")[0]
        for resource in list(self._served.all_resources()):
            if resource.is_terminating and resource.group == group and resource.kind == document["kind"]:
                self._finish_deletion(resource.definition_name)
                return

    # A start with what an earlier run left

    def restore(self, document: Document) -> None:
        """Serve a stored definition as it was served before."""
        self._serve(document, closes_watches=False, name=document["metadata"]["name"])

    def resume_deletion(self, document: Document) -> None:
        """Continue a deletion that was started."""
        self._delete_instances(document)

    # Names and serving

    def _accepted(self, document: Document) -> Document:
        """Return the status with the names accepted or refused, each by itself; short names go together."""
        wanted: Document = document["spec"]["names"]
        status = dict(document["status"])
        present: Document = status.get("acceptedNames") or {}
        accepted: Document = {"plural": "", "kind": "", **present}
        problem: tuple[str, str] | None = None
        plurals, kinds = self._taken(document)
        for reason, key, taken in (
            ("PluralConflict", "plural", plurals),
            ("SingularConflict", "singular", plurals),
            ("ShortNamesConflict", "shortNames", plurals),
            ("KindConflict", "kind", kinds),
            ("ListKindConflict", "listKind", kinds),
        ):
            clashes = _clashes(wanted.get(key), present.get(key), taken)
            if clashes:
                problem = (reason, clashes[0] if len(clashes) == 1 else f"[{', '.join(clashes)}]")
            elif wanted.get(key):
                accepted[key] = wanted[key]
            else:
                accepted.pop(key, None)
        accepted.pop("categories", None)
        if wanted.get("categories"):
            accepted["categories"] = wanted["categories"]
        status["acceptedNames"] = accepted
        self._set_conditions(status, problem, approval(document))
        return status

    def _set_conditions(
        self, status: Document, problem: tuple[str, str] | None, approved: tuple[str, str, str] | None
    ) -> None:
        names = self._condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
        text = "the initial names have been accepted"
        established = self._condition("Established", "True", "InitialNamesAccepted", text)
        if problem is not None:
            names = self._condition("NamesAccepted", "False", *problem)
            established = self._condition("Established", "False", "NotAccepted", "not all names are accepted")
        if _is_true(status, "Established"):
            established = _find(status, "Established") or established
        ours = [names, established]
        if approved is not None:
            ours.append(self._condition("KubernetesAPIApprovalPolicyConformant", *approved))
        types = {condition["type"] for condition in ours}
        kept = [c for c in status.get("conditions") or () if c["type"] not in types]
        status["conditions"] = [*(self._kept(status, c) for c in ours), *kept]

    @staticmethod
    def _kept(status: Document, condition: Document) -> Document:
        """Return the present condition where it says the same, so that its transition time stays."""
        present = _find(status, condition["type"])
        same = present is not None and all(present.get(k) == condition[k] for k in ("status", "reason", "message"))
        return present if same and present is not None else condition

    def _others(self, document: Document) -> Iterator[Document]:
        """Yield the other definitions of the group."""
        definitions = self._served.canonical(*DEFINITIONS)
        name, group = document["metadata"]["name"], document["spec"]["group"]
        for record in list(self._store.table(*DEFINITIONS).records.values()):
            if record.key[1] != name:
                other = definitions.tree(record)
                if other["spec"]["group"] == group:
                    yield other

    def _taken(self, document: Document) -> tuple[set[str], set[str]]:
        """Return the names other definitions of the group hold: of resources, and of kinds."""
        plurals: set[str] = set()
        kinds: set[str] = set()
        for other in self._others(document):
            held: Document = (other.get("status") or {}).get("acceptedNames") or {}
            plurals.update((held.get("plural", ""), held.get("singular", ""), *(held.get("shortNames") or ())))
            kinds.update((held.get("kind", ""), held.get("listKind", "")))
        return plurals - {""}, kinds - {""}

    def _settle_others(self, document: Document) -> None:
        """Look again at the definitions of the group whose names were refused: names may have become free."""
        for other in self._others(document):
            condition = _find(other["status"], "NamesAccepted")
            if condition is None or condition["status"] != "False" or "deletionTimestamp" in other["metadata"]:
                continue
            status = self._accepted(other)
            if status != other["status"]:
                self._update_status(other, status)
                self._serve({**other, "status": status}, closes_watches=False, name=other["metadata"]["name"])

    def _update_status(self, document: Document, status: Document) -> None:
        definitions = self._served.canonical(*DEFINITIONS)
        name: str = document["metadata"]["name"]
        changed = {**document, "status": status}
        self._writer.update_directly(definitions, "", name, lambda _: changed, WriteOptions(is_stored=True), "status")

    def _serve(self, document: Document, *, closes_watches: bool, name: str) -> None:
        status: Document = document["status"]
        if not _is_true(status, "Established"):
            self._served.stop_serving(name)
            return
        if closes_watches or not self._served.served_by(name):
            self._served.serve(name, self._with_conversion(document, list(resources_of(document))))
        if closes_watches:
            spec = document["spec"]
            self._store.table(spec["group"], spec["names"]["plural"]).close_subscriptions()

    def _with_conversion(self, document: Document, resources: list[Resource]) -> list[Resource]:
        """Give the versions the definition's conversion webhook, where it has one."""
        conversion: Document = document["spec"].get("conversion") or {}
        if conversion.get("strategy") != "Webhook" or self.caller is None or not resources:
            return resources
        webhook = WebhookConversion(self.caller, conversion.get("webhook") or {})
        for resource in (*resources, resources[0].storage):
            resource.conversion = webhook
        return resources

    # Deletion

    def _delete_instances(self, document: Document) -> None:
        name: str = document["metadata"]["name"]
        resources = self._served.served_by(name)
        stored = resources[0].storage if resources else None
        for resource in (*resources, *([stored] if stored is not None else ())):
            resource.is_terminating = True
        spec = document["spec"]
        table = self._store.table(spec["group"], spec["names"]["plural"])
        for namespace, key in list(table.records):
            if stored is not None and (namespace, key) in table.records:
                try:
                    self._writer.delete_directly(stored, namespace, key, DeleteOptions())
                except APIStatusError:  # a finalizer's owner may have removed it meanwhile
                    continue
        if not table.records:
            self._finish_deletion(name)

    def _finish_deletion(self, name: str) -> None:
        definitions = self._served.canonical(*DEFINITIONS)
        record = self._store.table(*DEFINITIONS).records.get(("", name))
        if record is None:
            return
        document = definitions.tree(record)
        left = [finalizer for finalizer in document["metadata"].get("finalizers") or () if finalizer != FINALIZER]
        if left == document["metadata"].get("finalizers"):
            return
        document["metadata"]["finalizers"] = left
        self._writer.update_directly(definitions, "", name, lambda _: document, WriteOptions(is_patch=True))

    def _condition(self, type: str, status: str, reason: str, message: str) -> Document:
        moment = timestamp(self._now())
        return {"type": type, "status": status, "lastTransitionTime": moment, "reason": reason, "message": message}


def _clashes(wanted: object, present: object, taken: set[str]) -> list[str]:
    """Return what stands against names: those that somebody else holds."""
    names: list[str] = (
        [name for name in wanted if isinstance(name, str)] if isinstance(wanted, list) else [str(wanted or "")]
    )
    held = present if isinstance(present, list) else [present]
    return [f'"{name}" is already in use' for name in names if name in taken and name not in held]


def _find(status: Document, type: str) -> Document | None:
    return next((c for c in status.get("conditions") or () if c["type"] == type), None)


def _is_true(status: Document, type: str) -> bool:
    condition = _find(status, type)
    return condition is not None and condition["status"] == "True"


def resources_of(document: Document) -> Iterator[Resource]:
    """Yield a resource for every served version of a definition, best version first."""
    spec = document["spec"]
    served = [version for version in spec["versions"] if version.get("served")]
    by_name = {version["name"]: version for version in spec["versions"]}
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    best = min((version["name"] for version in served), key=version_priority, default="")
    storage = _resource(document, by_name[stored], best)
    for version in sorted(served, key=lambda version: version_priority(version["name"])):
        resource = storage if version["name"] == stored else _resource(document, version, best)
        resource.storage = storage
        yield resource


def _resource(document: Document, version: Document, best: str) -> Resource:
    spec: Document = document["spec"]
    names: Document = (document["status"].get("acceptedNames") or {}) or spec["names"]
    declared: Document = version.get("subresources") or {}
    subresources: dict[str, Subresource] = {}
    scale = None
    if "status" in declared:
        subresources["status"] = Subresource(
            "status", names["kind"], spec["group"], version["name"], _SUBRESOURCE_VERBS
        )
    if "scale" in declared:
        subresources["scale"] = Subresource("scale", "Scale", "autoscaling", "v1", _SUBRESOURCE_VERBS)
        paths: Document = declared["scale"]
        scale = ScalePaths(
            paths.get("specReplicasPath", ""), paths.get("statusReplicasPath", ""), paths.get("labelSelectorPath", "")
        )
    schema: Document = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        singular=names.get("singular", ""),
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        verbs=("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=subresources,
        list_kind=names.get("listKind", ""),
        schema=compiled(schema),
        is_custom=True,
        scale=scale,
        selectable_fields=tuple(f["jsonPath"].lstrip(".") for f in version.get("selectableFields") or ()),
        printer_columns=version.get("additionalPrinterColumns"),
        deprecation_warning=_deprecation(spec, version, names, best),
        definition_name=document["metadata"]["name"],
        is_terminating="deletionTimestamp" in document["metadata"],
    )


def _deprecation(spec: Document, version: Document, names: Document, best: str) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    text = f"{spec['group']}/{version['name']} {names['kind']} is deprecated"
    return f"{text}; use {spec['group']}/{best} {names['kind']}" if best != version["name"] else text


__all__ = ["FINALIZER", "Definitions", "resources_of"]
