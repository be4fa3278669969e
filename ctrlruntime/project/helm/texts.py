"""The files of a chart that are not objects: Chart.yaml, values.yaml, helpers, notes, and what a package leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlruntime.generate.options import Document
from ctrlruntime.generate.text import dump
from ctrlruntime.project.helm.deployment import manager_values
from ctrlruntime.project.helm.forms import CERTIFICATES, WEBHOOKS, Forms
from ctrlruntime.project.helm.templates import manager_of
from ctrlruntime.project.settings import Settings

__all__ = ["HELMIGNORE", "MARK", "chart_text", "helpers_text", "notes_text", "values_text"]

MARK: Final = "{{- /* Written by `ctrl helm`: change the classes or files it is generated from, not this file. */ -}}\n"
"""The first line of each template. It is a comment of Helm, so the output does not have it, and a template that is off stays empty."""

_ONCE: Final = "# Edit this file as you like: `ctrl helm` writes it once.\n"

HELMIGNORE: Final = """\
# What is not part of the packaged chart.
.DS_Store
.git/
.gitignore
.idea/
.vscode/
*.bak
*.orig
*.swp
*.tmp
*~
"""

_HELPERS: Final = """\
{{/* What names of objects begin with: the release, and the chart where the release is not named after it. */}}
{{- define "PROJECT.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* The name of an object; what is too long is cut before the suffix, which tells objects apart. */}}
{{- define "PROJECT.resourceName" -}}
{{- $most := int (sub 62 (len .suffix)) }}
{{- if lt $most 1 }}
{{- .suffix | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" (include "PROJECT.fullname" .context | trunc $most | trimSuffix "-") .suffix }}
{{- end }}
{{- end }}

{{/* The label of the chart and its version. */}}
{{- define "PROJECT.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The operator's ServiceAccount: the chart's, or one that is there already. */}}
{{- define "PROJECT.serviceAccountName" -}}
{{- if .Values.serviceAccount.name }}
{{- .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.enabled }}
{{- include "PROJECT.resourceName" (dict "suffix" "controller-manager" "context" .) }}
{{- else }}
{{- "default" }}
{{- end }}
{{- end }}

{{/* The operator's image: a digest wins over a tag, and without a tag it is the chart's appVersion. */}}
{{- define "PROJECT.image" -}}
{{- with .Values.manager.image }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}
"""

_NOTES: Final = """\
{{ .Chart.Name }} is installed as {{ .Release.Name }} in the namespace {{ .Release.Namespace }}.

Check the operator:
  kubectl --namespace {{ .Release.Namespace }} get deployments --selector app.kubernetes.io/instance={{ .Release.Name }}
{{- if and .Values.crd.enabled .Values.crd.keep }}

Its CRDs and the objects of its kinds are kept when the release is uninstalled.
{{- end }}
"""

# The parts of values.yaml

_NAMES: Final = """\
# Replaces the chart's name in names of objects.
nameOverride: ""
# Replaces the prefix of all names of objects.
fullnameOverride: ""
"""

_DEFINITIONS: Final = """\
crd:
  # The CRDs of the operator's kinds.
  enabled: true
  # Keep them and the objects of these kinds when the release is uninstalled.
  keep: true
"""

_RBAC: Final = """\
rbac:
  # The operator watches only its own namespace, with Roles.
  namespaced: {namespaced}
  helpers:
    # ClusterRoles for administrators, editors and viewers of each kind.
    enabled: true
"""

_ACCOUNT: Final = """\
serviceAccount:
  # false: the operator runs as the existing account `name`.
  enabled: true
  # Empty: it is named after the release.
  name: ""
  annotations: {}
"""

_METRICS: Final = """\
metrics:
  # The operator serves metrics, and a Service exposes them.
  enabled: {enabled}
  port: 8443
  # HTTPS to callers that RBAC allows; false: plain HTTP to all callers.
  secure: true
"""

_WEBHOOKS: Final = """\
webhook:
  enabled: true
  # Port of the operator; the API server calls port 443 of a Service.
  port: 9443
"""

_CONVERSIONS: Final = """\
# Webhooks cannot be disabled: one converts the kinds with several versions.
webhook:
  # Port of the operator; the API server calls port 443 of a Service.
  port: 9443
"""

_CERTIFICATES: Final = """\
certManager:
  # cert-manager issues the certificates; false: the operator creates that of its webhooks.
  enabled: {enabled}
"""

_PROMETHEUS: Final = """\
prometheus:
  # A ServiceMonitor; needs the Prometheus operator.
  enabled: {enabled}
"""

_NETWORK: Final = """\
networkPolicy:
  # Allow all clients to connect to webhooks, and namespaces with the label metrics=enabled to metrics.
  enabled: {enabled}
"""


def chart_text(settings: Settings, app_version: str) -> str:
    chart = {
        "apiVersion": "v2",
        "name": settings.project_name,
        "description": f"The operator {settings.project_name}.",
        "type": "application",
        "version": "0.1.0",
        "appVersion": app_version,
    }
    return _ONCE + "".join(f"{key}: {_inline(value)}\n" for key, value in chart.items())


def helpers_text(settings: Settings) -> str:
    return _HELPERS.replace("PROJECT", settings.project_name)


def notes_text(settings: Settings) -> str:
    return _NOTES.replace("PROJECT", settings.project_name)


def values_text(forms: Forms, settings: Settings) -> str:
    """Return the text of values.yaml; with it as it is the chart gives the objects of `config/default`."""
    features = settings.features
    parts = [
        _NAMES,
        _manager(manager_of(forms, settings)),
        _DEFINITIONS,
        _RBAC.format(namespaced=_inline(settings.namespaced)),
    ]
    parts += [_ACCOUNT, _METRICS.format(enabled=_inline(features.metrics))]
    if forms.has_webhooks:
        parts.append(_WEBHOOKS if WEBHOOKS in forms.switches.values else _CONVERSIONS)
    if CERTIFICATES in forms.switches.values:
        parts.append(_CERTIFICATES.format(enabled=_inline(features.cert_manager)))
    parts.append(_PROMETHEUS.format(enabled=_inline(features.prometheus)))
    parts.append(_NETWORK.format(enabled=_inline(features.network_policy)))
    return _ONCE + "\n".join(parts)


def _manager(deployment: Document | None) -> str:
    if deployment is None:
        return "manager:\n  enabled: false\n"
    found = manager_values(deployment)
    image: Mapping[str, Any] = found["image"]
    lines = [
        "manager:",
        "  # The operator's Deployment.",
        "  enabled: true",
        f"  replicas: {_inline(found['replicas'])}",
        "  image:",
        f"    repository: {_inline(image['repository'])}",
        "    # Empty: the chart's appVersion.",
        f"    tag: {_inline(image['tag'])}",
        "    # sha256:…; wins over the tag.",
        f"    digest: {_inline(image['digest'])}",
        "    # Empty: the default of the cluster.",
        f"    pullPolicy: {_inline(image['pullPolicy'])}",
        "  # In addition to those that ports and certificates need.",
        *_below("args", found["args"]),
        *_below("env", found["env"]),
        "  # By name, for --set manager.envOverrides.NAME=VALUE.",
        "  envOverrides: {}",
        "  healthProbe:",
        f"    port: {_inline(found['healthProbe']['port'])}",
    ]
    for key in (
        "resources",
        "securityContext",
        "podSecurityContext",
        "strategy",
        "affinity",
        "nodeSelector",
        "tolerations",
        "topologySpreadConstraints",
        "priorityClassName",
        "imagePullSecrets",
    ):
        lines += _below(key, found[key])
    lines += [
        "  # Added to those of the Deployment, and to those of its Pods.",
        "  labels: {}",
        "  annotations: {}",
        "  pod:",
        "    labels: {}",
        "    annotations: {}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _below(key: str, value: Any) -> list[str]:
    return [f"  {line}" for line in dump({key: value}).removeprefix("---\n").splitlines()]


def _inline(value: Any) -> str:
    return dump({"v": value}).removeprefix("---\nv: ").rstrip("\n")
