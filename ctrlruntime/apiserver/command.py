"""The command `python -m ctrlruntime.apiserver`: run the embedded server, or write programs that replace kube-apiserver and etcd."""

from __future__ import annotations

import argparse
import asyncio
import logging
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ctrlruntime.apiserver.controllers import ALL
from ctrlruntime.apiserver.foreground import serve
from ctrlruntime.apiserver.options import ACTING_PLUGINS, FEATURE_GATES, Options
from ctrlruntime.apiserver.server import APIServer
from ctrlruntime.apiserver.shim.installation import install
from ctrlruntime.errors import ConfigError

_PROGRAM = "python -m ctrlruntime.apiserver"
_EPILOG = f"""\
It prints one line, "ready https://127.0.0.1:PORT", when it is ready, and ends on SIGTERM or SIGINT with exit code 0. It keeps
running if its parent process is killed. To prevent that, set PR_SET_PDEATHSIG (Linux), or store the process ID of the
server. With --data a killed server loses at most the writes of its last tenth of a second.

{_PROGRAM} shim DIR
    writes the programs kube-apiserver and etcd into DIR, for KUBEBUILDER_ASSETS=DIR of envtest and similar tools
"""


class _Parser(argparse.ArgumentParser):
    """Prints an error as one line, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}. See {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the server's flags."""
    made = _Parser(
        prog=_PROGRAM,
        description="A Kubernetes API server in one process, for tests, demos and local development.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--kubeconfig", required=True, metavar="PATH", help="write an admin kubeconfig here (mode 0600)")
    made.add_argument(
        "--port",
        type=_number,
        default=0,
        metavar="N",
        help="port on 127.0.0.1 (default: a free one; with --data the last one)",
    )
    made.add_argument(
        "--data",
        metavar="FILE",
        help="keep everything in this file over restarts, keys and tokens too (default: in memory)",
    )
    made.add_argument(
        "--admin-token", default="", metavar="T", help="bearer token of the admin (default: a random one)"
    )
    made.add_argument(
        "--authorization",
        choices=["rbac", "always-allow"],
        default="rbac",
        help="authorization mode: rbac, or always-allow without checks (default: rbac)",
    )
    made.add_argument(
        "--controllers",
        default="all",
        metavar="all|none|NAME,…",
        help=f"simulated controllers to run (default: all): {', '.join(ALL)}",
    )
    made.add_argument("--no-workloads", action="store_true", help="do not run the workload controllers and the node")
    made.add_argument("--no-nodes", action="store_true", help="do not run the node: Pods stay Pending")
    made.add_argument("--metrics", action="store_true", help="serve metrics.k8s.io: kubectl top and autoscalers work")
    made.add_argument(
        "--pod-ready-delay", type=_seconds, default=0.0, metavar="S", help="seconds until a Pod is Ready (default: 0)"
    )
    for action in ("enable", "disable"):
        made.add_argument(
            f"--{action}-admission-plugins",
            default="",
            metavar="NAME,…",
            help=f"admission plugins to {action}, by kube-apiserver's names. On without it: {', '.join(sorted(ACTING_PLUGINS))}"
            if action == "disable"
            else "admission plugins to enable, e.g. ServiceAccount",
        )
    made.add_argument(
        "--feature-gates",
        type=_gates,
        default={},
        metavar="NAME=true,…",
        help=f"feature gates of kube-apiserver, off without it: {', '.join(sorted(FEATURE_GATES))}",
    )
    made.add_argument(
        "--history", type=_number, default=10_000, metavar="N",
        help="number of writes kept for each resource, for watches that resume (default: 10000; fewer cause 410 Expired)",
    )  # fmt: skip
    return made


def options_from(arguments: argparse.Namespace) -> Options:
    """Return the options of the arguments. Raises: ConfigError."""
    match arguments.controllers:
        case "all":
            names: tuple[str, ...] | None = None
        case "none":
            names = ()
        case listed:
            names = _listed(listed)
    return Options(
        port=arguments.port,
        data=arguments.data,
        admin_token=arguments.admin_token,
        authorization=arguments.authorization,
        controllers=names,
        workloads=not arguments.no_workloads,
        nodes=not arguments.no_nodes,
        metrics=arguments.metrics,
        pod_ready_delay=arguments.pod_ready_delay,
        history=arguments.history,
        feature_gates=arguments.feature_gates,
        disabled_admission=_listed(arguments.disable_admission_plugins),
        enabled_admission=_listed(arguments.enable_admission_plugins),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        if given[:1] == ["shim"]:
            _write_programs(given[1:])
        else:
            _serve_kubeconfig(parser().parse_args(given))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a program's output
        return 1
    return 0


def _serve_kubeconfig(parsed: argparse.Namespace) -> None:
    path: str = parsed.kubeconfig

    def announce(server: APIServer) -> None:
        try:
            server.write_kubeconfig(path)
        except OSError as error:
            raise ConfigError(f"cannot write the kubeconfig {path}: {error.strerror}") from error
        print(f"ready {server.url}", flush=True)  # noqa: T201 - the command's one line

    asyncio.run(serve(options_from(parsed), announce))


def _write_programs(arguments: Sequence[str]) -> None:
    made = _Parser(
        prog=f"{_PROGRAM} shim",
        description="Write programs named kube-apiserver and etcd that run the embedded server, and link kubectl if it is on the PATH. "
        "Test harnesses such as envtest start them instead of the real programs.",
        epilog='Prints a line for the shell: eval "$(python -m ctrlruntime.apiserver shim DIR)"',
        allow_abbrev=False,
    )
    made.add_argument("folder", metavar="DIR", help="folder of the programs, created if missing")
    folder = Path(made.parse_args(arguments).folder)
    names = [path.name for path in install(folder)]
    print(f"wrote {', '.join(names)} to {folder}", file=sys.stderr)  # noqa: T201
    print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(folder.absolute()))}")  # noqa: T201


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _gates(text: str) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for part in _listed(text):
        name, _, value = part.partition("=")
        if value.lower() not in {"true", "false"}:
            raise argparse.ArgumentTypeError(f"{part!r} is not NAME=true or NAME=false")
        found[name] = value.lower() == "true"
    return found


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
