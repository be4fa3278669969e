import asyncio
import base64
import json
import sys
import threading
from datetime import UTC, datetime

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError
from ctrlruntime.rest.credentials import (
    BasicAuth,
    ConfigurationCredential,
    CredentialError,
    ExecPlugin,
    Flight,
    Grant,
    IssuedCredential,
    OIDCProvider,
    StaticToken,
    TokenFile,
    bearer,
)

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


class Clock:
    def __init__(self, time=1_000_000.0):
        self.time = time

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


async def test_a_static_token_is_sent_and_cannot_be_renewed():
    credential = StaticToken("t\n")

    assert await credential.headers() == {"Authorization": "Bearer t"}
    assert await credential.refresh() is False
    assert "t" not in repr(credential).removeprefix("StaticToken")


async def test_basic_auth():
    credential = BasicAuth("jane", "pässword")

    headers = await credential.headers()
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode() == "jane:pässword"
    assert "pässword" not in repr(credential)


# --- token files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def token_file(tmp_path, clock):
    path = tmp_path / "token"
    path.write_text("one\n")
    return path, TokenFile(str(path), clock=clock)


async def test_a_token_file_is_read_again_after_a_minute(token_file, clock):
    path, credential = token_file

    assert await credential.headers() == bearer("one")
    path.write_text("two")
    clock.time += 59
    assert await credential.headers() == bearer("one")
    clock.time += 1
    assert await credential.headers() == bearer("two")


async def test_a_refused_token_makes_the_file_be_read_at_once(token_file):
    path, credential = token_file
    stale = await credential.headers()

    assert await credential.refresh(stale) is False
    path.write_text("two")
    assert await credential.refresh(stale) is True
    assert await credential.headers() == bearer("two")
    assert await credential.refresh(stale) is True, "a later request with the old token is worth another try too"


async def test_while_the_file_is_gone_the_last_token_serves_and_the_new_one_is_seen_soon(token_file, clock):
    path, credential = token_file
    await credential.headers()

    path.unlink()
    clock.time += 60
    assert await credential.headers() == bearer("one")
    path.write_text("two")
    clock.time += 1
    assert await credential.headers() == bearer("two")


async def test_a_token_file_that_never_could_be_read_is_an_error(tmp_path):
    with pytest.raises(CredentialError, match=r"cannot read the token file .* .No such file"):
        await TokenFile(str(tmp_path / "gone")).headers()
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(CredentialError, match="is empty"):
        await TokenFile(str(tmp_path / "empty")).headers()
    assert await TokenFile(str(tmp_path / "gone"), fallback="t").headers() == bearer("t")


# --- issued credentials -----------------------------------------------------------------------------------------------


class Issuer:
    """Issues `token-N` for `life` seconds; fails while `error` is set and waits while `gate` is closed."""

    def __init__(self, clock, life=None):
        self.clock, self.life, self.runs, self.error = clock, life, 0, None
        self.gate = threading.Event()
        self.gate.set()
        self.threads = set()

    def __call__(self):
        assert self.gate.wait(LONGEST_WAIT)
        self.runs += 1
        self.threads.add(threading.current_thread())
        if self.error:
            raise CredentialError(self.error)
        expires = None if self.life is None else self.clock() + self.life
        return Grant(bearer(f"token-{self.runs}"), None, expires)


async def test_a_credential_of_one_minute_is_fetched_once_and_again_before_its_end(clock):
    issuer = Issuer(clock, life=60)
    credential = IssuedCredential(issuer, "test", now=clock)

    for _ in range(3):
        assert await credential.headers() == bearer("token-1")
    clock.time += 44
    assert await credential.headers() == bearer("token-1")
    clock.time += 1
    assert await credential.headers() == bearer("token-2")
    assert issuer.runs == 2


async def test_a_long_credential_is_renewed_half_a_minute_before_its_end(clock):
    credential = IssuedCredential(Issuer(clock, life=900), "test", now=clock)
    await credential.headers()

    clock.time += 869
    assert await credential.headers() == bearer("token-1")
    clock.time += 1
    assert await credential.headers() == bearer("token-2")


async def test_without_an_end_it_serves_until_it_is_refused(clock):
    credential = IssuedCredential(Issuer(clock), "test", now=clock)

    stale = await credential.headers()
    clock.time += 1e6
    assert await credential.headers() == stale
    assert await credential.refresh(stale) is True
    assert await credential.headers() == bearer("token-2")


async def test_many_refused_requests_renew_once(clock):
    issuer = Issuer(clock)
    credential = IssuedCredential(issuer, "test", now=clock)
    stale = await credential.headers()

    assert await asyncio.gather(*(credential.refresh(stale) for _ in range(20))) == [True] * 20
    assert await credential.refresh({**stale, "Accept": "application/json"}) is True
    assert issuer.runs == 2


async def test_a_renewal_that_brings_the_same_is_not_worth_another_try(clock):
    credential = IssuedCredential(lambda: Grant(bearer("same")), "test", now=clock)
    stale = await credential.headers()

    assert await credential.refresh(stale) is False


async def test_an_early_renewal_that_fails_disturbs_nobody_until_the_end(clock):
    issuer = Issuer(clock, life=100)
    credential = IssuedCredential(issuer, "test", now=clock)
    await credential.headers()

    issuer.error = "the plugin is ill"
    clock.time += 80
    assert await credential.headers() == bearer("token-1")
    assert await credential.headers() == bearer("token-1")
    assert issuer.runs == 2, "it is not tried again with each request"
    clock.time += 20
    with pytest.raises(CredentialError, match="the plugin is ill"):
        await credential.headers()
    issuer.error = None
    assert await credential.headers() == bearer("token-4")


async def test_two_loops_share_one_run_off_both(clock):
    issuer = Issuer(clock)
    issuer.gate.clear()
    credential = IssuedCredential(issuer, "test", now=clock)
    answers, waiting = [], threading.Barrier(3)

    async def ask():
        asking = asyncio.ensure_future(credential.headers())
        await asyncio.sleep(0)  # it has joined the flight now
        await asyncio.to_thread(waiting.wait, 5)
        answers.append(await asking)

    loops = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(2)]
    for loop in loops:
        loop.start()
    await asyncio.to_thread(waiting.wait, 5)
    issuer.gate.set()
    for loop in loops:
        await asyncio.to_thread(loop.join, 5)

    assert answers == [bearer("token-1")] * 2
    assert issuer.runs == 1
    assert not issuer.threads & {*loops, threading.main_thread()}


async def test_a_cancelled_caller_does_not_end_the_run_for_others(clock):
    issuer = Issuer(clock)
    issuer.gate.clear()
    credential = IssuedCredential(issuer, "test", now=clock)
    first, second = (asyncio.ensure_future(credential.headers()) for _ in range(2))
    await asyncio.sleep(0)

    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    issuer.gate.set()
    async with asyncio.timeout(LONGEST_WAIT):
        assert await second == bearer("token-1")


async def test_a_flight_that_failed_is_not_repeated_to_those_who_come_later():
    flight = Flight("test")

    with pytest.raises(ZeroDivisionError):
        await flight.join(lambda: 1 // 0)
    assert await flight.join(lambda: 7) == 7


# --- exec plugins -----------------------------------------------------------------------------------------------------


def plugin(code, *, version=V1, **options):
    """Return a plugin that runs Python code."""
    return ExecPlugin(command=sys.executable, args=("-c", code), api_version=version, **options)


def printing(status, *, version=V1):
    return f"print({json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status})!r})"


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_a_plugin_gives_a_token_and_its_end(version):
    end = "2030-01-02T03:04:05Z"

    grant = plugin(printing({"token": "t", "expirationTimestamp": end}, version=version), version=version)()

    assert grant == (bearer("t"), None, datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp())


def test_a_plugin_gives_a_client_certificate():
    grant = plugin(printing({"clientCertificateData": "CERT", "clientKeyData": "KEY"}))()

    assert grant.headers == {}
    assert grant.certificate == (b"CERT", b"KEY")


def test_a_plugin_is_told_what_is_asked_of_it_and_has_its_own_environment():
    code = (
        "import os, json, sys; info = json.loads(os.environ['KUBERNETES_EXEC_INFO']);"
        "info['status'] = {'token': '|'.join([str(info['spec']), os.environ['A'], repr(sys.stdin.read())])};"
        "print(json.dumps(info))"
    )

    grant = plugin(code, env={"A": "a"}, cluster_info={"server": "s"})()

    assert grant.headers == bearer("{'interactive': False, 'cluster': {'server': 's'}}|a|''")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('no ticket')", "failed with exit code 1; read its output on stderr"),
        ("print('hello')", "printed no JSON"),
        ("print('[]')", "printed no ExecCredential of client.authentication.k8s.io/v1, the version in the kubeconfig"),
        (printing({"token": "t"}, version=V1BETA1), "Make the two agree"),
        (printing({}), "neither a token nor a client certificate"),
        (printing({"clientCertificateData": "x"}), "only one of clientCertificateData, clientKeyData"),
        (printing({"token": "t", "expirationTimestamp": "soon"}), "expirationTimestamp that is not a time"),
    ],
)
def test_what_a_plugin_did_wrong_is_said(code, message):
    with pytest.raises(CredentialError, match=message):
        plugin(code)()


def test_a_plugin_that_is_not_installed_is_told_with_its_hint():
    with pytest.raises(
        CredentialError, match=r"/nowhere/login is not installed or not on PATH\nrun: brew install login"
    ):
        ExecPlugin(command="/nowhere/login", api_version=V1, install_hint="run: brew install login")()


@pytest.mark.parametrize("options", [{"args": ("s3cret\0",)}, {"env": {"A": "s3cret\0"}}, {"env": {"A=B": "s3cret"}}])
def test_a_plugin_that_cannot_be_started_shows_no_argument(options):
    with pytest.raises(CredentialError, match="cannot be started") as caught:
        ExecPlugin(command=sys.executable, api_version=V1, **options)()

    assert "s3cret" not in str(caught.value)


def test_a_plugin_that_never_ends_is_ended():
    with pytest.raises(CredentialError, match=r"did not end within 0.2 s"):
        plugin("import time; time.sleep(60)", timeout=0.2)()


def test_an_old_version_is_refused_before_it_is_run():
    with pytest.raises(ConfigError, match=r"set apiVersion to client.authentication.k8s.io/v1"):
        ExecPlugin(command="x", api_version="client.authentication.k8s.io/v1alpha1")


async def test_the_certificate_of_a_plugin_follows_its_credential(clock):
    pair = make_authority().client("jane")
    status = {"clientCertificateData": pair.certificate.decode(), "clientKeyData": pair.key.decode()}
    credential = IssuedCredential(plugin(printing(status)), "exec", now=clock)

    assert credential.client_certificate is None
    await credential.headers()
    assert credential.client_certificate == (pair.certificate, pair.key)
    assert "PRIVATE" not in repr(credential) + repr(credential.client_certificate)


# --- auth providers ---------------------------------------------------------------------------------------------------


def jwt(expires):
    payload = base64.urlsafe_b64encode(json.dumps({"exp": expires, "s": "???>>>"}).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


class IdentityProvider:
    """An OpenID Connect issuer over TLS that exchanges refresh tokens."""

    def __init__(self, authority):
        self.authority, self.asked, self.answer = authority, [], {}

    async def serve(self):
        import ssl
        import tempfile

        pair = self.authority.server(["localhost"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(pair.key + pair.certificate)
            file.flush()
            context.load_cert_chain(file.name)
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._metadata)
        app.router.add_post("/token", self._token)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "localhost", 0, ssl_context=context)
        await site.start()
        self.url = f"https://localhost:{site._server.sockets[0].getsockname()[1]}"

    async def _metadata(self, request):
        from aiohttp import web

        return web.json_response({"token_endpoint": f"{self.url}/token"})

    async def _token(self, request):
        from aiohttp import web

        self.asked.append(dict(await request.post()) | {"auth": request.headers["Authorization"]})
        return web.json_response(self.answer, status=200 if self.answer else 400)


@pytest.fixture
async def provider():
    made = IdentityProvider(make_authority())
    await made.serve()
    yield made
    await made.runner.cleanup()


def oidc(provider, clock, *, authority=None, **config):
    settings = {"idp-issuer-url": provider.url, "client-id": "id", "client-secret": "secret", **config}
    return IssuedCredential(OIDCProvider(settings, authority or provider.authority.pem, now=clock), "oidc", now=clock)


async def test_a_valid_id_token_is_used_and_then_renewed_over_verified_tls(provider, clock):
    old, new = jwt(clock() + 300), jwt(clock() + 600)
    provider.answer = {"id_token": new, "refresh_token": "r2"}
    credential = oidc(provider, clock, **{"id-token": old, "refresh-token": "r1"})

    assert await credential.headers() == bearer(old)
    assert provider.asked == []
    clock.time += 300
    assert await credential.headers() == bearer(new)
    provider.answer = {"id_token": jwt(clock() + 900)}
    assert await credential.refresh(bearer(new)) is True
    assert [asked["refresh_token"] for asked in provider.asked] == ["r1", "r2"]
    assert base64.b64decode(provider.asked[0]["auth"].removeprefix("Basic ")) == b"id:secret"


async def test_a_provider_of_another_authority_never_sees_the_refresh_token(provider, clock):
    credential = oidc(provider, clock, authority=make_authority().pem, **{"refresh-token": "r1"})

    with pytest.raises(CredentialError, match=r"did not renew the token .*certificate.*; log in again"):
        await credential.headers()
    assert provider.asked == []


async def test_a_provider_that_refuses_is_named(provider, clock):
    credential = oidc(provider, clock, **{"refresh-token": "r1"})

    with pytest.raises(CredentialError, match=f"identity provider {provider.url} did not renew"):
        await credential.headers()


async def test_an_ended_id_token_without_a_refresh_token_asks_to_log_in(clock):
    settings = {"idp-issuer-url": "https://i", "client-id": "c", "id-token": jwt(clock() - 1)}

    with pytest.raises(CredentialError, match="log in again"):
        await IssuedCredential(OIDCProvider(settings, None, now=clock), "oidc", now=clock).headers()


# --- a Configuration --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_refresh_hook_of_a_configuration_is_honoured(is_async):
    from kubernetes_asyncio.client import Configuration

    theirs, tokens = Configuration(host="https://h"), iter(["Bearer 1", "Bearer 2", "Bearer 3"])
    theirs.api_key["BearerToken"] = ""

    def hook(configuration):
        configuration.api_key["BearerToken"] = next(tokens)

    async def async_hook(configuration):
        hook(configuration)

    theirs.refresh_api_key_hook = async_hook if is_async else hook
    credential = ConfigurationCredential(theirs)

    stale = await credential.headers()
    assert stale == {"Authorization": "Bearer 1"}
    assert await credential.refresh(stale) is True
    assert await credential.headers() == {"Authorization": "Bearer 3"}


async def test_a_configuration_with_a_password_or_nothing():
    from kubernetes_asyncio.client import Configuration

    theirs = Configuration(host="https://h")
    assert await ConfigurationCredential(theirs).headers() == {}
    theirs.username, theirs.password = "u", "p"
    assert (await ConfigurationCredential(theirs).headers())["Authorization"].startswith("Basic ")
