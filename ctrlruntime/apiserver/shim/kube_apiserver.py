"""Replaces kube-apiserver: accepts its flags and serves with the embedded server, without simulated controllers.

It is a script, started by its path. Flags, help and version need nothing but the standard library, so a harness that asks for them
does not wait; the server is imported when it is to serve.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

VERSION = "v1.36.1"

USED: Mapping[str, tuple[str, str]] = {
    "authorization-mode": ("strings", "RBAC or AlwaysAllow; Node is ignored. Default AlwaysAllow"),
    "bind-address": ("ip", "IP address to serve on. Default 127.0.0.1, unlike kube-apiserver"),
    "cert-dir": ("string", "folder of apiserver.crt and apiserver.key, created if missing"),
    "client-ca-file": (
        "string",
        "CA of client certificates: the common name is the user, the organisations are the groups",
    ),
    "disable-admission-plugins": ("strings", "admission plugins to disable"),
    "enable-admission-plugins": ("strings", "admission plugins to enable"),
    "feature-gates": ("mapStringBool", "NAME=true,…: ShardedListAndWatch has an effect, others are ignored"),
    "runtime-config": ("mapStringString", "group/version=false: do not serve this version"),
    "secure-port": ("int", "port to serve HTTPS on. Default 6443"),
    "service-account-issuer": ("stringArray", "the issuer of service account tokens"),
    "service-account-key-file": (
        "stringArray",
        "keys whose service account tokens are accepted, in addition to the signing key (PEM)",
    ),
    "service-account-signing-key-file": ("string", "the key that signs service account tokens (RSA or EC, PEM)"),
    "service-cluster-ip-range": ("string", "network of the Services' cluster IPs. Default 10.0.0.0/24"),
    "tls-cert-file": ("string", "serving certificate (PEM)"),
    "tls-private-key-file": ("string", "its key (PEM)"),
    "token-auth-file": ("string", "CSV of bearer tokens: token,user,uid,groups"),
    "v": ("Level", "log level; 2 shows more, 6 everything"),
}
"""Flags with an effect, with kube-apiserver's name of the type, and the help."""

_BOOLEANS = (
    "emulation-forward-compatible runtime-config-emulation-forward-compatible shutdown-send-retry-after "
    "enable-garbage-collector encryption-provider-config-automatic-reload watch-cache disable-http2-serving "
    "permit-address-sharing permit-port-sharing audit-log-batch-throttle-enable audit-log-compress "
    "audit-log-truncate-enabled audit-webhook-batch-throttle-enable audit-webhook-truncate-enabled contention-profiling "
    "enable-priority-and-fairness profiling anonymous-auth enable-bootstrap-token-auth "
    "service-account-extend-token-expiration service-account-lookup log-text-split-stream "
    "aggregator-reject-forwarding-redirect allow-privileged enable-aggregator-routing enable-logs-handler"
)
_ACCEPTED = (
    "advertise-address cors-allowed-origins emulated-version external-hostname goaway-chance "
    "livez-grace-period max-mutating-requests-inflight max-requests-inflight min-compatibility-version min-request-timeout "
    "request-timeout shutdown-delay-duration shutdown-watch-termination-grace-period storage-initialization-timeout "
    "strict-transport-security-directives delete-collection-workers etcd-cafile etcd-certfile etcd-compaction-interval "
    "etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix "
    "etcd-readycheck-timeout etcd-servers etcd-servers-overrides lease-reuse-duration-seconds storage-backend "
    "storage-media-type watch-cache-sizes http2-max-streams-per-connection tls-cipher-suites tls-curve-preferences "
    "tls-min-version api-audiences service-account-jwks-uri default-not-ready-toleration-seconds "
    "default-unreachable-toleration-seconds allow-metric-labels allow-metric-labels-manifest disabled-metrics "
    "show-hidden-metrics-for-version log-flush-frequency log-text-info-buffer-size logging-format vmodule "
    "coordinated-leadership-lease-duration coordinated-leadership-renew-deadline coordinated-leadership-retry-period "
    "endpoint-reconciler-type event-ttl kubelet-certificate-authority kubelet-client-certificate kubelet-client-key "
    "kubelet-preferred-address-types kubelet-timeout kubernetes-service-node-port max-connection-bytes-per-sec "
    "peer-advertise-ip peer-advertise-port peer-ca-file proxy-client-cert-file proxy-client-key-file "
    "service-account-max-token-expiration service-node-port-range requestheader-allowed-names "
    "requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers "
    "requestheader-uid-headers requestheader-username-headers"
)
"""Flags without an effect on tests."""
_MISSED = (
    "encryption-provider-config tls-sni-cert-key audit-log-batch-buffer-size audit-log-batch-max-size "
    "audit-log-batch-max-wait audit-log-batch-throttle-burst audit-log-batch-throttle-qps audit-log-format "
    "audit-log-maxage audit-log-maxbackup audit-log-maxsize audit-log-mode audit-log-path "
    "audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version audit-policy-file "
    "audit-webhook-batch-buffer-size audit-webhook-batch-max-size audit-webhook-batch-max-wait "
    "audit-webhook-batch-throttle-burst audit-webhook-batch-throttle-qps audit-webhook-config-file "
    "audit-webhook-initial-backoff audit-webhook-mode audit-webhook-truncate-max-batch-size "
    "audit-webhook-truncate-max-event-size audit-webhook-version debug-socket-path authentication-config "
    "authentication-token-webhook-cache-ttl authentication-token-webhook-config-file authentication-token-webhook-version "
    "oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url oidc-required-claim "
    "oidc-signing-algs oidc-username-claim oidc-username-prefix authorization-config authorization-policy-file "
    "authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl "
    "authorization-webhook-config-file authorization-webhook-version egress-selector-config-file admission-control "
    "admission-control-config-file tracing-config-file service-account-signing-endpoint"
)
"""Flags for features that this server does not have: accepted, with a warning."""
BOOLEANS, ACCEPTED, MISSED = (frozenset(names.split()) for names in (_BOOLEANS, _ACCEPTED, _MISSED))
_LISTS = frozenset(name for name, (kind, _) in USED.items() if kind == "strings")


class UsageError(Exception):
    """Invalid flags; one line."""


@dataclass(slots=True)
class Flags:
    """The values of the flags in the order given, and the warnings."""

    values: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    warnings: list[str] = field(default_factory=list[str])

    def last(self, name: str, default: str = "") -> str:
        """Return the last value, as for flags that hold one."""
        return (self.values.get(name) or [default])[-1]

    def listed(self, name: str) -> list[str]:
        """Return the members of a list flag: commas and repetition add up."""
        return [part.strip() for value in self.values.get(name, ()) for part in value.split(",") if part.strip()]


def parse(arguments: Sequence[str]) -> Flags:
    """Read the flags as kube-apiserver does. Unknown ones are skipped with a warning. Raises: UsageError."""
    flags = Flags()
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            if rest:
                raise _not_taken(rest)
        elif argument.startswith("--"):
            _long(argument[2:], rest, flags)
        elif argument.startswith("-") and len(argument) > 1:
            _short(argument[1:], rest, flags)
        else:
            raise _not_taken([argument, *(word for word in rest if not word.startswith("-"))])
    return flags


def _long(text: str, rest: list[str], flags: Flags) -> None:
    name, equals, value = text.partition("=")
    is_known = name in USED or name in BOOLEANS or name in ACCEPTED or name in MISSED or name in {"help", "version"}
    if not equals:
        if name in BOOLEANS or name in {"help", "version"}:
            value = "true"
        elif is_known and not rest:
            raise UsageError(f"flag needs an argument: --{name}")
        elif is_known or (rest and not rest[0].startswith("-")):
            value = rest.pop(0)
        else:
            value = "true"
    if name in BOOLEANS and value.lower() not in {"true", "false", "1", "0", "t", "f"}:
        raise UsageError(f'invalid argument "{value}" for "--{name}" flag: expected true or false')
    flags.values.setdefault(name, []).append(value)
    if not is_known:
        flags.warnings.append(f"kube-apiserver has no flag --{name}, so it is ignored")
    elif name in MISSED or (name == "anonymous-auth" and value.lower() in {"false", "0", "f"}):
        flags.warnings.append(f"--{name} has no effect on this server")


def _short(text: str, rest: list[str], flags: Flags) -> None:
    """Read -h, -v4, -v=4 and -v 4."""
    name, value = text[0], text[1:].removeprefix("=")
    if name == "h":
        name, value = "help", "true"
    elif name != "v":
        raise UsageError(f"unknown shorthand flag: '{name}' in -{text}")
    elif not value:
        if not rest:
            raise UsageError("flag needs an argument: 'v' in -v")
        value = rest.pop(0)
    flags.values.setdefault(name, []).append(value)


def _not_taken(words: Sequence[str]) -> UsageError:
    listed = " ".join(f'"{word}"' for word in words)
    return UsageError(f'"kube-apiserver" does not take any arguments, got [{listed}]')


def help_text() -> str:
    """Return what --help prints; harnesses look in it for the flags they may pass."""
    lines = [
        "The API server of ctrlruntime instead of kube-apiserver: for tests, in one process, without etcd.",
        "",
        "Usage:",
        "  kube-apiserver [flags]",
        "",
        "Flags:",
        "",
        *(f"      --{name} {kind}\n                {text}" for name, (kind, text) in sorted(USED.items())),
        "  -h, --help\n                print this",
        "      --version\n                print the version",
        "",
        "Accepted, without effect:",
        "",
        *(f"      --{name}" for name in sorted(BOOLEANS | ACCEPTED | MISSED)),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run instead of kube-apiserver; return the exit code."""
    try:
        flags = parse(arguments)
        if "help" in flags.values:
            _say(help_text())
            return 0
        if "version" in flags.values:
            _say(f"Kubernetes {VERSION}")
            return 0
        for warning in flags.warnings:
            print(f"warning: {warning}", file=sys.stderr)  # noqa: T201 - a program's output
        return _load()(flags)
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        return 1


def _load() -> Callable[[Flags], int]:
    """Import the server."""
    # aiohttp reads all of the system's authorities when it is imported: a tenth of our start, for a context that nobody uses here.
    names = ("SSL_CERT_FILE", "SSL_CERT_DIR")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        from ctrlruntime.apiserver.shim.translation import run
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return run


def _say(text: str) -> None:
    print(text)  # noqa: T201 - a program's output


if __name__ == "__main__":
    gc.disable()  # until the server stands: what is made by then stays
    # Last, so that whatever the interpreter finds itself goes before: this is for a package that is not installed.
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)))  # noqa: PTH100, PTH118, PTH120
    sys.exit(main(sys.argv[1:]))
