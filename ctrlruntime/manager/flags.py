"""Command-line flags of an operator: cluster, leader election, addresses and logging."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ctrlruntime import log
from ctrlruntime.errors import ConfigError
from ctrlruntime.terminal import escaped

if TYPE_CHECKING:
    from ctrlruntime.cache.options import CacheOptions
    from ctrlruntime.fleet.clusters import Fleet
    from ctrlruntime.leaderelection import LeaderElection
    from ctrlruntime.metrics import SecureMetrics
    from ctrlruntime.ownership.options import Sharding
    from ctrlruntime.rest.config import Config
    from ctrlruntime.webhook.server import WebhookOptions

DEBUG_ADDRESS_FILE: Final = "CTRLRUNTIME_DEBUG_ADDRESS_FILE"
"""Environment variable of `ctrl run`: serve the debug pages, and write their address into this file for `ctrl why`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The parsed flags. `args` has all parsed arguments, including your own."""

    args: argparse.Namespace
    kubeconfig: str | None
    context: str | None
    metrics_bind_address: str
    health_probe_bind_address: str
    leader_elect: bool
    leader_election_namespace: str | None
    log: log.Options
    environ: Mapping[str, str]
    debug_bind_address: str = ""
    debug_address_file: str = ""
    """The file for the actual address of the debug pages; `ctrl run` sets it."""

    webhook_cert_path: str = ""
    """The folder of the webhook server's certificate; empty: as set in code."""

    webhook_cert_name: str = "tls.crt"
    webhook_cert_key: str = "tls.key"
    webhook_port: int | None = None
    metrics_secure: bool | None = None
    """None: as set in code."""

    metrics_cert_path: str = ""
    """The folder of the metrics server's certificate; empty: as set in code."""

    metrics_cert_name: str = "tls.crt"
    metrics_cert_key: str = "tls.key"
    shard_weight: int | None = None
    """None: as set in code."""

    clusters: str = ""
    """The kubeconfig, or the folder of kubeconfigs, of the other clusters; empty: only those set in code."""

    def get_config(self) -> Config:
        """Return the configuration of the cluster.

        From the flag, KUBECONFIG, the pod or ~/.kube/config, in this order.

        An invalid configuration ends the process with code 1 and one line with the cause. `ctrl.get_config(flags.kubeconfig,
        flags.context)` raises ConfigError instead.
        """
        from ctrlruntime.rest.config import get_config

        try:
            return get_config(self.kubeconfig, self.context)
        except ConfigError as error:
            sys.stderr.write(f"error: {escaped(str(error))}\n")
            sys.exit(1)

    def election(self, options: LeaderElection | None) -> LeaderElection | None:
        """Return the leader election options, or None without `--leader-elect`.

        The flags are applied to them.
        """
        if options is None or not self.leader_elect:
            return None
        namespace = self.leader_election_namespace
        return replace(options, namespace=namespace) if namespace else options

    def shared(self, options: Sharding | None) -> Sharding | None:
        """Return the sharding options with the flags applied."""
        if options is None:
            return None
        changed = replace(options, namespace=self.leader_election_namespace or options.namespace)
        return changed if self.shard_weight is None else replace(changed, weight=self.shard_weight)

    def fleet(self, options: Fleet | None) -> Fleet | None:
        """Return the fleet with the clusters of `--clusters`.

        Raises: ConfigError if the fleet has a provider with the same name, `files`.
        """
        if not self.clusters:
            return options
        from ctrlruntime.fleet.clusters import Fleet
        from ctrlruntime.fleet.providers import KubeconfigFiles

        return (options or Fleet()).with_provider(KubeconfigFiles(self.clusters))

    def cache(self, options: CacheOptions | None) -> CacheOptions | None:
        """Return the cache options with the namespaces of WATCH_NAMESPACE.

        The variable is a comma-separated list. If it is not set, the options are unchanged.
        """
        namespaces = [name.strip() for name in self.environ.get("WATCH_NAMESPACE", "").split(",") if name.strip()]
        if not namespaces or (options is not None and options.namespaces):
            return options
        from ctrlruntime.cache.options import CacheOptions

        return CacheOptions(namespaces=namespaces) if options is None else replace(options, namespaces=namespaces)

    def webhook(self, options: WebhookOptions | None) -> WebhookOptions | None:
        """Return the webhook options with the flags applied.

        A certificate path replaces any other certificate.
        """
        if not self.webhook_cert_path and self.webhook_port is None:
            return options
        from ctrlruntime.webhook.server import WebhookOptions

        changed = options or WebhookOptions()
        if self.webhook_port is not None:
            changed = replace(changed, port=self.webhook_port)
        if not self.webhook_cert_path:
            return changed
        return replace(
            changed,
            cert_dir=self.webhook_cert_path,
            cert_name=self.webhook_cert_name,
            key_name=self.webhook_cert_key,
            development=None,
            secret=None,
        )

    def secure_metrics(self, options: SecureMetrics | None) -> SecureMetrics | None:
        """Return the secure metrics options with the flags applied.

        None: plain HTTP, open to everybody.

        Raises: ConfigError for a certificate that is not used.
        """
        is_secure = options is not None if self.metrics_secure is None else self.metrics_secure
        if not is_secure:
            if self.metrics_cert_path:
                raise ConfigError(
                    f"--metrics-cert-path is {self.metrics_cert_path}, but metrics are served over plain HTTP. Add --metrics-secure"
                )
            return None
        from ctrlruntime.metrics import SecureMetrics

        changed = options or SecureMetrics()
        if not self.metrics_cert_path:
            return changed
        return replace(
            changed, cert_dir=self.metrics_cert_path, cert_name=self.metrics_cert_name, key_name=self.metrics_cert_key
        )


def add_flags(parser: argparse.ArgumentParser, *, log_options: log.Options | None = None) -> None:
    """Add the operator's flags to your own parser.

    Args:
        parser: your parser.
        log_options: the defaults for missing --zap flags.

    """
    parser.add_argument(
        "--kubeconfig", metavar="PATH", help="kubeconfig file (default: KUBECONFIG, the pod's, ~/.kube/config)"
    )
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
    parser.add_argument(
        "--clusters", default="", metavar="PATH",
        help="other clusters: a kubeconfig, one for each context, or a folder of kubeconfigs, one for each file (default: set in code)",
    )  # fmt: skip
    parser.add_argument(
        "--metrics-bind-address",
        default="",
        metavar="HOST:PORT",
        help='where /metrics is served, such as :8080; "0": nowhere (default: nowhere)',
    )
    parser.add_argument(
        "--metrics-secure", action=argparse.BooleanOptionalAction, default=None,
        help="serve /metrics over HTTPS, to callers whose token may read it (default: plain HTTP, open to everybody)",
    )  # fmt: skip
    _add_certificate_flags(parser, "metrics", "certificate (default: a self-signed certificate)")
    parser.add_argument(
        "--health-probe-bind-address", default="", metavar="HOST:PORT",
        help="address of /healthz and /readyz (default: off)",
    )  # fmt: skip
    parser.add_argument(
        "--debug-bind-address", default="", metavar="HOST:PORT",
        help="address of /debug/ctrlruntime/ for a browser and `ctrl why`, only on loopback (default: off)",
    )  # fmt: skip
    parser.add_argument("--leader-elect", action=argparse.BooleanOptionalAction, default=False, help="elect one leader")
    parser.add_argument(
        "--leader-election-namespace", metavar="NAMESPACE", help="namespace of the Lease (default: the pod's)"
    )
    parser.add_argument(
        "--shard-weight", type=_weight, metavar="NUMBER",
        help="share of the objects that this replica gets, in proportion to the others, with sharding (default: set in code, or 1)",
    )  # fmt: skip
    _add_certificate_flags(parser, "webhook", "certificate, as cert-manager or OLM mount it (default: set in code)")
    parser.add_argument(
        "--webhook-port",
        type=_port,
        metavar="PORT",
        help="port of the webhook server (default: set in code, or 9443)",
    )
    log.add_flags(parser)
    if log_options is not None:
        parser.set_defaults(
            zap_devel=log_options.devel,
            zap_encoder=log_options.encoder,
            zap_log_level=log_options.log_level,
            zap_stacktrace_level=log_options.stacktrace_level,
            zap_time_encoding=log_options.time_encoding,
        )


def _add_certificate_flags(parser: argparse.ArgumentParser, server: str, certificate: str) -> None:
    """Add the flags for the folder, the certificate and the key of a server. `certificate`: the end of the help of the folder."""
    path = f"--{server}-cert-path"
    parser.add_argument(path, default="", metavar="DIR", help=f"folder of the {server} server's {certificate}")
    parser.add_argument(
        f"--{server}-cert-name",
        default="tls.crt",
        metavar="FILE",
        help=f"file of the certificate in {path} (default: tls.crt)",
    )
    parser.add_argument(
        f"--{server}-cert-key", default="tls.key", metavar="FILE", help=f"file of its key in {path} (default: tls.key)"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number from 0 (a free one) to 65535")
    return int(text)


def _weight(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a weight: give a number from 1")
    return int(text)


def parse_flags(
    argv: Sequence[str] | None = None,
    *,
    parser: argparse.ArgumentParser | None = None,
    log_options: log.Options | None = None,
    environ: Mapping[str, str] = os.environ,
    **parser_options: Any,
) -> Flags:
    """Parse the command line, configure logging, and return the flags.

    Args:
        argv: the arguments; default: those of the process.
        parser: your own parser, with your arguments.
        log_options: the defaults for missing --zap flags, such as `log.Options(devel=True)` for debugging. Default: from level info, for
            people on a terminal, else JSON.
        environ: the environment variables.
        parser_options: options for the parser (`prog`, `description`, …), if you pass none.

    Exits with code 2 and the usage, as argparse does, for an unknown or invalid flag.

    """
    parser = parser or argparse.ArgumentParser(**parser_options)
    add_flags(parser, log_options=log_options)
    args = parser.parse_args(argv)
    options = log.Options.from_args(args)
    log.setup(options)
    address_file = environ.get(DEBUG_ADDRESS_FILE, "")
    return Flags(
        args=args,
        kubeconfig=args.kubeconfig,
        context=args.context,
        metrics_bind_address=args.metrics_bind_address,
        health_probe_bind_address=args.health_probe_bind_address,
        leader_elect=args.leader_elect,
        leader_election_namespace=args.leader_election_namespace,
        log=options,
        environ=environ,
        debug_bind_address=args.debug_bind_address or ("127.0.0.1:0" if address_file else ""),
        debug_address_file=address_file,
        webhook_cert_path=args.webhook_cert_path,
        webhook_cert_name=args.webhook_cert_name,
        webhook_cert_key=args.webhook_cert_key,
        webhook_port=args.webhook_port,
        metrics_secure=args.metrics_secure,
        metrics_cert_path=args.metrics_cert_path,
        metrics_cert_name=args.metrics_cert_name,
        metrics_cert_key=args.metrics_cert_key,
        shard_weight=args.shard_weight,
        clusters=args.clusters,
    )
