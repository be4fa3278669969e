"""`ctrl why`: asks a running operator why an object was reconciled, or why not."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import click
import msgspec

from ctrlruntime.cli.output import say
from ctrlruntime.errors import ConfigError, CtrlError
from ctrlruntime.explain import facts
from ctrlruntime.explain.text import lines
from ctrlruntime.project.running import DEBUG_ADDRESS
from ctrlruntime.project.settings import find_project

__all__ = ["AnswerError", "why"]

PATIENCE: Final = 10.0
"""Seconds the operator has to answer; it says by itself, earlier, when its event loop does not."""


class AnswerError(CtrlError):
    """The operator could not be asked, or refused to answer; the message says what to do."""


_HELP = """Explain why an object was reconciled, or why not.

    Prints the last reconciles of the object in a running operator: trigger, outcome and requests to the API server. It also prints the line
    at which a running reconcile waits, and the time of the next reconcile. For a kind that is only watched, it prints the reconciles that its
    events triggered.

    Without --address, it finds the operator that `ctrl run` runs in this project. Any other operator must run with --debug-bind-address.

    \b
    Examples:
      ctrl why Cart shop/mine
      ctrl why deploy shop/web --address 127.0.0.1:8082
    """


@click.command(help=_HELP)
@click.argument("kind")
@click.argument("name", metavar="[NAMESPACE/]NAME")
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="Debug address of the operator, as in its flag --debug-bind-address.  [default: of `ctrl run` in this project]",
)
@click.option("--controller", metavar="NAME", default="", help="Print only this controller.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def why(*, kind: str, name: str, address: str | None, controller: str, as_json: bool) -> None:
    namespace, _, last = name.rpartition("/")
    if not last:
        raise click.BadParameter(f"expected NAMESPACE/NAME or NAME, got {name!r}", param_hint="[NAMESPACE/]NAME")
    address = address or _address_here()
    query = {"kind": kind, "namespace": namespace, "name": last, "controller": controller}
    body = fetch(address, f"/debug/ctrlruntime/why?{urlencode(query)}")
    if as_json:
        say(body.decode().rstrip("\n"))
        return
    try:
        answer = msgspec.json.decode(body, type=facts.Why)
    except msgspec.DecodeError as error:
        raise AnswerError(
            f"the response from {address} is not that of an operator of this version ({error}). Check that it is the debug address"
        ) from error
    for line in lines(answer):
        say(line)


def _address_here() -> str:
    """Return the debug address of the operator that `ctrl run` runs in this project. Raises: ConfigError, AnswerError."""
    file = find_project(Path.cwd()) / DEBUG_ADDRESS
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise AnswerError(
            "the operator of this project does not run here. Start it with `ctrl run`, or pass --address. In a cluster, set "
            "--debug-bind-address and forward the port: kubectl port-forward deployment/NAME PORT"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(str(file), error) from error


def fetch(address: str, path: str) -> bytes:
    """Return what the operator at `address` answers. Raises: AnswerError."""
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
        raise AnswerError(
            f"no response from {address} ({why}). Start the operator with --debug-bind-address. In a cluster, forward the port: "
            "kubectl port-forward deployment/NAME PORT"
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
        refusal = msgspec.json.decode(body, type=facts.Refusal)
    except msgspec.DecodeError:
        if status == 404:
            return f"no debug pages at {address}. Use the address of --debug-bind-address, not of metrics or probes"
        return f"{address} responds with status {status}: {body[:200].decode(errors='replace').strip()}"
    return "\n".join([refusal.error, *(f"  {line}" for line in refusal.stack)])
