"""The health pages: /healthz, /livez and /readyz, each check below them, and what `?verbose` and `?exclude=` make of them.

The checks have kube-apiserver's names, so that a harness may ask for one or leave one out. Here all of them hold as soon as the server
listens; those of etcd fail while the data file cannot be written.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from aiohttp import web

from ctrlruntime.apiserver.http.answers import text
from ctrlruntime.apiserver.http.calls import Call

_HOOKS: Final = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "peer-endpoint-reconciler-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "storage-readiness",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
    "",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
)
_SHARED: Final = tuple(f"poststarthook/{hook}" if hook else "autoregister-completion" for hook in _HOOKS)
_ALIVE: Final = ("ping", "log", "loopback-serving-certificate", "etcd", *_SHARED)
CHECKS: Final = {
    "healthz": _ALIVE,
    "livez": _ALIVE,
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", *_SHARED, "shutdown"),
}
"""The checks of each page, in the order in which they are listed."""


STORAGE: Final = frozenset({"etcd", "etcd-readiness"})
"""The checks of the storage."""


def health(call: Call, failing: Collection[str] = ()) -> web.Response:
    """Return the page, or the one check, that the path names."""
    name, _, check = call.path.strip("/").partition("/")
    checks = CHECKS[name]
    if check:
        if check not in checks:
            return text("404 page not found\n", 404)
        if check in failing:
            return text(f"internal server error: {check} failed: reason withheld\n", 500)
        answer = text("ok")
        del answer.headers["X-Content-Type-Options"]
        return answer
    excluded = dict.fromkeys(call.queries.get("exclude") or ())
    failed = [one for one in checks if one in failing and one not in excluded]
    if "verbose" not in call.query and not failed:
        return text("ok")
    lines = [
        f"[-]{one} failed: reason withheld"
        if one in failed
        else f"[+]{one} {'excluded: ok' if one in excluded else 'ok'}"
        for one in checks
    ]
    unknown = ", ".join(f'"{one}"' for one in excluded if one not in checks)
    if unknown:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}")
    last = f"{name} check {'failed' if failed else 'passed'}"
    return text("\n".join([*lines, last, ""]), 500 if failed else 200)
