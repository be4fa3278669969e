"""The templates of a chart: each object of a project in its folder, under the conditions it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ctrlruntime.generate.options import Document
from ctrlruntime.project.config.layout import (
    ACCOUNT,
    DEPLOYMENT,
    METRICS_PORT,
    METRICS_SERVICE,
    WEBHOOK_PORT,
    WEBHOOK_SERVICE,
)
from ctrlruntime.project.helm.conditions import Case, joined
from ctrlruntime.project.helm.deployment import manager_template
from ctrlruntime.project.helm.forms import WEBHOOKS, Forms, Key
from ctrlruntime.project.helm.merging import merge
from ctrlruntime.project.helm.names import Names
from ctrlruntime.project.helm.template import Block, Expressions, When, written_as_template
from ctrlruntime.project.settings import Settings

__all__ = ["manager_of", "template_files"]

_FOLDERS: Final = {
    "CustomResourceDefinition": "crd",
    "ServiceAccount": "rbac",
    "Role": "rbac",
    "RoleBinding": "rbac",
    "ClusterRole": "rbac",
    "ClusterRoleBinding": "rbac",
    "MutatingWebhookConfiguration": "webhook",
    "ValidatingWebhookConfiguration": "webhook",
    "Certificate": "cert-manager",
    "Issuer": "cert-manager",
    "ServiceMonitor": "prometheus",
    "NetworkPolicy": "network-policy",
    "PodDisruptionBudget": "sharding",
}
_HELPER_ROLES: Final = ("-admin-role", "-editor-role", "-viewer-role")
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_CHART: Final = "helm.sh/chart"
_INSTANCE: Final = "app.kubernetes.io/instance"
_KEEP: Final = Block(("{{- if .Values.crd.keep }}", "helm.sh/resource-policy: keep", "{{- end }}"))
_SCHEME: Final = 'ternary "https" "http" .Values.metrics.secure'


def template_files(forms: Forms, settings: Settings) -> dict[str, str]:
    """Return the text of each template that is an object, by its path below `templates/`."""
    return _Templates(forms, settings).files()


def manager_of(forms: Forms, settings: Settings) -> Document | None:
    """Return the operator's Deployment in the case the settings choose, None when the project has none."""
    for key, cases in forms.objects.items():
        if _is_manager(key, settings) and forms.default in cases:
            return cases[forms.default]
    return None


def _is_manager(key: Key, settings: Settings) -> bool:
    return key[1] == "Deployment" and key[3] == f"{settings.project_name}-{DEPLOYMENT}"


class _Templates:
    def __init__(self, forms: Forms, settings: Settings) -> None:
        self._forms = forms
        self._settings = settings
        self._expressions = Expressions()
        first = [next(iter(cases.values())) for cases in forms.objects.values()]
        self._names = Names(settings, first, self._expressions)

    def files(self) -> dict[str, str]:
        found: dict[str, list[str]] = {}
        for key, cases in self._forms.objects.items():
            if not self._is_left_out(key):
                found.setdefault(self._path(key), []).append(self._document(key, cases))
        return {path: "".join(texts) for path, texts in sorted(found.items())}

    def _is_left_out(self, key: Key) -> bool:
        """The namespace is Helm's to make, and objects of the project's kinds are not part of the operator."""
        api_version, kind, _, name = key
        if kind == "Namespace":
            return name == self._settings.namespace
        return (api_version.partition("/")[0], kind) in self._forms.definitions

    def _path(self, key: Key) -> str:
        _, kind, _, name = key
        suffix = self._names.suffix(name)
        folder = _FOLDERS.get(kind, "extras")
        if _is_manager(key, self._settings):
            return "manager/manager.yaml"
        if kind == "Service":
            folder = {METRICS_SERVICE: "metrics", WEBHOOK_SERVICE: "webhook"}.get(suffix, folder)
        if folder == "extras" or kind == "ServiceAccount":
            suffix = f"{suffix}-{kind.lower()}"
        return f"{folder}/{suffix.replace(':', '-')}.yaml"

    def _document(self, key: Key, cases: Mapping[Case, Document]) -> str:
        among = frozenset(cases)
        tree = merge({case: self._prepared(key, each) for case, each in cases.items()})
        text = "---\n" + written_as_template(tree, self._expressions, self._forms.switches, among)
        condition = joined("and", list(self._conditions(key, cases)))
        return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text

    def _conditions(self, key: Key, cases: Mapping[Case, Document]) -> Iterator[str]:
        _, kind, _, name = key
        yield self._forms.switches.condition(frozenset(cases), frozenset(self._forms.switches.cases))
        yield self._forms.optional.get(key, "")
        if kind == "CustomResourceDefinition":
            yield ".Values.crd.enabled"
        elif kind == "ServiceAccount" and self._names.suffix(name) == ACCOUNT:
            yield ".Values.serviceAccount.enabled"
        elif kind == "ClusterRole" and name.endswith(_HELPER_ROLES):
            yield ".Values.rbac.helpers.enabled"
        elif _is_manager(key, self._settings):
            yield ".Values.manager.enabled"

    # What is in a document

    def _prepared(self, key: Key, each: Document) -> Document:
        """Return one form of an object with expressions in it."""
        kind = key[1]
        found = self._names.replaced(each)
        found["metadata"] = self._metadata(found["metadata"], kind)
        suffix = self._names.suffix(key[3])
        if _is_manager(key, self._settings):
            switch = self._forms.switches.values.get(WEBHOOKS, "")
            return manager_template(
                found,
                self._names,
                self._expressions,
                has_webhooks=self._forms.has_webhooks,
                webhooks_switch=switch,
            )
        match kind:
            case "ServiceAccount" if suffix == ACCOUNT:
                found["metadata"]["name"] = self._names.account()
                annotations = found["metadata"].setdefault("annotations", {})
                lines = (
                    "{{- with .Values.serviceAccount.annotations }}",
                    "{{- toYaml . | nindent @+0@ }}",
                    "{{- end }}",
                )
                if annotations:
                    annotations["more"] = Block(lines)
                else:
                    found["metadata"]["annotations"] = Block(
                        (lines[0], "annotations:", "  {{- toYaml . | nindent @+2@ }}", lines[2])
                    )
            case "RoleBinding" | "ClusterRoleBinding":
                for subject in found.get("subjects") or ():
                    if subject["kind"] == "ServiceAccount" and subject["name"] == self._names.mark(ACCOUNT):
                        subject["name"] = self._names.account()
            case "Service" if suffix == METRICS_SERVICE:
                self._set_ports(found, METRICS_PORT, ".Values.metrics.port")
                for port in found["spec"]["ports"]:
                    if port.get("name") == "https":
                        port["name"] = self._expressions.mark(_SCHEME)
            case "Service" if suffix == WEBHOOK_SERVICE:
                self._set_ports(found, WEBHOOK_PORT, ".Values.webhook.port")
            case "NetworkPolicy":
                self._set_ports(found, METRICS_PORT, ".Values.metrics.port")
                self._set_ports(found, WEBHOOK_PORT, ".Values.webhook.port")
            case "ServiceMonitor":
                for endpoint in found["spec"].get("endpoints") or ():
                    self._set_scheme(endpoint)
            case _:
                pass
        return found

    def _metadata(self, metadata: Document, kind: str) -> Document:
        labels = {**(metadata.get("labels") or {}), _MANAGED_BY: self._expressions.mark(".Release.Service")}
        labels[_INSTANCE] = self._expressions.mark(".Release.Name | quote")
        labels[_CHART] = self._expressions.mark(f'include "{self._settings.project_name}.chart" .')
        found = {**metadata, "labels": labels}
        if kind == "CustomResourceDefinition":
            found["annotations"] = {**(metadata.get("annotations") or {}), "keep": _KEEP}
            if len(found["annotations"]) == 1:
                found["annotations"] = Block((_KEEP.lines[0], "annotations:", f"  {_KEEP.lines[1]}", _KEEP.lines[2]))
        return found

    def _set_ports(self, node: Any, number: int, value: str) -> None:
        """Put a value in the place of a port's number, wherever a Service or a policy names it."""
        if isinstance(node, list):
            for each in node:
                self._set_ports(each, number, value)
        elif isinstance(node, dict):
            for key, each in node.items():
                if key in {"port", "targetPort"} and each == number:
                    node[key] = self._expressions.mark(value)
                else:
                    self._set_ports(each, number, value)

    def _set_scheme(self, endpoint: Document) -> None:
        for key in ("port", "scheme"):
            if endpoint.get(key) == "https":
                endpoint[key] = self._expressions.mark(_SCHEME)
        for key in ("bearerTokenFile", "tlsConfig"):
            if key in endpoint:
                endpoint[key] = When(".Values.metrics.secure", endpoint[key])
