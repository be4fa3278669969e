"""Digests asked from registries: one on this machine that lives as long as a test, and none beyond it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.making.registry import Registries

MANIFEST = json.dumps(
    {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []}
).encode()
LIST = json.dumps(
    {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []}
).encode()
KEPT = "sha256:" + "ab" * 32
ANN = base64.b64encode(b"ann:secret").decode()


def digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def error_body(code: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": "some\nlines"}]}).encode()


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    authorization: str = ""
    accept: str = ""
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str | None] = field(default_factory=dict)


@dataclass
class Registry:
    """Answers as it is told to: by default it holds one image, shop:v1, and tells its digest."""

    url: str
    answer: Callable[[Asked], Reply]
    asked: list[Asked] = field(default_factory=list)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def image(self, name: str = "shop:v1") -> str:
        return f"{self.host}/{name}"


def manifests(*images: str, body: bytes = MANIFEST, digest: bool = True) -> Callable[[Asked], Reply]:
    held = {f"/v2/{name}/manifests/{tag}" for name, _, tag in (image.partition(":") for image in images)}

    def answer(asked: Asked) -> Reply:
        if asked.path not in held:
            return Reply(404, error_body("MANIFEST_UNKNOWN"))
        return Reply(200, body, {"Docker-Content-Digest": digest_of(body)} if digest else {})

    return answer


def guarded(
    inner: Callable[[Asked], Reply], challenge: Callable[[], str], is_welcome: Callable[[Asked], bool]
) -> Callable[[Asked], Reply]:
    def answer(asked: Asked) -> Reply:
        if is_welcome(asked):
            return inner(asked)
        return Reply(401, error_body("UNAUTHORIZED"), {"WWW-Authenticate": challenge()})

    return answer


@contextmanager
def serving(answer: Callable[[Asked], Reply], context: ssl.SSLContext | None = None) -> Iterator[Registry]:
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            heads = (self.headers.get("Authorization") or "", self.headers.get("Accept") or "")
            asked = Asked(self.command, self.path, *heads, body)
            registry.asked.append(asked)
            reply = registry.answer(asked)
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)

        do_GET = do_HEAD = do_POST = handle_any  # noqa: N815 - the names http.server calls

        def log_message(self, *_):
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # a client that does not trust it hangs up
    registry = Registry(f"http://127.0.0.1:{server.server_address[1]}", answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def registry(monkeypatch) -> Iterator[Registry]:
    # It must not be asked by a proxy, whatever the environment says.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    with serving(manifests("shop:v1")) as found:
        yield found


@pytest.fixture
def environ(tmp_path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


@pytest.fixture
def log_in(tmp_path) -> Callable[..., Path]:
    def write(registry: str, entry: dict | None = None, **others: object) -> Path:
        path = tmp_path / ".docker/config.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"auths": {registry: {"auth": ANN} if entry is None else entry}, **others}))
        return path

    return write


def refusal(environ: dict[str, str], *images: str, **options: float) -> str:
    with pytest.raises(ConfigError) as caught:
        Registries(environ, **options).digests_of(images)
    text = str(caught.value)
    assert "\n" not in text
    return text


# What is asked


def test_the_digest_is_what_the_registry_says_in_its_header(registry, environ):
    registry.answer = lambda _: Reply(200, MANIFEST, {"Docker-Content-Digest": KEPT})

    found = Registries(environ).digests_of([registry.image()])

    assert found == {registry.image(): f"{registry.host}/shop@{KEPT}"}
    (asked,) = registry.asked
    assert (asked.method, asked.path, asked.authorization) == ("HEAD", "/v2/shop/manifests/v1", "")


def test_lists_and_manifests_of_oci_and_docker_are_taken(registry, environ):
    Registries(environ).digests_of([registry.image()])

    assert set(registry.asked[0].accept.split(", ")) == {
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    }


def test_an_image_for_several_platforms_has_the_digest_of_its_list(registry, environ):
    registry.answer = manifests("a/shop:latest", body=LIST, digest=False)

    assert Registries(environ).digests_of([registry.image("a/shop")]) == {
        registry.image("a/shop"): f"{registry.host}/a/shop@{digest_of(LIST)}"
    }


@pytest.mark.parametrize("header", [None, "", "sha512:ab", "md5"])
def test_without_a_usable_header_the_digest_is_that_of_the_body(registry, environ, header):
    headers = {} if header is None else {"Docker-Content-Digest": header}
    registry.answer = lambda _: Reply(200, MANIFEST, headers)

    found = Registries(environ).digests_of([registry.image()])

    assert found[registry.image()].endswith(f"@{digest_of(MANIFEST)}")
    assert [asked.method for asked in registry.asked] == ["HEAD", "GET"]


@pytest.mark.parametrize("status", [400, 404, 405, 501])
def test_a_registry_without_head_is_asked_by_get(registry, environ, status):
    held = manifests("shop:v1")
    registry.answer = lambda asked: Reply(status) if asked.method == "HEAD" else held(asked)

    assert Registries(environ).digests_of([registry.image()])[registry.image()].endswith(digest_of(MANIFEST))


def test_no_image_is_asked_twice_and_none_that_has_a_digest(registry, environ):
    registry.answer = manifests("shop:v1", "db:latest")
    pinned = (f"{registry.host}/shop@{KEPT}", f"{registry.host}/shop:v1@{KEPT}", f"nowhere.invalid/shop@{KEPT}")
    images = (registry.image(), registry.image(), registry.image("db"), registry.image("db:latest"), *pinned)

    found = Registries(environ).digests_of(images)

    assert found == {
        image: f"{image.removesuffix(':v1').removesuffix(':latest')}@{digest_of(MANIFEST)}" for image in images[:4]
    }
    assert sorted(asked.path for asked in registry.asked) == ["/v2/db/manifests/latest", "/v2/shop/manifests/v1"]


def test_nothing_is_asked_for_no_images(environ):
    assert Registries(environ).digests_of([]) == {}


def test_many_images_keep_their_digests_apart(registry, environ):
    names = [f"a{number}" for number in range(20)]
    registry.answer = lambda asked: Reply(headers={"Docker-Content-Digest": digest_of(asked.path.encode())})

    found = Registries(environ).digests_of(registry.image(name) for name in names)

    assert found == {
        registry.image(name): f"{registry.image(name)}@{digest_of(f'/v2/{name}/manifests/latest'.encode())}"
        for name in names
    }


def test_localhost_is_asked_by_plain_http(registry, environ):
    image = registry.image().replace("127.0.0.1", "localhost")

    assert Registries(environ).digests_of([image])[image].startswith("localhost:")


# Logins


def by_basic(registry: Registry) -> None:
    welcome = f"Basic {ANN}"
    registry.answer = guarded(
        manifests("shop:v1"), lambda: 'Basic realm="shop"', lambda asked: asked.authorization == welcome
    )


def by_token(
    registry: Registry, *, scope: str = ',scope="repository:shop:pull"', login: str = "", name: str = "token"
) -> None:
    """Wants a token, and gives one to those with the login."""
    guard = guarded(
        manifests("shop:v1"),
        lambda: f'Bearer realm="{registry.url}/token?a=b",service="the \\"shop\\""{scope}',
        lambda asked: asked.authorization == "Bearer t0ken",
    )

    def answer(asked: Asked) -> Reply:
        if not asked.path.startswith("/token"):
            return guard(asked)
        if asked.authorization != login:
            return Reply(401)
        return Reply(200, json.dumps({name: "t0ken"}).encode())

    registry.answer = answer


@pytest.mark.parametrize("scope", [',scope="repository:shop:pull"', ""])
@pytest.mark.parametrize("name", ["token", "access_token"])
def test_a_token_for_anybody_is_fetched_when_the_registry_wants_one(registry, environ, scope, name):
    by_token(registry, scope=scope, name=name)

    found = Registries(environ).digests_of([registry.image()])

    assert found[registry.image()].endswith(digest_of(MANIFEST))
    methods = [(asked.method, asked.path.partition("?")[0], asked.authorization) for asked in registry.asked]
    assert methods == [
        ("HEAD", "/v2/shop/manifests/v1", ""),
        ("GET", "/token", ""),
        ("HEAD", "/v2/shop/manifests/v1", "Bearer t0ken"),
    ]
    query = parse_qs(urlsplit(registry.asked[1].path).query)
    assert query == {"a": ["b"], "service": ['the "shop"'], "scope": ["repository:shop:pull"]}


def test_several_scopes_are_asked_for_one_by_one(registry, environ):
    by_token(registry, scope=',scope="repository:shop:pull repository:base:pull"')

    Registries(environ).digests_of([registry.image()])

    query = parse_qs(urlsplit(registry.asked[1].path).query)
    assert query["scope"] == ["repository:shop:pull", "repository:base:pull"]


def test_one_token_serves_head_and_get(registry, environ):
    by_token(registry)
    guard = registry.answer

    def without_header(asked: Asked) -> Reply:
        reply = guard(asked)
        return Reply(reply.status, reply.body, {k: v for k, v in reply.headers.items() if "Digest" not in k})

    registry.answer = without_header

    assert Registries(environ).digests_of([registry.image()])[registry.image()].endswith(digest_of(MANIFEST))
    assert [asked.method for asked in registry.asked] == ["HEAD", "GET", "HEAD", "GET"]


def test_the_token_service_gets_the_login_of_the_registry(registry, environ, log_in):
    by_token(registry, login=f"Basic {ANN}")
    log_in(registry.host)

    assert registry.image() in Registries(environ).digests_of([registry.image()])


def test_a_refresh_token_goes_into_a_form(registry, environ, log_in):
    by_token(registry)
    log_in(registry.host, {"auth": ANN, "identitytoken": "refr/esh"})

    assert registry.image() in Registries(environ).digests_of([registry.image()])
    form = dict(parse_qsl(registry.asked[1].body.decode()))
    assert registry.asked[1].method == "POST"
    assert form == {
        "grant_type": "refresh_token", "refresh_token": "refr/esh", "client_id": "ctrlruntime", "service": 'the "shop"',
        "scope": "repository:shop:pull",
    }  # fmt: skip


def test_an_access_token_is_used_as_it_is(registry, environ, log_in):
    by_token(registry)
    log_in(registry.host, {"registrytoken": "t0ken"})

    assert registry.image() in Registries(environ).digests_of([registry.image()])
    assert [asked.authorization for asked in registry.asked] == ["", "Bearer t0ken"]


def test_name_and_password_are_sent_when_the_registry_wants_them(registry, environ, log_in):
    by_basic(registry)
    log_in(registry.host)

    assert registry.image() in Registries(environ).digests_of([registry.image()])
    assert [asked.authorization for asked in registry.asked] == ["", f"Basic {ANN}"]


@pytest.mark.parametrize("ways", ['Basic realm="x", Bearer realm="{}/token"', 'bearer realm="{}/token", BASIC realm=x'])
def test_of_several_ways_a_token_is_taken(registry, environ, log_in, ways):
    by_token(registry, login=f"Basic {ANN}")
    service = registry.answer
    log_in(registry.host)

    def answer(asked: Asked) -> Reply:
        reply = service(asked)
        return Reply(401, b"", {"WWW-Authenticate": ways.format(registry.url)}) if reply.status == 401 else reply

    registry.answer = answer

    assert registry.image() in Registries(environ).digests_of([registry.image()])


def test_no_login_is_read_when_none_is_wanted(registry, environ, tmp_path):
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker/config.json").write_text("{")

    assert registry.image() in Registries(environ).digests_of([registry.image()])
    by_basic(registry)
    assert refusal(environ, registry.image()).startswith(
        f"{registry.image()}: cannot read registry logins from {tmp_path}/.docker/config.json: it is not JSON"
    )


# Redirects


def test_a_redirect_is_followed_and_a_login_does_not_go_along(registry, environ, log_in):
    log_in(registry.host)
    by_basic(registry)
    with serving(manifests("shop:v1")) as other:
        inner = registry.answer

        def elsewhere(asked: Asked) -> Reply:
            reply = inner(asked)
            return reply if reply.status == 401 else Reply(307, b"", {"Location": f"{other.url}{asked.path}"})

        registry.answer = elsewhere
        found = Registries(environ).digests_of([registry.image()])

    assert found == {registry.image(): f"{registry.host}/shop@{digest_of(MANIFEST)}"}
    assert registry.asked[-1].authorization == f"Basic {ANN}"
    assert [(asked.method, asked.authorization) for asked in other.asked] == [("HEAD", "")]


def test_where_a_redirect_leads_wants_a_login_of_its_own(registry, environ, log_in):
    log_in(registry.host)
    with serving(manifests()) as other:
        by_basic(other)
        registry.answer = lambda asked: Reply(302, b"", {"Location": f"{other.url}{asked.path}"})

        said = refusal(environ, registry.image())
        asked = list(other.asked)
        log_in(other.host)
        found = Registries(environ).digests_of([registry.image()])

    assert "requires a login" in said
    assert {each.authorization for each in asked} == {""}
    assert found[registry.image()].endswith(digest_of(MANIFEST))


def test_within_a_registry_a_login_goes_along(registry, environ, log_in):
    log_in(registry.host)
    by_basic(registry)
    inner = registry.answer
    moved = "/v2/shop/manifests/v1"

    def answer(asked: Asked) -> Reply:
        reply = inner(Asked(asked.method, moved, asked.authorization))
        if reply.status == 401 or asked.path != moved:
            return reply
        return Reply(308, b"", {"Location": "/elsewhere"})

    registry.answer = answer

    assert registry.image() in Registries(environ).digests_of([registry.image()])
    assert registry.asked[-1] == Asked("HEAD", "/elsewhere", f"Basic {ANN}", registry.asked[0].accept)


@pytest.mark.parametrize("place", ["http://x.invalid/v2/", "file:///etc/hosts", "ftp://127.0.0.1/a", "http://["])
def test_a_redirect_to_what_is_not_safe_is_refused(registry, environ, place):
    registry.answer = lambda _: Reply(302, b"", {"Location": place})

    said = f"cannot follow the redirect from {registry.host} to {place!r}: only https is supported"
    assert refusal(environ, registry.image()) == f"{registry.image()}: {said}"


def test_a_circle_of_redirects_ends(registry, environ):
    registry.answer = lambda asked: Reply(302, b"", {"Location": asked.path})

    assert f"{registry.host} returned 302 (Found) for shop. Check the name of the registry" in refusal(
        environ, registry.image()
    )


# What goes wrong


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(404, error_body("MANIFEST_UNKNOWN")), "{host} has no tag v1 of shop. Push the image first, or use another tag"),
        (Reply(404, error_body("NAME_UNKNOWN")), "{host} has no repository shop. Push the image first, or correct its name"),
        (Reply(404, b"<html>"), "{host} returned 404 (Not Found) for shop. Check the name of the registry"),
        (Reply(404, b'{"errors": ["x"]}'), "{host} returned 404 (Not Found) for shop. Check the name of the registry"),
        (Reply(429), "{host} returned 429 (Too Many Requests). Retry later, or log in"),
        (Reply(500), "{host} returned 500 (Internal Server Error). Retry later, or pass the digest as an option"),
        (Reply(599), "{host} returned 599. Retry later, or pass the digest as an option"),
        (Reply(418), "{host} returned 418 (I'm a Teapot) for shop. Check the name of the registry"),
        (Reply(200, b"<html>"), "the response of {host} is not an image manifest. Check the registry"),
        (Reply(200, b"[]"), "the response of {host} is not an image manifest. Check the registry"),
        (Reply(200, b'{"schemaVersion": 2}' + b" " * 4 * 1024 * 1024), "the response of {host} is not an image manifest. Check the registry"),
    ],
)  # fmt: skip
def test_an_answer_that_tells_no_digest_is_one_line(registry, environ, reply, said):
    registry.answer = lambda _: reply

    assert refusal(environ, registry.image()).startswith(f"{registry.image()}: {said.format(host=registry.host)}")


def test_a_manifest_that_is_not_the_one_of_its_digest_is_refused(registry, environ):
    registry.answer = lambda asked: Reply(
        405 if asked.method == "HEAD" else 200, MANIFEST, {"Docker-Content-Digest": KEPT}
    )

    assert f"returned a manifest with the digest {digest_of(MANIFEST)} instead of {KEPT}" in refusal(
        environ, registry.image()
    )


@pytest.mark.parametrize("guard", [by_basic, lambda registry: by_token(registry, login="Basic x")])
def test_without_a_login_that_is_wanted_the_places_for_one_are_named(registry, environ, tmp_path, guard):
    guard(registry)

    assert refusal(environ, registry.image()) == (
        f"{registry.image()}: {registry.host} requires a login for shop, but "
        f"{tmp_path}/.docker/config.json has none. Run `docker login {registry.host}`, or correct the name"
    )


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("headers", [{}, {"WWW-Authenticate": "Negotiate"}, {"WWW-Authenticate": ""}])
def test_a_registry_that_only_refuses_is_asked_once(registry, environ, status, headers):
    registry.answer = lambda _: Reply(status, b"", headers)

    assert "requires a login for shop" in refusal(environ, registry.image())
    assert len(registry.asked) == 1


@pytest.mark.parametrize("guard", [by_basic, lambda registry: by_token(registry, login=f"Basic {ANN}")])
def test_a_login_that_is_refused_is_named_by_its_file(registry, environ, log_in, guard):
    guard(registry)
    path = log_in(registry.host, {"auth": base64.b64encode(b"ann:wrong").decode()})

    assert refusal(environ, registry.image()) == (
        f"{registry.image()}: {registry.host} rejected the login in {path} for shop. Log in again, or get the permission to pull"
    )


def test_a_token_that_does_not_help_is_a_refusal(registry, environ):
    by_token(registry, name="token")
    service = registry.answer
    registry.answer = lambda asked: (
        service(asked) if asked.path.startswith("/token") else service(Asked("HEAD", asked.path))
    )

    assert "requires a login for shop" in refusal(environ, registry.image())
    assert len(registry.asked) == 3


def test_a_program_that_keeps_logins_is_named_and_not_run(registry, environ, log_in):
    by_basic(registry)
    log_in(registry.host, {}, credsStore="nowhere")

    said = refusal(environ, registry.image())

    assert "but the credential helper docker-credential-nowhere is not run. Write the login as auth to a file" in said
    assert said.endswith("set REGISTRY_AUTH_FILE to it, or pass the digest as an option")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(500), "/token?a=b returned no token (500 (Internal Server Error)). Retry later"),
        (Reply(200, b"<html>"), "/token?a=b returned no token (200 (OK))"),
        (Reply(200, b'{"token": 1}'), "/token?a=b returned no token (200 (OK))"),
        (Reply(200, b'{"token": "a\\r\\nb"}'), "/token?a=b returned no token (200 (OK))"),
        (Reply(302, b"", {"Location": "http://x.invalid/"}), " to 'http://x.invalid/': only https is supported"),
    ],
)  # fmt: skip
def test_a_token_service_that_gives_none_is_one_line(registry, environ, reply, said):
    by_token(registry)
    service = registry.answer
    registry.answer = lambda asked: reply if asked.path.startswith("/token") else service(asked)

    text = refusal(environ, registry.image())

    assert text.startswith(f"{registry.image()}: cannot authenticate to {registry.host}: ")
    assert said in text


@pytest.mark.parametrize("realm", ["http://x.invalid/token", "file:///etc/hosts", "", "http://[", "/token"])
def test_a_login_goes_to_no_token_service_that_is_not_safe(registry, environ, log_in, realm):
    log_in(registry.host)
    registry.answer = lambda _: Reply(401, b"", {"WWW-Authenticate": f'Bearer realm="{realm}"'})

    said = refusal(environ, registry.image())

    assert said.startswith(f"{registry.image()}: cannot authenticate to {registry.host}: cannot query '{realm}?")
    assert said.endswith(": only https is supported")
    assert {asked.authorization for asked in registry.asked} == {""}


def test_all_images_that_fail_are_named(registry, environ):
    images = [registry.image(name) for name in ("shop:v1", "a:1", "b:2", "c:3")]

    said = refusal(environ, *images)

    assert said.startswith(f"{images[1]}: {registry.host} has no tag 1 of a. ")
    assert said.endswith(f". Digests of {images[2]}, {images[3]} are also missing")


def test_what_is_no_reference_is_refused_before_anything_is_asked(registry, environ):
    assert "'$(IMAGE)' is not a reference to an image" in refusal(environ, registry.image(), "$(IMAGE)")
    assert registry.asked == []


@pytest.mark.parametrize("host", ["[:::::]", "127.0.0.1:99999"])
def test_a_host_that_cannot_be_is_one_line(environ, host):
    assert refusal(environ, f"{host}/shop").startswith(f"{host}/shop: ")


@contextmanager
def talking(said: bytes | None) -> Iterator[str]:
    """A host that says something else than HTTP to one who connects, or nothing at all."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def talk():
            connection, _ = server.accept()
            held.append(connection)
            connection.recv(65536)
            if said is not None:
                connection.sendall(said)
                connection.close()

        thread = threading.Thread(target=talk)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()
        for connection in held:
            connection.close()


@pytest.mark.parametrize("said", [b"220 mail.x.io ESMTP\r\n", b"", b"\x16\x03\x01", b"HTTP/1.1 abc\r\n\r\n"])
def test_what_is_no_http_is_one_line(environ, said):
    with talking(said) as host:
        assert (
            refusal(environ, f"{host}/shop")
            == f"{host}/shop: the response from {host} is not HTTP. Check the registry name and port"
        )


def test_a_registry_that_does_not_answer_is_not_waited_for_forever(environ):
    with talking(None) as host:
        assert f"{host} does not respond within 0.05 s. " in refusal(environ, f"{host}/shop", patience=0.05)


def test_nobody_listens(environ):
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"127.0.0.1:{server.getsockname()[1]}"

    assert refusal(environ, f"{host}/shop:v1") == (
        f"{host}/shop:v1: cannot reach {host}: Connection refused. Check its name and the network, or pass the digest as an option"
    )


# Beyond this machine


@pytest.fixture
def names(registry, monkeypatch):
    """Names of hosts and their addresses, of which nobody else is asked; the system trusts an authority of the test's."""
    known: dict[str, str] = {}
    asked: list[tuple[str, int]] = []
    real = socket.getaddrinfo

    def look_up(host, port, *others, **options):
        asked.append((host, port))
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(known[host], port, *others, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known, asked


@pytest.mark.parametrize(
    ("image", "host", "port"),
    [
        ("memcached:1.6", "registry-1.docker.io", 443),
        ("docker.io/me/shop", "registry-1.docker.io", 443),
        ("quay.io/me/shop", "quay.io", 443),
        ("x.io:5000/shop", "x.io", 5000),
    ],
)
def test_without_a_network_the_host_is_named(names, environ, image, host, port):
    said = refusal(environ, image)

    named = host if port == 443 else f"{host}:{port}"
    assert said.startswith(f"{image}: cannot reach {named}: Name or service not known. Check its name and the network")
    assert names[1] == [(host, port)]


@pytest.fixture
def secure(tmp_path) -> Iterator[tuple[Registry, Path]]:
    """A registry by https, and the file with the authority that vouches for it."""
    authority = make_authority()
    pair = authority.server(["shop.test", "registry-1.docker.io"])
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    (tmp_path / "authority.pem").write_bytes(authority.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    with serving(manifests("shop:v1"), context) as found:
        yield found, tmp_path / "authority.pem"


def test_others_are_asked_by_https_and_have_to_be_vouched_for(names, secure, environ, monkeypatch):
    registry, authority = secure
    names[0]["shop.test"] = "127.0.0.1"
    host = registry.host.replace("127.0.0.1", "shop.test")

    said = refusal(environ, f"{host}/shop:v1")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    found = Registries(environ).digests_of([f"{host}/shop:v1"])

    assert said.startswith(f"{host}/shop:v1: the certificate of {host} is not trusted (")
    assert found == {f"{host}/shop:v1": f"{host}/shop@{digest_of(MANIFEST)}"}


def test_a_registry_elsewhere_is_not_asked_without_tls(names, registry, environ):
    names[0]["shop.test"] = "127.0.0.1"
    host = registry.host.replace("127.0.0.1", "shop.test")

    said = refusal(environ, f"{host}/shop:v1")

    assert said.startswith(f"{host}/shop:v1: cannot connect to {host} with TLS (")
    assert said.endswith("), which all registries on other machines require. Pass the digest as an option")
    assert registry.asked == []


def test_a_login_of_docker_hub_serves_where_it_answers(names, secure, environ, monkeypatch, log_in):
    registry, authority = secure
    names[0]["registry-1.docker.io"] = "127.0.0.1"
    port = urlsplit(registry.url).port
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    monkeypatch.setattr("ctrlruntime.olm.making.registry._HUB_HOST", f"registry-1.docker.io:{port}")
    registry.answer = guarded(
        manifests("library/memcached:1.6"), lambda: "Basic", lambda asked: asked.authorization == f"Basic {ANN}"
    )

    said = refusal(environ, "memcached:1.6")
    log_in("https://index.docker.io/v1/")
    found = Registries(environ).digests_of(["memcached:1.6"])

    assert re.match(
        r"memcached:1.6: docker.io requires a login for library/memcached \(docker.io is the default registry\), but",
        said,
    )
    assert found == {"memcached:1.6": f"memcached@{digest_of(MANIFEST)}"}
