"""What Pods for Windows and for Linux may say, with kube-apiserver's words (pkg/apis/core/validation/validation.go)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ctrlruntime.apiserver.registry.trees import all_containers, inner
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, required
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import choice_causes, subdomain_causes
from ctrlruntime.selector import utf8_length

_ON_LINUX: Final = ("appArmorProfile", "seLinuxOptions", "seccompProfile", "runAsUser", "runAsGroup")
_POD_ON_LINUX: Final = (
    *_ON_LINUX,
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_ON_LINUX: Final = (
    *_ON_LINUX,
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
)
_LONGEST_SPEC: Final = 64 * 1024
_LONGEST_DOMAIN: Final = 256
_LONGEST_USER: Final = 104
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN: Final = re.compile(rf'[^\\/:*?"<>|.][^\\/:*?"<>|]{{0,14}}|{_LABEL}(?:\.{_LABEL})*')
"""A NetBIOS name, or a DNS name."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NOT_OF_USERS: Final = '"/\\:;|=,+*?<>@[]'


def system_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """What may be set depends on the system that a Pod is for."""
    system = spec.get("os")
    if system is None:
        return
    name = system.get("name")
    if not name:
        yield required(f"{path}.os.name")
        return
    yield from choice_causes(name, f"{path}.os", ("linux", "windows"))
    contexts: list[tuple[str, Document, tuple[str, ...]]] = [
        (f"{path}.securityContext", inner(spec, "securityContext") or {}, _POD_ON_LINUX)
    ]
    for where, container in all_containers(spec, path):
        context = inner(container, "securityContext") or {}
        contexts.append((f"{where}.securityContext", context, _CONTAINER_ON_LINUX))
    if name == "linux":
        for where, context, _ in contexts:
            if context.get("windowsOptions") is not None:
                yield forbidden_field(f"{where}.windowsOptions", "windows options cannot be set for a linux pod")
    elif name == "windows":
        shared = {field: spec.get(field) or None for field in ("hostPID", "hostIPC")}  # false is as good as nothing
        contexts.append((path, {**spec, **shared}, ("hostUsers", "shareProcessNamespace", *shared)))
        for where, context, fields in contexts:
            for field in fields:
                if context.get(field) is not None and (field != "sysctls" or context[field]):
                    yield forbidden_field(f"{where}.{field}", "cannot be set for a windows pod")


def host_process_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """Containers that are processes of the node: all or none (validateWindowsHostProcessPod)."""
    of_pod, found = _is_host_process(spec), list[bool]()
    for where, container in all_containers(spec, path):
        own = _is_host_process(container)
        if own is not None and of_pod is not None and own != of_pod:
            text = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            yield invalid_value(f"{where}.securityContext.windowsOptions.hostProcess", own, text)
        found.append(bool(of_pod if own is None else own))
    if any(found):
        if not all(found):
            text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
            yield invalid_value(path, "", text)
        if not spec.get("hostNetwork"):
            text = "hostNetwork must be true if pod contains any hostProcess containers"
            yield invalid_value(f"{path}.hostNetwork", False, text)


def _is_host_process(tree: Document) -> Any:
    return (inner(tree, "securityContext", "windowsOptions") or {}).get("hostProcess")


def windows_causes(context: Document, path: str) -> Iterator[StatusCause]:
    """The options for Windows in a security context (validateWindowsSecurityContextOptions)."""
    options, path = context.get("windowsOptions"), f"{path}.windowsOptions"
    if options is None:
        return
    if options.get("gmsaCredentialSpecName") is not None:
        yield from subdomain_causes(options["gmsaCredentialSpecName"], f"{path}.gmsaCredentialSpecName")
    account, user = options.get("gmsaCredentialSpec"), options.get("runAsUserName")
    if account == "":
        yield invalid_value(f"{path}.gmsaCredentialSpec", account, "gmsaCredentialSpec cannot be an empty string")
    elif account is not None and utf8_length(account) > _LONGEST_SPEC:
        yield invalid_value(f"{path}.gmsaCredentialSpec", account, "gmsaCredentialSpec size must be under 64 KiB")
    if user is not None:
        yield from (
            invalid_value(f"{path}.runAsUserName", user, f"runAsUserName{text}") for text in _user_problems(user)
        )


def _user_problems(text: str) -> Iterator[str]:
    domain, slash, user = text.rpartition("\\")
    if not text:
        yield " cannot be an empty string"
    elif _CONTROL.search(text):
        yield " cannot contain control characters"
    elif "\\" in domain:
        yield " cannot contain more than one backslash"
    else:
        for is_wrong, problem in (
            (utf8_length(domain) >= _LONGEST_DOMAIN, f"Domain length must be under {_LONGEST_DOMAIN} characters"),
            (slash and not _DOMAIN.fullmatch(domain), "Domain doesn't match the NetBios nor the DNS format"),
            (not user, "User cannot be empty"),
            (utf8_length(user) > _LONGEST_USER, f"User length must not be longer than {_LONGEST_USER} characters"),
            (user and not user.strip(". "), "User cannot contain only periods or spaces"),
            (set(user) & set(_NOT_OF_USERS), f"User cannot contain the following characters: {_NOT_OF_USERS}"),
        ):
            if is_wrong:
                yield f"'s {problem}"
