"""The tables of all validators and of their checks. Codes are for scripts and do not change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ctrlruntime.olm.capabilities import LEVELS
from ctrlruntime.olm.finding import Check, Level

__all__ = ["ALWAYS", "CHECKS", "OPTIONAL", "VALIDATORS", "Validator"]


class Validator(NamedTuple):
    """A set of checks that run together."""

    name: str
    """The NAME of `--select-optional name=NAME`."""

    summary: str
    checks: tuple[Check, ...]
    suite: str = ""
    """The SUITE of `--select-optional suite=SUITE`; empty for a validator that has no suite, or always runs."""


def error(code: str, type: str, summary: str) -> Check:
    return Check(code=code, level=Level.ERROR, type=type, summary=summary)


def warning(code: str, type: str, summary: str) -> Check:
    return Check(code=code, level=Level.WARNING, type=type, summary=summary)


# The names of error groups in operator-framework's validators.
_BUNDLE: Final = "BundleNotValid"
_CSV: Final = "CSVFileNotValid"
_FAILED: Final = "ValidationFailed"
_FIELD: Final = "FieldNotFound"
_KIND: Final = "FieldTypeNotSupported"
_LAYOUT: Final = "ManifestStructureNotValid"
_OBJECT: Final = "ObjectFailedValidation"
_OPERATION: Final = "OperationFailed"
_PARSE: Final = "ParseError"

ALWAYS: Final = (
    Validator("layout", "Folders and files", (
        error("manifests-missing", _LAYOUT, "the folder `manifests` is missing"),
        error("metadata-missing", _LAYOUT, "the folder `metadata` is missing"),
        error("manifests-subfolder", _LAYOUT, "`manifests` has a subfolder, which catalogs reject"),
        error("manifests-hidden-file", _LAYOUT, "`manifests` has a file whose name starts with a dot"),
        error("manifests-foreign-file", _LAYOUT, "`manifests` has a file that is neither YAML nor JSON"),
        error("manifest-unreadable", _PARSE, "a file of `manifests` cannot be read, or has a document that is not an object"),
        error("metadata-unreadable", _PARSE, "a file next to `manifests` cannot be read"),
        error("manifest-several-documents", _LAYOUT, "a file of `manifests` has more than one document; OLM reads only the first"),
    )),
    Validator("annotations", "Package, channels and media type", (
        error("annotations-missing", _BUNDLE, "no file of `metadata` has annotations"),
        error("annotation-missing", _BUNDLE, "the bundle lacks an annotation that catalogs need"),
        error("annotation-no-text", _BUNDLE, "an annotation of the bundle is not a string, such as 1.0 without quotes"),
        error("annotation-media-type", _BUNDLE, "the media type of the bundle is not registry+v1"),
        error("annotation-folder", _BUNDLE, "an annotation has a folder other than `manifests/` or `metadata/`"),
        error("package-empty", _BUNDLE, "the name of the package is empty"),
        error("channels-empty", _BUNDLE, "the bundle is in no channel"),
        error("default-channel-empty", _BUNDLE, "the default channel is set, but empty"),
        warning("default-channel-unknown", _BUNDLE, "the default channel is not one of the bundle's channels"),
    )),
    Validator("dependencies", "Dependencies", (
        error("dependencies-no-list", _FAILED, "the file of dependencies has no list `dependencies`"),
        error("dependency-type", _FAILED, "a dependency has an unknown type"),
        error("dependency-package", _FAILED, "an olm.package lacks a name or a range of versions"),
        error("dependency-gvk", _FAILED, "an olm.gvk lacks group, version or kind"),
        error("dependency-label", _FAILED, "an olm.label has no label"),
        error("dependency-constraint", _FAILED, "OLM cannot read an olm.constraint"),
    )),
    Validator("manifests", "Kinds and objects", (
        error("csv-missing", _BUNDLE, "the bundle has no ClusterServiceVersion"),
        error("csv-several", _BUNDLE, "the bundle has more than one ClusterServiceVersion"),
        error("csv-api-version", _CSV, "the apiVersion of the ClusterServiceVersion is not operators.coreos.com/v1alpha1"),
        error("object-no-kind", _PARSE, "an object lacks apiVersion or kind"),
        error("object-kind", _KIND, "an object is of a kind that OLM does not install"),
        error("crd-api-version", _KIND, "the apiVersion of a CRD is not apiextensions.k8s.io/v1"),
        error("object-metadata", _FAILED, "the metadata of an object is not valid"),
        error("object-not-valid", _FAILED, "kube-apiserver would reject an object"),
        warning("object-unknown-field", _FAILED, "an object has an unknown field, which kube-apiserver drops"),
        error("object-twice", _BUNDLE, "an object is in the bundle twice"),
    )),
    Validator("definitions", "CRDs", (
        error("crd-not-valid", _FAILED, "kube-apiserver would reject a CRD"),
        warning("crd-unknown-field", _FAILED, "a CRD has an unknown field, which kube-apiserver drops"),
    )),
    Validator("owned-definitions", "Owned kinds and their CRDs", (
        error("owned-crd-missing", _BUNDLE, "an owned kind has no CRD in the bundle"),
        error("crd-not-owned", _BUNDLE, "a CRD of the bundle is not owned by the operator"),
        error("crd-twice", _BUNDLE, "two CRDs of the bundle have the same kind and version"),
        error("owned-crd-name", _BUNDLE, "the name of an owned kind is not the name of its CRD"),
        error("owned-crd-not-served", _BUNDLE, "the CRD of an owned version does not serve it"),
    )),
    Validator("content", "Size, accounts, images and release", (
        error("bundle-too-large", _BUNDLE, "the compressed manifests take more than 1,048,576 bytes"),
        warning("bundle-large", _BUNDLE, "the compressed manifests take more than 85 % of the maximum"),
        error("service-account-in-bundle", _BUNDLE, "OLM also creates a ServiceAccount that is in the bundle"),
        error("related-image-empty", _BUNDLE, "an entry of relatedImages has no image"),
        error("related-image-not-valid", _BUNDLE, "an image of relatedImages is not an image reference"),
        error("release-name", _BUNDLE, "a ClusterServiceVersion with a release is not named PACKAGE-vVERSION-RELEASE"),
        error("release-not-valid", _BUNDLE, "the release is not a list of identifiers with dots between them, or has more than 20 characters"),
    )),
    Validator("csv-fields", "The ClusterServiceVersion: types, required and unknown fields", (
        error("csv-not-decodable", _PARSE, "a field of the ClusterServiceVersion has a value of a wrong type"),
        error("csv-field-missing", _FIELD, "a required field of the ClusterServiceVersion is missing"),
        warning("csv-unknown-field", _CSV, "the ClusterServiceVersion has an unknown field, which OLM drops"),
    )),
    Validator("csv", "The ClusterServiceVersion: names, versions, modes, annotations", (
        error("csv-name", _CSV, "metadata.name is not a DNS subdomain of at most 63 characters"),
        error("csv-replaces", _CSV, "spec.replaces is not a DNS subdomain of at most 63 characters"),
        error("csv-replaces-itself", _CSV, "the version replaces itself"),
        error("csv-version", _CSV, "spec.version is not a semantic version"),
        error("csv-min-kube-version", _CSV, "spec.minKubeVersion is not a semantic version"),
        error("csv-skip-range", _CSV, "olm.skipRange is not a range of versions"),
        error("csv-no-install-modes", _CSV, "spec.installModes is missing"),
        error("csv-install-mode-twice", _CSV, "an install mode is listed twice"),
        error("csv-install-mode-none", _CSV, "no install mode is supported"),
        error("csv-annotation-case", _FAILED, "an annotation of OLM is written with wrong upper or lower case"),
        warning("csv-olm-properties", "PropertiesAnnotationUsed", "properties are in an annotation instead of a file in `metadata`"),
        warning("csv-annotation-json", _PARSE, "an annotation that consoles read as JSON is not JSON"),
        warning("csv-no-annotations", _CSV, "the ClusterServiceVersion has no annotations"),
        warning("csv-no-capabilities", _FIELD, "the annotation capabilities is missing"),
        warning("csv-no-version", _FIELD, "spec.version is missing"),
        warning("csv-no-description", _FIELD, "spec.description is missing"),
        warning("csv-no-keywords", _FIELD, "spec.keywords is missing"),
        warning("csv-no-maintainers", _FIELD, "spec.maintainers is missing"),
        warning("csv-no-provider", _FIELD, "spec.provider is missing"),
        warning("csv-no-min-kube-version", _CSV, "spec.minKubeVersion is missing"),
    )),
    Validator("examples", "Examples of the provided kinds", (
        warning("csv-no-examples", _CSV, "the annotation with examples is missing"),
        warning("csv-two-examples", _CSV, "both alm-examples and olm.examples are set; consoles read the first"),
        error("csv-examples-not-json", _PARSE, "the examples are not a JSON list of objects"),
        error("csv-example-without-api", _OPERATION, "an example is of a kind the operator does not provide"),
        warning("csv-api-without-example", _OPERATION, "a kind the operator provides has no example"),
        warning("csv-example-not-valid", _OPERATION, "kube-apiserver would reject an example"),
        error("csv-crd-name", _PARSE, "the name of an owned kind has no group"),
    )),
    Validator("installation", "Deployments and roles that OLM creates", (
        error("csv-strategy", _CSV, "the install strategy is not `deployment`"),
        error("csv-deployment", _CSV, "kube-apiserver would reject a Deployment of spec.install"),
        error("csv-deployment-twice", _CSV, "two Deployments of spec.install have the same name"),
        error("csv-permission", _CSV, "kube-apiserver would reject a role of spec.install"),
        error("csv-service-account", _CSV, "a Deployment uses a ServiceAccount that is not created"),
        error("csv-server-deployment", _CSV, "the Deployment of a webhook or API service does not exist"),
    )),
    Validator("webhooks", "Webhooks that OLM creates", (
        error("csv-webhook", _CSV, "kube-apiserver would reject the object that OLM creates for a webhook of spec.webhookdefinitions"),
        error("csv-webhook-twice", _CSV, "two webhooks, of any types, have the same generateName"),
        error("csv-webhook-rule", _CSV, "a webhook is for all groups, for operators.coreos.com, or for webhook configurations"),
        error("csv-webhook-name", _CSV, "the generateName of a webhook has more than 63 characters"),
        error("csv-conversion-empty", _CSV, "a conversion webhook has no CRDs"),
        error("csv-conversion-crd", _CSV, "a webhook converts a kind that the operator does not own"),
        error("csv-conversion-install-modes", _CSV, "a webhook converts a kind, but a mode other than AllNamespaces is supported"),
    )),
)  # fmt: skip
"""The validators that always run, in their order."""

_SUITE: Final = "operatorframework"
"""The suite of checks for every published operator."""

_REMOVED: Final = (
    error("api-removed", _FAILED, "the bundle uses an API that Kubernetes no longer serves in the version of k8s-version or minKubeVersion"),
    warning("api-removed-later", _FAILED, "the bundle uses an API that newer Kubernetes versions no longer serve"),
    warning("api-removed-permission", _FAILED, "a permission is for PodSecurityPolicies, which Kubernetes 1.25 removed"),
)  # fmt: skip

OPTIONAL: Final = (
    Validator("operatorhubv2", "the fields that OperatorHub shows are set, and no API that Kubernetes has removed is used", (
        error("hub-provider-missing", _CSV, "spec.provider has no name"),
        error("hub-maintainer-incomplete", _CSV, "a maintainer has no name or no email address"),
        error("hub-maintainer-email", _CSV, "the email of a maintainer is not an email address"),
        error("hub-link-incomplete", _CSV, "a link has no name or no URL"),
        error("hub-link-url", _CSV, "the URL of a link is not a URL"),
        error("hub-version-zero", _CSV, "spec.version is missing, or 0.0.0"),
        warning("hub-icon-missing", _CSV, "the ClusterServiceVersion has no icon"),
        error("hub-icon-several", _CSV, "the ClusterServiceVersion has more than one icon"),
        error("hub-icon-incomplete", _CSV, "the icon has no data or no media type"),
        error("hub-icon-media-type", _CSV, "the icon's media type is not one of image/gif, image/jpeg, image/png and image/svg+xml"),
        error("hub-icon-not-base64", _CSV, "the icon's data is not base64"),
        warning("hub-icon-content", _CSV, "the icon's data is not a picture of its media type"),
        *_REMOVED,
    ), _SUITE),
    Validator("capabilities", f"the annotation capabilities, if any, is one of {', '.join(LEVELS)}", (
        error("capability-level", _CSV, "the annotation capabilities is not one of the five levels"),
    ), _SUITE),
    Validator("categories", (
        "the annotation categories, if any, has only standard categories, or those in the file of OPERATOR_BUNDLE_CATEGORIES"
    ), (
        error("category-unknown", _CSV, "a category is neither a standard one nor in the file of OPERATOR_BUNDLE_CATEGORIES"),
    ), _SUITE),
    Validator("alpha-deprecated-apis", (
        "no API is used that Kubernetes has removed; --optional-values k8s-version=1.32 selects the Kubernetes version to check"
    ), _REMOVED, _SUITE),
    Validator("good-practices", "the operator requests resources, describes its kinds, and uses the usual names for channels and versions", (
        error("practice-deployment-missing", _FAILED, "the ClusterServiceVersion has no Deployment"),
        warning("practice-requests-missing", _FAILED, "a container requests no CPU or no memory"),
        warning("practice-crd-description-missing", _FAILED, "an owned or required kind has no description"),
        warning("practice-channel-name", _FAILED, "the name of a channel does not start with candidate, fast or stable"),
        warning("practice-crd-permission", _FAILED, "the operator may create CustomResourceDefinitions"),
        warning("practice-csv-name", _FAILED, "the ClusterServiceVersion's name is not NAME.vMAJOR.MINOR.PATCH"),
    ), _SUITE),
    Validator("multiarch", (
        "labels, images and node affinity agree on platforms. No registry is queried: set the platforms of images with"
        " --optional-values image-platforms=FILE.json"
    ), (
        error("multiarch-platform-not-offered", _FAILED, "an image is not available for a platform of the labels"),
        warning("multiarch-labels-missing", _FAILED, "the labels have no supported architecture"),
        warning("multiarch-arch-label-missing", _FAILED, "the images are available for an architecture that has no label"),
        warning("multiarch-os-label-missing", _FAILED, "the images are available for an operating system that has no label"),
        warning("multiarch-image-behind", _FAILED, "an image is not available for a platform of the manager's image"),
        warning("multiarch-image-unknown", _FAILED, "the platforms of an image are unknown"),
        warning("multiarch-affinity-missing", _FAILED, "pods of the operator can be scheduled on any architecture"),
        warning("multiarch-affinity-differs", _FAILED, "pods of the operator are scheduled on other platforms than those of the labels"),
    )),
    Validator("object", (
        "no object and no permission of the bundle disturbs the cluster: disruption budgets, priorities, OpenShift's constraints"
    ), (
        error("pdb-max-unavailable-zero", _OBJECT, "a PodDisruptionBudget allows no unavailable pod"),
        error("pdb-min-available-all", _OBJECT, "a PodDisruptionBudget requires all pods to be available"),
        error("priority-class-global-default", _OBJECT, "a PriorityClass is the default of the whole cluster"),
        warning("rbac-writes-pdbs", _OBJECT, "the operator may write PodDisruptionBudgets"),
        error("rbac-modifies-default-sccs", _OBJECT, "the operator may change the default SecurityContextConstraints of OpenShift"),
    )),
)  # fmt: skip
"""The validators that run when they are selected, in their order."""

VALIDATORS: Final = ALWAYS + OPTIONAL

CHECKS: Final[Mapping[str, Check]] = {check.code: check for validator in VALIDATORS for check in validator.checks}
"""Every check by its code."""
