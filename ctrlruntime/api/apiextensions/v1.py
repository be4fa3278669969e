"""The classes of apiextensions.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from typing import Any

from pydantic import AliasChoices, Field

from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Time

__all__ = [
    "CustomResourceColumnDefinition",
    "CustomResourceConversion",
    "CustomResourceDefinition",
    "CustomResourceDefinitionCondition",
    "CustomResourceDefinitionNames",
    "CustomResourceDefinitionSpec",
    "CustomResourceDefinitionStatus",
    "CustomResourceDefinitionVersion",
    "CustomResourceSubresourceScale",
    "CustomResourceSubresourceStatus",
    "CustomResourceSubresources",
    "CustomResourceValidation",
    "ExternalDocumentation",
    "JSONSchemaProps",
    "SelectableField",
    "ServiceReference",
    "ValidationRule",
    "WebhookClientConfig",
    "WebhookConversion",
]


class CustomResourceColumnDefinition(Model, always_sent=("json_path", "name", "type")):
    description: str = ""
    format: str = ""
    json_path: str = ""
    name: str = ""
    priority: int = 0
    type: str = ""


class ServiceReference(Model, always_sent=("name", "namespace")):
    name: str = ""
    namespace: str = ""
    path: str | None = None
    port: int | None = None


class WebhookClientConfig(Model):
    ca_bundle: bytes = b""
    service: ServiceReference | None = None
    url: str | None = None


class WebhookConversion(Model, always_sent=("conversion_review_versions",)):
    client_config: WebhookClientConfig | None = None
    conversion_review_versions: list[str] = Field(default_factory=list)


class CustomResourceConversion(Model, always_sent=("strategy",)):
    strategy: str = ""
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionNames(Model, always_sent=("kind", "plural")):
    kind: str = ""
    categories: list[str] = Field(default_factory=list)
    list_kind: str = ""
    plural: str = ""
    short_names: list[str] = Field(default_factory=list)
    singular: str = ""


class CustomResourceSubresourceScale(Model, always_sent=("spec_replicas_path", "status_replicas_path")):
    label_selector_path: str | None = None
    spec_replicas_path: str = ""
    status_replicas_path: str = ""


class CustomResourceSubresourceStatus(Model):
    pass


class CustomResourceSubresources(Model):
    scale: CustomResourceSubresourceScale | None = None
    status: CustomResourceSubresourceStatus | None = None


class ExternalDocumentation(Model):
    description: str = ""
    url: str = ""


class ValidationRule(Model, always_sent=("rule",)):
    field_path: str = ""
    message: str = ""
    message_expression: str = ""
    optional_old_self: bool | None = None
    reason: str | None = None
    rule: str = ""


class JSONSchemaProps(Model):
    ref: str | None = Field(default=None, validation_alias="$ref", serialization_alias="$ref")
    schema_: str = Field(default="", validation_alias="$schema", serialization_alias="$schema")
    additional_items: "JSONSchemaProps | bool | None" = None
    additional_properties: "JSONSchemaProps | bool | None" = None
    all_of: "list[JSONSchemaProps]" = Field(default_factory=list)
    any_of: "list[JSONSchemaProps]" = Field(default_factory=list)
    default: Any = None
    definitions: "dict[str, JSONSchemaProps]" = Field(default_factory=dict)
    dependencies: "dict[str, JSONSchemaProps | list[str]]" = Field(default_factory=dict)
    description: str = ""
    enum: list[Any] = Field(default_factory=list)
    example: Any = None
    exclusive_maximum: bool = False
    exclusive_minimum: bool = False
    external_docs: ExternalDocumentation | None = None
    format: str = ""
    id: str = ""
    items: "JSONSchemaProps | list[JSONSchemaProps] | None" = None
    max_items: int | None = None
    max_length: int | None = None
    max_properties: int | None = None
    maximum: float | None = None
    min_items: int | None = None
    min_length: int | None = None
    min_properties: int | None = None
    minimum: float | None = None
    multiple_of: float | None = None
    not_: "JSONSchemaProps | None" = Field(
        default=None, validation_alias=AliasChoices("not", "_not"), serialization_alias="not"
    )
    nullable: bool = False
    one_of: "list[JSONSchemaProps]" = Field(default_factory=list)
    pattern: str = ""
    pattern_properties: "dict[str, JSONSchemaProps]" = Field(default_factory=dict)
    properties: "dict[str, JSONSchemaProps]" = Field(default_factory=dict)
    required: list[str] = Field(default_factory=list)
    title: str = ""
    type: str = ""
    unique_items: bool = False
    x_kubernetes_embedded_resource: bool = Field(
        default=False,
        validation_alias="x-kubernetes-embedded-resource",
        serialization_alias="x-kubernetes-embedded-resource",
    )
    x_kubernetes_int_or_string: bool = Field(
        default=False, validation_alias="x-kubernetes-int-or-string", serialization_alias="x-kubernetes-int-or-string"
    )
    x_kubernetes_list_map_keys: list[str] = Field(
        default_factory=list,
        validation_alias="x-kubernetes-list-map-keys",
        serialization_alias="x-kubernetes-list-map-keys",
    )
    x_kubernetes_list_type: str | None = Field(
        default=None, validation_alias="x-kubernetes-list-type", serialization_alias="x-kubernetes-list-type"
    )
    x_kubernetes_map_type: str | None = Field(
        default=None, validation_alias="x-kubernetes-map-type", serialization_alias="x-kubernetes-map-type"
    )
    x_kubernetes_preserve_unknown_fields: bool | None = Field(
        default=None,
        validation_alias="x-kubernetes-preserve-unknown-fields",
        serialization_alias="x-kubernetes-preserve-unknown-fields",
    )
    x_kubernetes_validations: list[ValidationRule] = Field(
        default_factory=list,
        validation_alias="x-kubernetes-validations",
        serialization_alias="x-kubernetes-validations",
    )


class CustomResourceValidation(Model):
    open_apiv3_schema: JSONSchemaProps | None = Field(
        default=None, validation_alias="openAPIV3Schema", serialization_alias="openAPIV3Schema"
    )


class SelectableField(Model, always_sent=("json_path",)):
    json_path: str = ""


class CustomResourceDefinitionVersion(Model, always_sent=("name", "served", "storage")):
    additional_printer_columns: list[CustomResourceColumnDefinition] = Field(default_factory=list)
    deprecated: bool = False
    deprecation_warning: str | None = None
    name: str = ""
    schema_: CustomResourceValidation | None = None
    selectable_fields: list[SelectableField] = Field(default_factory=list)
    served: bool = False
    storage: bool = False
    subresources: CustomResourceSubresources | None = None


class CustomResourceDefinitionSpec(Model, always_sent=("group", "names", "scope", "versions")):
    conversion: CustomResourceConversion | None = None
    group: str = ""
    names: CustomResourceDefinitionNames = Field(default_factory=CustomResourceDefinitionNames)
    preserve_unknown_fields: bool = False
    scope: str = ""
    versions: list[CustomResourceDefinitionVersion] = Field(default_factory=list)


class CustomResourceDefinitionCondition(Model, always_sent=("status", "type")):
    last_transition_time: Time | None = None
    message: str = ""
    observed_generation: int = 0
    reason: str = ""
    status: str = ""
    type: str = ""


class CustomResourceDefinitionStatus(Model):
    accepted_names: CustomResourceDefinitionNames = Field(default_factory=CustomResourceDefinitionNames)
    conditions: list[CustomResourceDefinitionCondition] = Field(default_factory=list)
    observed_generation: int = 0
    stored_versions: list[str] = Field(default_factory=list)


class CustomResourceDefinition(
    Object,
    group="apiextensions.k8s.io",
    version="v1",
    scope="Cluster",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    always_sent=("spec",),
):
    spec: CustomResourceDefinitionSpec = Field(default_factory=CustomResourceDefinitionSpec)
    status: CustomResourceDefinitionStatus = Field(default_factory=CustomResourceDefinitionStatus)
