"""CustomResourceDefinitions as live kinds.

A definition is checked, its names are accepted, and its versions are served before the answer to its create leaves. A changed spec
closes the watches of its resources; deletion takes the instances first. CEL rules are stored and published, and not evaluated yet.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

from ctrlruntime.apiserver.failures import invalid_value, not_supported, required
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.registry.resources import Resource, ScalePaths, Subresource
from ctrlruntime.apiserver.registry.writer import DEFINITIONS, DeleteOptions, Hook, WriteOptions, Writer
from ctrlruntime.apiserver.schema import compile_schema
from ctrlruntime.apiserver.schema.definition_rules import check_schema
from ctrlruntime.apiserver.storage import Store
from ctrlruntime.errors import APIStatusError, StatusCause

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_SUBRESOURCE_VERBS = ("get", "patch", "update")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?\Z")
_DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?\Z")


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

    # Steps of a write

    def prepare(self, document: Document, old: Document | None) -> None:
        spec: Document = document.get("spec") or {}
        names: Document = spec.setdefault("names", {})
        kind: str = names.get("kind", "")
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
        if not spec.get("conversion"):
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
        if storage and storage[0] not in stored:
            status["storedVersions"] = [*stored, storage[0]]

    def validate(self, document: Document, old: Document | None) -> list[StatusCause]:
        return list(_check_definition(document, old))

    def written(self, document: Document, old: Document | None) -> None:
        name: str = document["metadata"]["name"]
        if "deletionTimestamp" in document["metadata"]:
            self._delete_instances(document)
            return
        status = self._accepted(document)
        present: Document = document["status"]
        ours = ("conditions", "acceptedNames")
        is_new = old is None or old["spec"] != document["spec"]
        if is_new and any(status.get(key) != present.get(key) for key in ours):
            self._update_status(document, status)
            document = {**document, "status": status}
        self._serve(document, closes_watches=old is not None and old["spec"] != document["spec"], name=name)

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
            return
        group = document["apiVersion"].rpartition("/")[0]
        for resource in list(self._served.all_resources()):
            if resource.is_terminating and resource.group == group and resource.kind == document["kind"]:
                self._finish_deletion(resource.definition_name)
                return

    # Names and serving

    def _accepted(self, document: Document) -> Document:
        """Return the status with the names accepted or refused."""
        spec, status = document["spec"], dict(document["status"])
        wanted: Document = spec["names"]
        problem = self._clash(document["metadata"]["name"], spec["group"], wanted)
        accepted = dict(status.get("acceptedNames") or {"plural": "", "kind": ""})
        if problem is None:
            accepted = dict(wanted)
            names = self._condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
            text = "the initial names have been accepted"
            established = self._condition("Established", "True", "InitialNamesAccepted", text)
        else:
            names = self._condition("NamesAccepted", "False", *problem)
            text = "not all names are accepted"
            established = self._condition("Established", "False", "NotAccepted", text)
            if _is_true(status, "Established"):
                established = _find(status, "Established") or established
        kept = [c for c in status.get("conditions") or () if c["type"] not in {"NamesAccepted", "Established"}]
        status["conditions"] = [*(self._kept(status, c) for c in (names, established)), *kept]
        status["acceptedNames"] = accepted
        return status

    @staticmethod
    def _kept(status: Document, condition: Document) -> Document:
        """Return the present condition where it says the same, so that its transition time stays."""
        present = _find(status, condition["type"])
        same = present is not None and all(present.get(k) == condition[k] for k in ("status", "reason", "message"))
        return present if same and present is not None else condition

    def _clash(self, name: str, group: str, names: Document) -> tuple[str, str] | None:
        others = [r for r in self._served.all_resources() if r.group == group and r.definition_name != name]
        plurals = {name for r in others for name in (r.plural, r.singular, *r.short_names)}
        kinds = {name for r in others for name in (r.kind, r.list_kind)}
        wanted = [("PluralConflict", names["plural"], plurals), ("SingularConflict", names["singular"], plurals)]
        wanted += [("ShortNamesConflict", short, plurals) for short in names.get("shortNames") or ()]
        wanted += [("KindConflict", names["kind"], kinds), ("ListKindConflict", names["listKind"], kinds)]
        clashes = [(reason, f'"{value}" is already in use') for reason, value, taken in wanted if value in taken]
        return clashes[-1] if clashes else None  # upstream overwrites the reason with each clash it finds

    def _update_status(self, document: Document, status: Document) -> None:
        definitions = self._served.canonical(*DEFINITIONS)
        name: str = document["metadata"]["name"]
        self._writer.update(definitions, "", name, {**document, "status": status}, WriteOptions(), "status")

    def _serve(self, document: Document, *, closes_watches: bool, name: str) -> None:
        status: Document = document["status"]
        if not (_is_true(status, "Established") and _is_true(status, "NamesAccepted")):
            self._served.stop_serving(name)
            return
        if closes_watches or not self._served.served_by(name):
            self._served.serve(name, list(resources_of(document)))
        if closes_watches:
            spec = document["spec"]
            self._store.table(spec["group"], spec["names"]["plural"]).close_subscriptions()

    # Deletion

    def _delete_instances(self, document: Document) -> None:
        name: str = document["metadata"]["name"]
        resources = self._served.served_by(name)
        for resource in resources:
            resource.is_terminating = True
        spec = document["spec"]
        table = self._store.table(spec["group"], spec["names"]["plural"])
        stored = resources[0] if resources else None
        for namespace, key in list(table.records):
            if stored is not None and (namespace, key) in table.records:
                try:
                    self._writer.delete(stored, namespace, key, DeleteOptions())
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
        self._writer.update(definitions, "", name, document, WriteOptions(is_patch=True))

    def _condition(self, type: str, status: str, reason: str, message: str) -> Document:
        moment = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"type": type, "status": status, "lastTransitionTime": moment, "reason": reason, "message": message}


def _find(status: Document, type: str) -> Document | None:
    return next((c for c in status.get("conditions") or () if c["type"] == type), None)


def _is_true(status: Document, type: str) -> bool:
    condition = _find(status, type)
    return condition is not None and condition["status"] == "True"


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sort key of API versions, best first: GA before beta before alpha, higher numbers first, other names last."""
    found = _VERSION.match(version)
    if found is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[found.group(2)]
    return (stage, -int(found.group(1)), -int(found.group(3) or 0), "")


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
        schema=compile_schema(schema),
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


def _check_definition(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec: Document = document["spec"]
    names: Document = spec["names"]
    group, plural = spec.get("group", ""), names.get("plural", "")
    name = document["metadata"]["name"]
    if name != f"{plural}.{group}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield required("spec.group")
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")
    annotations = document["metadata"].get("annotations") or {}
    if (group.endswith((".k8s.io", ".kubernetes.io"))) and not annotations.get("api-approved.kubernetes.io"):
        yield required(
            "metadata.annotations[api-approved.kubernetes.io]",
            'protected groups must have approval annotation "api-approved.kubernetes.io", '
            "see https://github.com/kubernetes/enhancements/pull/1111",
        )
    if spec.get("scope") not in {"Cluster", "Namespaced"}:
        if spec.get("scope"):
            yield not_supported("spec.scope", spec["scope"], ["Cluster", "Namespaced"])
        else:
            yield required("spec.scope")
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield invalid_value("spec.preserveUnknownFields", True, text)
    for key in ("plural", "singular", "kind", "listKind"):
        value: str = names.get(key, "")
        if not value:
            yield required(f"spec.names.{key}")
        elif not _DNS_LABEL.match(value.lower() if "ind" in key else value):
            yield invalid_value(f"spec.names.{key}", value, "a DNS-1035 label must consist of lower case alphanumeric "
                                "characters or '-', start with an alphabetic character, and end with an alphanumeric "
                                "character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
                                "'[a-z]([-a-z0-9]*[a-z0-9])?')")  # fmt: skip
    yield from _check_versions(document)
    yield from _check_conversion(spec)
    if old is not None:
        yield from _check_change(spec, old["spec"], document)


def _check_versions(document: Document) -> Iterator[StatusCause]:
    versions: list[Document] = document["spec"].get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        yield invalid_value("spec.versions", versions, text)
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions]
    is_shared = bool(schemas) and all(schema == schemas[0] for schema in schemas)
    seen: set[str] = set()
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name: str = version.get("name", "")
        if name in seen:
            text = "must contain unique version names"
            yield invalid_value("spec.versions", versions, text)
        seen.add(name)
        if not _DNS_LABEL.match(name):
            yield invalid_value(f"{path}.name", name, "must be a DNS-1035 label")
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield required(f"{path}.schema.openAPIV3Schema")
        elif not is_shared:
            yield from _check_schema(version, schema, f"{path}.schema.openAPIV3Schema")
        elif index == 0:  # upstream moves a schema that all versions share to the top
            yield from _check_schema(version, schema, "spec.validation.openAPIV3Schema")
        scale = (version.get("subresources") or {}).get("scale")
        if scale is not None:
            for key in ("specReplicasPath", "statusReplicasPath"):
                prefix = ".spec." if key.startswith("spec") else ".status."
                value: str = scale.get(key, "")
                where = f"{path}.subresources.scale.{key}"
                if not value:
                    yield required(where)
                elif not value.startswith(prefix):
                    yield invalid_value(where, value, f"should be a json path under {prefix.rstrip('.')}")
        for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
            where = f"{path}.additionalPrinterColumns[{number}]"
            for key in ("name", "type", "jsonPath"):
                if not column.get(key):
                    yield required(f"{where}.{key}")


def _check_schema(version: Document, schema: Document, path: str) -> Iterator[StatusCause]:
    if "status" in (version.get("subresources") or {}) and schema.get("type") != "object":
        text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid_value(f"{path}.type", schema.get("type", ""), text)
    yield from check_schema(schema, path)


def _check_conversion(spec: Document) -> Iterator[StatusCause]:
    conversion: Document = spec.get("conversion") or {}
    strategy = conversion.get("strategy", "")
    if strategy not in {"None", "Webhook"}:
        yield not_supported("spec.conversion.strategy", strategy, ["None", "Webhook"])
    if strategy == "Webhook":
        webhook: Any = conversion.get("webhook") or {}
        if not webhook.get("clientConfig"):
            text = "required when strategy is set to Webhook"
            yield required("spec.conversion.webhookClientConfig", text)
        if not webhook.get("conversionReviewVersions"):
            yield required("spec.conversion.conversionReviewVersions")


def _check_change(spec: Document, old: Document, document: Document) -> Iterator[StatusCause]:
    for key in ("group", "scope"):
        if spec.get(key) != old.get(key):
            yield invalid_value(f"spec.{key}", spec.get(key, ""), "field is immutable")
    for key in ("plural", "kind"):
        if spec["names"].get(key) != old["names"].get(key):
            yield invalid_value(f"spec.names.{key}", spec["names"].get(key, ""), "field is immutable")
    present = {version["name"] for version in spec.get("versions") or ()}
    for index, stored in enumerate(document["status"].get("storedVersions") or ()):
        if stored not in present:
            text = f"missing from spec.versions; {stored} was previously a storage version, and must remain in spec.versions "
            text += "until a storage migration ensures no data remains persisted in " + stored
            text += f" and removes {stored} from status.storedVersions"
            yield invalid_value(f"status.storedVersions[{index}]", stored, text)


__all__ = ["FINALIZER", "Definitions", "resources_of", "version_priority"]
