"""Credentials: the authentication of requests, and its renewal.

A transport calls `headers` before each request, and `refresh` after a 401. One credential serves all event loops and threads of a cluster.
Slow work runs in its own thread, and concurrent callers wait for the same run.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.rest.kubeconfig import kubernetes_asyncio_piece
from ctrlruntime.rest.redaction import shown_url
from ctrlruntime.rest.tls import ClientCertificate
from ctrlruntime.tls import client_context

T = TypeVar("T")

TOKEN_FILE_PERIOD = 60.0
MAX_TOKEN_SIZE = 64 * 1024
"""The maximum bytes of a token file; the API server rejects a larger header (net/http accepts 1 MiB of headers)."""

MAX_MARGIN = 30.0
RETRY_PERIOD = 2.0
PROVIDER_TIMEOUT = 30.0
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXEC_CLUSTER_EXTENSION = "client.authentication.k8s.io/exec"


class CredentialError(ConfigError):
    """A token file, plugin or identity provider failed; the message has a fix."""


class Credential(Protocol):
    """Authenticates requests. Safe in several event loops and threads."""

    async def headers(self) -> Mapping[str, str]:
        """Return the headers to send now. Raises: CredentialError."""
        ...

    async def refresh(self, stale: Mapping[str, str] | None = None) -> bool:
        """Renew after a 401, and return whether a retry makes sense.

        stale: the headers of the rejected request. If the credential was renewed since, nothing is done and the result is True. Without it
        the credential is renewed once for each call that is not already waiting.

        Raises: CredentialError.
        """
        ...


def bearer(token: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"}


class StaticToken:
    """A bearer token that never changes."""

    def __init__(self, token: str) -> None:
        self._headers = bearer(token.strip())

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def refresh(self, stale: Mapping[str, str] | None = None) -> bool:
        return False

    def __repr__(self) -> str:
        return "StaticToken(…)"


class BasicAuth:
    """A user name and password (RFC 7617).

    The API server no longer accepts them, but proxies in front of it do.
    """

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        code = base64.b64encode(f"{username}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {code}"}

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def refresh(self, stale: Mapping[str, str] | None = None) -> bool:
        return False

    def __repr__(self) -> str:
        return f"BasicAuth(username={self._username!r})"


class TokenFile:
    """A bearer token in a file that another program replaces, such as a projected service account token.

    The file is read once in `period` seconds, and on refresh. If it cannot be read, the last token is used (at first `fallback`).
    """

    def __init__(
        self,
        path: str,
        *,
        fallback: str = "",
        period: float = TOKEN_FILE_PERIOD,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._period = period
        self._clock = clock
        self._lock = threading.Lock()
        self._token = fallback
        self._read_at = float("-inf")

    async def headers(self) -> Mapping[str, str]:
        with self._lock:
            if self._clock() - self._read_at >= self._period:
                self._read()
            return bearer(self._token)

    async def refresh(self, stale: Mapping[str, str] | None = None) -> bool:
        with self._lock:
            before = stale if stale is not None else bearer(self._token)
            self._read()
            return not _carried(bearer(self._token), before)

    def _read(self) -> None:
        try:
            with Path(self.path).open("rb") as file:
                token = file.read(MAX_TOKEN_SIZE).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            token, problem = "", f"cannot read the token file {self.path} ({reason})"
        else:
            problem = f"the token file {self.path} is empty"
        if not (token or self._token):
            raise CredentialError(f"{problem}; check tokenFile, or that the service account's token is mounted")
        self._token = token or self._token
        # Also after a failure: a file that is being replaced is looked at again soon, but not with every request.
        self._read_at = self._clock() if token else self._clock() - self._period + min(1.0, self._period)

    def __repr__(self) -> str:
        return f"TokenFile({self.path!r})"


class Flight(Generic[T]):
    """Runs a function in a thread; concurrent callers from any event loop share its result."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._running: Future[T] | None = None

    async def join(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, or of the current run.

        Cancelling a caller does not end the run.
        """
        with self._lock:
            future = self._running
            if future is None:
                future = self._running = Future()
                # From here on cancel() is refused: one caller's cancellation must not reach the others.
                future.set_running_or_notify_cancel()
                threading.Thread(target=self._run, args=(future, work), name=self._name, daemon=True).start()
        return await asyncio.wrap_future(future)

    def _run(self, future: Future[T], work: Callable[[], T]) -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - handed to those who wait
            self._land()
            future.set_exception(error)
        else:
            self._land()
            future.set_result(result)

    def _land(self) -> None:
        # Before the result is out: whoever comes later asked later and gets a run of his own.
        with self._lock:
            self._running = None


class Grant(NamedTuple):
    """The result of an issuer: headers, possibly a client certificate, and the expiry.

    The expiry is in seconds since the epoch; None: until it is rejected.
    """

    headers: Mapping[str, str]
    certificate: ClientCertificate | None = None
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Grant(expires={self.expires})"


class IssuedCredential:
    """A credential that is issued and expires: fetched on first use, shortly before its expiry, and after a 401.

    It is renewed `MAX_MARGIN` seconds before its expiry, or in the last quarter of a shorter lifetime. `now` is wall time, as in expiry
    times.
    """

    def __init__(self, issue: Callable[[], Grant], label: str, *, now: Callable[[], float] = time.time) -> None:
        self._issue = issue
        self._label = label
        self._now = now
        self._grant: Grant | None = None
        self._renew_at = float("inf")
        self._flight: Flight[Grant] = Flight("ctrlruntime-credential")

    @property
    def client_certificate(self) -> ClientCertificate | None:
        """The client certificate of the last grant; call `headers` first."""
        return self._grant.certificate if self._grant is not None else None

    async def headers(self) -> Mapping[str, str]:
        grant = self._grant
        if grant is not None and self._now() < self._renew_at:
            return grant.headers
        try:
            return (await self._renew()).headers
        except CredentialError:
            # Renewal begins before the end, so that a plugin that fails for a moment disturbs nobody.
            if grant is None or grant.expires is None or self._now() >= grant.expires:
                raise
            self._renew_at = self._now() + RETRY_PERIOD
            return grant.headers

    async def refresh(self, stale: Mapping[str, str] | None = None) -> bool:
        before = self._grant
        if before is not None and stale is not None and not _carried(before.headers, stale):
            return True
        after = await self._renew()
        return before is None or (after.headers, after.certificate) != (before.headers, before.certificate)

    async def _renew(self) -> Grant:
        return await self._flight.join(self._fetch)

    def _fetch(self) -> Grant:
        grant = self._issue()
        if grant.expires is not None:
            life = grant.expires - self._now()
            self._renew_at = grant.expires - min(MAX_MARGIN, max(0.0, life) / 4)
        else:
            self._renew_at = float("inf")
        self._grant = grant
        return grant

    def __repr__(self) -> str:
        return f"IssuedCredential({self._label})"


def _carried(headers: Mapping[str, str], stale: Mapping[str, str]) -> bool:
    return all(stale.get(name) == value for name, value in headers.items())


# --- exec plugins --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints an ExecCredential (client.authentication.k8s.io v1 or v1beta1).

    A call runs it and waits for its end. Its stderr is passed to ours, as in kubectl, and is in no error, because it may have secrets.
    """

    command: str
    api_version: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    install_hint: str = ""
    cluster_info: Mapping[str, Any] | None = field(default=None, repr=False)
    """The cluster for the plugin, if the kubeconfig has `provideClusterInfo`."""

    timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.api_version not in EXEC_VERSIONS:
            raise ConfigError(
                f"the exec plugin {self.command} uses {self.api_version or 'no apiVersion'}; "
                f"set apiVersion to {EXEC_VERSIONS[0]} (update the plugin if it does not know it)"
            )

    def __call__(self) -> Grant:
        return self._grant(self._output())

    def _output(self) -> bytes:
        try:
            done = subprocess.run(  # noqa: S603 - the command of the user's own kubeconfig
                [self.command, *self.args],
                env={**os.environ, **self.env, "KUBERNETES_EXEC_INFO": json.dumps(self._exec_info())},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=self.timeout,
                check=False,
            )
        except FileNotFoundError as error:
            hint = f"\n{self.install_hint.strip()}" if self.install_hint else "; install it or correct the kubeconfig"
            raise CredentialError(f"the exec plugin {self.command} is not installed or not on PATH{hint}") from error
        except OSError as error:
            raise CredentialError(f"the exec plugin {self.command} cannot be started ({error.strerror})") from error
        except ValueError:  # whose text may quote an argument
            raise CredentialError(
                f"the exec plugin {self.command} cannot be started: an argument or its environment contains a character "
                "that a process cannot receive; correct the kubeconfig"
            ) from None
        except subprocess.TimeoutExpired as error:
            raise CredentialError(
                f"the exec plugin {self.command} did not end within {self.timeout:g} s; run it in a terminal, "
                "it may wait for input"
            ) from error
        if done.returncode != 0:
            hint = f"\n{self.install_hint.strip()}" if self.install_hint and done.returncode == 127 else ""
            raise CredentialError(
                f"the exec plugin {self.command} failed with exit code {done.returncode}; read its output on stderr, "
                f"or run it in a terminal{hint}"
            )
        return done.stdout

    def _exec_info(self) -> Mapping[str, Any]:
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster_info is not None:
            spec["cluster"] = self.cluster_info
        return {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}

    def _grant(self, output: bytes) -> Grant:
        try:
            answer = json.loads(output)
        except (ValueError, RecursionError):  # which hold what was printed
            raise CredentialError(
                f"the exec plugin {self.command} printed no JSON; run it in a terminal to see what it prints"
            ) from None
        said: dict[str, Any] = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
        if said.get("kind") != "ExecCredential" or said.get("apiVersion") != self.api_version:
            raise CredentialError(
                f"the exec plugin {self.command} printed no ExecCredential of {self.api_version}, the version in the kubeconfig. "
                "Make the two agree"
            )
        found = said.get("status")
        status: dict[str, Any] = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        token = str(status.get("token") or "")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if bool(certificate) != bool(key):
            raise CredentialError(
                f"the exec plugin {self.command} printed only one of clientCertificateData, clientKeyData"
            )
        if not token and not certificate:
            raise CredentialError(f"the exec plugin {self.command} printed neither a token nor a client certificate")
        pair = ClientCertificate(str(certificate).encode(), str(key).encode()) if certificate else None
        return Grant(bearer(token) if token else {}, pair, self._expiry(status.get("expirationTimestamp")))

    def _expiry(self, text: object) -> float | None:
        if not text:
            return None
        try:
            expires = datetime.fromisoformat(str(text))
            return (expires if expires.tzinfo else expires.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise CredentialError(
                f"the exec plugin {self.command} printed an expirationTimestamp that is not a time of RFC 3339"
            ) from None


# --- auth providers (the older way, for which kubernetes_asyncio has the protocol) -----------------------------------


class OIDCProvider:
    """OpenID Connect: the id token of the kubeconfig while it is valid, then one for the refresh token.

    New tokens are stored in memory; the kubeconfig is not written.
    """

    def __init__(
        self, config: Mapping[str, Any], authority: bytes | None, *, now: Callable[[], float] = time.time
    ) -> None:
        if not config.get("idp-issuer-url") or not config.get("client-id"):
            raise ConfigError("the oidc auth-provider needs idp-issuer-url and client-id; log in again to set them")
        self._config = config
        self._authority = authority
        self._now = now
        self._id_token = str(config.get("id-token") or "")
        self._refresh_token = str(config.get("refresh-token") or "")

    def __call__(self) -> Grant:
        """Return a grant.

        The current id token is used once; after that, or if it expired, it is renewed.
        """
        token, self._id_token = self._id_token, ""
        expires = _jwt_expiry(token) if token else None
        if token and (expires is None or expires - self._now() > MAX_MARGIN):
            return Grant(bearer(token), None, expires)
        if not self._refresh_token:
            raise CredentialError("the oidc id-token is missing or expired, and no refresh-token is set; log in again")
        token = self._exchange()
        return Grant(bearer(token), None, _jwt_expiry(token))

    def _exchange(self) -> str:
        issuer = self._config["idp-issuer-url"]
        try:
            answer = asyncio.run(self._requestor().refresh_token(self._refresh_token))
            token = str(answer["id_token"])
        except Exception as error:  # noqa: BLE001 - a provider may fail in any way, and its text is not told
            raise CredentialError(
                f"the identity provider {shown_url(issuer)} did not renew the token ({_without_text(error)}); log in again"
            ) from None
        self._refresh_token = str(answer.get("refresh_token") or self._refresh_token)
        return token

    def _requestor(self) -> Any:
        import aiohttp

        client, secret = str(self._config["client-id"]), str(self._config.get("client-secret") or "")
        code = base64.b64encode(f"{client}:{secret}".encode()).decode()
        context = client_context(self._authority)
        openid = kubernetes_asyncio_piece("config.openid")

        def session(_: object) -> aiohttp.ClientSession:
            return aiohttp.ClientSession(
                headers={"Accept": "application/json", "Authorization": f"Basic {code}"},
                connector=aiohttp.TCPConnector(ssl=context),
                timeout=aiohttp.ClientTimeout(total=PROVIDER_TIMEOUT),
                raise_for_status=True,
                trust_env=True,
            )

        # The package's own session verifies no server when no authority is given, and refuses to start when one is.
        requestor_type = type("VerifyingRequestor", (openid.OpenIDRequestor,), {"_client_session": session})
        return requestor_type(client, secret, str(self._config["idp-issuer-url"]))


def _without_text(error: Exception) -> str:
    """Name an error of a provider by its class and the status of an answer: its text and its cause may quote tokens.

    A connection that fails has said nothing yet, so its error is told.
    """
    if isinstance(error, OSError):
        return str(error)
    status = getattr(error, "status", None)
    return f"{type(error).__name__}, status {status}" if isinstance(status, int) else type(error).__name__


def _jwt_expiry(token: str) -> float | None:
    """Return when a JSON web token ends; None when it does not say (or is none)."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, ValueError, TypeError):
        return None


# --- a Configuration of kubernetes_asyncio ---------------------------------------------------------------------------


class ConfigurationCredential:
    """The credential inside a kubernetes_asyncio (or official client) `Configuration`, with its refresh hook.

    The hook runs for each request on the loop of that request, as in that package. With leader election it must be thread-safe.
    """

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration

    async def headers(self) -> Mapping[str, str]:
        # The second name is what older versions of both packages used.
        for name in ("BearerToken", "authorization"):
            value = self._configuration.get_api_key_with_prefix(name)
            if asyncio.iscoroutine(value):
                value = await value
            if value:
                return {"Authorization": str(value)}
        if self._configuration.username and self._configuration.password:
            return await BasicAuth(self._configuration.username, self._configuration.password).headers()
        return {}

    async def refresh(self, stale: Mapping[str, str] | None = None) -> bool:
        return stale is not None and not _carried(await self.headers(), stale)

    def __repr__(self) -> str:
        return "ConfigurationCredential(…)"
