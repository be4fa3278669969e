"""Cases of the ClusterServiceVersion."""

from __future__ import annotations

import json

from bundles import Files, csv, csv_annotation, error, several, warning

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


def _rules(value):
    return lambda files: files.strategy["clusterPermissions"][0].update(rules=value)


def _pod(**fields):
    return lambda files: files.pod.update(fields)


FIELDS = (
    error("csv-not-decodable", csv("spec.keywords", "water"), "list"),
    error("csv-not-decodable", csv("spec.installModes.0.supported", "false"), "boolean"),
    error("csv-not-decodable", csv("spec.installModes.0.type", "SomeNamespaces"), "mode"),
    error("csv-not-decodable", csv(f"{WEBHOOK}.targetPort", 1.5), "union"),
    error("csv-not-decodable", csv_annotation("certified", True), "annotation"),
    error("csv-field-missing", csv("spec.displayName"), "display-name"),
    error("csv-field-missing", csv("spec.displayName", ""), "empty"),
    error("csv-field-missing", csv("spec.install.strategy"), "strategy"),
    error("csv-field-missing", csv(f"{WEBHOOK}.sideEffects"), "side-effects"),
    error("csv-field-missing", csv(f"{WEBHOOK}.type"), "webhook-type"),
    error("csv-field-missing", csv("spec.relatedImages.0.name"), "related-image"),
    error("csv-field-missing", csv("spec"), "spec"),
    warning("csv-unknown-field", csv("spec.replcaes", "kettle.v1.0.0"), "spec"),
    warning("csv-unknown-field", csv(f"{OWNED}.specDescriptor", []), "owned"),
    warning("csv-unknown-field", _pod(hostNetwerk=True), "pod"),
)

CSVS = (
    error("csv-name", csv("metadata.name", "Kettle_1")),
    error("csv-name", csv("metadata.name", f"kettle-{'x' * 60}.v1.2.0"), "long"),
    error("csv-name", csv("metadata.name"), "none"),
    error("csv-replaces", csv("spec.replaces", "kettle v1.1.0")),
    error("csv-replaces-itself", csv("spec.replaces", "kettle.v1.2.0")),
    error("csv-version", csv("spec.version", "v1.2")),
    warning("csv-no-version", csv("spec.version")),
    error("csv-min-kube-version", csv("spec.minKubeVersion", "1.30")),
    warning("csv-no-min-kube-version", csv("spec.minKubeVersion")),
    error("csv-skip-range", csv_annotation("olm.skipRange", "<1.2")),
    error("csv-no-install-modes", csv("spec.installModes"), "none"),
    error("csv-no-install-modes", csv("spec.installModes", []), "empty"),
    error("csv-install-mode-twice", csv("spec.installModes.0.type", "AllNamespaces")),
    error("csv-install-mode-none", _mode(3, supported=False)),
    error("csv-annotation-case", csv_annotation("olm.targetnamespaces", "a")),
    error("csv-annotation-case", csv_annotation("OLM.skipRange", ">=1.0.0 <1.2.0"), "skip-range"),
    warning("csv-olm-properties", csv_annotation("olm.properties", "[]")),
    warning(
        "csv-annotation-json", csv_annotation("operatorframework.io/initialization-resource", "[]"), "initialization"
    ),
    warning(
        "csv-annotation-json", csv_annotation("operators.operatorframework.io/internal-objects", "kettles"), "internal"
    ),
    warning(
        "csv-annotation-json", csv_annotation("operators.openshift.io/valid-subscription", '{"a": 1}'), "subscription"
    ),
    warning("csv-no-annotations", csv("metadata.annotations")),
    warning("csv-no-capabilities", csv_annotation("capabilities")),
    warning("csv-no-description", csv("spec.description")),
    warning("csv-no-keywords", csv("spec.keywords", [])),
    warning("csv-no-maintainers", csv("spec.maintainers")),
    warning("csv-no-provider", csv("spec.provider", {})),
)

EXAMPLES = (
    warning("csv-no-examples", csv_annotation("alm-examples")),
    warning("csv-two-examples", csv_annotation("olm.examples", "[]")),
    error("csv-examples-not-json", csv_annotation("alm-examples", "[{"), "no-json"),
    error("csv-examples-not-json", csv_annotation("alm-examples", "{}\n---\n{}"), "documents"),
    error("csv-examples-not-json", csv_annotation("alm-examples", '{"kind": "Kettle"}'), "no-list"),
    error("csv-examples-not-json", csv_annotation("alm-examples", '[{"kind": "Kettle"}]'), "no-version"),
    error("csv-example-without-api", _examples(_kettle(litres=1), {**_kettle(), "kind": "Pot"})),
    warning("csv-api-without-example", csv_annotation("alm-examples", "[]")),
    warning("csv-example-not-valid", _examples(_kettle(litres=0)), "value"),
    warning("csv-example-not-valid", _examples(_kettle(liters=1)), "field"),
    error("csv-crd-name", lambda files: files.csv["spec"]["customresourcedefinitions"]["owned"].append(
        {"name": "cups", "version": "v1", "kind": "Cup"}
    )),
)  # fmt: skip

INSTALLATION = (
    error("csv-strategy", csv("spec.install.strategy", "helm")),
    error("csv-deployment", lambda files: files.pod["containers"][0].pop("image"), "image"),
    error("csv-deployment", several(csv("spec.install.spec.deployments.0.name", "Kettle"), csv(f"{WEBHOOK}.deploymentName", "Kettle")), "name"),
    error("csv-deployment", lambda files: files.strategy["deployments"][0]["spec"].update(
        selector={"matchLabels": {"a": "b"}}
    ), "selector"),
    error("csv-permission", _rules([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": []}])),
    error("csv-webhook", csv(f"{WEBHOOK}.sideEffects", "Many")),
    error("csv-webhook", csv(f"{WEBHOOK}.webhookPath", "validate"), "path"),
    error("csv-service-account", _pod(serviceAccountName="somebody")),
    error("csv-server-deployment", csv(f"{WEBHOOK}.deploymentName", "kettle"), "webhook"),
    error("csv-server-deployment", _api_service, "api-service"),
    error("csv-conversion-crd", _converted(conversionCRDs=["pots.kitchen.example.com"])),
    error("csv-conversion-install-modes", several(_converted(), _mode(0, supported=True))),
)  # fmt: skip

CASES = FIELDS + CSVS + EXAMPLES + INSTALLATION
