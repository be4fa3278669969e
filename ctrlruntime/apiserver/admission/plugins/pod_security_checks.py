"""The checks of the Pod Security Standards, as a table (pod-security-admission's policy folder).

A check is a pure function of a Pod's metadata and spec. It returns why the Pod is not allowed, and what in it is the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal, TypeAlias

from ctrlruntime.apiserver.registry.pod_annotations import APP_ARMOR, SECCOMP, SECCOMP_OF_POD
from ctrlruntime.apiserver.registry.trees import all_containers, inner, items
from ctrlruntime.field_errors import quoted
from ctrlruntime.schema.trees import Document

Level: TypeAlias = Literal["privileged", "baseline", "restricted"]
Finding: TypeAlias = tuple[str, str] | None
"""The reason and the detail."""
_Check: TypeAlias = Callable[[Document, Document], Finding]
_Bad: TypeAlias = Callable[[Document], Iterable[str]]
"""Takes a security context; yields its values that are not allowed."""
LATEST: Final = 35
"""The minor version since which the checks have not changed; later ones are the same."""

_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
_SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
_SYSCTLS_27: Final = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29: Final = _SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
_SYSCTLS_32: Final = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
_VOLUMES: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
_OTHER_VOLUMES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


# Words


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _numbered(one: str, names: Iterable[str], many: str = "") -> str:
    names = list(names)
    return f"{one if len(names) == 1 else many or f'{one}s'} {_listed(names)}"


def _uses(names: list[str]) -> str:
    return "uses" if len(names) == 1 else "use"


# Places


def _containers(spec: Document) -> Iterator[Document]:
    return (container for _, container in all_containers(spec, ""))


def _context(node: Document) -> Document:
    return inner(node, "securityContext") or {}


def _bad_containers(spec: Document, bad: Callable[[Document], Iterable[str]]) -> tuple[list[str], list[str]]:
    """Return the names of containers with bad values, and the values, sorted."""
    found = [(str(container.get("name", "")), list(bad(container))) for container in _containers(spec)]
    return [name for name, values in found if values], sorted({value for _, values in found for value in values})


def _bad_setters(spec: Document, bad: _Bad) -> tuple[list[str], list[str]]:
    """Return who sets bad values in a security context (the Pod, its containers), and the values, sorted."""
    of_pod = list(bad(_context(spec)))
    names, values = _bad_containers(spec, lambda container: bad(_context(container)))
    setters = ["pod"] if of_pod else []
    return [*setters, *([_numbered("container", names)] if names else [])], sorted({*of_pod, *values})


def _values(given: object, *bad: object) -> Iterator[str]:
    """Yield the value when it is one of the bad ones."""
    if given is not None and any(type(given) is type(value) and given == value for value in bad):
        yield str(given)


def _is_windows(spec: Document) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


def _except_windows(check: _Check) -> _Check:
    return lambda metadata, spec: None if _is_windows(spec) else check(metadata, spec)


def _except_user_namespaces(check: _Check) -> _Check:
    return lambda metadata, spec: None if spec.get("hostUsers") is False else check(metadata, spec)


# Baseline


def _app_armor(metadata: Document, spec: Document) -> Finding:
    def bad(context: Document) -> Iterator[str]:
        profile = inner(context, "appArmorProfile")
        if profile is not None and profile.get("type") not in {"RuntimeDefault", "Localhost"}:
            yield str(profile.get("type", ""))

    setters, values = _bad_setters(spec, bad)
    annotations = [
        f"{key}={quoted(value)}"
        for key, value in sorted((metadata.get("annotations") or {}).items())
        if key.startswith(APP_ARMOR) and value not in {"", "runtime/default"} and not value.startswith("localhost/")
    ]
    if annotations:
        setters.append("annotation" if len(annotations) == 1 else "annotations")
        values += annotations
    if not setters:
        return None
    reason = "forbidden AppArmor profile" + ("" if len(values) == 1 else "s")
    return reason, f"{' and '.join(setters)} must not set AppArmor profile type to {_listed(values)}"


def _added(container: Document, allowed: frozenset[str]) -> Iterator[str]:
    capabilities = inner(_context(container), "capabilities") or {}
    return (str(name) for name in capabilities.get("add") or () if name not in allowed)


def _capabilities(_metadata: Document, spec: Document) -> Finding:
    names, values = _bad_containers(spec, partial(_added, allowed=_CAPABILITIES))
    if not names:
        return None
    text = f"must not include {_listed(values)} in securityContext.capabilities.add"
    return "non-default capabilities", f"{_numbered('container', names)} {text}"


def _host_namespaces(_metadata: Document, spec: Document) -> Finding:
    found = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return ("host namespaces", ", ".join(found)) if found else None


def _host_paths(_metadata: Document, spec: Document) -> Finding:
    found = [str(volume.get("name", "")) for volume in items(spec, "volumes") if volume.get("hostPath") is not None]
    return ("hostPath volumes", _numbered("volume", found)) if found else None


def _host_ports(_metadata: Document, spec: Document) -> Finding:
    def bad(container: Document) -> Iterator[str]:
        return (str(port["hostPort"]) for port in items(container, "ports") if port.get("hostPort"))

    names, ports = _bad_containers(spec, bad)
    if not names:
        return None
    what = "hostPort" if len(ports) == 1 else "hostPorts"
    return "hostPort", f"{_numbered('container', names)} {_uses(names)} {what} {', '.join(ports)}"


def _probe_hosts(_metadata: Document, spec: Document) -> Finding:
    paths = (
        ("livenessProbe",),
        ("readinessProbe",),
        ("startupProbe",),
        ("lifecycle", "postStart"),
        ("lifecycle", "preStop"),
    )

    def bad(container: Document) -> Iterator[str]:
        for path in paths:
            for way in ("httpGet", "tcpSocket"):
                host = (inner(container, *path, way) or {}).get("host")
                if host:
                    yield str(host)

    names, hosts = _bad_containers(spec, bad)
    if not names:
        return None
    names = sorted(set(names))
    what = _numbered("probe or lifecycle host", hosts)
    return "probe or lifecycle host", f"{_numbered('container', names)} {_uses(names)} {what}"


def _privileged(_metadata: Document, spec: Document) -> Finding:
    names, _ = _bad_containers(spec, lambda container: _values(_context(container).get("privileged"), True))
    text = "must not set securityContext.privileged=true"
    return ("privileged", f"{_numbered('container', names)} {text}") if names else None


def _proc_mount(_metadata: Document, spec: Document) -> Finding:
    def bad(container: Document) -> Iterator[str]:
        given = _context(container).get("procMount")
        if given not in {None, "Default"}:
            yield str(given)

    names, values = _bad_containers(spec, bad)
    text = f"must not set securityContext.procMount to {_listed(values)}"
    return ("procMount", f"{_numbered('container', names)} {text}") if names else None


def _selinux(types: frozenset[str], _metadata: Document, spec: Document) -> Finding:
    def bad(context: Document) -> Iterator[str]:
        options = inner(context, "seLinuxOptions") or {}
        if options.get("type", "") not in types:
            yield f"type {options['type']}"
        yield from (name for name in ("user", "role") if options.get(name))

    setters, values = _bad_setters(spec, bad)
    if not setters:
        return None
    bad_types = [value.removeprefix("type ") for value in values if value.startswith("type ")]
    said = [_numbered("type", bad_types)] if bad_types else []
    said += [f"{name} may not be set" for name in ("user", "role") if name in values]
    return "seLinuxOptions", f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions: {'; '.join(said)}"


def _seccomp_annotations(metadata: Document, spec: Document) -> Finding:
    annotations: Document = metadata.get("annotations") or {}
    keys = {SECCOMP_OF_POD, *(f"{SECCOMP}{container.get('name', '')}" for container in _containers(spec))}
    found = [
        f"{key}={quoted(annotations[key])}"
        for key in sorted(keys & annotations.keys())
        if annotations[key] not in {"runtime/default", "docker/default"}
        and not annotations[key].startswith("localhost/")
    ]
    what = "annotation" if len(found) == 1 else "annotations"
    return ("seccompProfile", f"forbidden {what} {', '.join(found)}") if found else None


def _bad_seccomp(context: Document) -> Iterator[str]:
    profile = inner(context, "seccompProfile")
    if profile is not None and profile.get("type") not in {"Localhost", "RuntimeDefault"}:
        yield str(profile.get("type", ""))


def _seccomp(_metadata: Document, spec: Document) -> Finding:
    setters, values = _bad_setters(spec, _bad_seccomp)
    text = f"must not set securityContext.seccompProfile.type to {_listed(values)}"
    return ("seccompProfile", f"{' and '.join(setters)} {text}") if setters else None


def _sysctls(allowed: frozenset[str], _metadata: Document, spec: Document) -> Finding:
    names = [str(one.get("name", "")) for one in items(_context(spec), "sysctls")]
    found = [name for name in names if name not in allowed]
    return ("forbidden sysctls", ", ".join(found)) if found else None


def _host_process(_metadata: Document, spec: Document) -> Finding:
    setters, _ = _bad_setters(
        spec, lambda context: _values((inner(context, "windowsOptions") or {}).get("hostProcess"), True)
    )
    text = "must not set securityContext.windowsOptions.hostProcess=true"
    return ("hostProcess", f"{' and '.join(setters)} {text}") if setters else None


# Restricted


def _escalation(_metadata: Document, spec: Document) -> Finding:
    names = [
        str(container.get("name", ""))
        for container in _containers(spec)
        if _context(container).get("allowPrivilegeEscalation") is not False
    ]
    text = "must set securityContext.allowPrivilegeEscalation=false"
    return ("allowPrivilegeEscalation != false", f"{_numbered('container', names)} {text}") if names else None


def _restricted_capabilities(_metadata: Document, spec: Document) -> Finding:
    missing, _ = _bad_containers(
        spec,
        lambda container: (
            [] if "ALL" in ((inner(_context(container), "capabilities") or {}).get("drop") or ()) else ["ALL"]
        ),
    )
    adding, values = _bad_containers(spec, partial(_added, allowed=frozenset({"NET_BIND_SERVICE"})))
    said = [f'{_numbered("container", missing)} must set securityContext.capabilities.drop=["ALL"]'] if missing else []
    if adding:
        text = f"must not include {_listed(values)} in securityContext.capabilities.add"
        said.append(f"{_numbered('container', adding)} {text}")
    return ("unrestricted capabilities", "; ".join(said)) if said else None


def _restricted_volumes(_metadata: Document, spec: Document) -> Finding:
    bad = [volume for volume in items(spec, "volumes") if not any(volume.get(kind) is not None for kind in _VOLUMES)]
    if not bad:
        return None
    names = [str(volume.get("name", "")) for volume in bad]
    kinds = {next((kind for kind in _OTHER_VOLUMES if volume.get(kind) is not None), "unknown") for volume in bad}
    text = f"{_numbered('volume', names)} {_uses(names)} {_numbered('restricted volume type', sorted(kinds))}"
    return "restricted volume types", text


def _without(spec: Document, field: str, is_set: bool) -> list[str]:
    """Return the containers that do not set a field, unless the Pod does it for them."""
    if is_set:
        return []
    return [str(container.get("name", "")) for container in _containers(spec) if _context(container).get(field) is None]


def _non_root(_metadata: Document, spec: Document) -> Finding:
    reason = "runAsNonRoot != true"
    setters, _ = _bad_setters(spec, lambda context: _values(context.get("runAsNonRoot"), False))
    if setters:
        return reason, f"{' and '.join(setters)} must not set securityContext.runAsNonRoot=false"
    names = _without(spec, "runAsNonRoot", _context(spec).get("runAsNonRoot") is True)
    text = "must set securityContext.runAsNonRoot=true"
    return (reason, f"pod or {_numbered('container', names)} {text}") if names else None


def _root_user(_metadata: Document, spec: Document) -> Finding:
    setters, _ = _bad_setters(spec, lambda context: _values(context.get("runAsUser"), 0))
    return ("runAsUser=0", f"{' and '.join(setters)} must not set runAsUser=0") if setters else None


def _restricted_seccomp(metadata: Document, spec: Document) -> Finding:
    found = _seccomp(metadata, spec)
    if found is not None:
        return found
    names = _without(spec, "seccompProfile", _context(spec).get("seccompProfile") is not None)
    text = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return ("seccompProfile", f"pod or {_numbered('container', names)} {text}") if names else None


@dataclass(frozen=True, slots=True)
class _Versioned:
    """A check with the minor versions since which it is what it is."""

    name: str
    level: Level
    versions: tuple[tuple[int, _Check], ...]
    replaces: str = ""
    """The baseline check that a restricted one makes superfluous."""

    def of(self, version: int) -> _Check | None:
        return next((check for since, check in reversed(self.versions) if since <= version), None)


_CHECKS: Final = (
    _Versioned("appArmorProfile", "baseline", ((0, _app_armor),)),
    _Versioned("capabilities_baseline", "baseline", ((0, _capabilities),)),
    _Versioned("hostNamespaces", "baseline", ((0, _host_namespaces),)),
    _Versioned("hostPathVolumes", "baseline", ((0, _host_paths),)),
    _Versioned("hostPorts", "baseline", ((0, _host_ports),)),
    _Versioned("hostProbesAndHostLifecycle", "baseline", ((34, _probe_hosts),)),
    _Versioned("privileged", "baseline", ((0, _privileged),)),
    _Versioned("procMount", "baseline", ((0, _proc_mount), (35, _except_user_namespaces(_proc_mount)))),
    _Versioned(
        "seLinuxOptions",
        "baseline",
        (
            (0, partial(_selinux, _SELINUX_TYPES)),
            (31, partial(_selinux, _SELINUX_TYPES | {"container_engine_t"})),
        ),
    ),
    _Versioned("seccompProfile_baseline", "baseline", ((0, _seccomp_annotations), (19, _seccomp))),
    _Versioned(
        "sysctls",
        "baseline",
        tuple(
            (since, partial(_sysctls, allowed))
            for since, allowed in ((0, _SYSCTLS), (27, _SYSCTLS_27), (29, _SYSCTLS_29), (32, _SYSCTLS_32))
        ),
    ),
    _Versioned("windowsHostProcess", "baseline", ((0, _host_process),)),
    _Versioned("allowPrivilegeEscalation", "restricted", ((8, _escalation), (25, _except_windows(_escalation)))),
    _Versioned(
        "capabilities_restricted",
        "restricted",
        ((22, _restricted_capabilities), (25, _except_windows(_restricted_capabilities))),
        "capabilities_baseline",
    ),
    _Versioned("procMount_restricted", "restricted", ((35, _proc_mount),), "procMount"),
    _Versioned("restrictedVolumes", "restricted", ((0, _restricted_volumes),), "hostPathVolumes"),
    _Versioned("runAsNonRoot", "restricted", ((0, _non_root), (35, _except_user_namespaces(_non_root)))),
    _Versioned("runAsUser", "restricted", ((23, _root_user), (35, _except_user_namespaces(_root_user)))),
    _Versioned(
        "seccompProfile_restricted",
        "restricted",
        ((19, _restricted_seccomp), (25, _except_windows(_restricted_seccomp))),
        "seccompProfile_baseline",
    ),
)
"""In the order in which they are said: those of the baseline first, each level by its upstream names."""


@cache
def _checks_of(level: Level, version: int) -> tuple[_Check, ...]:
    if level == "privileged":
        return ()
    levels = {"baseline", level}
    found = {one.name: check for one in _CHECKS if one.level in levels and (check := one.of(version)) is not None}
    replaced = {one.replaces for one in _CHECKS if one.name in found and one.replaces}
    return tuple(check for name, check in found.items() if name not in replaced)


def findings(level: Level, version: int | None, metadata: Document, spec: Document) -> list[tuple[str, str]]:
    """Return what a level does not allow of a Pod. `version` is the minor version of Kubernetes, None the latest."""
    checks = _checks_of(level, LATEST if version is None else min(version, LATEST))
    return [found for check in checks if (found := check(metadata, spec)) is not None]


__all__ = ["LATEST", "Level", "findings"]
