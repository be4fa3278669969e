"""What kube-apiserver warns about in Pods and in the templates of Pods (pkg/api/pod/warnings.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.apiserver.registry.pod_amounts import Amounts, amounts_of
from ctrlruntime.apiserver.registry.pod_annotations import (
    APP_ARMOR,
    APP_ARMOR_TEXT,
    SECCOMP,
    SECCOMP_OF_POD,
    profile_of,
)
from ctrlruntime.apiserver.registry.trees import all_containers, inner, items
from ctrlruntime.field_errors import quoted
from ctrlruntime.quantities import canonical, is_whole
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import address_warnings, label_problems
from ctrlruntime.selector import label_value_problems

OLD_LABELS: Final[Mapping[str, str]] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_OLD_ANNOTATIONS: Final[Mapping[str, str]] = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_OLD_VOLUMES: Final[Mapping[str, tuple[str, str]]] = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
"""Sources of volumes: the name that warnings give them, and what they say."""
_SECCOMP_TEXT: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
_NEEDED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_BYTES: Final = ("memory", "ephemeral-storage", "storage")


def pod_warnings(document: Document, _: Document | None) -> Iterator[str]:
    """Yield what a Pod is warned about."""
    problems = label_problems(str(document["metadata"].get("name", "")))
    if problems:
        why = "which can result in surprising behavior; a DNS label is recommended"
        yield f"metadata.name: this is used in the Pod's hostname, {why}: [{' '.join(problems)}]"
    yield from _warnings(document, "", is_template=False)


def pod_status_warnings(document: Document, _: Document | None) -> Iterator[str]:
    """Yield what the status of a Pod is warned about."""
    status: Document = document.get("status") or {}
    for name in ("podIPs", "hostIPs"):
        for index, address in enumerate(items(status, name)):
            yield from address_warnings(address.get("ip", ""), f"status.{name}[{index}].ip")


def template_warnings(template: Document | None, path: str) -> Iterator[str]:
    """Yield what the template of a workload is warned about; `path` is its own."""
    return _warnings(template or {}, f"{path}.", is_template=True)


def _warnings(tree: Document, prefix: str, *, is_template: bool) -> Iterator[str]:
    spec, path = tree.get("spec") or {}, f"{prefix}spec"
    annotations: Mapping[str, str] = (tree.get("metadata") or {}).get("annotations") or {}
    yield from _placement(spec, path)
    yield from _annotation_warnings(spec, annotations, f"{prefix}metadata.annotations", is_template=is_template)
    for index, volume in enumerate(items(spec, "volumes")):
        yield from source_warnings(volume, f"{path}.volumes[{index}]")
        yield from _path_warnings(volume)
        claim = inner(volume, "ephemeral", "volumeClaimTemplate", "spec") or {}
        yield from claim_spec_warnings(claim, f"{path}.volumes[{index}].ephemeral.volumeClaimTemplate.spec")
    yield from _repeated(spec, path)
    yield from fraction_warnings(inner(spec, "overhead") or {}, f"{path}.overhead")
    for where, container in all_containers(spec, path):
        for side in ("limits", "requests"):
            yield from fraction_warnings(amounts_of(container, side), f"{where}.resources.{side}")
        yield from _hidden_variables(container, where)
    yield from _port_warnings(spec, path)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {text}"
    yield from _addresses(spec, path)


def source_warnings(volume: Document, path: str) -> Iterator[str]:
    """What is old of where the data of a volume is; that of a PersistentVolume, too."""
    for name, (shown, text) in _OLD_VOLUMES.items():
        if volume.get(name) is not None:
            yield f"{path}.{shown}: {text}"


def _placement(spec: Document, path: str) -> Iterator[str]:
    for key in inner(spec, "nodeSelector") or ():
        if key in OLD_LABELS:
            yield f"{path}.nodeSelector[{key}]: {OLD_LABELS[key]}"
    nodes = f"{path}.affinity.nodeAffinity"
    for index, term in enumerate(items(inner(spec, "affinity", "nodeAffinity", _NEEDED) or {}, "nodeSelectorTerms")):
        yield from node_term_warnings(term, f"{nodes}.{_NEEDED}.nodeSelectorTerms[{index}]", checks_values=False)
    for index, preference in enumerate(items(inner(spec, "affinity", "nodeAffinity") or {}, _PREFERRED)):
        where = f"{nodes}.{_PREFERRED}[{index}].preference"
        yield from node_term_warnings(inner(preference, "preference") or {}, where, checks_values=True)
    for index, constraint in enumerate(items(spec, "topologySpreadConstraints")):
        where, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in OLD_LABELS:
            yield f"{where}.topologyKey: {key} is {OLD_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: {_NO_SELECTOR}"
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity, where = inner(spec, "affinity", kind) or {}, f"{path}.affinity.{kind}"
        for index, term in enumerate(items(affinity, _NEEDED)):
            if term.get("labelSelector") is None:
                yield f"{where}.{_NEEDED}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, term in enumerate(items(affinity, _PREFERRED)):
            if (term.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{where}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


def node_term_warnings(term: Document, path: str, *, checks_values: bool) -> Iterator[str]:
    """What chooses nodes by old labels, or by values that no label has."""
    for index, requirement in enumerate(items(term, "matchExpressions")):
        where, key = f"{path}.matchExpressions[{index}]", requirement.get("key", "")
        if key in OLD_LABELS:
            yield f"{where}.key: {key} is {OLD_LABELS[key]}"
        for number, value in enumerate(requirement.get("values") or () if checks_values else ()):
            for problem in label_value_problems(value):
                yield f"{where}.values[{number}]: {value} is invalid, {problem}"


def _annotation_warnings(
    spec: Document, annotations: Mapping[str, str], path: str, *, is_template: bool
) -> Iterator[str]:
    if not annotations:
        return
    for key, text in _OLD_ANNOTATIONS.items():
        if key in annotations:
            yield f"{path}[{key}]: {text}"
    if SECCOMP_OF_POD in annotations and inner(spec, "securityContext", "seccompProfile") is None:
        yield f"{path}[{SECCOMP_OF_POD}]: {_SECCOMP_TEXT}"
    for _, container in all_containers(spec, ""):
        key = f"{SECCOMP}{container.get('name', '')}"
        if key in annotations and inner(container, "securityContext", "seccompProfile") is None:
            yield f"{path}[{key}]: {_SECCOMP_TEXT}"
        key = f"{APP_ARMOR}{container.get('name', '')}"
        # A Pod is warned as its annotation becomes the field.
        if is_template and key in annotations and inner(container, "securityContext", "appArmorProfile") is None:
            of_pod = inner(spec, "securityContext", "appArmorProfile")
            if of_pod is None or of_pod != profile_of(annotations[key]):
                yield f"{path}[{key}]: {APP_ARMOR_TEXT}"


def _repeated(spec: Document, path: str) -> Iterator[str]:
    for name, field, what in (("hostAliases", "ip", "duplicate ip"), ("imagePullSecrets", "name", "duplicate name")):
        seen: set[str] = set()
        for index, item in enumerate(items(spec, name)):
            value = item.get(field, "")
            if value in seen:
                yield f"{path}.{name}[{index}].{field}: {what} {quoted(value)}"
            seen.add(value)
    for index, secret in enumerate(items(spec, "imagePullSecrets")):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def claim_spec_warnings(spec: Document, path: str) -> Iterator[str]:
    for side in ("requests", "limits"):
        amounts: Document = (spec.get("resources") or {}).get(side) or {}
        if "storage" in amounts:
            yield from fraction_warnings({"storage": amounts["storage"]}, f"{path}.resources.{side}")


def fraction_warnings(amounts: Amounts, path: str) -> Iterator[str]:
    for name in _BYTES:
        if name in amounts and not is_whole(amounts[name]):
            text = canonical(amounts[name])
            yield f'{path}[{name}]: fractional byte value "{text}" is invalid, must be an integer'


def _hidden_variables(container: Document, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(items(container, "env")):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        is_built_on = reference in value and value != reference and variable.get("valueFrom") is None
        if name in seen and not is_built_on:
            yield f"{path}.env[{index}]: hides previous definition of {quoted(name)}, which may be dropped when using apply"
        seen.add(name)


# Ports


@dataclass(frozen=True, slots=True)
class _Port:
    path: str
    address: str
    host_port: int


def _port_warnings(spec: Document, path: str) -> Iterator[str]:
    ports = [
        (f"{where}.ports[{index}]", port)
        for where, container in all_containers(spec, path)
        for index, port in enumerate(items(container, "ports"))
    ]
    seen: dict[tuple[Any, Any], list[_Port]] = {}
    for where, port in ports:
        one = _Port(where, port.get("hostIP", ""), port.get("hostPort", 0))
        if one.address and not one.host_port:
            shown = " ".join(f"{name[0].upper()}{name[1:]}:{port.get(name, absent)}" for name, absent in _PORT_FIELDS)
            yield f"{where}: hostIP set without hostPort: {{{shown}}}"
        others = seen.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for other in others:
            what = _overlap(one, other)
            if what:
                yield f"{where}: {what} port definition with {other.path}"
        others.append(one)
    names: dict[str, str] = {}
    for where, port in ports:
        first = names.setdefault(port["name"], where) if port.get("name") else where
        if first != where:
            text = f"services and probes that select ports by name will use {first}"
            yield f'{where}: duplicate port name "{port["name"]}" with {first}, {text}'


_PORT_FIELDS: Final = (("name", ""), ("hostPort", 0), ("containerPort", 0), ("protocol", ""), ("hostIP", ""))


def _overlap(one: _Port, other: _Port) -> str:
    if (one.address, one.host_port) == (other.address, other.host_port):
        return "duplicate"
    if not one.host_port or not other.host_port:
        return "overlapping"
    is_ambiguous = one.host_port == other.host_port and bool(one.address) != bool(other.address)
    return "dangerously ambiguous" if is_ambiguous else ""


# Addresses and paths


def _addresses(spec: Document, path: str) -> Iterator[str]:
    servers = (inner(spec, "dnsConfig") or {}).get("nameservers") or ()
    aliases = [alias.get("ip", "") for alias in items(spec, "hostAliases")]
    places = [(f"{path}.dnsConfig.nameservers[{index}]", text) for index, text in enumerate(servers)]
    places += [(f"{path}.hostAliases[{index}].ip", text) for index, text in enumerate(aliases)]
    for where, text in places:
        yield from address_warnings(text, where)


def _path_warnings(volume: Document) -> Iterator[str]:
    """Files of a volume that hide each other."""
    name = volume.get("name", "")
    for kind, shown in (("configMap", "ConfigMap {}"), ("secret", "Secret {}"), ("downwardAPI", "DownwardAPI")):
        source = inner(volume, kind)
        if source is not None:
            what = shown.format(quoted(source.get("name") or source.get("secretName") or ""))
            for text in _overlaps([(item.get("path", ""), "") for item in items(source, "items")]):
                yield f'volume "{name}" ({what}): overlapping paths: {text}'
    paths: list[tuple[str, str]] = []
    for source in items(inner(volume, "projected") or {}, "sources"):
        if not source:
            yield f'volume "{name}" (Projected) has no sources provided'
        paths += _projected_paths(source)
    for text in _overlaps(paths):
        yield f'volume "{name}" (Projected): overlapping paths: {text}'


def _projected_paths(source: Document) -> list[tuple[str, str]]:
    for kind, shown in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
        part = inner(source, kind)
        if part is not None and part.get("items"):
            what = shown if kind == "downwardAPI" else f"{shown} {quoted(part.get('name', ''))}"
            return [(item.get("path", ""), what) for item in items(part, "items")]
    token, bundle = inner(source, "serviceAccountToken"), inner(source, "clusterTrustBundle")
    if token is not None:
        return [(token.get("path", ""), "ServiceAccountToken")]
    if bundle is not None:
        return [(bundle.get("path", ""), f'ClusterTrustBundle "{bundle.get("name") or bundle.get("signerName", "")}"')]
    certificate = inner(source, "podCertificate") or {}
    named = (("certificateChainPath", "chain"), ("keyPath", "key"), ("credentialBundlePath", "credential bundle"))
    return [(certificate[field], f"PodCertificate {what}") for field, what in named if certificate.get(field)]


def _overlaps(paths: Sequence[tuple[str, str]]) -> Iterator[str]:
    seen: list[tuple[str, str]] = []
    for path, source in paths:
        one = (path.rstrip("/"), source)
        for other in seen:
            first, second = f"{one[0]}/", f"{other[0]}/"
            if one[0] and other[0] and (first.startswith(second) or second.startswith(first)):
                yield f"{_shown(one)} with {_shown(other)}"
        seen.append(one)


def _shown(one: tuple[str, str]) -> str:
    path, source = one
    return f"{quoted(path)} ({source})" if source else quoted(path)
