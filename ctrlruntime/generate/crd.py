"""Classes to CustomResourceDefinitions: all versions of a kind, each with its schema and its class keywords."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from ctrlruntime.api.kind import KindInfo
from ctrlruntime.api.object import Object
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.descriptions import truncate
from ctrlruntime.generate.options import ConversionWebhook, Document, Options, Place, Warn, warn
from ctrlruntime.generate.paths import columns, scale, selectable_fields
from ctrlruntime.generate.schema import SchemaWalker
from ctrlruntime.generate.schema_checks import check_schema
from ctrlruntime.markers import printer_columns

__all__ = ["LABEL", "crds"]

_APPLY_LIMIT: Final = 262_144
"""The maximum bytes of an annotation; `kubectl apply` stores the whole manifest in one."""
LABEL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
"""A DNS label, as the API server requires for plurals, versions, short names, categories, and kinds in lower case."""
_LONGEST_WARNING: Final = 256


def crds(
    classes: Iterable[type[Object]],
    *,
    options: Options | None = None,
    conversions: Mapping[tuple[str, str], ConversionWebhook] | None = None,
    warn: Warn = warn,
) -> list[Document]:
    """Return the definitions of the kinds of `classes`, sorted by name; classes of one group and kind are versions of one definition.

    `conversions`: (group, kind) → where the webhook is that converts its versions. `warn` takes each warning's text.
    Raises: GenerateError, which names module, class and field.
    """
    options = options or Options()
    kinds: dict[tuple[str, str], list[tuple[KindInfo, type[Object]]]] = {}
    for cls in classes:
        info = _info(cls)
        kinds.setdefault((info.group, info.kind), []).append((info, cls))
    made = [_Definition(many, options, (conversions or {}).get(key), warn).document() for key, many in kinds.items()]
    return sorted(made, key=lambda definition: definition["metadata"]["name"])


def _info(cls: type[Object]) -> KindInfo:
    info: KindInfo | None = getattr(cls, "__kind_info__", None)
    place = Place(cls)
    if info is None:
        raise place.error(
            f"the class is not a kind. Set a group and a version: class {cls.__name__}(Object, group='…', version='v1')"
        )
    if "." not in info.group:
        raise place.error(f"the group {info.group!r} is not a domain with a dot, like example.com")
    if not LABEL.fullmatch(info.version):
        raise place.error(f"the version {info.version!r} is not one like v1, v1alpha1 or v2beta3")
    names = {"plural": info.plural, "singular": info.singular, **{f"short name {n}": n for n in info.short_names}}
    for what, name in {**names, **{f"category {n}": n for n in info.categories}}.items():
        if not LABEL.fullmatch(name):
            raise place.error(f"the {what} must be lower case letters, digits and hyphens, not {name!r}")
    return info


class _Definition:
    """One definition in the making."""

    def __init__(
        self,
        versions: list[tuple[KindInfo, type[Object]]],
        options: Options,
        conversion: ConversionWebhook | None,
        warn: Warn,
    ) -> None:
        self._all = versions
        self._versions = sorted((one for one in versions if not one[0].skip), key=lambda one: one[0].version)
        self._options = options
        self._conversion = conversion
        self._warn = warn
        self._walker = SchemaWalker(options, warn=warn)

    def document(self) -> Document:
        first, cls = self._all[0]
        if not self._versions:
            raise Place(cls).error("all versions have skip=True. Remove it from one")
        self._agree()
        storage = self._storage()
        document: Document = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": self._metadata(first),
            "spec": {
                "group": first.group,
                "names": _names(first),
                "scope": first.scope,
                "versions": [self._version(info, cls, is_stored=info is storage) for info, cls in self._versions],
            },
        }
        if self._conversion is not None and len(self._versions) > 1:
            document["spec"]["conversion"] = _conversion(self._conversion)
        self._check_size(document)
        return document

    def _agree(self) -> None:
        """All versions must say the same of what a definition has once."""
        first, _ = self._all[0]
        seen: set[str] = set()
        for info, cls in self._all:
            if info.version in seen:
                raise Place(cls).error(
                    f"another class also defines {info.gvk}. Change the version or kind of one of them"
                )
            seen.add(info.version)
            for word in ("plural", "singular", "list_kind", "short_names", "categories", "scope"):
                if getattr(info, word) != getattr(first, word):
                    raise Place(cls).error(
                        f"{word} is {getattr(info, word)!r}, but {getattr(first, word)!r} in version {first.version}. "
                        f"Set the same in all versions of the kind"
                    )

    def _storage(self) -> KindInfo:
        infos = [info for info, _ in self._versions]
        place = Place(self._versions[0][1])
        kind = infos[0].kind
        stored = infos if len(infos) == 1 else [info for info in infos if info.storage]
        if len(stored) != 1:
            names = ", ".join(info.version for info in stored or infos)
            what = (
                f"{len(stored)} versions have storage=True ({names})"
                if stored
                else f"no version of {names} has storage=True"
            )
            raise place.error(f"{kind}: {what}. Set storage=True in exactly one class")
        if not any(info.served for info in infos):
            raise place.error(f"{kind}: all versions have served=False. Remove it from one")
        return stored[0]

    def _metadata(self, first: KindInfo) -> Document:
        metadata: Document = {"name": f"{first.plural}.{first.group}"}
        annotations = self._merged("annotations")
        if self._options.generated_by:
            annotations["ctrlruntime.dev/generated-by"] = self._options.generated_by
        labels = self._merged("labels")
        return {
            **({"annotations": annotations} if annotations else {}),
            **({"labels": labels} if labels else {}),
            **metadata,
        }

    def _merged(self, word: str) -> dict[str, str]:
        merged: dict[str, str] = {}
        for info, cls in self._versions:
            for key, value in getattr(info, word):
                if merged.setdefault(key, value) != value:
                    raise Place(cls).error(
                        f"{word}: {key} is {value!r}, but {merged[key]!r} in another version of the kind. Set the same in both"
                    )
        return merged

    def _version(self, info: KindInfo, cls: type[Object], *, is_stored: bool) -> Document:
        place = Place(cls)
        schema = self._walker.of_kind(cls)
        check_schema(schema, place, self._warn)
        if self._options.max_description is not None:
            truncate(schema, self._options.max_description)
        version: Document = {
            "name": info.version,
            "schema": {"openAPIV3Schema": schema},
            "served": info.served,
            "storage": is_stored,
        }
        if shown := columns(printer_columns(cls), schema, place):
            version["additionalPrinterColumns"] = shown
            version["subresources"] = {}  # as controller-gen has it
        if fields := selectable_fields(info, schema, place):
            version["selectableFields"] = fields
        if parts := _subresources(info, schema, place):
            version["subresources"] = parts
        if info.deprecated:
            version["deprecated"] = True
            if isinstance(info.deprecated, str):
                version["deprecationWarning"] = _deprecation(info.deprecated, place)
        return version

    def _check_size(self, document: Document) -> None:
        size = len(json.dumps(document, separators=(",", ":")).encode())
        if size > _APPLY_LIMIT:
            cls = self._versions[0][1]
            self._warn(
                f"{Place(cls)}: the CRD has {size:,} bytes, but `kubectl apply` allows at most {_APPLY_LIMIT:,}. Apply it with "
                f"--server-side, or omit descriptions with Annotated[…, NoDescriptions] or Options(max_description=0)"
            )


def _names(info: KindInfo) -> Document:
    names: Document = {
        "kind": info.kind,
        "listKind": info.list_kind,
        "plural": info.plural,
        "singular": info.singular,
    }
    if info.short_names:
        names["shortNames"] = list(info.short_names)
    if info.categories:
        names["categories"] = list(info.categories)
    return names


def _subresources(info: KindInfo, schema: Document, place: Place) -> Document:
    parts: Document = {}
    has_status = "status" in schema["properties"]
    if has_status if info.status_subresource is None else info.status_subresource:
        parts["status"] = {}
    if info.scale is not None:
        parts["scale"] = scale(info, schema, place)
    return parts


def _deprecation(text: str, place: Place) -> str:
    if len(text) > _LONGEST_WARNING or any(not char.isprintable() for char in text):
        raise place.error(f"deprecated: the warning must be one line of at most {_LONGEST_WARNING} characters")
    return text


def _conversion(webhook: ConversionWebhook) -> Document:
    if webhook.url and webhook.service_name != ConversionWebhook().service_name:
        raise GenerateError("a ConversionWebhook has both a url and a Service. Set one of them")
    client: Document = {"url": webhook.url}
    if not webhook.url:
        service: Document = {
            "name": webhook.service_name,
            "namespace": webhook.service_namespace,
            "path": webhook.path,
        }
        client = {"service": service | ({"port": webhook.port} if webhook.port is not None else {})}
    if webhook.ca_bundle:
        client["caBundle"] = webhook.ca_bundle
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": list(webhook.review_versions)},
    }
