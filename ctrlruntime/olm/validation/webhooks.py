"""The webhooks of a ClusterServiceVersion: OLM accepts them, and kube-apiserver accepts the objects that OLM creates from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, TypeAlias

from ctrlruntime.olm.api import ClusterServiceVersion, WebhookDescription
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.conversion import client_config, installed_definition
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.refusals import CONVERSION, LONGEST_NAME, Refusal, refused_webhooks
from ctrlruntime.olm.validation.fields import wrong_fields
from ctrlruntime.olm.validation.manifests import refused
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["VALIDATOR"]

_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_DEFINITION: Final = "apiextensions.k8s.io/v1"
_CONFIGURATIONS: Final = {
    "ValidatingAdmissionWebhook": "ValidatingWebhookConfiguration",
    "MutatingAdmissionWebhook": "MutatingWebhookConfiguration",
}
_NAMESPACE: Final = "default"
"""Any will do: the operator's is not known before it is installed."""

_error = partial(Check, level=Level.ERROR, type="CSVFileNotValid")
_WEBHOOK: Final = _error(
    code="csv-webhook",
    summary="kube-apiserver would reject the object that OLM creates for a webhook of spec.webhookdefinitions",
)
_TWICE: Final = _error(code="csv-webhook-twice", summary="two webhooks, of any types, have the same generateName")
_RULE: Final = _error(
    code="csv-webhook-rule",
    summary="a webhook is for all groups, for operators.coreos.com, or for webhook configurations",
)
_NAME: Final = _error(
    code="csv-webhook-name", summary=f"the generateName of a webhook has more than {LONGEST_NAME} characters"
)
_NOTHING: Final = _error(code="csv-conversion-empty", summary="a conversion webhook has no CRDs")
_CONVERTED: Final = _error(
    code="csv-conversion-crd", summary="a webhook converts a kind that the operator does not own"
)
_MODES: Final = _error(
    code="csv-conversion-install-modes",
    summary="a webhook converts a kind, but a mode other than AllNamespaces is supported",
)
_REFUSALS: Final = {
    Refusal.TWICE: _TWICE,
    Refusal.RULE: _RULE,
    Refusal.NAME: _NAME,
    Refusal.NOTHING_CONVERTED: _NOTHING,
}

_Said: TypeAlias = Iterator[tuple[Check, str, str]]
"""Check, path and text. The path is below a webhook."""


def _run(subject: Subject) -> Iterator[Finding]:
    csv, found = subject.csv, subject.csv_object
    if csv is None or found is None:
        return
    webhooks = csv.spec.webhookdefinitions
    said = [
        (index, _REFUSALS[which], path, text)
        for index, which, path, text in refused_webhooks([each.to_dict() for each in webhooks])
    ]
    for index, webhook in enumerate(webhooks):
        said += [(index, *each) for each in (*_admission(webhook), *_owned(webhook, csv))]
    said += dict.fromkeys(_conversions(csv, subject.bundle))  # one webhook converts many definitions
    told = {each.path for each in wrong_fields(subject)}
    for index, check, field, text in said:
        path = f"spec.webhookdefinitions[{index}].{field}"
        if path not in told:
            yield about(check, found, text, path)


def _admission(webhook: WebhookDescription) -> _Said:
    """Yield the problems of the configuration that OLM creates from the webhook."""
    kind = _CONFIGURATIONS.get(webhook.type)
    if kind is None:
        return
    own: dict[str, Any] = webhook.to_dict()
    for name in ("type", "deploymentName", "containerPort", "targetPort", "conversionCRDs", "webhookPath"):
        own.pop(name, None)
    name = own.pop("generateName", "")
    client = client_config(
        webhook.deployment_name, namespace=_NAMESPACE, path=webhook.webhook_path, port=webhook.container_port
    )
    configured = {**own, "name": name, "clientConfig": client}
    document = {"apiVersion": _ADMISSION, "kind": kind, "metadata": {"name": "webhook"}, "webhooks": [configured]}
    for field, text in refused(document):
        known = field.removeprefix("webhooks[0].")
        yield _WEBHOOK, _NAMES.get(known, known), text


_NAMES: Final = {
    "name": "generateName",
    "clientConfig.service.name": "deploymentName",
    "clientConfig.service.path": "webhookPath",
    "clientConfig.service.port": "containerPort",
    "conversionReviewVersions": "admissionReviewVersions",
}
"""The fields of a webhook that have another name in a ClusterServiceVersion."""


def _conversions(csv: ClusterServiceVersion, bundle: Bundle) -> Iterator[tuple[int, Check, str, str]]:
    """Yield the place of a webhook, and the problems of the conversion that OLM writes into CRDs.

    OLM overwrites the conversion of a CRD. Another check reports its other problems.
    """
    for definition in bundle.definitions:
        index = next(
            (
                index
                for index, webhook in enumerate(csv.spec.webhookdefinitions)
                if webhook.type == CONVERSION and definition.name in webhook.conversion_crds
            ),
            None,
        )
        if index is None or not definition.name or not definition.spec or definition.gvk.api_version != _DEFINITION:
            continue
        for field, text in refused(installed_definition(definition.document, csv, namespace=_NAMESPACE)):
            if field.startswith("spec.conversion"):
                # kube-apiserver has other words for some fields of a conversion than the definition itself.
                known = field.removeprefix("spec.conversion.").replace("webhookClientConfig", "clientConfig")
                yield index, _WEBHOOK, _NAMES.get(known, "conversionCRDs"), text


def _owned(webhook: WebhookDescription, csv: ClusterServiceVersion) -> _Said:
    owned = {each.name for each in csv.spec.customresourcedefinitions.owned}
    for name in webhook.conversion_crds:
        if name not in owned:
            text = f"{name} is not in spec.customresourcedefinitions.owned, but OLM converts only owned kinds. Add it there"
            yield _CONVERTED, "conversionCRDs", text
    others = [mode.type for mode in csv.spec.install_modes if mode.supported and mode.type != "AllNamespaces"]
    if webhook.conversion_crds and others:
        text = f"a conversion is for the whole cluster. Support only AllNamespaces, and not {', '.join(others)}"
        yield _MODES, "conversionCRDs", text


VALIDATOR: Final = Validator(
    name="webhooks",
    summary="Webhooks that OLM creates",
    checks=(_WEBHOOK, _TWICE, _RULE, _NAME, _NOTHING, _CONVERTED, _MODES),
    run=_run,
)
