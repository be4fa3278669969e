"""`ctrl why`: asks a running operator why an object was reconciled, or why not."""

from __future__ import annotations

import contextlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import click
import msgspec

from ctrlruntime.cli.connection import cluster_options, with_cluster
from ctrlruntime.cli.output import say
from ctrlruntime.errors import ConfigError, CtrlError, NoConfigError, NotFound
from ctrlruntime.explain import facts
from ctrlruntime.explain.text import lines
from ctrlruntime.project.running import DEBUG_ADDRESS, forward_port
from ctrlruntime.project.settings import NoProjectError, find_project

if TYPE_CHECKING:
    from ctrlruntime.cluster import Cluster
    from ctrlruntime.project.deployment.portforward import Page

__all__ = ["AnswerError", "NotRunningError", "why"]

PATIENCE: Final = 10.0
"""Seconds the operator has to answer; it says by itself, earlier, when its event loop does not."""

_OTHER: Final = f"For another operator, {forward_port()}"

_decode_why = msgspec.json.Decoder(facts.Why).decode
_decode_refusal = msgspec.json.Decoder(facts.Refusal).decode


class AnswerError(CtrlError):
    """The operator could not be asked, or refused to answer; the message says what to do."""


class NotRunningError(AnswerError):
    """No process listens at the address."""


_HELP = """Explain why an object was reconciled, or why not.

    Prints the last reconciles of the object in a running operator: trigger, outcome and requests to the API server. It also prints the line
    at which a running reconcile waits, and the time of the next reconcile. For a kind that is only watched, it prints the reconciles that its
    events triggered.

    Without --address, it finds the operator of this project: the one that `ctrl run` runs, else its Pod in the cluster (the leader, or with
    sharding the replica that has the object), through the API server. With --kubeconfig or --context it is always the Pod. Operators serve
    this data with --debug-bind-address, which `ctrl run` and the Deployment in config/manager set. With several --address, it prints the
    response of the replica that has the object.

    \b
    Examples:
      ctrl why Cart shop/mine
      ctrl why Cart shop/mine --context production
      ctrl why deploy shop/web --address 127.0.0.1:8082
      ctrl why Cart shop/mine --address 127.0.0.1:8082 --address 127.0.0.1:8083
    """


@click.command(help=_HELP)
@click.argument("kind")
@click.argument("name", metavar="[NAMESPACE/]NAME")
@click.option(
    "--address",
    "addresses",
    metavar="HOST:PORT",
    multiple=True,
    help="Debug address of the operator, as in its flag --debug-bind-address. With sharding, repeat it for each replica.  "
    "[default: of this project's operator]",
)
@cluster_options
@click.option("--controller", metavar="NAME", default="", help="Print only this controller.")
@click.option(
    "--cluster", metavar="NAME", default="", help="Print only this cluster of the fleet.  [default: all clusters]"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def why(
    *,
    kind: str,
    name: str,
    addresses: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    controller: str,
    cluster: str,
    as_json: bool,
) -> None:
    namespace, _, last = name.rpartition("/")
    if not last:
        raise click.BadParameter(f"expected NAMESPACE/NAME or NAME, got {name!r}", param_hint="[NAMESPACE/]NAME")
    if addresses and (kubeconfig or context):
        raise click.UsageError(
            "--address cannot be used with --kubeconfig or --context, because it is not in a cluster"
        )
    query = {"kind": kind, "namespace": namespace, "name": last, "controller": controller, "cluster": cluster}
    target = f"/debug/ctrlruntime/why?{urlencode(query)}"
    origin, body = _of_addresses(addresses, target) if addresses else _of_project(target, kubeconfig, context)
    if as_json:
        say(body.decode().rstrip("\n"))
        return
    try:
        answer = _decode_why(body)
    except msgspec.DecodeError as error:
        raise AnswerError(
            f"the response from {origin} is not that of an operator of this version ({error}). Check that it is the debug address"
        ) from error
    for line in lines(answer):
        say(line)


def _of_addresses(addresses: Sequence[str], target: str) -> tuple[str, bytes]:
    """Return the origin and the body of a debug page: of the replica that has the object, else of the first one that responds.

    Raises: AnswerError, if none responds.
    """
    first: tuple[str, bytes] | None = None
    failed: AnswerError | None = None
    for address in addresses:
        try:
            body = fetch(address, target)
        except AnswerError as error:
            failed = failed or error
            continue
        if not _other_replicas(body):
            return address, body
        first = first or (address, body)
    if first is not None:
        return first
    assert failed is not None
    raise failed


def _of_project(target: str, kubeconfig: str | None, context: str | None) -> tuple[str, bytes]:
    """Return the origin and the body of a debug page of this project's operator. Raises: AnswerError, CtrlError."""
    try:
        folder = Path(os.path.relpath(find_project(Path.cwd())))
    except NoProjectError as error:
        raise AnswerError(f"{error}. {_OTHER}") from error
    address = None if kubeconfig or context else _address_of_run(folder)
    if address is not None:
        try:
            return address, fetch(address, target)
        except NotRunningError:
            # A process that was killed leaves its file.
            say(f"warning: the operator of `ctrl run` no longer runs at {address}. Looking in the cluster", err=True)
    return _of_pod(folder, target, kubeconfig, context)


def _address_of_run(folder: Path) -> str | None:
    """Return the debug address of the operator that `ctrl run` runs in the project, None if none runs. Raises: ConfigError."""
    file = folder / DEBUG_ADDRESS
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(str(file), error) from error


def _of_pod(folder: Path, target: str, kubeconfig: str | None, context: str | None) -> tuple[str, bytes]:
    """Return the origin and the body of a debug page of the project's Pod. Raises: AnswerError, ConfigError, CtrlError."""
    from ctrlruntime.project.deployment import manager_deployment
    from ctrlruntime.project.deployment.debugging import debug_page
    from ctrlruntime.project.kustomize import render

    try:
        deployment = manager_deployment(render(folder / "config/default"))
    except ConfigError as error:
        raise AnswerError(f"cannot find the Deployment of the operator: {error}. {_OTHER}") from error
    if deployment is None:
        raise AnswerError(f"config/default has no Deployment with a container manager. Add it. {_OTHER}")
    origins: list[str] = []

    def tell(pod: object) -> None:
        origins.append(f"Pod {pod}")
        say(f"operator: {origins[-1]}", err=True)

    async def ask(cluster: Cluster) -> Page:
        page = await debug_page(cluster, deployment, target, timeout=PATIENCE, tell=tell)
        for name in _other_replicas(page.body):
            with contextlib.suppress(NotFound):  # the name of a process that is no Pod
                other = await debug_page(cluster, deployment, target, timeout=PATIENCE, pod_name=name, tell=tell)
                if other.status == HTTPStatus.OK and not _other_replicas(other.body):
                    return other
        return page

    try:
        page = with_cluster(kubeconfig, context, ask)
    except NoConfigError as error:
        raise AnswerError(
            f"the operator of this project does not run here, and {error}. Start it with `ctrl run`, or pass --address"
        ) from error
    if page.status != HTTPStatus.OK:
        raise AnswerError(_refused(origins[-1], page.status, page.body))
    return origins[-1], page.body


def _other_replicas(body: bytes) -> list[str]:
    """Return the Pods that reconcile the object, or may, if the replica with this response does not."""
    try:
        answers = _decode_why(body).answers
    except msgspec.DecodeError:
        return []
    return list(dict.fromkeys(pod for each in answers for pod in each.elsewhere))


def fetch(address: str, path: str) -> bytes:
    """Return what the operator at `address` answers. Raises: AnswerError, NotRunningError."""
    url = f"http://{_host_and_port(address)}{path}"
    # No proxy: what is asked for is on this machine or behind a forwarded port.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=PATIENCE) as answer:
            body: bytes = answer.read()
            return body
    except urllib.error.HTTPError as error:
        raise AnswerError(_refused(address, error.code, error.read())) from error
    except TimeoutError as error:
        raise AnswerError(f"no response from {address} within {PATIENCE:g} s. Check the log of the operator") from error
    except urllib.error.URLError as error:
        why = "timeout" if isinstance(error.reason, TimeoutError) else error.reason
        kind = NotRunningError if isinstance(error.reason, ConnectionRefusedError) else AnswerError
        raise kind(
            f"no response from {address} ({why}). Start the operator with --debug-bind-address. In a cluster, {forward_port()}"
        ) from error
    except (http.client.HTTPException, OSError) as error:
        raise AnswerError(
            f"the response from {address} is not a debug page ({error!r}). Check that the server at this address uses plain HTTP"
        ) from error


def _host_and_port(address: str) -> str:
    host, colon, port = address.rpartition(":")
    if (
        not port.isascii()
        or not port.isdecimal()
        or not 0 < int(port) < 65536
        or "/" in host
        or (colon and " " in host)
    ):
        raise AnswerError(f"--address must be HOST:PORT, such as 127.0.0.1:8082, not {address!r}")
    return f"{host or '127.0.0.1'}:{port}"


def _refused(address: str, status: int, body: bytes) -> str:
    try:
        refusal = _decode_refusal(body)
    except msgspec.DecodeError:
        if status == 404:
            return f"no debug pages at {address}. Use the address of --debug-bind-address, not of metrics or probes"
        return f"{address} responds with status {status}: {body[:200].decode(errors='replace').strip()}"
    return "\n".join([refusal.error, *(f"  {line}" for line in refusal.stack)])
