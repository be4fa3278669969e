"""What upstream checks of a CustomResourceDefinition outside its schemas: names, versions, columns, paths, conversion.

Upstream's own type keeps what all versions share (schema, subresources, columns, selectable fields) once, at the top; so a finding there
has the top's path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.schema_cache import checked, formats, schemas_of
from ctrlruntime.apiserver.registry.webhook_validation import url_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, not_supported, required, shown, too_many
from ctrlruntime.name_rules import SUBDOMAIN_RULE, is_subdomain
from ctrlruntime.schema.rules import children
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import kind_causes, label_1035_problems, subdomain_problems
from ctrlruntime.selector import utf8_length

_APPROVED = "api-approved.kubernetes.io"
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_LIMIT = 8
_REVIEW_VERSIONS = ("v1", "v1beta1")


def check_definition(document: Document, old: Document | None) -> list[StatusCause]:
    """Return what is wrong with a definition that is created or whose spec is written."""
    return [*_spec(document, is_new=old is None), *(_change(document, old) if old is not None else ())]


def definition_warnings(document: Document, old: Document | None) -> list[str]:
    """Return the warnings of a definition that is accepted: formats that are not checked, once."""
    if old is not None and old["spec"] == document["spec"]:
        return []
    found = _formats(document)
    if old is not None:
        found -= _formats(old)
    return [f'unrecognized format "{name}"' for name in sorted(found)]


def _formats(document: Document) -> set[str]:
    schemas = [
        (version.get("schema") or {}).get("openAPIV3Schema") for version in document["spec"].get("versions") or ()
    ]
    return {name for schema in schemas if schema for name in formats(schema)}


def _spec(document: Document, *, is_new: bool) -> Iterator[StatusCause]:
    spec: Document = document["spec"]
    names: Document = spec.get("names") or {}
    name, group = document["metadata"].get("name", ""), spec.get("group", "")
    if is_new and name and name != f"{names.get('plural', '')}.{group}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    yield from _group(document, group)
    if not spec.get("scope"):
        yield required("spec.scope")
    elif spec["scope"] not in {"Cluster", "Namespaced"}:
        yield not_supported("spec.scope", spec["scope"], ["Cluster", "Namespaced"])
    yield from _versions(spec)
    yield from _names(names)
    yield from _shared(spec)
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield invalid_value("spec.preserveUnknownFields", True, text)
        if any(
            _has_default((version.get("schema") or {}).get("openAPIV3Schema") or {})
            for version in spec.get("versions") or ()
        ):
            text = "must be false in order to use defaults in the schema"
            yield invalid_value("spec.preserveUnknownFields", True, text)
    yield from _conversion(spec.get("conversion") or {})
    yield from _stored_versions(document)


def _has_default(schema: Mapping[str, Any]) -> bool:
    return schema.get("default") is not None or any(_has_default(child) for _, child in children(schema))


def is_protected(group: str) -> bool:
    """Tell whether a group belongs to the Kubernetes community, so that its definitions need an approval."""
    return group.endswith((".k8s.io", ".kubernetes.io"))


def approval(document: Document) -> tuple[str, str, str] | None:
    """Return (status, reason, message) of the approval of a stored definition; None if its group needs none.

    apiextensions-apiserver's pkg/controller/apiapproval. What has no approval was refused.
    """
    if not is_protected(document["spec"]["group"]):
        return None
    text: str = (document["metadata"].get("annotations") or {}).get(_APPROVED, "")
    if text.startswith("unapproved"):
        return "False", "UnapprovedAnnotation", f"not approved: {shown(text)}"
    return "True", "ApprovedAnnotation", f"approved in {text}"


def _group(document: Document, group: str) -> Iterator[StatusCause]:
    if not group:
        yield required("spec.group")
        return
    if problems := subdomain_problems(group):
        yield invalid_value("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")
    if not is_protected(group):
        return
    where = f"metadata.annotations[{_APPROVED}]"
    given: str = (document["metadata"].get("annotations") or {}).get(_APPROVED, "")
    text = f'protected groups must have approval annotation "{_APPROVED}"'
    if not given:
        yield required(where, f"{text}, {_SEE}")
    elif not given.startswith("unapproved") and not (urlsplit(given).scheme and urlsplit(given).netloc):
        yield invalid_value(where, given, f'{text} with either a URL or a reason starting with "unapproved", {_SEE}')


# Names


def _names(names: Mapping[str, Any]) -> Iterator[StatusCause]:
    for key in ("plural", "singular", "kind", "listKind"):
        value: str = names.get(key, "")
        where = f"spec.names.{key}"
        if not value:
            yield required(where)
        elif key.lower().endswith("kind"):
            yield from kind_causes(value, where)
        else:
            yield from _label_causes(value, where)
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            yield from _label_causes(value, f"spec.names.{key}[{index}]")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid_value("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _label_causes(value: str, path: str) -> Iterator[StatusCause]:
    problems = label_1035_problems(value)
    if problems:
        yield invalid_value(path, value, ",".join(problems))


# Versions

_SHARED = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _versions(spec: Document) -> Iterator[StatusCause]:
    versions: list[Document] | None = spec.get("versions")
    shown = None if versions is None else _as_go(versions)
    versions = versions or []
    names = [version.get("name", "") for version in versions]
    for index, name in enumerate(names):
        yield from _label_causes(name, f"spec.versions[{index}].name")
        yield from _deprecation(versions[index], f"spec.versions[{index}].deprecationWarning")
    if len(set(names)) < len(names):
        yield invalid_value("spec.versions", shown, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid_value("spec.versions", shown, "must have exactly one version marked as storage version")
    if names and names[0]:
        yield from _label_causes(names[0], "spec.version")


def _deprecation(version: Document, path: str) -> Iterator[StatusCause]:
    text: str | None = version.get("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        yield invalid_value(path, text, "can only be set for deprecated versions")
        return
    if not text:
        yield invalid_value(path, text, "must not be an empty string")
    elif utf8_length(text) > 256:
        yield invalid_value(path, text, "must be <= 256 characters long")
    for index, char in enumerate(text):
        if not char.isprintable():
            at = utf8_length(text[:index])
            why = f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            yield invalid_value(path, text, why)
            break


def _as_go(versions: list[Document]) -> list[Document]:
    """Return versions as upstream prints its own type, in which what they share has moved to the top."""
    moved = {key for key in _SHARED if _is_shared(versions, key)}
    own = [{key: value for key, value in version.items() if key not in moved} for version in versions]
    return [internal("apiextensions.CustomResourceDefinitionVersion", version) for version in own]


def _is_shared(versions: list[Document], key: str) -> bool:
    return all(version.get(key) == versions[0].get(key) for version in versions)


def _shared(spec: Document) -> Iterator[StatusCause]:
    """Check what versions have of their own, or share."""
    versions: list[Document] = spec.get("versions") or []
    for index, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    schemas = {index: (schema, path) for index, schema, path in schemas_of(versions)}
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}]"
        if index in schemas:
            yield from _schema(version, *schemas[index])
        for key, check in (
            ("subresources", _subresources),
            ("additionalPrinterColumns", _columns),
            ("selectableFields", _selectable),
        ):
            if version.get(key) and (index == 0 or not _is_shared(versions, key)):
                yield from check(version, f"spec.{key}" if _is_shared(versions, key) else f"{at}.{key}")


def _schema(version: Document, schema: Document, path: str) -> Iterator[StatusCause]:
    if "status" in (version.get("subresources") or {}) and schema.get("type") not in {None, "", "object"}:
        text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid_value(f"{path}.type", schema["type"], text)
    elif "status" in (version.get("subresources") or {}) and any(
        schema.get(key) not in (None, "") and schema[key] is not False for key in _NOT_AT_ROOT
    ):
        text = f"only [{_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
        yield invalid_value(path, _internal(schema), text)
    yield from checked(schema, path)


def _internal(schema: Any) -> Any:
    """Return a schema as upstream prints its internal type: every field, by its Go name."""
    if not isinstance(schema, dict):  # only where types are not checked before
        return schema
    given = cast("Document", schema)
    found: Document = {}
    for name, key in _FIELDS.items():
        value = given.get(key)
        if not value and name in _TEXTS | _FLAGS:
            value = "" if name in _TEXTS else False
        elif value is not None and name in _INNER:
            value = _INNER[name](value)
        found[name] = value
    return found


def _json_name(field: str) -> str:
    if field[0] == "X":
        return "x-kubernetes" + re.sub("([A-Z])", r"-\1", field[1:]).lower()
    return {"ID": "id", "Schema": "$schema", "Ref": "$ref"}.get(field, field[0].lower() + field[1:])


def _internal_rule(rule: Document) -> Document:
    texts = {name: rule.get(name[0].lower() + name[1:], "") for name in ("Rule", "Message", "MessageExpression")}
    last = {"FieldPath": rule.get("fieldPath", ""), "OptionalOldSelf": rule.get("optionalOldSelf")}
    return {**texts, "Reason": rule.get("reason"), **last}


_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems "
    "UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations"
)
_ALL = (
    "ID Schema Ref Description Type Nullable Format Title Default Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
    "Pattern MaxItems MinItems UniqueItems MultipleOf Enum MaxProperties MinProperties Required Items AllOf OneOf AnyOf Not Properties "
    "AdditionalProperties PatternProperties Dependencies AdditionalItems Definitions ExternalDocs Example XPreserveUnknownFields "
    "XEmbeddedResource XIntOrString XListMapKeys XListType XMapType XValidations"
)
_FIELDS = {name: _json_name(name) for name in _ALL.split(" ")}
_NOT_AT_ROOT = [key for name, key in _FIELDS.items() if name not in _AT_ROOT.split(" ")]
_TEXTS = frozenset({"ID", "Schema", "Description", "Type", "Format", "Title", "Pattern"})
_FLAGS = frozenset(
    {"Nullable", "ExclusiveMaximum", "ExclusiveMinimum", "UniqueItems", "XEmbeddedResource", "XIntOrString"}
)
_INNER: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("AllOf", "OneOf", "AnyOf"), lambda branches: [_internal(one) for one in branches]),
    "Not": _internal,
    "Properties": lambda properties: {name: _internal(properties[name]) for name in sorted(properties)},
    "Items": lambda items: {"Schema": _internal(items), "JSONSchemas": None},
    "AdditionalProperties": lambda extra: {
        "Allows": extra is not False,
        "Schema": None if isinstance(extra, bool) else _internal(extra),
    },
    "ExternalDocs": lambda docs: {"Description": docs.get("description", ""), "URL": docs.get("url", "")},
    "XValidations": lambda rules: [_internal_rule(rule) for rule in rules],
}


def _simple_path(value: str, path: str) -> Iterator[StatusCause]:
    if not value:
        yield required(path)
    elif not value.startswith("."):
        yield invalid_value(path, value, "must be a simple json path starting with .")


def _subresources(version: Document, path: str) -> Iterator[StatusCause]:
    scale: Document | None = version["subresources"].get("scale")
    if scale is None:
        return
    for key, below in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        value: str = scale.get(key, "")
        where = f"{path}.scale.{key}"
        found = list(_simple_path(value, where))
        yield from found
        if not found and not value.startswith(f"{below}."):
            yield invalid_value(where, value, f"should be a json path under {below}")
    selector: str = scale.get("labelSelectorPath") or ""
    if selector:
        where = f"{path}.scale.labelSelectorPath"
        found = list(_simple_path(selector, where))
        yield from found
        if not found and not selector.startswith((".spec.", ".status.")):
            yield invalid_value(where, selector, "should be a json path under either .spec or .status")


def _columns(version: Document, path: str) -> Iterator[StatusCause]:
    for index, column in enumerate(version["additionalPrinterColumns"]):
        where = f"{path}[{index}]"
        text = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not column.get("name"):
            yield required(f"{where}.name")
        if not column.get("type"):
            yield required(f"{where}.type", text)
        elif column["type"] not in _COLUMN_TYPES:
            yield invalid_value(f"{where}.type", column["type"], text)
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            yield invalid_value(f"{where}.format", column["format"], f"must be one of {','.join(_COLUMN_FORMATS)}")
        yield from _simple_path(column.get("jsonPath", ""), f"{where}.JSONPath")


# Selectable fields


def _selectable(version: Document, path: str) -> Iterator[StatusCause]:
    fields: list[Document] = version["selectableFields"]
    schema: Document = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    seen: set[str] = set()
    for index, selectable in enumerate(fields):
        value: str = selectable.get("jsonPath", "")
        where = f"{path}[{index}].jsonPath"
        if not value:
            yield required(where)
            continue
        if value in seen:
            yield duplicate(where, value)
            continue
        seen.add(value)
        found = _field_at(schema, value)
        if isinstance(found, str):
            yield invalid_value(where, value, f"is an invalid path: {found}")
        elif found.get("type") not in {"string", "boolean", "integer"}:
            text = "must point to a field of type string, boolean or integer. "
            text += "Enum string fields and strings with formats are allowed."
            yield invalid_value(where, value, text)
    if len(seen) > _SELECTABLE_LIMIT:
        yield too_many(path, len(fields), _SELECTABLE_LIMIT)


def _field_at(schema: Document, path: str) -> Document | str:
    """Return the schema of a field, or what is wrong with its path."""
    if "[" in path:
        return "array notation is not allowed"
    if not path.startswith("."):
        return f"expected [ or . but got: {path.partition('.')[0]}"
    if path.endswith("."):
        return "unexpected end of JSON path"
    for name in path[1:].split("."):
        child = (schema.get("properties") or {}).get(name)
        if child is None or (name == "metadata" and path.startswith(".metadata")):
            return "does not refer to a valid field"
        schema = child
    return schema


# Conversion


def _conversion(conversion: Mapping[str, Any]) -> Iterator[StatusCause]:
    strategy = conversion.get("strategy", "")
    webhook: Mapping[str, Any] = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if not strategy:
        yield required("spec.conversion.strategy")
    elif strategy not in {"None", "Webhook"}:
        yield not_supported("spec.conversion.strategy", strategy, ["None", "Webhook"])
    if strategy != "Webhook":
        text = "should not be set when strategy is not set to Webhook"
        if client is not None:
            yield forbidden_field("spec.conversion.webhookClientConfig", text)
        if versions:
            yield forbidden_field("spec.conversion.conversionReviewVersions", text)
        return
    if client is None:
        yield required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook")
    else:
        yield from _client(client, "spec.conversion.webhookClientConfig")
    yield from _review_versions(versions, "spec.conversion.conversionReviewVersions")


def _review_versions(versions: list[str], path: str) -> Iterator[StatusCause]:
    if not versions:
        yield required(path)
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield invalid_value(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from _label_causes(version, f"{path}[{index}]")
        seen.add(version)
    if not seen & set(_REVIEW_VERSIONS):
        yield invalid_value(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")


def _client(client: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from url_causes(str(url), f"{path}.url")
    elif service is not None:
        yield from _service(service, f"{path}.service")


def _service(service: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    for key in ("name", "namespace"):
        if not service.get(key):
            yield required(f"{path}.{key}")
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        yield invalid_value(f"{path}.port", port, text)
    where: str = service.get("path") or ""
    if not where or where == "/":
        return
    if not where.startswith("/"):
        yield invalid_value(f"{path}.path", where, "must start with a '/'")
    steps = where[1:].removesuffix("/").split("/")
    for index, step in enumerate(steps):
        if not step:
            yield invalid_value(f"{path}.path", where, f"segment[{index}] may not be empty")
        elif not is_subdomain(step):
            yield invalid_value(f"{path}.path", where, f"segment[{index}]: {SUBDOMAIN_RULE}")


# Stored versions and changes


def check_status(document: Document) -> list[StatusCause]:
    """Return what is wrong with a status that is written."""
    stored: list[str] | None = document["status"].get("storedVersions")
    text = "must have at least one stored version"
    return [] if stored else [invalid_value("status.storedVersions", stored, text)]


def _stored_versions(document: Document) -> Iterator[StatusCause]:
    stored: list[str] | None = (document.get("status") or {}).get("storedVersions")
    if not stored:
        yield invalid_value("status.storedVersions", stored or None, "must have at least one stored version")
        return
    versions: list[Document] = document["spec"].get("versions") or []
    storage = [version.get("name", "") for version in versions if version.get("storage")]
    if storage and storage[-1] not in stored:
        text = f"must have the storage version {storage[-1]}"
        yield invalid_value("status.storedVersions", stored, text)
    present = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in present:
            text = f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            text += f"until a storage migration ensures no data remains persisted in {name}"
            text += f" and removes {name} from status.storedVersions"
            yield invalid_value(f"status.storedVersions[{index}]", name, text)


def _change(document: Document, old: Document) -> Iterator[StatusCause]:
    spec: Document = document["spec"]
    before: Document = old["spec"]
    conditions: list[Document] = (old.get("status") or {}).get("conditions") or []
    established = any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
    if established:
        if spec.get("scope") != before.get("scope"):
            yield invalid_value("spec.scope", spec.get("scope", ""), "field is immutable")
        if spec["names"].get("kind") != before["names"].get("kind"):
            yield invalid_value("spec.names.kind", spec["names"].get("kind", ""), "field is immutable")
    if spec.get("group") != before.get("group"):
        yield invalid_value("spec.group", spec.get("group", ""), "field is immutable")
    if spec["names"].get("plural") != before["names"].get("plural"):
        yield invalid_value("spec.names.plural", spec["names"].get("plural", ""), "field is immutable")
