"""The fields of a ClusterServiceVersion (operators.coreos.com/v1alpha1), as OLM's documentation and API types have them.

This model decodes bundles, has the required fields, and is the source of the CRD that tests install. A field is required here if OLM's
own type always writes it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from ctrlruntime.api import admissionregistration, apps, meta, rbac
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import IntOrString, Time
from ctrlruntime.markers import Int32, JSONValue

__all__ = [
    "INSTALL_MODES",
    "APIResourceReference",
    "APIServiceDefinitions",
    "APIServiceDescription",
    "AppLink",
    "CRDDescription",
    "ClusterServiceVersion",
    "ClusterServiceVersionSpec",
    "ClusterServiceVersionStatus",
    "CustomResourceDefinitions",
    "DescriptorEntry",
    "Icon",
    "InstallMode",
    "InstallModeType",
    "InstallStrategy",
    "Maintainer",
    "NamedDeployment",
    "Permissions",
    "RelatedImage",
    "StrategyDetails",
    "WebhookDescription",
    "WebhookType",
]

InstallModeType: TypeAlias = Literal["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
INSTALL_MODES: tuple[InstallModeType, ...] = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
WebhookType: TypeAlias = Literal["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ConversionWebhook"]


class NamedDeployment(Model):
    """A Deployment that OLM creates: a name, labels, and the spec of apps/v1."""

    name: str
    spec: apps.DeploymentSpec
    label: dict[str, str] | None = None


class Permissions(Model):
    """The permissions of a ServiceAccount."""

    service_account_name: str
    rules: list[rbac.PolicyRule]


class StrategyDetails(Model):
    deployments: list[NamedDeployment]
    permissions: list[Permissions] = Field(default_factory=list[Permissions])
    cluster_permissions: list[Permissions] = Field(default_factory=list[Permissions])


class InstallStrategy(Model):
    strategy: str
    spec: StrategyDetails | None = None


class InstallMode(Model):
    type: InstallModeType
    supported: bool


class APIResourceReference(Model):
    """A kind of object that an operator manages. `name` may be empty."""

    name: str
    kind: str
    version: str


class DescriptorEntry(Model):
    """How a console shows a field: an entry of `specDescriptors`, `statusDescriptors` or `actionDescriptors`."""

    path: str
    display_name: str = ""
    description: str = ""
    x_descriptors: list[str] = Field(
        default_factory=list[str], validation_alias="x-descriptors", serialization_alias="x-descriptors"
    )
    value: JSONValue = None


class _Described(Model):
    """What a console shows for a kind."""

    display_name: str = ""
    description: str = ""
    resources: list[APIResourceReference] = Field(default_factory=list[APIResourceReference])
    status_descriptors: list[DescriptorEntry] = Field(default_factory=list[DescriptorEntry])
    spec_descriptors: list[DescriptorEntry] = Field(default_factory=list[DescriptorEntry])
    action_descriptors: list[DescriptorEntry] = Field(default_factory=list[DescriptorEntry])


class CRDDescription(_Described):
    """A custom kind in one version. `name` is that of its CRD, PLURAL.GROUP."""

    name: str
    version: str
    kind: str


class CustomResourceDefinitions(Model):
    owned: list[CRDDescription] = Field(default_factory=list[CRDDescription])
    required: list[CRDDescription] = Field(default_factory=list[CRDDescription])


class APIServiceDescription(_Described):
    """A kind of an aggregated API. `name` is its plural."""

    name: str
    group: str
    version: str
    kind: str
    deployment_name: str = ""
    container_port: Int32 = 0


class APIServiceDefinitions(Model):
    owned: list[APIServiceDescription] = Field(default_factory=list[APIServiceDescription])
    required: list[APIServiceDescription] = Field(default_factory=list[APIServiceDescription])


class WebhookDescription(Model):
    generate_name: str
    type: WebhookType
    side_effects: str
    admission_review_versions: list[str]
    deployment_name: str = ""
    container_port: Int32 = 0
    target_port: IntOrString | None = None
    rules: list[admissionregistration.RuleWithOperations] = Field(
        default_factory=list[admissionregistration.RuleWithOperations]
    )
    failure_policy: str = ""
    match_policy: str = ""
    object_selector: meta.LabelSelector | None = None
    timeout_seconds: Int32 | None = None
    reinvocation_policy: str = ""
    webhook_path: str = ""
    conversion_crds: list[str] = Field(
        default_factory=list[str], validation_alias="conversionCRDs", serialization_alias="conversionCRDs"
    )


class GroupVersionKindReference(Model):
    group: str
    version: str
    kind: str


class Maintainer(Model):
    name: str = ""
    email: str = ""


class AppLink(Model):
    """A link; the provider has the same form."""

    name: str = ""
    url: str = ""


class Icon(Model):
    """`base64data` is the picture in base64."""

    base64data: str
    mediatype: str


class RelatedImage(Model):
    name: str
    image: str


class Cleanup(Model):
    enabled: bool


class ClusterServiceVersionSpec(Model):
    install: InstallStrategy
    display_name: str
    version: str = ""
    release: str = ""
    maturity: str = ""
    customresourcedefinitions: CustomResourceDefinitions = Field(default_factory=CustomResourceDefinitions)
    apiservicedefinitions: APIServiceDefinitions = Field(default_factory=APIServiceDefinitions)
    webhookdefinitions: list[WebhookDescription] = Field(default_factory=list[WebhookDescription])
    native_apis: list[GroupVersionKindReference] = Field(
        default_factory=list[GroupVersionKindReference], validation_alias="nativeAPIs", serialization_alias="nativeAPIs"
    )
    min_kube_version: str = ""
    description: str = ""
    keywords: list[str] = Field(default_factory=list[str])
    maintainers: list[Maintainer] = Field(default_factory=list[Maintainer])
    provider: AppLink = Field(default_factory=AppLink)
    links: list[AppLink] = Field(default_factory=list[AppLink])
    icon: list[Icon] = Field(default_factory=list[Icon])
    install_modes: list[InstallMode] = Field(default_factory=list[InstallMode])
    replaces: str = ""
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    annotations: dict[str, str] = Field(default_factory=dict[str, str])
    selector: meta.LabelSelector | None = None
    cleanup: Cleanup | None = None
    skips: list[str] = Field(default_factory=list[str])
    related_images: list[RelatedImage] = Field(default_factory=list[RelatedImage])


class ClusterServiceVersionStatus(Model):
    """The state of an installation, from OLM; other fields are kept."""

    phase: str = ""
    message: str = ""
    reason: str = ""
    last_update_time: Time | None = None
    last_transition_time: Time | None = None


class ClusterServiceVersion(
    Object,
    group="operators.coreos.com",
    version="v1alpha1",
    plural="clusterserviceversions",
    short_names=["csv", "csvs"],
    categories=["olm"],
):
    """One version of an operator: its description, its kinds, and its installation."""

    spec: ClusterServiceVersionSpec
    status: ClusterServiceVersionStatus | None = None
