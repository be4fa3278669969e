"""The objects that OLM creates from a ClusterServiceVersion: Deployments, roles, and the Deployments of webhooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

from ctrlruntime.olm.api import ClusterServiceVersion, NamedDeployment, Permissions
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.fields import wrong_fields
from ctrlruntime.olm.validation.manifests import refused
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["VALIDATOR"]

_RBAC: Final = "rbac.authorization.k8s.io/v1"

_error = partial(Check, level=Level.ERROR, type="CSVFileNotValid")
_STRATEGY: Final = _error(code="csv-strategy", summary="the install strategy is not `deployment`")
_DEPLOYMENT: Final = _error(code="csv-deployment", summary="kube-apiserver would reject a Deployment of spec.install")
_TWICE: Final = _error(code="csv-deployment-twice", summary="two Deployments of spec.install have the same name")
_PERMISSION: Final = _error(code="csv-permission", summary="kube-apiserver would reject a role of spec.install")
_ACCOUNT: Final = _error(code="csv-service-account", summary="a Deployment uses a ServiceAccount that is not created")
_NO_DEPLOYMENT: Final = _error(
    code="csv-server-deployment", summary="the Deployment of a webhook or API service does not exist"
)

_Said: TypeAlias = Iterator[tuple[Check, str, str]]
"""Check, path and text."""


def _run(subject: Subject) -> Iterator[Finding]:
    csv, found = subject.csv, subject.csv_object
    if csv is None or found is None:
        return
    told = {each.path for each in wrong_fields(subject)}
    for check, path, text in (*_strategy(csv), *_accounts(subject.bundle, csv), *_servers(csv)):
        if path not in told:
            yield about(check, found, text, path)


def _strategy(csv: ClusterServiceVersion) -> _Said:
    install = csv.spec.install
    if install.strategy != "deployment":
        yield _STRATEGY, "spec.install.strategy", f"unknown strategy {install.strategy!r}. Write deployment"
    if install.spec is None:
        return
    path = "spec.install.spec"
    names: set[str] = set()
    for index, each in enumerate(install.spec.deployments):
        if each.name in names:
            text = f"{each.name} is also the name of another Deployment, but OLM creates only one. Rename one of them"
            yield _TWICE, f"{path}.deployments[{index}].name", text
        names.add(each.name)
        yield from _deployment(each, f"{path}.deployments[{index}]")
    roles: tuple[tuple[str, str, Sequence[Permissions]], ...] = (
        ("permissions", "Role", install.spec.permissions),
        ("clusterPermissions", "ClusterRole", install.spec.cluster_permissions),
    )
    for name, kind, several in roles:
        for index, permissions in enumerate(several):
            yield from _permission(kind, permissions, f"{path}.{name}[{index}]")


def _deployment(deployment: NamedDeployment, path: str) -> _Said:
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": deployment.name, "labels": deployment.label or {}},
        "spec": deployment.spec.to_dict(),
    }
    for field, text in refused(document):
        own = field.replace("metadata.labels", "label", 1) if field.startswith("metadata.") else field
        yield _DEPLOYMENT, f"{path}.{own.removeprefix('metadata.')}", text


def _permission(kind: str, permissions: Permissions, path: str) -> _Said:
    rules = [rule.to_dict() for rule in permissions.rules]
    document = {"apiVersion": _RBAC, "kind": kind, "metadata": {"name": "role"}, "rules": rules}
    for field, text in refused(document):
        yield _PERMISSION, f"{path}.{field}", text


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
            text = f"the ServiceAccount {name} is not created. Add its permissions to spec.install.spec"
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
            advice = f"Use {' or '.join(sorted(names))}" if names else "Add it there"
            text = f"{name!r} is not a Deployment of spec.install.spec. {advice}"
            yield _NO_DEPLOYMENT, f"{path}.deploymentName", text


VALIDATOR: Final = Validator(
    name="installation",
    summary="Deployments and roles that OLM creates",
    checks=(_STRATEGY, _DEPLOYMENT, _TWICE, _PERMISSION, _ACCOUNT, _NO_DEPLOYMENT),
    run=_run,
)
