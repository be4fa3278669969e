"""Validation of pods and pod templates, with kube-apiserver's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.registry.internal_types import difference
from ctrlruntime.apiserver.registry.pod_annotations import MIRROR, agreement_causes, annotation_causes, change_causes
from ctrlruntime.apiserver.registry.pod_gates import gated_causes, ungated
from ctrlruntime.apiserver.registry.pod_placement import affinity_causes, spread_causes, toleration_causes
from ctrlruntime.apiserver.registry.pod_resources import (
    claim_name_causes,
    container_resource_causes,
    overhead_causes,
    pod_claim_causes,
    pod_resource_causes,
)
from ctrlruntime.apiserver.registry.pod_security import container_security_causes, pod_security_causes
from ctrlruntime.apiserver.registry.pod_systems import host_process_causes, system_causes
from ctrlruntime.apiserver.registry.trees import inner
from ctrlruntime.apiserver.registry.volume_validation import (
    device_causes,
    env_causes,
    file_volume_causes,
    mount_causes,
    volumes_causes,
)
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, required, shown, too_long, too_many
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    PORT_RANGE,
    address_causes,
    annotations_causes,
    choice_causes,
    label_causes,
    labels_causes,
    not_negative,
    port_name_causes,
    port_or_name_causes,
    qualified_name_causes,
    subdomain_causes,
    without,
)

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_UNCHANGEABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


_MOST_NAME_SERVERS: Final = 3
_MOST_SEARCHES: Final = 32
_LONGEST_SEARCHES: Final = 2048
_LONGEST_NAME: Final = 253
_SEARCH: Final = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"
_SEARCH_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is"
)
_HEADER_TEXT: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is "
    "'[-A-Za-z0-9]+')"
)
_NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_NOT_OF_EPHEMERAL: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip
_LONGEST_HOST: Final = 64
_MOST_RULES: Final = 20
_MOST_CODES: Final = 255
_TOLERATION_TEXT: Final = "existing toleration can not be modified except its tolerationSeconds"


def pod_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec: Document = document.get("spec") or {}
    annotations: Mapping[str, str] = document["metadata"].get("annotations") or {}
    yield from annotation_causes(annotations, spec, "metadata.annotations")
    if MIRROR in annotations:
        text = "static pods do not support resource claims"
        yield from (forbidden_field("[]", text) for _ in spec.get("resourceClaims") or ())
    if old is not None:
        yield from pod_spec_causes(spec, "spec", is_pod=True, pod_name=document["metadata"].get("name", ""))
        yield from change_causes(annotations, old["metadata"].get("annotations") or {})
        yield from annotation_causes(annotations, spec, "metadata.annotations")
        yield from _update_causes(spec, old.get("spec") or {})
        return
    yield from pod_spec_causes(spec, "spec", is_pod=True, pod_name=document["metadata"].get("name", ""))
    if spec.get("ephemeralContainers"):
        yield forbidden_field("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    yield from agreement_causes(annotations, spec, "spec")


def template_causes(template: Document, path: str) -> Iterator[StatusCause]:
    """Yield what is wrong with a template (ValidatePodTemplateSpec)."""
    spec: Document = template.get("spec") or {}
    yield from template_metadata_causes(template, path)
    yield from pod_spec_causes(spec, f"{path}.spec")
    yield from agreement_causes((template.get("metadata") or {}).get("annotations") or {}, spec, f"{path}.spec")


def template_metadata_causes(template: Document, path: str) -> Iterator[StatusCause]:
    """Yield what is wrong with the labels and annotations of a template."""
    metadata: Document = template.get("metadata") or {}
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    yield from labels_causes(metadata.get("labels"), f"{path}.labels")
    yield from annotations_causes(annotations, f"{path}.annotations")
    yield from annotation_causes(annotations, template.get("spec") or {}, f"{path}.annotations")


def _update_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    for name in ("containers", "initContainers"):
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            yield forbidden_field(f"spec.{name}", "pod updates may not add or remove containers")
            return
        for index, container in enumerate(spec.get(name) or ()):
            yield from _changed_image_causes(container.get("image", ""), f"spec.{name}[{index}].image")
    seconds, deadline = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    yield from _deadline_causes(seconds, deadline)
    if seconds is not None and (not 0 <= seconds < 1 << 31 or (deadline is not None and seconds > deadline)):
        return
    tolerations = [_untimed(item) for item in spec.get("tolerations") or ()]
    if any(_untimed(item) not in tolerations for item in before.get("tolerations") or ()):
        yield forbidden_field("spec.tolerations", _TOLERATION_TEXT)
    else:  # once more (validateOnlyAddedTolerations)
        for where, toleration in _indexed(spec, "spec", "tolerations"):
            yield from toleration_causes(toleration, where)
    gates = [gate["name"] for gate in before.get("schedulingGates") or ()]
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate["name"]
        if name not in gates:
            text = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden_field(f"spec.schedulingGates[{index}].name", text)
    fixed = _fixed(spec, before)
    if gates:
        yield from gated_causes(spec, before)
        fixed = ungated(fixed, before)
    if fixed != before:
        yield forbidden_field("spec", f"{_UNCHANGEABLE}\n{difference('core.PodSpec', before, fixed)}")


def _changed_image_causes(image: str, path: str) -> Iterator[StatusCause]:
    if not image:
        yield required(path)
    if image.strip() != image:
        yield invalid_value(path, image, "must not have leading or trailing whitespace")


def _deadline_causes(seconds: int | None, before: int | None) -> Iterator[StatusCause]:
    path = "spec.activeDeadlineSeconds"
    if seconds is None and before is not None:
        yield invalid_value(path, None, "must not update from a positive integer to nil value")
    elif seconds is not None and not 0 <= seconds < 1 << 31:
        yield invalid_value(path, seconds, "must be between 0 and 2147483647, inclusive")
    elif seconds is not None and before is not None and seconds > before:
        yield invalid_value(path, seconds, "must be less than or equal to previous value")


def _untimed(toleration: Document) -> Document:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def pod_spec_causes(spec: Document, path: str, *, is_pod: bool = False, pod_name: str = "") -> Iterator[StatusCause]:
    """Yield what is wrong with a Pod's or a template's spec, in the order of ValidatePodSpec."""
    volumes: list[Document] = []
    for found in volumes_causes(spec.get("volumes") or (), f"{path}.volumes", pod_name):
        if isinstance(found, StatusCause):
            yield found
        else:
            volumes.append(found)
    mountable = {**spec, "volumes": volumes}
    yield from pod_claim_causes(spec, path)
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    running, initial = _indexed(spec, path, "containers"), _indexed(spec, path, "initContainers")
    added = _indexed(spec, path, "ephemeralContainers")
    seen: set[str] = set()
    for where, container in running:
        yield from _container_causes(container, where, mountable)
        yield from _name_causes(container, where, seen)
        yield from _lifecycle_causes(container, where, spec)
        yield from _restart_causes(container, where, checks_rules=True)
    yield from _host_port_causes(running)
    for where, container in initial:
        yield from _container_causes(container, where, mountable)
        yield from _restart_causes(container, where, checks_rules=container.get("restartPolicy") is not None)
        yield from _name_causes(container, where, seen)
        yield from _host_port_causes([(where, container)])
        yield from _init_causes(container, where, spec)
    names = {container.get("name") for _, container in (*running, *initial)}
    for where, container in added:
        yield from _container_causes(container, where, mountable)
        yield from _image_causes(container, where)
        yield from _name_causes(container, where, seen)
        yield from _ephemeral_causes(container, where, names)
    yield from pod_resource_causes(spec, path)
    if spec.get("hostNetwork"):
        yield from _host_network_causes(running, is_pod=is_pod)
    yield from _policy_causes(spec, path)
    yield from labels_causes(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from pod_security_causes(spec, path)
    yield from affinity_causes(spec, path)
    yield from _dns_causes(spec.get("dnsConfig"), f"{path}.dnsConfig", is_needed=spec.get("dnsPolicy") == "None")
    yield from _gate_causes(spec, path)
    yield from spread_causes(spec, path)
    yield from host_process_causes(spec, path)
    yield from _host_causes(spec, path)
    yield from overhead_causes(inner(spec, "overhead"), f"{path}.overhead")
    yield from system_causes(spec, path)
    yield from file_volume_causes(spec, path)
    if is_pod:
        yield from _only_pod_causes(spec, path)
    elif spec.get("ephemeralContainers"):
        yield forbidden_field(f"{path}.ephemeralContainers", "ephemeral containers not allowed in pod template")


def _only_pod_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """What templates may have (validatePodMetadataAndSpec in pkg/apis/core/validation/validation.go)."""
    for index, volume in enumerate(spec.get("volumes") or () if not spec.get("serviceAccountName") else ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                where = f"{path}.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                yield forbidden_field(where, "must not be specified when serviceAccountName is not set")
    for where, volume in _indexed(spec, path, "volumes"):
        if volume.get("image") is not None and not volume["image"].get("reference"):
            yield required(f"{where}.image.reference")
    for name in ("containers", "initContainers"):
        for where, container in _indexed(spec, path, name):
            yield from _image_causes(container, where)


def _policy_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    policy = spec.get("restartPolicy")
    if not policy:
        yield required(f"{path}.restartPolicy")
    else:
        yield from choice_causes(policy, f"{path}.restartPolicy", _POLICIES)
    yield from choice_causes(spec.get("dnsPolicy", "ClusterFirst"), f"{path}.dnsPolicy", _DNS_POLICIES)


def _dns_causes(config: Document | None, path: str, *, is_needed: bool) -> Iterator[StatusCause]:
    if config is None:
        if is_needed:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    servers = config.get("nameservers") or []
    if is_needed and not servers:
        text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{path}.nameservers", text)
        return
    if len(servers) > _MOST_NAME_SERVERS:
        text = f"must not have more than {_MOST_NAME_SERVERS} nameservers"
        yield invalid_value(f"{path}.nameservers", servers, text)
    for index, server in enumerate(servers):
        yield from address_causes(str(server), f"{path}.nameservers[{index}]")
    searches = config.get("searches") or []
    if len(searches) > _MOST_SEARCHES:
        yield invalid_value(f"{path}.searches", searches, f"must not have more than {_MOST_SEARCHES} search paths")
    if len(" ".join(searches)) > _LONGEST_SEARCHES:
        text = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        yield invalid_value(f"{path}.searches", searches, text)
    for index, search in enumerate(searches):
        name = search.removesuffix(".")
        if search != "." and len(name) > _LONGEST_NAME:
            yield invalid_value(f"{path}.searches[{index}]", name, f"must be no more than {_LONGEST_NAME} characters")
        if search != "." and not re.fullmatch(_SEARCH, name):
            yield invalid_value(f"{path}.searches[{index}]", name, f"{_SEARCH_TEXT} '{_SEARCH}')")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


def _gate_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    for where, gate in _indexed(spec, path, "readinessGates"):
        yield from qualified_name_causes(gate.get("conditionType", ""), f"{where}.conditionType")
    seen: set[str] = set()
    for where, gate in _indexed(spec, path, "schedulingGates"):
        yield from qualified_name_causes(gate.get("name", ""), where)
        if gate.get("name") in seen:
            yield duplicate(where, gate["name"])
        seen.add(gate.get("name", ""))


def _host_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    override, where = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if override is not None:
        for name in ("setHostnameAsFQDN", "hostNetwork"):
            if spec.get(name):
                yield forbidden_field(where, f"may not be specified when {name} is true")
        if len(override) > _LONGEST_HOST:
            yield too_long(where, _LONGEST_HOST)
        yield from subdomain_causes(override, where)
    yield from _name_field_causes(spec, path, ("serviceAccountName", "nodeName"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield invalid_value(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from label_causes(spec[name], f"{path}.{name}")
    for where, toleration in _indexed(spec, path, "tolerations"):
        yield from toleration_causes(toleration, where)
    for where, alias in _indexed(spec, path, "hostAliases"):
        yield from address_causes(str(alias.get("ip", "")), f"{where}.ip")
        for number, host in enumerate(alias.get("hostnames") or ()):
            yield from subdomain_causes(host, f"{where}.hostnames[{number}]")
    yield from _name_field_causes(spec, path, ("priorityClassName", "runtimeClassName"))
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        yield from choice_causes(policy, f"{path}.preemptionPolicy", ("PreemptLowerPriority", "Never"))


def _name_field_causes(spec: Document, path: str, names: Iterable[str]) -> Iterator[StatusCause]:
    for name in names:
        if spec.get(name):
            yield from subdomain_causes(spec[name], f"{path}.{name}")


def _indexed(spec: Document, path: str, name: str) -> list[tuple[str, Document]]:
    return [(f"{path}.{name}[{index}]", container) for index, container in enumerate(spec.get(name) or ())]


def _name_causes(container: Document, path: str, seen: set[str]) -> Iterator[StatusCause]:
    """Every container of a Pod has a name of its own."""
    name: str = container.get("name") or ""
    if name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)


def _ephemeral_causes(container: Document, path: str, names: set[Any]) -> Iterator[StatusCause]:
    """What is only for looking at a Pod serves nobody (validateEphemeralContainers)."""
    target = container.get("targetContainerName")
    if target and target not in names:
        yield StatusCause("FieldValueNotFound", f"Not found: {shown(target)}", f"{path}.targetContainerName")
    for name in _NOT_OF_EPHEMERAL:
        if container.get(name) not in (None, {}, []):
            yield forbidden_field(f"{path}.{name}", _NOT_EPHEMERAL)
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        for name in ("subPath", "subPathExpr"):
            if mount.get(name):
                yield forbidden_field(f"{path}.volumeMounts[{index}].{name}", _NOT_EPHEMERAL)


def _image_causes(container: Document, path: str) -> Iterator[StatusCause]:
    image = container.get("image") or ""
    if image != image.strip():
        yield invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace")


def _init_causes(container: Document, path: str, spec: Document) -> Iterator[StatusCause]:
    """Hooks and probes are for init containers that stay."""
    if container.get("restartPolicy") == "Always":
        yield from _lifecycle_causes(container, path, spec)
        return
    for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is not None:
            yield forbidden_field(f"{path}.{name}", "may not be set for init containers without restartPolicy=Always")
    for index, rule in enumerate(container.get("resizePolicy") or ()):
        if rule.get("restartPolicy") == "RestartContainer":
            text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield invalid_value(f"{path}.resizePolicy[{index}].restartPolicy", "RestartContainer", text)


def _container_causes(container: Document, path: str, spec: Document) -> Iterator[StatusCause]:
    """What holds for containers of every sort, in the order of validateContainerCommon."""
    if name := container.get("name"):
        yield from label_causes(name, f"{path}.name")
    else:
        yield required(f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    message_policy = container.get("terminationMessagePolicy", "File")
    yield from choice_causes(message_policy, f"{path}.terminationMessagePolicy", ("File", "FallbackToLogsOnError"))
    yield from _container_port_causes(container.get("ports") or (), f"{path}.ports")
    yield from env_causes(container, path)
    yield from mount_causes(container, path, spec)
    yield from device_causes(container, path, spec)
    policy = container.get("imagePullPolicy", "")
    yield from choice_causes(policy, f"{path}.imagePullPolicy", ("Always", "IfNotPresent", "Never"))
    yield from claim_name_causes(container, path, spec)
    yield from container_resource_causes(container, path)
    yield from _resize_causes(container, path, spec)
    yield from container_security_causes(
        container.get("securityContext") or {},
        f"{path}.securityContext",
        has_host_users=spec.get("hostUsers") is not False,
    )


def _restart_causes(container: Document, path: str, *, checks_rules: bool) -> Iterator[StatusCause]:
    """When a container is started again (validateContainerRestartPolicy)."""
    if container.get("restartPolicy") is not None:
        yield from choice_causes(container["restartPolicy"], f"{path}.restartPolicy", ("Always", "Never", "OnFailure"))
    elif container.get("restartPolicyRules"):
        yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    rules, where = (container.get("restartPolicyRules") or ()) if checks_rules else (), f"{path}.restartPolicyRules"
    if len(rules) > _MOST_RULES:
        yield too_many(where, len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        place, codes = f"{where}[{index}]", rule.get("exitCodes")
        yield from choice_causes(rule.get("action", ""), f"{place}.action", ("Restart", "RestartAllContainers"))
        if codes is None:
            yield required(f"{place}.exitCodes", "must be specified")
            continue
        yield from choice_causes(codes.get("operator", ""), f"{place}.exitCodes.operator", ("In", "NotIn"))
        if len(codes.get("values") or ()) > _MOST_CODES:
            yield too_many(f"{place}.exitCodes.values", len(codes["values"]), _MOST_CODES)


def _resize_causes(container: Document, path: str, spec: Document) -> Iterator[StatusCause]:
    """What becomes of a container as its resources change (validateResizePolicy)."""
    seen: set[str] = set()
    where = f"{path}.resizePolicy"
    for index, rule in enumerate(container.get("resizePolicy") or ()):
        name, policy = rule.get("resourceName", ""), rule.get("restartPolicy", "")
        if name in seen:
            yield duplicate(f"{where}[{index}]", name)
        seen.add(name)
        for value, choices in ((name, ("cpu", "memory")), (policy, ("NotRequired", "RestartContainer"))):
            yield from choice_causes(value, where, choices) if value else (required(where),)
        if spec.get("restartPolicy") == "Never" and policy != "NotRequired":
            yield invalid_value(where, policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _lifecycle_causes(container: Document, path: str, spec: Document) -> Iterator[StatusCause]:
    for hook in ("postStart", "preStop"):
        action = (container.get("lifecycle") or {}).get(hook)
        if action is not None:
            yield from _handler_causes(action, f"{path}.lifecycle.{hook}")
            yield from _sleep_causes(action.get("sleep"), f"{path}.lifecycle.{hook}.sleep", spec)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        where = f"{path}.{name}"
        yield from _handler_causes(probe, where)
        yield from not_negative(
            probe, where, "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
            "failureThreshold",
        )  # fmt: skip
        if name != "readinessProbe" and probe.get("successThreshold", 1) > 1:
            yield invalid_value(f"{where}.successThreshold", probe["successThreshold"], "must be 1")
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None and name == "readinessProbe":
            yield invalid_value(f"{where}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
        elif grace is not None and grace <= 0:
            yield invalid_value(f"{where}.terminationGracePeriodSeconds", grace, "must be greater than 0")


def _sleep_causes(action: Document | None, path: str, spec: Document) -> Iterator[StatusCause]:
    grace = spec.get("terminationGracePeriodSeconds")
    if action is not None and grace is not None and not 0 <= action.get("seconds", 0) <= grace:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield invalid_value(path, action.get("seconds", 0), text)


def _handler_causes(tree: Document, path: str) -> Iterator[StatusCause]:
    present = [name for name in _HANDLERS if tree.get(name) is not None]
    if not present:
        yield required(path, "must specify a handler type")
        return
    for index, name in enumerate(present):
        if index:
            yield forbidden_field(f"{path}.{name}", "may not specify more than 1 handler type")
            continue
        action, where = tree[name], f"{path}.{name}"
        match name:
            case "exec" if not action.get("command"):
                yield required(f"{where}.command")
            case "httpGet":
                yield from port_or_name_causes(action.get("port", 0), f"{where}.port")
                yield from choice_causes(action.get("scheme", "HTTP"), f"{where}.scheme", ("HTTP", "HTTPS"))
                for header in action.get("httpHeaders") or ():
                    if not re.fullmatch(r"[-A-Za-z0-9]+", header.get("name", "")):
                        yield invalid_value(f"{where}.httpHeaders", header.get("name", ""), _HEADER_TEXT)
            case "tcpSocket" | "grpc":
                yield from port_or_name_causes(action.get("port", 0), f"{where}.port")
            case _:
                pass


def _host_port_causes(containers: Sequence[tuple[str, Document]]) -> Iterator[StatusCause]:
    """No two containers have the same port of a node."""
    seen: set[str] = set()
    for where, container in containers:
        for index, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if key in seen:
                    yield duplicate(f"{where}.ports[{index}].hostPort", key)
                seen.add(key)


def _host_network_causes(containers: Sequence[tuple[str, Document]], *, is_pod: bool) -> Iterator[StatusCause]:
    """A template may leave the port of the node to its Pods."""
    for where, container in containers:
        for index, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                text = "must match `containerPort` when `hostNetwork` is true"
                yield invalid_value(f"{where}.ports[{index}].hostPort", host, text)


def _container_port_causes(ports: Iterable[Document], path: str) -> Iterator[StatusCause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        where, number = f"{path}[{index}]", port.get("containerPort", 0)
        if port.get("name"):
            yield from port_name_causes(port["name"], f"{where}.name")
            if port["name"] in names:
                yield duplicate(f"{where}.name", port["name"])
            names.add(port["name"])
        if not number:
            yield required(f"{where}.containerPort")
        elif not 0 < number < 65536:
            yield invalid_value(f"{where}.containerPort", number, PORT_RANGE)
        host = port.get("hostPort", 0)
        if host and not 0 < host < 65536:
            yield invalid_value(f"{where}.hostPort", host, PORT_RANGE)
        yield from choice_causes(port.get("protocol", ""), f"{where}.protocol", PROTOCOLS)


def _fixed(spec: Document, before: Document) -> Document:
    """Return a spec in which all that an update may change is as it was before."""
    fixed = dict(spec)
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        fixed = {**fixed, name: before[name]} if name in before else without(fixed, (name,))
    for name in ("containers", "initContainers"):
        pairs = zip(spec.get(name) or (), before.get(name) or (), strict=True)
        if spec.get(name):
            fixed[name] = [{**now, "image": then.get("image", "")} for now, then in pairs]
    if before.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        fixed["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    return fixed
