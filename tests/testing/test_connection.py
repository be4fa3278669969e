"""Requests from a kubeconfig: which credential is sent, and what comes back."""

from __future__ import annotations

import base64
import http.server
import json
import select
import socket
import ssl
import sys
import tempfile
import threading
import time

import pytest

from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError, NotFound, TransportError
from ctrlruntime.testing.connection import Connection


def encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what it was sent."""

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        sent = {"path": self.path, "headers": self.headers.items(), "body": self.rfile.read(length).decode()}
        answer = json.dumps(sent).encode() if self.path != "/text" else b"ok"
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_PATCH = do_GET  # noqa: N815 - the name http.server calls

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def url():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def connect(url: str, user: dict | None = None, *, clock=time.monotonic, **cluster) -> Connection:
    return Connection(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", **({"user": "u"} if user else {})}}],
            "clusters": [{"name": "k", "cluster": {"server": url, **cluster}}],
            "users": [{"name": "u", "user": user or {}}],
        },
        clock=clock,
    )


def headers(connection: Connection) -> list[tuple[str, str]]:
    return [tuple(pair) for pair in connection.request("GET", "/")["headers"]]


def test_a_prefix_in_the_address_is_kept(url):
    assert connect(f"{url}/k8s/").request("GET", "/version")["path"] == "/k8s/version"


def test_a_body_is_json_of_the_named_type(url):
    sent = connect(url).request("PATCH", "/x", {"a": 1}, content_type="application/merge-patch+json")

    assert sent["body"] == '{"a": 1}'
    assert ["Content-Type", "application/merge-patch+json"] in sent["headers"]


class Kept(Echo):
    """Keeps a connection for the next request, until one for /last."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        super().do_GET()
        self.close_connection = self.path == "/last"  # without a header that says so


def test_requests_share_a_connection_until_the_server_or_we_close_it_or_it_is_old():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kept) as server:
        opened: list[object] = []
        server.verify_request = lambda request, address: not opened.append(address)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        now = 0.0
        connection = connect(f"http://127.0.0.1:{server.server_port}", clock=lambda: now)

        for path in ("/1", "/2", "/last"):
            connection.request("GET", path)
        assert len(opened) == 1
        ((idle, _),) = connection._idle
        select.select([idle.sock], [], [])  # until the end of /last is here
        connection.request("GET", "/3")
        assert len(opened) == 2
        connection.close()
        connection.request("GET", "/4")
        assert len(opened) == 3
        now = 29.0
        connection.request("GET", "/5")
        assert len(opened) == 3
        now = 59.0
        connection.request("GET", "/6")
        assert len(opened) == 4

        connection.close()
        server.shutdown()
        thread.join()


def test_an_answer_that_is_no_json_comes_as_text(url):
    assert connect(url).request("GET", "/text") == {"text": "ok"}


def test_a_refusal_is_the_error_of_its_code(url):
    with pytest.raises(NotFound):
        connect(url).request("GET", "/missing")


def test_no_answer_names_the_request():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"

        with pytest.raises(TransportError, match=f"GET {url}/version: .*refused"):
            connect(url).request("GET", "/version")


def test_tokens_come_from_the_text_or_a_file(url, tmp_path):
    (tmp_path / "token").write_text("from-file\n")

    assert ("Authorization", "Bearer t") in headers(connect(url, {"token": "t"}))
    assert ("Authorization", "Bearer from-file") in headers(connect(url, {"tokenFile": str(tmp_path / "token")}))


def test_name_and_password_are_basic_authorization(url):
    assert ("Authorization", "Basic YTpi") in headers(connect(url, {"username": "a", "password": "b"}))


def test_each_impersonated_group_is_a_header_of_its_own(url):
    sent = headers(connect(url, {"token": "t", "as": "alice", "as-groups": ["a", "b"]}))

    assert ("Impersonate-User", "alice") in sent
    assert [value for name, value in sent if name == "Impersonate-Group"] == ["a", "b"]


def test_a_credential_plugin_is_run(url):
    code = """
import json, os
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
print(json.dumps({"status": {"token": info["kind"] + os.environ["SUFFIX"]}}))
"""
    plugin = {
        "command": sys.executable,
        "args": ["-c", code],
        "apiVersion": "client.authentication.k8s.io/v1",
        "env": [{"name": "SUFFIX", "value": "-1"}],
    }

    assert ("Authorization", "Bearer ExecCredential-1") in headers(connect(url, {"exec": plugin}))


@pytest.mark.parametrize(
    "arguments", [["-c", "raise SystemExit(1)"], ["-c", "print('no JSON')"], ["-c", "print('{}')"]]
)
def test_a_credential_plugin_that_gives_nothing_is_named(url, arguments):
    with pytest.raises(ConfigError, match=r"credential plugin '.*' gave no credential"):
        connect(url, {"exec": {"command": sys.executable, "args": arguments}})


def test_a_config_without_context_or_server_says_what_is_missing():
    with pytest.raises(ConfigError, match="names no current-context"):
        Connection({})
    with pytest.raises(ConfigError, match="no context 'c'"):
        Connection({"current-context": "c"})
    with pytest.raises(ConfigError, match="names no server"):
        connect("")


@pytest.mark.parametrize(
    "cluster", [{"certificate-authority-data": encoded(b"nonsense")}, {"certificate-authority": "/does/not/exist"}]
)
def test_certificates_that_cannot_be_used_are_a_fault_of_the_config(cluster):
    with pytest.raises(ConfigError, match="the certificates of the kubeconfig cannot be used"):
        connect("https://127.0.0.1:1", **cluster)


def test_a_server_is_known_by_another_name_when_the_config_says_so():
    authority = make_authority()
    pair = authority.server(["api.example.com"])
    with TLSServer(pair) as url:
        trusted = {"certificate-authority-data": encoded(authority.pem)}
        with pytest.raises(TransportError, match="certificate"):
            connect(url, **trusted).request("GET", "/")

        named = connect(url, **trusted, **{"tls-server-name": "api.example.com"}).request("GET", "/")
        careless = connect(url, **{"insecure-skip-tls-verify": True}).request("GET", "/")

    assert named["path"] == careless["path"] == "/"


class TLSServer:
    """The echo server over TLS, with one key pair."""

    def __init__(self, pair) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(pair.certificate + pair.key)
            file.flush()
            context.load_cert_chain(file.name)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    def __enter__(self) -> str:
        self.server.handle_error = lambda *_: None  # a client that does not trust us hangs up
        self.thread.start()
        return f"https://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
