"""The health pages: /healthz, /livez and /readyz, each check below them, and what `?verbose` and `?exclude=` make of them.

The checks have kube-apiserver's names, so that a harness may ask for one or leave one out; here all of them hold as soon as the server
listens.
"""

from __future__ import annotations

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


def health(call: Call) -> web.Response:
    """Return the page, or the one check, that the path names."""
    name, _, check = call.path.strip("/").partition("/")
    checks = CHECKS[name]
    if check:
        if check not in checks:
            return text("404 page not found\n", 404)
        answer = text("ok")
        del answer.headers["X-Content-Type-Options"]
        return answer
    if "verbose" not in call.query:
        return text("ok")
    excluded = dict.fromkeys(call.queries.get("exclude") or ())
    lines = [f"[+]{one} {'excluded: ok' if one in excluded else 'ok'}" for one in checks]
    unknown = ", ".join(f'"{one}"' for one in excluded if one not in checks)
    if unknown:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}")
    return text("\n".join([*lines, f"{name} check passed", ""]))
