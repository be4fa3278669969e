"""The objects that OLM creates from a ClusterServiceVersion: Deployments, roles and webhooks. OLM and kube-apiserver must accept them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from ctrlruntime.olm.api import ClusterServiceVersion, NamedDeployment, Permissions, WebhookDescription
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.conversion import client_config, installed_definition
from ctrlruntime.olm.refusals import CONVERSION, Refusal, refused_webhooks
from ctrlruntime.olm.validation.fields import wrong_fields
from ctrlruntime.olm.validation.manifests import refused
from ctrlruntime.olm.validation.subject import Problem, Subject, of_csv

__all__ = ["run", "webhooks"]

_RBAC: Final = "rbac.authorization.k8s.io/v1"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_DEFINITION: Final = "apiextensions.k8s.io/v1"
_CONFIGURATIONS: Final = {
    "ValidatingAdmissionWebhook": "ValidatingWebhookConfiguration",
    "MutatingAdmissionWebhook": "MutatingWebhookConfiguration",
}
_NAMESPACE: Final = "default"
"""Any will do: the operator's is not known before it is installed."""
_REFUSALS: Final = {
    Refusal.TWICE: "csv-webhook-twice",
    Refusal.RULE: "csv-webhook-rule",
    Refusal.NAME: "csv-webhook-name",
    Refusal.NOTHING_CONVERTED: "csv-conversion-empty",
}
_NAMES: Final = {
    "name": "generateName",
    "clientConfig.service.name": "deploymentName",
    "clientConfig.service.path": "webhookPath",
    "clientConfig.service.port": "containerPort",
    "conversionReviewVersions": "admissionReviewVersions",
}
"""The fields of a webhook that have another name in a ClusterServiceVersion."""


@of_csv
def run(csv: ClusterServiceVersion, subject: Subject) -> Iterator[Problem]:
    problems = (*_strategy(csv), *_accounts(csv, subject.bundle), *_servers(csv))
    yield from _unreported(problems, subject.bundle)


@of_csv
def webhooks(csv: ClusterServiceVersion, subject: Subject) -> Iterator[Problem]:
    described = csv.spec.webhookdefinitions
    found: list[_Placed] = [
        (index, (_REFUSALS[which], path, text))
        for index, which, path, text in refused_webhooks([each.to_dict() for each in described])
    ]
    for index, webhook in enumerate(described):
        found += [(index, each) for each in (*_admission(webhook), *_owned(webhook, csv))]
    found += dict.fromkeys(_conversions(csv, subject.bundle))  # one webhook converts many definitions
    problems = [(code, f"spec.webhookdefinitions[{index}].{path}", text) for index, (code, path, text) in found]
    yield from _unreported(problems, subject.bundle)


_Placed: TypeAlias = tuple[int, Problem]
"""The place of a webhook in the list, and a problem whose field is below it."""


def _unreported(problems: Sequence[Problem], bundle: Bundle) -> Iterator[Problem]:
    """Yield the problems of fields about which there is no other finding."""
    wrong = {path for _, path, _ in wrong_fields(bundle.csv)} if bundle.csv else set[str]()
    yield from (each for each in problems if each[1] not in wrong)


def _strategy(csv: ClusterServiceVersion) -> Iterator[Problem]:
    install, path = csv.spec.install, "spec.install.spec"
    if install.strategy != "deployment":
        yield "csv-strategy", "spec.install.strategy", f"unknown strategy {install.strategy!r}. Write deployment"
    if install.spec is None:
        return
    names: set[str] = set()
    for index, each in enumerate(install.spec.deployments):
        if each.name in names:
            text = f"{each.name} is also the name of another Deployment, but OLM creates only one. Rename one of them"
            yield "csv-deployment-twice", f"{path}.deployments[{index}].name", text
        names.add(each.name)
        yield from _deployment(each, f"{path}.deployments[{index}]")
    roles: tuple[tuple[str, str, Sequence[Permissions]], ...] = (
        ("permissions", "Role", install.spec.permissions),
        ("clusterPermissions", "ClusterRole", install.spec.cluster_permissions),
    )
    for name, kind, several in roles:
        for index, permissions in enumerate(several):
            rules = [rule.to_dict() for rule in permissions.rules]
            document = {"apiVersion": _RBAC, "kind": kind, "metadata": {"name": "role"}, "rules": rules}
            for field, text in refused(document):
                yield "csv-permission", f"{path}.{name}[{index}].{field}", text


def _deployment(deployment: NamedDeployment, path: str) -> Iterator[Problem]:
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": deployment.name, "labels": deployment.label or {}},
        "spec": deployment.spec.to_dict(),
    }
    for field, text in refused(document):
        own = field.replace("metadata.labels", "label", 1) if field.startswith("metadata.") else field
        yield "csv-deployment", f"{path}.{own.removeprefix('metadata.')}", text


def _accounts(csv: ClusterServiceVersion, bundle: Bundle) -> Iterator[Problem]:
    strategy = csv.spec.install.spec
    if strategy is None:
        return
    made = {each.service_account_name for each in (*strategy.permissions, *strategy.cluster_permissions)}
    made |= {each.name for each in bundle.of_kind("", "ServiceAccount")} | {"", "default"}
    for index, deployment in enumerate(strategy.deployments):
        name = deployment.spec.template.spec.service_account_name
        if name not in made:
            path = f"spec.install.spec.deployments[{index}].spec.template.spec.serviceAccountName"
            text = f"the ServiceAccount {name} is not created. Add its permissions to spec.install.spec"
            yield "csv-service-account", path, text


def _servers(csv: ClusterServiceVersion) -> Iterator[Problem]:
    strategy, spec = csv.spec.install.spec, csv.spec
    names = {each.name for each in strategy.deployments} if strategy else set[str]()
    servers = [
        (f"webhookdefinitions[{index}]", each.deployment_name) for index, each in enumerate(spec.webhookdefinitions)
    ]
    servers += [
        (f"apiservicedefinitions.owned[{index}]", each.deployment_name)
        for index, each in enumerate(spec.apiservicedefinitions.owned)
    ]
    for path, name in servers:
        if name not in names:
            advice = f"Use {' or '.join(sorted(names))}" if names else "Add it there"
            text = f"{name!r} is not a Deployment of spec.install.spec. {advice}"
            yield "csv-server-deployment", f"spec.{path}.deploymentName", text


def _admission(webhook: WebhookDescription) -> Iterator[Problem]:
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
        yield "csv-webhook", _NAMES.get(known, known), text


def _conversions(csv: ClusterServiceVersion, bundle: Bundle) -> Iterator[_Placed]:
    """Yield the problems of the conversion that OLM writes into CRDs.

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
                yield index, ("csv-webhook", _NAMES.get(known, "conversionCRDs"), text)


def _owned(webhook: WebhookDescription, csv: ClusterServiceVersion) -> Iterator[Problem]:
    owned = {each.name for each in csv.spec.customresourcedefinitions.owned}
    for name in webhook.conversion_crds:
        if name not in owned:
            text = f"{name} is not in spec.customresourcedefinitions.owned, but OLM converts only owned kinds. Add it there"
            yield "csv-conversion-crd", "conversionCRDs", text
    others = [mode.type for mode in csv.spec.install_modes if mode.supported and mode.type != "AllNamespaces"]
    if webhook.conversion_crds and others:
        text = f"a conversion is for the whole cluster. Support only AllNamespaces, and not {', '.join(others)}"
        yield "csv-conversion-install-modes", "conversionCRDs", text
