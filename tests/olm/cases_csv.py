"""Cases of the ClusterServiceVersion."""

from __future__ import annotations

import copy
import json

from bundles import Files, csv, csv_annotation, error, several, warning

ADMISSION = "admissionregistration.k8s.io"
WEBHOOK = "spec.webhookdefinitions.0"
OWNED = "spec.customresourcedefinitions.owned.0"
CONVERSION = {
    "type": "ConversionWebhook",
    "generateName": "ckettles.kb.io",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "deploymentName": "kettle-manager",
    "webhookPath": "/convert",
    "conversionCRDs": ["kettles.kitchen.example.com"],
}


def _examples(*examples: dict):
    return csv_annotation("alm-examples", json.dumps(examples))


def _kettle(**spec):
    return {"apiVersion": "kitchen.example.com/v1", "kind": "Kettle", "metadata": {"name": "a"}, "spec": spec}


def _mode(index: int, *, supported: bool):
    return csv(f"spec.installModes.{index}.supported", supported)


def _converted(**changed):
    return lambda files: files.csv["spec"]["webhookdefinitions"].append({**CONVERSION, **changed})


def _api_service(files: Files) -> None:
    files.csv["spec"]["apiservicedefinitions"] = {
        "owned": [
            {"name": "cups", "group": "cups.example.com", "version": "v1", "kind": "Cup", "deploymentName": "cups"}
        ]
    }
    cup = {"apiVersion": "cups.example.com/v1", "kind": "Cup", "metadata": {"name": "a"}}
    _examples(_kettle(litres=1), cup)(files)


def _webhook_again(**changed):
    """Add the webhook once more, under another type."""

    def change(files: Files) -> None:
        webhooks = files.csv["spec"]["webhookdefinitions"]
        webhooks.append({**webhooks[0], "type": "MutatingAdmissionWebhook", **changed})

    return change


def _for(groups: list[str], *resources: str):
    """Let the webhook be for resources of groups."""
    rule = {"apiGroups": groups, "apiVersions": ["v1"], "operations": ["CREATE"], "resources": list(resources)}
    return csv(f"{WEBHOOK}.rules", [rule])


def _deployment_again(files: Files) -> None:
    files.strategy["deployments"].append(copy.deepcopy(files.strategy["deployments"][0]))


def _rules(value):
    return lambda files: files.strategy["clusterPermissions"][0].update(rules=value)


def _pod(**fields):
    return lambda files: files.pod.update(fields)


FIELDS = (
    error("csv-not-decodable", csv("spec.keywords", "water"), "list", path="spec.keywords"),
    error(
        "csv-not-decodable",
        csv("spec.installModes.0.supported", "false"),
        "boolean",
        path="spec.installModes[0].supported",
    ),
    error(
        "csv-not-decodable", csv("spec.installModes.0.type", "SomeNamespaces"), "mode", path="spec.installModes[0].type"
    ),
    error(
        "csv-not-decodable", csv(f"{WEBHOOK}.targetPort", 1.5), "union", path="spec.webhookdefinitions[0].targetPort"
    ),
    error("csv-not-decodable", csv_annotation("certified", True), "annotation", path="metadata.annotations.certified"),
    error("csv-field-missing", csv("spec.displayName"), "display-name", path="spec.displayName"),
    error("csv-field-missing", csv("spec.displayName", ""), "empty", path="spec.displayName"),
    error("csv-field-missing", csv("spec.install.strategy"), "strategy", path="spec.install.strategy"),
    error(
        "csv-field-missing",
        csv(f"{WEBHOOK}.sideEffects"),
        "side-effects",
        path="spec.webhookdefinitions[0].sideEffects",
    ),
    error("csv-field-missing", csv(f"{WEBHOOK}.type"), "webhook-type", path="spec.webhookdefinitions[0].type"),
    error("csv-field-missing", csv("spec.relatedImages.0.name"), "related-image", path="spec.relatedImages[0].name"),
    error("csv-field-missing", csv("spec"), "spec", path="spec"),
    warning("csv-unknown-field", csv("spec.replcaes", "kettle.v1.0.0"), "spec", path="spec.replcaes"),
    warning(
        "csv-unknown-field",
        csv(f"{OWNED}.specDescriptor", []),
        "owned",
        path="spec.customresourcedefinitions.owned[0].specDescriptor",
    ),
    warning(
        "csv-unknown-field",
        _pod(hostNetwerk=True),
        "pod",
        path="spec.install.spec.deployments[0].spec.template.spec.hostNetwerk",
    ),
)

CSVS = (
    error("csv-name", csv("metadata.name", "Kettle_1"), path="metadata.name", object="ClusterServiceVersion/Kettle_1"),
    error(
        "csv-name",
        csv("metadata.name", f"kettle-{'x' * 60}.v1.2.0"),
        "long",
        path="metadata.name",
        object="ClusterServiceVersion/kettle-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.v1.2.0",
    ),
    error("csv-name", csv("metadata.name"), "none", path="metadata.name", object="ClusterServiceVersion"),
    error("csv-replaces", csv("spec.replaces", "kettle v1.1.0"), path="spec.replaces"),
    error("csv-replaces-itself", csv("spec.replaces", "kettle.v1.2.0"), path="spec.replaces"),
    error("csv-version", csv("spec.version", "v1.2"), path="spec.version"),
    warning("csv-no-version", csv("spec.version"), path="spec.version"),
    error("csv-min-kube-version", csv("spec.minKubeVersion", "1.30"), path="spec.minKubeVersion"),
    warning("csv-no-min-kube-version", csv("spec.minKubeVersion"), path="spec.minKubeVersion"),
    error("csv-skip-range", csv_annotation("olm.skipRange", "<1.2"), path="metadata.annotations.olm.skipRange"),
    error("csv-no-install-modes", csv("spec.installModes"), "none", path="spec.installModes"),
    error("csv-no-install-modes", csv("spec.installModes", []), "empty", path="spec.installModes"),
    error("csv-install-mode-twice", csv("spec.installModes.0.type", "AllNamespaces"), path="spec.installModes"),
    error("csv-install-mode-none", _mode(3, supported=False), path="spec.installModes"),
    error(
        "csv-annotation-case",
        csv_annotation("olm.targetnamespaces", "a"),
        path="metadata.annotations.olm.targetnamespaces",
    ),
    error(
        "csv-annotation-case",
        csv_annotation("OLM.skipRange", ">=1.0.0 <1.2.0"),
        "skip-range",
        path="metadata.annotations.OLM.skipRange",
    ),
    warning("csv-olm-properties", csv_annotation("olm.properties", "[]"), path="metadata.annotations.olm.properties"),
    warning(
        "csv-annotation-json",
        csv_annotation("operatorframework.io/initialization-resource", "[]"),
        "initialization",
        path="metadata.annotations.operatorframework.io/initialization-resource",
    ),
    warning(
        "csv-annotation-json",
        csv_annotation("operators.operatorframework.io/internal-objects", "kettles"),
        "internal",
        path="metadata.annotations.operators.operatorframework.io/internal-objects",
    ),
    warning(
        "csv-annotation-json",
        csv_annotation("operators.openshift.io/valid-subscription", '{"a": 1}'),
        "subscription",
        path="metadata.annotations.operators.openshift.io/valid-subscription",
    ),
    warning("csv-no-annotations", csv("metadata.annotations"), path="metadata.annotations"),
    warning("csv-no-capabilities", csv_annotation("capabilities"), path="metadata.annotations.capabilities"),
    warning("csv-no-description", csv("spec.description"), path="spec.description"),
    warning("csv-no-keywords", csv("spec.keywords", []), path="spec.keywords"),
    warning("csv-no-maintainers", csv("spec.maintainers"), path="spec.maintainers"),
    warning("csv-no-provider", csv("spec.provider", {}), path="spec.provider"),
)

EXAMPLES = (
    warning("csv-no-examples", csv_annotation("alm-examples"), path="metadata.annotations.alm-examples"),
    warning("csv-two-examples", csv_annotation("olm.examples", "[]"), path="metadata.annotations.olm.examples"),
    error("csv-examples-not-json", csv_annotation("alm-examples", "[{"), "no-json", path="metadata.annotations.alm-examples"),
    error("csv-examples-not-json", csv_annotation("alm-examples", "{}\n---\n{}"), "documents", path="metadata.annotations.alm-examples"),
    error("csv-examples-not-json", csv_annotation("alm-examples", '{"kind": "Kettle"}'), "no-list", path="metadata.annotations.alm-examples"),
    error("csv-examples-not-json", csv_annotation("alm-examples", '[{"kind": "Kettle"}]'), "no-version", path="metadata.annotations.alm-examples"),
    error("csv-example-without-api", _examples(_kettle(litres=1), {**_kettle(), "kind": "Pot"}), path="metadata.annotations.alm-examples"),
    warning("csv-api-without-example", csv_annotation("alm-examples", "[]"), path="metadata.annotations.alm-examples"),
    warning("csv-example-not-valid", _examples(_kettle(litres=0)), "value", path="metadata.annotations.alm-examples"),
    warning("csv-example-not-valid", _examples(_kettle(liters=1)), "field", path="metadata.annotations.alm-examples"),
    error("csv-crd-name", lambda files: files.csv["spec"]["customresourcedefinitions"]["owned"].append(
        {"name": "cups", "version": "v1", "kind": "Cup"}
    ), path="spec.customresourcedefinitions.owned[1].name"),
)  # fmt: skip

INSTALLATION = (
    error("csv-strategy", csv("spec.install.strategy", "helm"), path="spec.install.strategy"),
    error("csv-deployment", lambda files: files.pod["containers"][0].pop("image"), "image", path="spec.install.spec.deployments[0].spec.template.spec.containers[0].image"),
    error("csv-deployment", several(csv("spec.install.spec.deployments.0.name", "Kettle"), csv(f"{WEBHOOK}.deploymentName", "Kettle")), "name", path="spec.install.spec.deployments[0].name"),
    error("csv-deployment", lambda files: files.strategy["deployments"][0]["spec"].update(
        selector={"matchLabels": {"a": "b"}}
    ), "selector", path="spec.install.spec.deployments[0].spec.template.metadata.labels"),
    error("csv-deployment-twice", _deployment_again, path="spec.install.spec.deployments[1].name"),
    error("csv-permission", _rules([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": []}]), path="spec.install.spec.clusterPermissions[0].rules[0].verbs"),
    error("csv-webhook", csv(f"{WEBHOOK}.sideEffects", "Many"), path="spec.webhookdefinitions[0].sideEffects"),
    error("csv-webhook", csv(f"{WEBHOOK}.webhookPath", "validate"), "path", path="spec.webhookdefinitions[0].webhookPath"),
    error("csv-webhook", csv(f"{WEBHOOK}.containerPort", 70_000), "port", path="spec.webhookdefinitions[0].containerPort"),
    error("csv-webhook", _converted(containerPort=70_000), "converted-port", path="spec.webhookdefinitions[1].containerPort"),
    error("csv-webhook", _converted(webhookPath="convert"), "converted-path", path="spec.webhookdefinitions[1].webhookPath"),
    error("csv-webhook", _converted(admissionReviewVersions=["v9"]), "converted-reviews", path="spec.webhookdefinitions[1].admissionReviewVersions"),
    error("csv-webhook-twice", _webhook_again(), "types", path="spec.webhookdefinitions[1].generateName"),
    error("csv-webhook-twice", _webhook_again(type="ValidatingAdmissionWebhook"), "same-type", path="spec.webhookdefinitions[1].generateName"),
    error("csv-webhook-twice", _converted(generateName="vkettle.kb.io"), "conversion", path="spec.webhookdefinitions[1].generateName"),
    error("csv-webhook-rule", _for(["*"], "kettles"), "all-groups", path="spec.webhookdefinitions[0].rules[0].apiGroups"),
    error("csv-webhook-rule", _for(["kitchen.example.com", "operators.coreos.com"], "*"), "own-group", path="spec.webhookdefinitions[0].rules[0].apiGroups"),
    error("csv-webhook-rule", _for([ADMISSION], "*"), "all-of-admission", path="spec.webhookdefinitions[0].rules[0].resources"),
    error("csv-webhook-rule", _for([ADMISSION], "kettles", "MutatingWebhookConfiguration"), "mutating-kind", path="spec.webhookdefinitions[0].rules[0].resources"),
    error("csv-webhook-rule", _for([ADMISSION], "mutatingwebhookconfigurations"), "mutating", path="spec.webhookdefinitions[0].rules[0].resources"),
    error("csv-webhook-rule", _for([ADMISSION], "validatingwebhookconfigurations"), "validating", path="spec.webhookdefinitions[0].rules[0].resources"),
    error("csv-webhook-rule", _converted(rules=[{"apiGroups": ["*"]}]), "conversion", path="spec.webhookdefinitions[1].rules[0].apiGroups"),
    error("csv-webhook-name", csv(f"{WEBHOOK}.generateName", f"{'v' * 50}.kettle.kb.io.x"), path="spec.webhookdefinitions[0].generateName"),
    error("csv-conversion-empty", _converted(conversionCRDs=[]), "empty", path="spec.webhookdefinitions[1].conversionCRDs"),
    error("csv-conversion-empty", _converted(conversionCRDs=None), "none", path="spec.webhookdefinitions[1].conversionCRDs"),
    error("csv-service-account", _pod(serviceAccountName="somebody"), path="spec.install.spec.deployments[0].spec.template.spec.serviceAccountName"),
    error("csv-server-deployment", csv(f"{WEBHOOK}.deploymentName", "kettle"), "webhook", path="spec.webhookdefinitions[0].deploymentName"),
    error("csv-server-deployment", _api_service, "api-service", path="spec.apiservicedefinitions.owned[0].deploymentName"),
    error("csv-conversion-crd", _converted(conversionCRDs=["pots.kitchen.example.com"]), path="spec.webhookdefinitions[1].conversionCRDs"),
    error("csv-conversion-install-modes", several(_converted(), _mode(0, supported=True)), path="spec.webhookdefinitions[1].conversionCRDs"),
)  # fmt: skip

CASES = FIELDS + CSVS + EXAMPLES + INSTALLATION
