"""What OLM makes out of a ClusterServiceVersion: Deployments, roles and webhooks, and what these need of each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from ctrlruntime.olm.api import ClusterServiceVersion, NamedDeployment, Permissions, WebhookDescription
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.fields import wrong_fields
from ctrlruntime.olm.validation.manifests import UNKNOWN_FIELD, problems
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["VALIDATOR"]

_RBAC: Final = "rbac.authorization.k8s.io/v1"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_CONFIGURATIONS: Final = {
    "ValidatingAdmissionWebhook": "ValidatingWebhookConfiguration",
    "MutatingAdmissionWebhook": "MutatingWebhookConfiguration",
}

_error = partial(Check, level=Level.ERROR, type="CSVFileNotValid")
_STRATEGY: Final = _error(code="csv-strategy", summary="the install strategy is not `deployment`")
_DEPLOYMENT: Final = _error(code="csv-deployment", summary="kube-apiserver would refuse a Deployment of spec.install")
_PERMISSION: Final = _error(code="csv-permission", summary="kube-apiserver would refuse a role of spec.install")
_WEBHOOK: Final = _error(code="csv-webhook", summary="kube-apiserver would refuse a webhook of spec.webhookdefinitions")
_ACCOUNT: Final = _error(code="csv-service-account", summary="a Deployment runs as a ServiceAccount that nothing makes")
_NO_DEPLOYMENT: Final = _error(
    code="csv-server-deployment", summary="a webhook or API service is served by a Deployment that is not there"
)
_CONVERTED: Final = _error(
    code="csv-conversion-crd", summary="a webhook converts a kind that the operator does not own"
)
_MODES: Final = _error(
    code="csv-conversion-install-modes", summary="a kind is converted, and another mode than AllNamespaces is supported"
)

_Said: TypeAlias = Iterator[tuple[Check, str, str]]
"""Check, path and text."""


def _run(subject: Subject) -> Iterator[Finding]:
    csv, found = subject.csv, subject.csv_object
    if csv is None or found is None:
        return
    told = {each.path for each in wrong_fields(subject)}
    for check, path, text in (*_strategy(csv), *_accounts(subject.bundle, csv), *_servers(csv), *_conversions(csv)):
        if path not in told:
            yield about(check, found, text, path)


def _strategy(csv: ClusterServiceVersion) -> _Said:
    install = csv.spec.install
    if install.strategy != "deployment":
        yield _STRATEGY, "spec.install.strategy", f"{install.strategy!r} is unknown to OLM; write deployment"
    if install.spec is None:
        return
    path = "spec.install.spec"
    for index, each in enumerate(install.spec.deployments):
        yield from _deployment(each, f"{path}.deployments[{index}]")
    roles: tuple[tuple[str, str, Sequence[Permissions]], ...] = (
        ("permissions", "Role", install.spec.permissions),
        ("clusterPermissions", "ClusterRole", install.spec.cluster_permissions),
    )
    for name, kind, several in roles:
        for index, permissions in enumerate(several):
            yield from _permission(kind, permissions, f"{path}.{name}[{index}]")
    for index, webhook in enumerate(csv.spec.webhookdefinitions):
        if webhook.type in _CONFIGURATIONS:
            yield from _webhook(webhook, f"spec.webhookdefinitions[{index}]")


def _deployment(deployment: NamedDeployment, path: str) -> _Said:
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": deployment.name, "labels": deployment.label or {}},
        "spec": deployment.spec.to_wire(),
    }
    for field, text in _refused(document):
        own = field.replace("metadata.labels", "label", 1) if field.startswith("metadata.") else field
        yield _DEPLOYMENT, f"{path}.{own.removeprefix('metadata.')}", text


def _permission(kind: str, permissions: Permissions, path: str) -> _Said:
    rules = [rule.to_wire() for rule in permissions.rules]
    document = {"apiVersion": _RBAC, "kind": kind, "metadata": {"name": "role"}, "rules": rules}
    for field, text in _refused(document):
        yield _PERMISSION, f"{path}.{field}", text


def _webhook(webhook: WebhookDescription, path: str) -> _Said:
    """Yield what is wrong with the configuration OLM makes, which is the webhook but for where it is served."""
    own: dict[str, Any] = webhook.to_wire()
    for name in ("type", "deploymentName", "containerPort", "targetPort", "conversionCRDs"):
        own.pop(name, None)
    service: dict[str, Any] = {"name": "service", "namespace": "default", "port": webhook.container_port or 443}
    if webhook.webhook_path:
        service["path"] = own.pop("webhookPath")
    configured = {**own, "name": own.pop("generateName", ""), "clientConfig": {"service": service}}
    configured.pop("generateName", None)
    kind = _CONFIGURATIONS[webhook.type]
    document = {"apiVersion": _ADMISSION, "kind": kind, "metadata": {"name": "webhook"}, "webhooks": [configured]}
    for field, text in _refused(document):
        known = field.removeprefix("webhooks[0].")
        yield _WEBHOOK, f"{path}.{_NAMES.get(known, known)}", text


_NAMES: Final = {
    "name": "generateName",
    "clientConfig.service.path": "webhookPath",
    "clientConfig.service.port": "containerPort",
}
"""The fields of a webhook that a ClusterServiceVersion calls otherwise."""


def _refused(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield path and text. Fields that are unknown are told by another check."""
    for problem in problems(document):
        if problem.text != UNKNOWN_FIELD:
            yield problem.path, problem.text


def _accounts(bundle: Bundle, csv: ClusterServiceVersion) -> _Said:
    strategy = csv.spec.install.spec
    if strategy is None:
        return
    made = {each.service_account_name for each in (*strategy.permissions, *strategy.cluster_permissions)}
    made |= {each.name for each in bundle.of_kind("", "ServiceAccount")} | {"", "default"}
    for index, deployment in enumerate(strategy.deployments):
        name = deployment.spec.template.spec.service_account_name
        if name not in made:
            path = f"spec.install.spec.deployments[{index}].spec.template.spec.serviceAccountName"
            text = f"nothing makes the account {name}; give it permissions in spec.install.spec"
            yield _ACCOUNT, path, text


def _servers(csv: ClusterServiceVersion) -> _Said:
    strategy = csv.spec.install.spec
    names = {each.name for each in strategy.deployments} if strategy else set[str]()
    webhooks, services = csv.spec.webhookdefinitions, csv.spec.apiservicedefinitions.owned
    servers = [(f"spec.webhookdefinitions[{index}]", each.deployment_name) for index, each in enumerate(webhooks)]
    servers += [
        (f"spec.apiservicedefinitions.owned[{index}]", each.deployment_name) for index, each in enumerate(services)
    ]
    for path, name in servers:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            text = f"{name!r} is no Deployment of spec.install.spec; there are {known}"
            yield _NO_DEPLOYMENT, f"{path}.deploymentName", text


def _conversions(csv: ClusterServiceVersion) -> _Said:
    owned = {each.name for each in csv.spec.customresourcedefinitions.owned}
    for index, webhook in enumerate(csv.spec.webhookdefinitions):
        path = f"spec.webhookdefinitions[{index}].conversionCRDs"
        for name in webhook.conversion_crds:
            if name not in owned:
                text = f"{name} is not in spec.customresourcedefinitions.owned; OLM converts owned kinds alone"
                yield _CONVERTED, path, text
        others = [mode.type for mode in csv.spec.install_modes if mode.supported and mode.type != "AllNamespaces"]
        if webhook.conversion_crds and others:
            text = f"a conversion is for the whole cluster; support AllNamespaces alone, and not {', '.join(others)}"
            yield _MODES, path, text


VALIDATOR: Final = Validator(
    name="installation",
    summary="Deployments, roles and webhooks that OLM makes",
    checks=(_STRATEGY, _DEPLOYMENT, _PERMISSION, _WEBHOOK, _ACCOUNT, _NO_DEPLOYMENT, _CONVERTED, _MODES),
    run=_run,
)
