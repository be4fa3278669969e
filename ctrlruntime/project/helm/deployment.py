"""The operator's Deployment in a chart: what people set in values, and what stays as the project has it.

Values take the place of replicas, image, resources, security and placement. Of the arguments and variables those that ports and
certificates depend on stay in the template; the others become values.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Document
from ctrlruntime.project.config.deployment import VARIABLES
from ctrlruntime.project.config.layout import CONTAINER, DEPLOYMENT
from ctrlruntime.project.helm.names import Names
from ctrlruntime.project.helm.template import Block, Expressions, When

__all__ = ["manager_template", "manager_values"]

_PLACEMENT: Final = (
    "affinity",
    "imagePullSecrets",
    "nodeSelector",
    "priorityClassName",
    "tolerations",
    "topologySpreadConstraints",
)
_TEXTS: Final = frozenset({"imagePullPolicy", "priorityClassName"})
_WIRED_FLAGS: Final = (
    "--health-probe-bind-address",
    "--metrics-bind-address",
    "--metrics-secure",
    "--metrics-cert-path",
    "--webhook-cert-path",
    "--webhook-port",
)
_WEBHOOKS_SWITCH: Final = "ENABLE_WEBHOOKS"
_WIRED_VARIABLES: Final = VARIABLES | {_WEBHOOKS_SWITCH}
_PORTS: Final = {
    "health": ".Values.manager.healthProbe.port",
    "metrics": ".Values.metrics.port",
    "webhook-server": ".Values.webhook.port",
}
_METRICS_PORT: Final = ":8443"
_WEBHOOK_PORT: Final = 9443
_HEALTH_PORT: Final = 8081


def manager_values(deployment: Document) -> Document:
    """Return what the values say of a Deployment as the project has it."""
    pod = deployment["spec"]["template"]["spec"]
    container = _container(pod)
    repository, tag, digest = _image(container.get("image", ""))
    image = {"repository": repository, "tag": tag, "digest": digest, "pullPolicy": container.get("imagePullPolicy", "")}
    health = [each["containerPort"] for each in container.get("ports") or () if each.get("name") == "health"]
    return {
        "replicas": deployment["spec"].get("replicas", 1),
        "image": image,
        "args": [each for each in container.get("args") or () if not _is_wired(each)],
        "env": [each for each in container.get("env") or () if each["name"] not in _WIRED_VARIABLES],
        "healthProbe": {"port": health[0] if health else _HEALTH_PORT},
        "resources": container.get("resources") or {},
        "securityContext": container.get("securityContext") or {},
        "podSecurityContext": pod.get("securityContext") or {},
        "strategy": deployment["spec"].get("strategy") or {},
        **{key: pod.get(key) or _nothing(key) for key in _PLACEMENT},
    }


def manager_template(
    deployment: Document, names: Names, expressions: Expressions, *, has_webhooks: bool, webhooks_switch: str
) -> Document:
    """Return the Deployment with values in it. `webhooks_switch`: the value that switches webhooks; empty without one."""
    found = copy.deepcopy(deployment)
    spec = found["spec"]
    template = spec["template"]
    pod = template["spec"]
    container = _container(pod)

    spec["replicas"] = expressions.mark(".Values.manager.replicas")
    spec.pop("strategy", None)
    spec["strategy"] = _with("strategy", ".Values.manager.strategy")
    _add_entries(found["metadata"], ".Values.manager")
    _add_entries(template["metadata"], ".Values.manager.pod")

    if "serviceAccountName" in pod:
        pod["serviceAccountName"] = names.account()
    pod["securityContext"] = _with("securityContext", ".Values.manager.podSecurityContext")
    for key in _PLACEMENT:
        pod[key] = _with(key, f".Values.manager.{key}")

    container["image"] = expressions.mark(f'include "{names.project}.image" . | quote')
    container["imagePullPolicy"] = _with("imagePullPolicy", ".Values.manager.image.pullPolicy")
    container["resources"] = _with("resources", ".Values.manager.resources")
    container["securityContext"] = _with("securityContext", ".Values.manager.securityContext")
    container["args"] = list(_arguments(container.get("args") or [], expressions, has_webhooks=has_webhooks))
    container["env"] = list(_variables(container.get("env") or [], expressions, webhooks_switch))
    for port in container.get("ports") or ():
        if port.get("name") in _PORTS:
            port["containerPort"] = expressions.mark(_PORTS[port["name"]])
    return found


def _container(pod: Document) -> Document:
    containers = cast("list[Document]", pod.get("containers") or [])
    if not containers:
        raise ConfigError(f"the Deployment {DEPLOYMENT} of config/manager has no container")
    return next((each for each in containers if each["name"] == CONTAINER), containers[0])


def _is_wired(argument: str) -> bool:
    return argument.partition("=")[0] in _WIRED_FLAGS


def _arguments(given: list[str], expressions: Expressions, *, has_webhooks: bool) -> Iterator[Any]:
    yield Block(("{{- range .Values.manager.args }}", "- {{ . | quote }}", "{{- end }}"))
    health = expressions.mark(_PORTS["health"])
    for each in given:
        flag = each.partition("=")[0]
        if flag == "--health-probe-bind-address":
            yield f"{flag}=:{health}"
        elif flag == "--metrics-secure":
            yield When(".Values.metrics.secure", flag)
        elif _is_wired(each):
            # An empty folder is refused where nothing would read it.
            yield When(".Values.metrics.secure", each) if flag == "--metrics-cert-path" else each
    if has_webhooks:
        port = expressions.mark(".Values.webhook.port")
        yield When(f"ne (int .Values.webhook.port) {_WEBHOOK_PORT}", f"--webhook-port={port}")


def _variables(given: list[Document], expressions: Expressions, webhooks_switch: str) -> Iterator[Any]:
    yield Block(
        (
            "{{- range .Values.manager.env }}",
            "{{- if not (hasKey $.Values.manager.envOverrides .name) }}",
            "- {{- toYaml . | nindent @+2@ }}",
            "{{- end }}",
            "{{- end }}",
            "{{- range $name, $value := .Values.manager.envOverrides }}",
            "- name: {{ $name }}",
            "  value: {{ $value | quote }}",
            "{{- end }}",
        )
    )
    if webhooks_switch:
        yield When(f"not {webhooks_switch}", {"name": _WEBHOOKS_SWITCH, "value": "false"})
    for each in given:
        if each.get("value") == _METRICS_PORT and each["name"] in _WIRED_VARIABLES:
            yield {**each, "value": f":{expressions.mark('.Values.metrics.port')}"}
        elif each["name"] in _WIRED_VARIABLES:
            yield each


def _add_entries(metadata: Document, values: str) -> None:
    """Add the labels and annotations of values to those that are there."""
    for key in ("labels", "annotations"):
        entries = (f"{{{{- with {values}.{key} }}}}", "{{- toYaml . | nindent @+0@ }}", "{{- end }}")
        if metadata.get(key):
            metadata[key]["more"] = Block(entries)
        else:
            metadata[key] = _with(key, f"{values}.{key}")


def _with(key: str, value: str) -> Block:
    if key in _TEXTS:
        return Block((f"{{{{- with {value} }}}}", f"{key}: {{{{ . | quote }}}}", "{{- end }}"))
    return Block((f"{{{{- with {value} }}}}", f"{key}: {{{{- toYaml . | nindent @+2@ }}}}", "{{- end }}"))


def _nothing(key: str) -> Any:
    if key in _TEXTS:
        return ""
    return {} if key in {"affinity", "nodeSelector"} else []


def _image(image: str) -> tuple[str, str, str]:
    """Return repository, tag and digest."""
    name, _, digest = image.partition("@")
    # A colon before the last slash belongs to the registry's port.
    path, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return f"{path}{slash}{last}", tag, digest
