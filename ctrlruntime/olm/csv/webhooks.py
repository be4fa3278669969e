"""Webhooks in a ClusterServiceVersion: the Operator Lifecycle Manager creates their configurations, Services and certificates.

Each webhook of a configuration for admission becomes an entry. All CRDs that one path of one server converts become one entry, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.options import Document, Warn
from ctrlruntime.olm.conversion import client_config
from ctrlruntime.olm.csv.objects import Objects, labels_of, name_of, namespace_of, told
from ctrlruntime.olm.refusals import CONVERSION, refused_webhooks
from ctrlruntime.olm.trees import mapping, maps

__all__ = ["warn_of_refusals", "webhooks"]

_GROUP: Final = "admissionregistration.k8s.io"
_TYPES: Final = {
    "MutatingWebhookConfiguration": "MutatingAdmissionWebhook",
    "ValidatingWebhookConfiguration": "ValidatingAdmissionWebhook",
}
_KEPT: Final = ("failurePolicy", "matchPolicy", "objectSelector", "reinvocationPolicy", "rules", "timeoutSeconds")
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"


class _Server(NamedTuple):
    """A server: a Deployment, the port of its Service, and the port of its Pods."""

    deployment: str
    port: int
    target: int | str


def webhooks(objects: Objects, warn: Warn) -> list[Document]:
    """Return the entries, by name. Configurations, and Services that only webhooks use, are removed.

    CRDs with a conversion webhook get the client config of the Service that OLM creates. Raises: GenerateError for a webhook without a
    Deployment.
    """
    servers = _Servers(objects)
    found = [*_admission(objects, servers, warn), *_conversion(objects, servers)]
    objects.take(objects.of(_GROUP, *_TYPES))
    objects.take(servers.used_up())
    return sorted(found, key=lambda each: (each["generateName"], each["type"], each.get("webhookPath", "")))


def warn_of_refusals(entries: Sequence[Mapping[str, Any]], warn: Warn) -> None:
    """Warn of entries that the Operator Lifecycle Manager rejects, and with them the whole version."""
    for index, _, path, text in refused_webhooks(entries):
        entry = entries[index]
        warn(f"the webhook {entry.get('generateName')} ({entry.get('type')}) cannot be installed: {path}: {text}")


# For admission


def _admission(objects: Objects, servers: _Servers, warn: Warn) -> Iterator[Document]:
    for configuration in objects.of(_GROUP, *_TYPES):
        for webhook in maps(configuration.get("webhooks")):
            reference = mapping(mapping(webhook.get("clientConfig")).get("service"))
            where = f"{told(configuration)}: webhook {webhook.get('name')}"
            if not reference:
                warn(f"{where} is left out: it is called by URL, which a ClusterServiceVersion does not support")
                continue
            server = servers.of(reference, where)
            _warn_of_scope(webhook, str(reference.get("namespace") or ""), where, warn)
            yield {
                "type": _TYPES[configuration["kind"]],
                "generateName": str(webhook.get("name") or name_of(configuration)),
                **_told(server, reference),
                **{key: webhook[key] for key in _KEPT if webhook.get(key) not in (None, {}, [], "")},
                "sideEffects": webhook.get("sideEffects") or "None",
                "admissionReviewVersions": webhook.get("admissionReviewVersions") or ["v1"],
            }


def _warn_of_scope(webhook: Mapping[str, Any], namespace: str, where: str, warn: Warn) -> None:
    """Warn of limits of a webhook that a ClusterServiceVersion does not support."""
    if webhook.get("matchConditions"):
        warn(
            f"{where} has matchConditions, which a ClusterServiceVersion does not support, so it gets more requests. Check the request "
            f"in the webhook, or use objectSelector"
        )
    selector = mapping(webhook.get("namespaceSelector"))
    if _only_leaves_out(selector, namespace):
        if webhook.get("failurePolicy") != "Ignore" and not webhook.get("objectSelector"):
            warn(
                f"{where} excludes the operator's namespace, but the Operator Lifecycle Manager replaces its namespaceSelector. If no "
                f"Pod of the operator runs, the webhook blocks new ones. Set failure_policy to Ignore, or exclude the operator's Pods "
                f"with object_selector"
            )
    elif selector:
        warn(
            f"{where} has a namespaceSelector, which is left out: the Operator Lifecycle Manager sets it to the namespaces of the "
            f"OperatorGroup. Use objectSelector to limit the webhook"
        )


def _only_leaves_out(selector: Mapping[str, Any], namespace: str) -> bool:
    """Tell whether it is the selector of the generated tree, which excludes the operator's own namespace from webhooks for Pods."""
    own = {"key": _NAMESPACE_LABEL, "operator": "NotIn", "values": [namespace]}
    return selector == {"matchExpressions": [own]}


# For conversion


def _conversion(objects: Objects, servers: _Servers) -> Iterator[Document]:
    groups: dict[tuple[_Server, str], list[tuple[Document, Document]]] = {}
    for definition in objects.definitions:
        conversion = mapping(mapping(definition.get("spec")).get("conversion"))
        webhook = mapping(conversion.get("webhook"))
        reference = mapping(mapping(webhook.get("clientConfig")).get("service"))
        if conversion.get("strategy") == "Webhook" and reference:
            server = servers.of(reference, f"{told(definition)}: its conversion")
            groups.setdefault((server, str(reference.get("path") or "/")), []).append((definition, reference))
            # The strategy stays Webhook all the time. With None, the API server would serve and store objects of one version as they are
            # as those of another while an upgrade runs: the definition comes before the webhook. Its CA is not known before it is installed.
            webhook["clientConfig"] = client_config(
                server.deployment,
                namespace=str(reference.get("namespace") or ""),
                path=str(reference.get("path") or ""),
                port=server.port,
            )
    names: set[str] = set()
    for (server, _), converted in sorted(groups.items(), key=lambda item: min(name_of(each) for each, _ in item[1])):
        definitions = sorted((definition for definition, _ in converted), key=name_of)
        versions = [_review_versions(definition) for definition in definitions]
        yield {
            "type": CONVERSION,
            "generateName": _conversion_name(definitions, names),
            **_told(server, converted[0][1]),
            "conversionCRDs": [name_of(each) for each in definitions],
            "sideEffects": "None",
            "admissionReviewVersions": list(dict.fromkeys(each for many in versions for each in many)),
        }


def _conversion_name(definitions: Sequence[Document], taken: set[str]) -> str:
    """Return a unique name: from the plurals, and also from the group if the plurals are not unique."""
    plurals = "".join(name_of(each).partition(".")[0] for each in definitions)
    name = f"c{plurals}.kb.io"
    if name in taken:
        name = f"c{plurals}.{name_of(definitions[0]).partition('.')[2]}.kb.io"
    taken.add(name)
    return name


def _review_versions(definition: Document) -> list[str]:
    return mapping(definition["spec"]["conversion"].get("webhook")).get("conversionReviewVersions") or ["v1"]


# Servers


def _told(server: _Server, reference: Mapping[str, Any]) -> Document:
    path = reference.get("path")
    return {
        "deploymentName": server.deployment,
        "containerPort": server.port,
        "targetPort": server.target,
        **({"webhookPath": path} if path else {}),
    }


class _Servers:
    """Finds the Deployments behind the Services of webhooks."""

    def __init__(self, objects: Objects) -> None:
        self._services = {(namespace_of(each), name_of(each)): each for each in objects.of("", "Service")}
        self._deployments = objects.deployments
        self._used: dict[int, tuple[Document, set[int]]] = {}

    def of(self, reference: Mapping[str, Any], where: str) -> _Server:
        """Return the server behind a Service. Raises: GenerateError without one."""
        name, port = str(reference.get("name") or ""), reference.get("port") or 443
        service = self._services.get((str(reference.get("namespace") or ""), name))
        target: int | str = port
        if service is not None:
            self._used.setdefault(id(service), (service, set()))[1].add(port)
            ports = maps(mapping(service.get("spec")).get("ports"))
            target = next((each.get("targetPort") or port for each in ports if each.get("port") == port), port)
        return _Server(self._behind(service, name, where), port, target)

    def used_up(self) -> Iterable[Document]:
        """Return the Services that have only ports of webhooks."""
        for service, ports in self._used.values():
            if {each.get("port") for each in maps(service["spec"].get("ports"))} <= ports:
                yield service

    def _behind(self, service: Document | None, name: str, where: str) -> str:
        names = [name_of(each) for each in self._deployments]
        selector = mapping(mapping(service.get("spec")).get("selector")) if service is not None else {}
        for deployment in self._deployments if selector else ():
            labels = labels_of(mapping(mapping(deployment.get("spec")).get("template")))
            if selector.items() <= labels.items():
                return name_of(deployment)
        if (guess := name.removesuffix("-service")) in names:
            return guess
        if len(names) == 1 and service is None:
            return names[0]
        raise GenerateError(
            f"cannot add {where}: no Deployment matches the selector of the Service {name}. "
            f"Fix the selector, or the labels of the Pods"
        )
