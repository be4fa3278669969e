"""The command line of an operator: which cluster, as what, listening where, logging how. argparse, so it costs nothing to import."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ctrlruntime import log
from ctrlruntime.errors import ConfigError

if TYPE_CHECKING:
    from ctrlruntime.cache.options import CacheOptions
    from ctrlruntime.leaderelection import LeaderElection
    from ctrlruntime.rest.config import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the command line said. `args` holds everything that was parsed, your own arguments too."""

    args: argparse.Namespace
    kubeconfig: str | None
    context: str | None
    metrics_bind_address: str
    health_probe_bind_address: str
    leader_elect: bool
    leader_election_namespace: str | None
    log: log.Options
    environ: Mapping[str, str]

    def get_config(self) -> Config:
        """Return the cluster to use: flag, KUBECONFIG, pod, ~/.kube/config, in this order.

        This is the command line's door: a configuration that cannot be used ends the process with code 1 and one line that says why.
        `ctrl.get_config(flags.kubeconfig, flags.context)` raises ConfigError instead.
        """
        from ctrlruntime.rest.config import get_config

        try:
            return get_config(self.kubeconfig, self.context)
        except ConfigError as error:
            sys.stderr.write(f"error: {error}\n")
            sys.exit(1)

    def election(self, options: LeaderElection | None) -> LeaderElection | None:
        """Return the election options as the flags change them: None without `--leader-elect`."""
        if options is None or not self.leader_elect:
            return None
        namespace = self.leader_election_namespace
        return replace(options, namespace=namespace) if namespace else options

    def cache(self, options: CacheOptions | None) -> CacheOptions | None:
        """Return the cache options with the namespaces of WATCH_NAMESPACE (a comma list; unset or empty: as they are)."""
        namespaces = [name.strip() for name in self.environ.get("WATCH_NAMESPACE", "").split(",") if name.strip()]
        if not namespaces or (options is not None and options.namespaces):
            return options
        from ctrlruntime.cache.options import CacheOptions

        return CacheOptions(namespaces=namespaces) if options is None else replace(options, namespaces=namespaces)


def add_flags(parser: argparse.ArgumentParser, *, log_options: log.Options | None = None) -> None:
    """Add the operator's flags to a parser of your own. `log_options`: what holds where no --zap flag is given."""
    parser.add_argument(
        "--kubeconfig", metavar="PATH", help="kubeconfig file (default: KUBECONFIG, the pod's, ~/.kube/config)"
    )
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
    parser.add_argument(
        "--metrics-bind-address",
        default=":8080",
        metavar="HOST:PORT",
        help='where /metrics is served; "0": nowhere (default: :8080)',
    )
    parser.add_argument(
        "--health-probe-bind-address", default="", metavar="HOST:PORT",
        help="where /healthz and /readyz are served (default: nowhere)",
    )  # fmt: skip
    parser.add_argument("--leader-elect", action=argparse.BooleanOptionalAction, default=False, help="elect one leader")
    parser.add_argument(
        "--leader-election-namespace", metavar="NAMESPACE", help="where the Lease lives (default: the pod's)"
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


def parse_flags(
    argv: Sequence[str] | None = None,
    *,
    parser: argparse.ArgumentParser | None = None,
    log_options: log.Options | None = None,
    environ: Mapping[str, str] = os.environ,
    **parser_options: Any,
) -> Flags:
    """Parse the command line, set up logging by it, and return what it said. `parser` may hold arguments of your own.

    `log_options` says how to log where no --zap flag is given: `log.Options(devel=True)` for a console, default: JSON from info on. Without
    a `parser`, `parser_options` go to the one that is made (`prog`, `description`…).

    Exits with code 2 and the usage, as argparse does, for a flag that is unknown or malformed.
    """
    parser = parser or argparse.ArgumentParser(**parser_options)
    add_flags(parser, log_options=log_options)
    args = parser.parse_args(argv)
    options = log.Options.from_args(args)
    log.setup(options)
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
    )
