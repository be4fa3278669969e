"""What OLM makes of a ClusterServiceVersion, and what a kubelet makes of its Deployment: for servers that have neither.

As documents: accounts and roles, the Deployment with what OLM adds to it, the OperatorCondition, Services and webhook configurations. OLM puts
hashes into the names of roles; here a number stands in their place. Webhooks that OLM refuses are refused: nothing is made then.
"""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from ctrlruntime.testing import Environment

Document: TypeAlias = dict[str, Any]

CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"
"""Where OLM mounts the certificate of webhooks."""

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io/v1"
_CONFIGURATIONS = {
    "MutatingAdmissionWebhook": "MutatingWebhookConfiguration",
    "ValidatingAdmissionWebhook": "ValidatingWebhookConfiguration",
}
_OF_A_WEBHOOK = (
    "admissionReviewVersions", "failurePolicy", "matchPolicy", "objectSelector", "reinvocationPolicy", "rules", "sideEffects",
    "timeoutSeconds",
)  # fmt: skip


_PORT = 443
"""That of a webhook without containerPort."""

_GENERATED = "olm.webhook-description-generate-name"
_KEPT = {
    "*",
    *(f"{each}webhookconfiguration{ending}" for each in ("mutating", "validating") for ending in ("", "s")),
}
LONGEST_LABEL = 63


class InstallationError(Exception):
    """OLM fails the ClusterServiceVersion."""


@dataclass(frozen=True, kw_only=True)
class Installation:
    """One ClusterServiceVersion in one namespace."""

    csv: Document
    namespace: str
    targets: tuple[str, ...] = ()
    """The namespaces of its OperatorGroup; none are all there are."""

    is_lifted: bool = True
    """With all namespaces as targets OLM makes `permissions` hold in all. Without it they hold in the operator's alone."""

    authority: bytes = b""
    """What webhooks are trusted by, as PEM."""

    @property
    def name(self) -> str:
        return self.csv["metadata"]["name"]

    @property
    def strategy(self) -> Document:
        return self.csv["spec"]["install"]["spec"]

    @property
    def webhooks(self) -> list[Document]:
        return self.csv["spec"].get("webhookdefinitions", [])

    @property
    def accounts(self) -> list[str]:
        granted = [*self.strategy.get("permissions", []), *self.strategy.get("clusterPermissions", [])]
        return sorted({each["serviceAccountName"] for each in granted})

    def objects(self) -> list[Document]:
        """Return all of it, in an order in which it can be created. Raises: InstallationError."""
        _refuse(self.webhooks)
        return [*self._accounts(), *self._roles(), *self._condition(), *self._deployments(), *self._services(),
                *self._configurations()]  # fmt: skip

    def _accounts(self) -> Iterator[Document]:
        for name in self.accounts:
            yield {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": self.namespace},
            }

    def _roles(self) -> Iterator[Document]:
        watched: tuple[str, ...] = self.targets or (("",) if self.is_lifted else ())
        for number, entry in enumerate(self.strategy.get("permissions", [])):
            for place in dict.fromkeys((self.namespace, *watched)):
                yield from self._grant(f"{self.name}-{number}", place, entry["rules"], entry["serviceAccountName"])
        for number, entry in enumerate(self.strategy.get("clusterPermissions", [])):
            yield from self._grant(f"{self.name}-cluster-{number}", "", entry["rules"], entry["serviceAccountName"])

    def _grant(self, name: str, place: str, rules: list[Document], *accounts: str) -> Iterator[Document]:
        """Yield a role and its binding in a namespace; with "" as place, in all."""
        scope = "" if place else "Cluster"
        metadata = {"name": name, "namespace": place} if place else {"name": f"{self.namespace}-{name}"}
        yield {"apiVersion": f"{_RBAC}/v1", "kind": f"{scope}Role", "metadata": metadata, "rules": rules}
        yield {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{scope}RoleBinding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": _RBAC, "kind": f"{scope}Role", "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": each, "namespace": self.namespace} for each in accounts],
        }

    def _condition(self) -> Iterator[Document]:
        deployments = [each["name"] for each in self.strategy.get("deployments", [])]
        yield {
            "apiVersion": "operators.coreos.com/v2",
            "kind": "OperatorCondition",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"deployments": deployments, "serviceAccounts": self.accounts},
        }
        rule = {
            "apiGroups": ["operators.coreos.com"],
            "resources": ["operatorconditions"],
            "resourceNames": [self.name],
            "verbs": ["get", "update", "patch"],
        }
        role, binding = self._grant(self.name, self.namespace, [rule], *self.accounts)
        binding["subjects"] = [{"kind": "ServiceAccount", "name": each} for each in self.accounts]  # as OLM has them
        yield from (role, binding)

    def _deployments(self) -> Iterator[Document]:
        for entry in self.strategy.get("deployments", []):
            spec = copy.deepcopy(entry["spec"])
            template = spec["template"]
            template["metadata"]["annotations"] = {
                **self.csv["metadata"].get("annotations", {}),
                **template["metadata"].get("annotations", {}),
                "olm.operatorGroup": "the-group",
                "olm.operatorNamespace": self.namespace,
                "olm.targetNamespaces": ",".join(self.targets),
            }
            for container in template["spec"]["containers"]:
                container.setdefault("env", []).append({"name": "OPERATOR_CONDITION_NAME", "value": self.name})
            if any(each.get("deploymentName") == entry["name"] for each in self.webhooks):
                _mount_certificates(template["spec"], f"{_service(entry['name'])}-cert")
            yield {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {
                    "name": entry["name"],
                    "namespace": self.namespace,
                    "labels": {**entry.get("label", {}), "olm.owner": self.name},
                },
                "spec": spec,
            }

    def _services(self) -> Iterator[Document]:
        selectors = {each["name"]: each["spec"]["selector"] for each in self.strategy.get("deployments", [])}
        for name in dict.fromkeys(each["deploymentName"] for each in self.webhooks):
            own = [each for each in self.webhooks if each["deploymentName"] == name]
            numbers = [each.get("containerPort", _PORT) for each in own]
            ports = {port: each.get("targetPort", port) for port, each in zip(numbers, own, strict=True)}
            yield {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": _service(name), "namespace": self.namespace},
                "spec": {
                    "selector": selectors[name]["matchLabels"],
                    "ports": [
                        {"name": str(port), "port": port, "targetPort": target} for port, target in ports.items()
                    ],
                },
            }

    def _configurations(self) -> Iterator[Document]:
        selector = {
            "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": [*self.targets]}]
        }
        for entry in self.webhooks:
            if entry["type"] not in _CONFIGURATIONS:
                continue
            webhook = {
                "name": entry["generateName"],
                **{word: entry[word] for word in _OF_A_WEBHOOK if word in entry},
                **({"namespaceSelector": selector} if self.targets else {}),
                "clientConfig": self._client_config(entry),
            }
            yield {
                "apiVersion": _ADMISSION,
                "kind": _CONFIGURATIONS[entry["type"]],
                "metadata": {
                    "name": f"{entry['generateName']}-{self.namespace}",
                    "labels": {"olm.owner": self.name, _GENERATED: entry["generateName"]},
                },
                "webhooks": [webhook],
            }

    def conversions(self) -> Iterator[tuple[str, Document]]:
        """Yield the definitions that a webhook of the operator converts, by name, and what OLM merges into each."""
        for entry in self.webhooks:
            for name in entry.get("conversionCRDs") or ():
                config = self._client_config(entry)
                webhook = {"clientConfig": config, "conversionReviewVersions": entry["admissionReviewVersions"]}
                yield name, {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}

    def _client_config(self, entry: Document) -> Document:
        service = {
            "name": _service(entry["deploymentName"]),
            "namespace": self.namespace,
            "path": entry.get("webhookPath", "/"),
            "port": entry.get("containerPort", _PORT),
        }
        return {"service": service, "caBundle": base64.b64encode(self.authority).decode()}


def _refuse(webhooks: list[Document]) -> None:
    """Refuse what OLM does. Raises: InstallationError for the first."""
    names: set[str] = set()
    for entry in webhooks:
        name = entry["generateName"]
        if name in names:
            raise InstallationError(f"there are two webhooks {name}")
        names.add(name)
        for rule in entry.get("rules", []):
            groups, resources = set(rule.get("apiGroups", [])), {each.lower() for each in rule.get("resources", [])}
            if groups & {"*", "operators.coreos.com"}:
                raise InstallationError(f"{name} is for {sorted(groups)}")
            if "admissionregistration.k8s.io" in groups and resources & _KEPT:
                raise InstallationError(f"{name} is for webhooks")
        if entry["type"] == "ConversionWebhook":
            if not entry.get("conversionCRDs"):
                raise InstallationError(f"{name} converts nothing")
        elif len(name) > LONGEST_LABEL:
            raise InstallationError(f"{name} is not a value of a label")


def _service(deployment: str) -> str:
    return f"{deployment.replace('.', '-')}-service"


def _mount_certificates(pod: Document, secret: str) -> None:
    items = [{"key": name, "path": name} for name in ("tls.crt", "tls.key")]
    pod.setdefault("volumes", []).append(
        {"name": "webhook-cert", "secret": {"secretName": secret, "items": items, "defaultMode": 0o644}}
    )
    for container in pod["containers"]:
        container.setdefault("volumeMounts", []).append({"name": "webhook-cert", "mountPath": CERTIFICATES})


# What a kubelet does


def environment(deployment: Document, pod: str = "pod") -> dict[str, str]:
    """Return the variables of the only container of a Deployment's Pods, one of which is called `pod`."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {each["name"]: _value(each, deployment, pod) for each in container.get("env", [])}


def _value(variable: Document, deployment: Document, pod: str) -> str:
    if "valueFrom" not in variable:
        return variable.get("value", "")
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    template = deployment["spec"]["template"]
    if found := re.fullmatch(r"metadata\.annotations\['(.+)'\]", path):
        return template["metadata"]["annotations"].get(found[1], "")
    return {
        "metadata.name": pod,
        "metadata.namespace": deployment["metadata"]["namespace"],
        "spec.serviceAccountName": template["spec"].get("serviceAccountName", "default"),
    }[path]


def arguments(deployment: Document, variables: Mapping[str, str]) -> list[str]:
    """Return the arguments of the only container, with the variables they name."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], each) for each in container.get("args", [])]


def kubeconfig_of(server: Environment, namespace: str, account: str) -> str:
    """Return the text of a kubeconfig with the token of a ServiceAccount, and nothing of the administrator's."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = server.connection.request("POST", path, asked)["status"]["token"]
    config = yaml.safe_load(server.kubeconfig)
    for user in config["users"]:
        user["user"] = {"token": token}
    return yaml.safe_dump(config)
