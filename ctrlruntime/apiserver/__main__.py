"""`python -m ctrlruntime.apiserver`: the embedded server in the foreground, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence

from ctrlruntime.apiserver.options import Options
from ctrlruntime.apiserver.server import APIServer
from ctrlruntime.errors import ConfigError


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    made = argparse.ArgumentParser(
        prog="python -m ctrlruntime.apiserver",
        description="A Kubernetes API server in one process, for tests, demos and local development.",
    )
    made.add_argument("--kubeconfig", required=True, metavar="PATH", help="write an admin kubeconfig here (mode 0600)")
    made.add_argument("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)")
    made.add_argument("--admin-token", default="", metavar="T", help="bearer token of the admin (default: random)")
    made.add_argument("--authorization", choices=["rbac", "always-allow"], default="rbac")
    made.add_argument(
        "--controllers", default="all", metavar="all|none|NAME,…", help="simulated controllers to run (default: all)"
    )
    made.add_argument("--no-workloads", action="store_true", help="run no workload controllers and no node")
    made.add_argument("--no-nodes", action="store_true", help="run no node: Pods stay Pending")
    made.add_argument("--pod-ready-delay", type=float, default=0.0, metavar="S", help="seconds until a Pod is Ready")
    made.add_argument("--history", type=int, default=10_000, metavar="N", help="writes remembered for each resource")
    return made


def options_from(arguments: argparse.Namespace) -> Options:
    """Return the options the arguments mean. Raises: ConfigError."""
    match arguments.controllers:
        case "all":
            names = None
        case "none":
            names = []
        case listed:
            names = [name.strip() for name in listed.split(",") if name.strip()]
    return Options(
        port=arguments.port,
        admin_token=arguments.admin_token,
        authorization=arguments.authorization,
        controllers=names,
        workloads=not arguments.no_workloads,
        nodes=not arguments.no_nodes,
        pod_ready_delay=arguments.pod_ready_delay,
        history=arguments.history,
    )


async def serve(options: Options, kubeconfig: str) -> None:
    """Serve until SIGTERM or SIGINT. Raises: ConfigError."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = APIServer(options)
    await server.start()
    try:
        server.write_kubeconfig(kubeconfig)
        print(f"ready {server.url}", flush=True)  # noqa: T201 - the command's one line
        await stop.wait()
    finally:
        await server.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    parsed = parser().parse_args(arguments)
    try:
        asyncio.run(serve(options_from(parsed), parsed.kubeconfig))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    except OSError as error:
        print(f"error: cannot write the kubeconfig {parsed.kubeconfig}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
