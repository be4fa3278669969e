"""The objects as the Operator Lifecycle Manager needs them, from any tree: without the parts that it provides itself.

It creates and mounts the certificate of the webhooks. So all parts of cert-manager are removed: its objects, the volumes of its Secrets
with their mounts, and variables and arguments with the folders of the mounts. They are found by name, so their places in a list do not
matter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.generate.options import Document
from ctrlruntime.olm.csv.deployments import containers_of
from ctrlruntime.olm.csv.objects import Key, Objects, name_of, namespace_of, pod_of
from ctrlruntime.olm.trees import listed, mapping, maps
from ctrlruntime.project.config.access import CERTIFICATE_ROLE

__all__ = ["Certificates", "profile", "without_strangers"]

_CERT_MANAGER: Final = "cert-manager.io"
_FOLDER: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - in the container
_FOLDERS: Final = (_FOLDER, "/apiserver.local.config/certificates")
"""The folders of tls.crt and tls.key (apiservice.crt and apiservice.key) in each container of a Deployment that serves the API server."""

_OWN_CERTIFICATE: Final = (
    "WEBHOOK_DEFINITIONS",
    "WEBHOOK_MUTATING",
    "WEBHOOK_SECRET",
    "WEBHOOK_SERVICE",
    "WEBHOOK_VALIDATING",
)
_MADE_BY_BUNDLES: Final = (
    ("", "Namespace"),
    ("operators.coreos.com", "ClusterServiceVersion"),
    ("scorecard.operatorframework.io", "Configuration"),
)


@dataclass(frozen=True, slots=True)
class Certificates:
    """The Secrets that cert-manager would fill: `{(namespace, name): whether it is for webhooks}`."""

    secrets: Mapping[Key, bool]

    @classmethod
    def of(cls, objects: Objects) -> Certificates:
        """Find them by the Certificates. One is for webhooks if its host is that of a Service of a webhook."""
        hosts = tuple(f"{name}.{namespace}." for namespace, name in _webhook_services(objects))
        found: dict[Key, bool] = {}
        for each in objects.of(_CERT_MANAGER, "Certificate"):
            spec = mapping(each.get("spec"))
            names = listed(spec.get("dnsNames"))
            found[namespace_of(each), str(spec.get("secretName"))] = any(str(name).startswith(hosts) for name in names)
        return cls(found)


def without_strangers(objects: Objects) -> None:
    """Remove the objects that are not files of a bundle: Namespaces, and those that are written separately."""
    objects.take(each for group, kind in _MADE_BY_BUNDLES for each in objects.of(group, kind))


def profile(objects: Objects, certificates: Certificates, serving: Collection[str]) -> None:
    """Change the objects in place. `serving`: the Deployments that serve the API server, and get the certificate."""
    objects.take(_of_cert_manager(objects))
    for deployment in objects.deployments:
        is_serving = name_of(deployment) in serving
        _unmount(deployment, certificates, is_serving=is_serving)
        if _keeps_own_certificate(deployment):
            _with_given_certificate(deployment)
            objects.take(_roles_of_own_certificate(objects))
    for monitor in objects.of("monitoring.coreos.com", "ServiceMonitor"):
        _trust_any(monitor, certificates)
    for each in objects.documents:
        _without_injection(each)


def _of_cert_manager(objects: Objects) -> list[Document]:
    return [*objects.of(_CERT_MANAGER), *objects.of(f"acme.{_CERT_MANAGER}")]


def _webhook_services(objects: Objects) -> Iterable[Key]:
    configurations = objects.of(
        "admissionregistration.k8s.io", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
    )
    clients = [
        mapping(webhook.get("clientConfig")) for each in configurations for webhook in maps(each.get("webhooks"))
    ]
    for definition in objects.definitions:
        webhook = mapping(mapping(mapping(definition.get("spec")).get("conversion")).get("webhook"))
        clients.append(mapping(webhook.get("clientConfig")))
    for client in clients:
        if service := mapping(client.get("service")):
            yield str(service.get("namespace")), str(service.get("name"))


# Mounts


def _unmount(deployment: Document, certificates: Certificates, *, is_serving: bool) -> None:
    """Remove volumes of such Secrets from the Pods, with their mounts and the values with their folders."""
    pod, namespace = pod_of(deployment), namespace_of(deployment)
    gone: dict[str, bool] = {}
    for volume in maps(pod.get("volumes")):
        found = [
            certificates.secrets[namespace, name]
            for name in _secrets_of(volume)
            if (namespace, name) in certificates.secrets
        ]
        if found:
            gone[str(volume.get("name"))] = any(found)
    if not gone:
        return
    _keep(pod, "volumes", [each for each in maps(pod.get("volumes")) if each.get("name") not in gone])
    for container in containers_of(deployment):
        mounts = maps(container.get("volumeMounts"))
        for mount in mounts:
            if mount.get("name") in gone:
                is_given = is_serving and (gone[str(mount["name"])] or mount.get("mountPath") in _FOLDERS)
                _rename_folder(container, str(mount.get("mountPath")).rstrip("/"), _given(mount) if is_given else "")
        _keep(container, "volumeMounts", [each for each in mounts if each.get("name") not in gone])


def _given(mount: Mapping[str, Any]) -> str:
    """Return the folder that replaces a mount."""
    folder = str(mount.get("mountPath")).rstrip("/")
    return folder if folder in _FOLDERS else _FOLDER


def _secrets_of(volume: Mapping[str, Any]) -> list[str]:
    sources = [
        mapping(each.get("secret")).get("name") for each in maps(mapping(volume.get("projected")).get("sources"))
    ]
    return [str(name) for name in (mapping(volume.get("secret")).get("secretName"), *sources) if name]


def _rename_folder(container: Document, folder: str, new: str) -> None:
    """Change a folder, and files in it, in variables and arguments; without a new one, such a value becomes empty."""

    def changed(text: str) -> str:
        flag, equals, value = text.partition("=") if text.startswith("-") else ("", "", text)
        if value != folder and not value.startswith(f"{folder}/"):
            return text
        return f"{flag}{equals}{new + value.removeprefix(folder) if new else ''}"

    for variable in maps(container.get("env")):
        if isinstance(variable.get("value"), str):
            variable["value"] = changed(variable["value"])
    for word in ("args", "command"):
        if isinstance(container.get(word), list):
            container[word] = [changed(each) if isinstance(each, str) else each for each in container[word]]


def _keep(tree: Document, word: str, kept: Sequence[Document]) -> None:
    if kept:
        tree[word] = list(kept)
    else:
        tree.pop(word, None)


# A certificate the operator keeps in a Secret


def _keeps_own_certificate(deployment: Document) -> bool:
    return any(
        each.get("name") == "WEBHOOK_SECRET"
        for container in containers_of(deployment)
        for each in maps(container.get("env"))
    )


def _with_given_certificate(deployment: Document) -> None:
    """Let the operator serve with the mounted certificate, and create none."""
    for container in containers_of(deployment):
        variables = maps(container.get("env"))
        if not any(each.get("name") == "WEBHOOK_SECRET" for each in variables):
            continue
        kept = [each for each in variables if each.get("name") not in (*_OWN_CERTIFICATE, "WEBHOOK_CERT_PATH")]
        container["env"] = [*kept, {"name": "WEBHOOK_CERT_PATH", "value": _FOLDER}]


def _roles_of_own_certificate(objects: Objects) -> list[Document]:
    """Return the roles for it and their bindings, which allow writes of Secrets and webhook configurations: they are not needed now."""
    group = "rbac.authorization.k8s.io"
    bindings = objects.of(group, "RoleBinding", "ClusterRoleBinding")
    return [
        *(each for each in objects.of(group, "Role", "ClusterRole") if name_of(each).endswith(CERTIFICATE_ROLE)),
        *(each for each in bindings if str(mapping(each.get("roleRef")).get("name")).endswith(CERTIFICATE_ROLE)),
    ]


# Who trusts a certificate


def _trust_any(monitor: Document, certificates: Certificates) -> None:
    """Let a ServiceMonitor scrape without a CA: the operator then signs the certificate of its metrics itself."""
    for endpoint in maps(mapping(monitor.get("spec")).get("endpoints")):
        tls = mapping(endpoint.get("tlsConfig"))
        named = [mapping(mapping(tls.get(word)).get("secret")).get("name") for word in ("ca", "cert")]
        named.append(mapping(tls.get("keySecret")).get("name"))
        if any((namespace_of(monitor), str(name)) in certificates.secrets for name in named):
            kept = {word: value for word, value in tls.items() if word not in ("ca", "cert", "keySecret", "serverName")}
            endpoint["tlsConfig"] = {**kept, "insecureSkipVerify": True}


def _without_injection(document: Document) -> None:
    annotations = mapping(document["metadata"].get("annotations"))
    kept = {name: value for name, value in annotations.items() if not name.startswith(f"{_CERT_MANAGER}/inject-")}
    if len(kept) < len(annotations):
        document["metadata"].pop("annotations")
        if kept:
            document["metadata"]["annotations"] = kept
