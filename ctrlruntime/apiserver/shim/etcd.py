"""Replaces etcd for a harness that must start one: responds to /health, stores nothing, ends on SIGTERM.

Our kube-apiserver keeps its objects itself and never calls it. It is a script, started by its path with the interpreter's isolated
mode and no site packages, so it holds nothing but the standard library and imports little: it answers some 20 ms after its start.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    import ssl

VERSION = "3.6.8"
_LONGEST_REQUEST = 65536
_PATIENCE = 10.0  # seconds for one request
_BOOLEANS = frozenset(
    (  # noqa: SIM905 - a list of words
        "auto-tls client-cert-auth discovery-insecure-skip-tls-verify discovery-insecure-transport enable-distributed-tracing "
        "enable-log-rotation enable-pprof enable-v2 force-new-cluster initial-election-tick-advance peer-auto-tls "
        "peer-client-cert-auth peer-skip-client-san-verification pre-vote socket-reuse-address socket-reuse-port "
        "strict-reconfig-check unsafe-no-fsync debug version help h"
    ).split()
)
_USED = {
    "listen-client-urls": "URLs of /health: http:// or https://, separated by commas",
    "listen-client-http-urls": "further such URLs",
    "cert-file": "certificate for the https URLs (PEM)",
    "key-file": "its key (PEM)",
    "client-cert-auth": "reject clients without a certificate of --trusted-ca-file",
    "trusted-ca-file": "CA of these certificates (PEM)",
    "data-dir": "created if missing, and not used",
}
_ACCEPTED = (  # noqa: SIM905 - a list of words
    "name advertise-client-urls listen-peer-urls initial-advertise-peer-urls initial-cluster initial-cluster-state "
    "initial-cluster-token unsafe-no-fsync log-level logger log-outputs log-format snapshot-count heartbeat-interval "
    "election-timeout quota-backend-bytes max-request-bytes max-txn-ops auto-compaction-mode auto-compaction-retention wal-dir "
    "listen-metrics-urls metrics peer-cert-file peer-key-file peer-trusted-ca-file max-snapshots max-wals"
).split()
_PAGES = {
    "/health": ("text/plain; charset=utf-8", b'{"health":"true","reason":""}'),
    "/version": (
        "application/json",
        b'{"etcdserver":"%b","etcdcluster":"3.6.0","storage":"3.6.0"}' % VERSION.encode(),
    ),
    "/readyz": ("text/plain; charset=utf-8", b"ok\n"),
    "/livez": ("text/plain; charset=utf-8", b"ok\n"),
}


class UsageError(Exception):
    """An invalid flag, or a port that is in use; one line."""


def read_flags(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the values of the flags (also those in ETCD_… variables) and the names that etcd does not have.

    As Go's flag package reads them: one dash or two, `=` or a space, booleans without a value.
    """
    values = {
        name.removeprefix("ETCD_").lower().replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("ETCD_")
    }
    unknown: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("-"):
            raise UsageError(f"'{argument}' is not a valid flag")
        name, equals, value = argument.lstrip("-").partition("=")
        known = name in _BOOLEANS or name in _USED or name in _ACCEPTED or name.startswith("experimental-")
        if not known:
            unknown.append(name)
        if not equals:
            is_boolean = name in _BOOLEANS or (not known and (not rest or rest[0].startswith("-")))
            if is_boolean:
                value = "true"
            elif rest:
                value = rest.pop(0)
            else:
                raise UsageError(f"flag needs an argument: -{name}")
        values[name] = value
    return values, unknown


def listen(url: str) -> tuple[socket.socket, bool]:
    """Return a listening socket for a client URL, and whether it is for TLS."""
    scheme, _, rest = url.partition("://")
    host, _, port = rest.split("/")[0].rpartition(":")
    if scheme not in {"http", "https"} or not port.isdigit():
        raise UsageError(f'"{url}" is not a client URL. Use http://127.0.0.1:PORT or https://127.0.0.1:PORT')
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host.strip("[]") or "0.0.0.0",  # noqa: S104 - as etcd does for an empty host
            int(port),
            type=socket.SOCK_STREAM,
        )[0]
        listener = socket.socket(family, kind)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        text = (error.strerror or str(error)).lower()
        raise UsageError(f"listen tcp {host}:{port}: bind: {text}") from None
    return listener, scheme == "https"


def answer(request: bytes) -> bytes:
    """Return the whole response to the bytes of one request."""
    method, _, rest = request.partition(b" ")
    path = rest.split(b" ", 1)[0].split(b"?")[0].decode("ascii", "replace")
    kind, body = _PAGES.get(path, ("text/plain; charset=utf-8", b"404 page not found\n"))
    status, extra = ("200 OK" if path in _PAGES else "404 Not Found"), ""
    if path in _PAGES and method not in {b"GET", b"HEAD"}:
        status, extra, body = "405 Method Not Allowed", "Allow: GET\r\n", b"Method Not Allowed\n"
    head = (
        f"HTTP/1.1 {status}\r\n{extra}Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if method == b"HEAD" else body)


def serve_one(connection: socket.socket, tls: ssl.SSLContext | None) -> None:
    """Answer one request and close the connection."""
    try:
        connection.settimeout(_PATIENCE)
        if tls is not None:
            connection = tls.wrap_socket(connection, server_side=True)
        request = b""
        while b"\r\n\r\n" not in request and len(request) < _LONGEST_REQUEST:
            chunk = connection.recv(4096)
            if not chunk:
                return
            request += chunk
        connection.sendall(answer(request))
    except OSError:
        return  # a client that went away, or that spoke no TLS
    finally:
        with contextlib.suppress(OSError):
            connection.close()


def tls_context(values: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of the https URLs. Raises: UsageError."""
    import ssl  # costs as much as everything else together, and few ask for it

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # noqa: TID251 - this program runs without the package
    try:
        context.load_cert_chain(values.get("cert-file", ""), values.get("key-file", ""))
        if values.get("trusted-ca-file"):
            context.load_verify_locations(values["trusted-ca-file"])
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"cannot read --cert-file and --key-file, which the https client URLs require: {error}"
        ) from None
    if values.get("client-cert-auth") == "true":
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def stop_signal() -> socket.socket:
    """Return a socket that can be read as soon as SIGTERM or SIGINT has arrived.

    An exception of the handler would not do: a signal that arrives just before `select` begins does not interrupt it.
    """
    read, written = socket.socketpair()
    written.setblocking(False)
    signal.set_wakeup_fd(written.detach())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    return read


def serve(values: Mapping[str, str]) -> None:
    """Answer on the client URLs until SIGTERM or SIGINT. Raises: UsageError."""
    urls = values.get("listen-client-urls", "http://localhost:2379").split(",")
    urls += values["listen-client-http-urls"].split(",") if values.get("listen-client-http-urls") else []
    if values.get("data-dir"):
        os.makedirs(values["data-dir"], mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib takes longer to import than we to start
    selector = selectors.DefaultSelector()
    selector.register(stop_signal(), selectors.EVENT_READ)
    context: ssl.SSLContext | None = None
    for url in urls:
        listener, is_tls = listen(url)
        if is_tls and context is None:
            context = tls_context(values)
        selector.register(listener, selectors.EVENT_READ, (listener, context if is_tls else None))
    _say(f"serving client traffic on {', '.join(urls)}", sys.stderr)
    while True:
        for key, _ in selector.select():
            if key.data is None:
                return
            listener, tls = key.data
            connection, _ = listener.accept()
            threading.Thread(target=serve_one, args=(connection, tls), daemon=True).start()


def help_text() -> str:
    """Return what --help prints; harnesses look in it for the flags they may pass."""
    listed = [f"  --{name}\n    {text}" for name, text in _USED.items()]
    listed += [f"  --{name}\n    accepted, without effect" for name in _ACCEPTED]
    listed.append("  --version\n    print the version and end")
    return "Usage:\n\n  etcd [flags]\n    Serve /health instead of etcd. Nothing is stored.\n\nFlags:\n" + "\n".join(
        listed
    )


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run instead of etcd; return the exit code."""
    try:
        values, unknown = read_flags(arguments, environ)
        if values.keys() & {"help", "h"}:
            _say(help_text())
            return 0
        if "version" in values:
            _say(f"etcd Version: {VERSION}\nGit SHA: ctrlruntime\nGo Version: none (Python)")
            return 0
        for name in unknown:
            _say(f"warning: etcd has no flag --{name}, so it is ignored", sys.stderr)
        serve(values)
    except UsageError as error:
        _say(f"error: {error}", sys.stderr)
        return 1
    return 0


def _say(text: str, stream: TextIO | None = None) -> None:
    print(text, file=stream, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
