"""The configuration of a client: `Config`, and `get_config`, which finds one.

It reads files and the environment, but opens no connection and runs no program. Credentials do that on first use.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import platform
import re
import sys
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError, NoConfigError
from ctrlruntime.rest import kubeconfig as files
from ctrlruntime.rest.credentials import (
    EXEC_CLUSTER_EXTENSION,
    BasicAuth,
    ConfigurationCredential,
    Credential,
    ExecPlugin,
    IssuedCredential,
    OIDCProvider,
    StaticToken,
    TokenFile,
)
from ctrlruntime.rest.limits import MAX_ANSWER_SIZE, MAX_FRAME_SIZE, MAX_HEADER_SIZE
from ctrlruntime.rest.redaction import shown_url
from ctrlruntime.rest.tls import ClientCertificate, TLSConfig, certificate_facts, make_context

_SIZES = ("max_header_size", "max_answer_size", "max_frame_size")
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@functools.cache
def default_user_agent() -> str:
    """Return `<program>/ctrlruntime-<version> (<system>/<machine>) python/<version>`."""
    from importlib.metadata import PackageNotFoundError, version

    program = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path("python")
    name = program.parent.name if program.name == "__main__.py" else program.name
    try:
        ours = version("ctrlruntime")
    except PackageNotFoundError:
        ours = "unknown"
    name = re.sub(r"[^\w.+-]", "_", name, flags=re.ASCII).strip("-") or "python"
    system = f"{platform.system().lower()}/{platform.machine()}"
    return f"{name}/ctrlruntime-{ours} ({system}) python/{platform.python_version()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """The user to impersonate; the caller needs the permission `impersonate`."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers; a name is repeated for each group and each value of an extra."""
        pairs = [("Impersonate-User", self.user)]
        pairs += [("Impersonate-Group", group) for group in self.groups]
        if self.uid:
            pairs.append(("Impersonate-Uid", self.uid))
        for key, values in self.extra.items():
            name = "Impersonate-Extra-" + urllib.parse.quote(key.lower(), safe="!#$&'*+-.^_`|~")
            pairs += [(name, value) for value in values]
        return pairs


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProxyEnvironment:
    """The proxies in HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as Go reads them."""

    https_proxy: str = ""
    http_proxy: str = ""
    no_proxy: str = ""

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> ProxyEnvironment:
        """Return the proxies in `environ`; upper-case names override lower-case ones."""
        values = {name: environ.get(name.upper()) or environ.get(name) or "" for name in cls.__slots__}
        return cls(**values)

    def __repr__(self) -> str:
        proxies = f"https_proxy={shown_url(self.https_proxy)!r}, http_proxy={shown_url(self.http_proxy)!r}"
        return f"ProxyEnvironment({proxies}, no_proxy={self.no_proxy!r})"

    def proxy_for(self, url: str) -> str | None:
        """Return the proxy for `url`, or None for a direct connection."""
        parts = urllib.parse.urlsplit(url)
        proxy = self.https_proxy if parts.scheme == "https" else self.http_proxy
        host = (parts.hostname or "").rstrip(".")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if not proxy or self._is_direct(host, port):
            return None
        return proxy if "://" in proxy else f"http://{proxy}"

    def _is_direct(self, host: str, port: int) -> bool:
        address = _address(host)
        if host == "localhost" or (address is not None and address.is_loopback):
            return True
        rules = (rule.strip().lower() for rule in self.no_proxy.split(","))
        return any(_rule_matches(rule, host, address, port) for rule in rules if rule)


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _rule_matches(rule: str, host: str, address: _Address | None, port: int) -> bool:
    if rule == "*":
        return True
    if "/" in rule:
        try:
            network = ipaddress.ip_network(rule, strict=False)
        except ValueError:
            return False
        return address is not None and address in network
    name, wanted_port = _split_port(rule)
    if wanted_port not in {"", str(port)}:
        return False
    if (wanted := _address(name)) is not None:
        return wanted == address
    if name.startswith("*."):
        name = name[1:]
    # ".example.com" is for names below it, "example.com" for itself too.
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _split_port(rule: str) -> tuple[str, str]:
    if rule.startswith("["):
        name, _, rest = rule[1:].partition("]")
        return name, rest.removeprefix(":")
    if rule.count(":") == 1:
        name, _, port = rule.partition(":")
        return name, port
    return rule, ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Config:
    """One API server and a credential.

    Create variants with `dataclasses.replace`. Its repr has no secrets.
    """

    host: str
    """`https://host:port`, with a path if the API does not start at the root."""

    tls: TLSConfig = field(default_factory=TLSConfig)
    credential: Credential | None = None
    """None: anonymous, or authenticated by the client certificate in `tls`."""

    proxy_url: str | None = None
    """A proxy for every request (http://, https:// or socks5://).

    It overrides `proxy_environment`, and has no exceptions.
    """

    proxy_environment: ProxyEnvironment = ProxyEnvironment()
    impersonate: Impersonation | None = None
    user_agent: str = field(default_factory=default_user_agent)
    namespace: str = "default"
    """The namespace of the kubeconfig's context, or of the pod."""

    connect_timeout: float = 10.0
    """Seconds to open a connection."""

    timeout: float = 30.0
    """Seconds for a request, except watches.

    The wait for a connection (`max_connections`), for a token (`qps`) and for Retry-After is included, also with a `timeout=` for one call.
    """

    qps: float | None = None
    """Requests a second.

    None for no limit in the client. The server has API priority and fairness.

    Watches, leader election, Events and webhook reviews are not limited.
    """

    burst: int = 30
    """Requests that may be sent at once despite `qps`."""

    max_connections: int = 100
    """Concurrent requests, each with its own connection; others wait.

    Watches are not counted.
    """

    max_header_size: int = MAX_HEADER_SIZE
    """The maximum size of the headers of a response in bytes."""

    max_answer_size: int = MAX_ANSWER_SIZE
    """The maximum size of the body of a response in bytes, compressed and decompressed.

    Watches and logs have no limit.

    A page of a list has 500 objects, and an object up to 1.5 MiB (the default of etcd's `--max-request-bytes`). The default allows objects
    of half a MiB on average.
    """

    max_frame_size: int = MAX_FRAME_SIZE
    """The maximum size of one frame of a watch in bytes. A frame has one object."""

    source: str = ""
    """The source of this configuration, for messages."""

    def __post_init__(self) -> None:
        if not _is_address(self.host):
            raise ConfigError(f"the API server's address {shown_url(self.host)!r} is not of the form https://host:port")
        for name in ("connect_timeout", "timeout", "qps", "burst", "max_connections", *_SIZES):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"{name} is {value}; give a number above 0")

    def proxy_for(self, host: str = "") -> str | None:
        """Return the proxy for `host` (default: the API server), or None."""
        if self.proxy_url:
            return self.proxy_url
        url = self.host
        if host and host != urllib.parse.urlsplit(url).hostname:
            bracketed = f"[{host}]" if ":" in host else host
            url = f"{urllib.parse.urlsplit(url).scheme}://{bracketed}"
        return self.proxy_environment.proxy_for(url)

    def differs_in_credentials_only(self, other: Config) -> bool:
        """Return whether all but the credential and the certificates is the same."""
        names = {each.name for each in fields(self)} - {"credential", "tls", "namespace", "source"}
        return self.tls.server_name == other.tls.server_name and all(
            getattr(self, name) == getattr(other, name) for name in names
        )

    def impersonation_headers(self) -> list[tuple[str, str]]:
        """Return the impersonation headers; names repeat, so they are not a dict."""
        return self.impersonate.headers() if self.impersonate is not None else []

    @classmethod
    def from_configuration(cls, configuration: Any, *, environ: Mapping[str, str] = os.environ) -> Config:
        """Return the Config for a `Configuration` of another client.

        Of kubernetes_asyncio or of the official client, by its attributes.

        The object is still used for its token: later changes of `api_key` and its refresh hook apply. Raises: ConfigError.
        """
        get = functools.partial(getattr, configuration)
        verifies = bool(get("verify_ssl", True))
        tls = TLSConfig(
            # There, `verify_ssl` is said to win over an authority, which whoever turns it off seldom removes.
            ca_file=get("ssl_ca_cert", None) if verifies else None,
            ca_data=_encoded(get("ca_cert_data", None)) if verifies else None,
            cert_file=get("cert_file", None),
            key_file=get("key_file", None),
            insecure_skip_verify=not verifies,
            server_name=get("tls_server_name", None),
        )
        return cls(
            host=_address_of(str(get("host", "")), tls),
            tls=tls,
            credential=ConfigurationCredential(configuration),
            proxy_url=_proxy(get("proxy", None), "the Configuration"),
            proxy_environment=ProxyEnvironment.read(environ),
            source=type(configuration).__name__,
        )

    def __repr__(self) -> str:
        shown = [f"host={shown_url(self.host)!r}", f"namespace={self.namespace!r}"]
        if self.source:
            shown.append(f"source={self.source!r}")
        if self.credential is not None:
            shown.append(f"credential={self.credential!r}")
        if self.tls != TLSConfig():
            shown.append(f"tls={self.tls!r}")
        if proxy := self.proxy_for():
            shown.append(f"proxy={shown_url(proxy)!r}")
        if self.impersonate is not None:
            shown.append(f"impersonate={self.impersonate.user!r}")
        return f"Config({', '.join(shown)})"


def get_config(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    home: str | None = None,
    service_account: str = SERVICE_ACCOUNT,
    now: Callable[[], float] = time.time,
) -> Config:
    """Find a configuration of a cluster.

    From `kubeconfig`, else $KUBECONFIG, else the pod's service account, else ~/.kube/config.

    The first existing one is used; an error in it is raised. With a `context` the service account is ignored. Raises: NoConfigError if none
    exists, ConfigError if it cannot be used.
    """
    proxies = ProxyEnvironment.read(environ)
    if found := _kubeconfig_files(kubeconfig, environ.get("KUBECONFIG", "")):
        return _from_kubeconfig(found, context, proxies, now)
    default = Path(home or Path.home()) / ".kube" / "config"
    in_pod = bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))
    if in_pod and context is None and (Path(service_account, "token").exists() or not default.exists()):
        return _in_cluster(environ, Path(service_account), proxies)
    if default.exists():
        return _from_kubeconfig([str(default)], context, proxies, now)
    if context is not None:
        raise ConfigError(f"context {context!r} was requested without a kubeconfig; give one or set KUBECONFIG")
    raise NoConfigError(
        f"no cluster is configured: no kubeconfig was given, KUBECONFIG is not set, this is not a pod, and {default} "
        "does not exist"
    )


def config_from_kubeconfig(
    raw: bytes,
    *,
    where: str,
    context: str | None = None,
    allow_exec: bool = False,
    environ: Mapping[str, str] = os.environ,
    now: Callable[[], float] = time.time,
) -> Config:
    """Return a configuration from the content of a kubeconfig, such as that of a Secret.

    Args:
        raw: the content.
        where: its place, for messages.
        context: None: the current one.
        allow_exec: accept `exec`, `auth-provider` and names of files. Without it, who writes the kubeconfig can neither run a program here
            nor read a file.
        environ: has the proxies.
        now: the clock for the validity of certificates.

    Raises:
        ConfigError: the kubeconfig cannot be used.

    """
    picked = files.parse(raw, where, context)
    if not allow_exec:
        _refuse_local(picked)
    return _from_context(picked, where, ProxyEnvironment.read(environ), now)


_LOCAL: Final = {
    "cluster": ("certificate-authority",),
    "user": ("exec", "auth-provider", "tokenFile", "client-certificate", "client-key"),
}
"""The fields of a kubeconfig that run a program, or read a file."""


def _refuse_local(picked: files.Context) -> None:
    for kind, entry in (("cluster", picked.cluster), ("user", picked.user)):
        if entry is not None and (found := [name for name in _LOCAL[kind] if entry.fields.get(name)]):
            raise ConfigError(
                f"{entry.file}: {kind} {entry.name!r} has {' and '.join(found)}, which runs a program or reads a file of this machine. "
                "Use a token, or the data of certificates, or pass allow_exec=True if you trust who writes it"
            )


def _kubeconfig_files(explicit: str | None, variable: str) -> list[str]:
    if explicit:
        path = Path(explicit).expanduser().absolute()
        if not path.exists():
            raise ConfigError(f"kubeconfig {explicit} does not exist; check the path")
        return [str(path)]
    named = [str(Path(name).expanduser().absolute()) for name in variable.split(files.SEPARATOR) if name]
    there = [name for name in dict.fromkeys(named) if Path(name).exists()]
    if named and not there:
        verb = "does not exist" if len(named) == 1 else "do not exist"
        raise ConfigError(f"KUBECONFIG is set, but {' and '.join(named)} {verb}; correct the variable or unset it")
    return there


# --- in a pod -------------------------------------------------------------------------------------------------------


def _in_cluster(environ: Mapping[str, str], account: Path, proxies: ProxyEnvironment) -> Config:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    if not (account / "token").exists():
        raise ConfigError(
            f"this is a pod, but {account / 'token'} is not mounted; set automountServiceAccountToken to true "
            "in the pod or its service account, or give a kubeconfig"
        )
    authority = account / "ca.crt"
    tls = TLSConfig(ca_file=str(authority) if authority.exists() else None)
    _check(tls)
    try:
        namespace = (account / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        namespace = ""
    return Config(
        host=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        tls=tls,
        credential=TokenFile(str(account / "token")),
        proxy_environment=proxies,
        namespace=environ.get("POD_NAMESPACE") or namespace or "default",
        source="service account of the pod",
    )


# --- from a kubeconfig ----------------------------------------------------------------------------------------------


def _from_kubeconfig(
    paths: Sequence[str], context: str | None, proxies: ProxyEnvironment, now: Callable[[], float]
) -> Config:
    return _from_context(files.load(paths, context), " and ".join(paths), proxies, now)


def _from_context(picked: files.Context, places: str, proxies: ProxyEnvironment, now: Callable[[], float]) -> Config:
    cluster, user = picked.cluster, picked.user
    tls = _tls(cluster, user)
    where = f"{cluster.file}: cluster {cluster.name!r}"
    if not cluster.text("server"):
        raise ConfigError(f"{where} has no server; add its address")
    proxy_url = _proxy(cluster.text("proxy-url") or None, where)
    _check(tls)
    if user is not None:
        _check_validity(tls.client_certificate(), user, now())
    try:
        return Config(
            host=_address_of(cluster.text("server"), tls),
            tls=tls,
            credential=None if user is None else _credential(cluster, user, tls, now),
            proxy_url=proxy_url,
            proxy_environment=proxies,
            impersonate=None if user is None else _impersonation(user),
            namespace=picked.namespace or "default",
            source=f"context {picked.name} of {places}",
        )
    except ConfigError as error:
        raise ConfigError(f"context {picked.name!r}: {error}") from error


def _tls(cluster: files.Entry, user: files.Entry | None) -> TLSConfig:
    mine = user or files.Entry("", {}, cluster.file)
    try:
        return TLSConfig(
            ca_data=cluster.data("certificate-authority-data"),
            ca_file=cluster.path("certificate-authority"),
            cert_data=mine.data("client-certificate-data"),
            cert_file=mine.path("client-certificate"),
            key_data=mine.data("client-key-data"),
            key_file=mine.path("client-key"),
            insecure_skip_verify=cluster.flag("insecure-skip-tls-verify"),
            server_name=cluster.text("tls-server-name") or None,
        )
    except ConfigError as error:
        raise ConfigError(f"cluster {cluster.name!r}: {error}") from error


def _check(tls: TLSConfig) -> None:
    """Try the certificates there are: what is wrong with them is told now and not with the first request."""
    if tls.files or tls.ca_data is not None or tls.cert_data is not None or tls.key_data is not None:
        make_context(tls)


def _check_validity(pair: ClientCertificate | None, user: files.Entry, now: float) -> None:
    if pair is None:
        return
    facts = certificate_facts(pair.certificate)
    who = f"{user.file}: the client certificate of user {user.name!r} ({facts.common_name or 'no common name'})"
    moment = datetime.fromtimestamp(now, UTC)
    if moment > facts.not_after:
        raise ConfigError(f"{who} expired on {facts.not_after:%Y-%m-%d %H:%M} UTC; obtain a new one or log in again")
    if moment < facts.not_before:
        raise ConfigError(f"{who} is valid from {facts.not_before:%Y-%m-%d %H:%M} UTC; check this machine's clock")


def _credential(cluster: files.Entry, user: files.Entry, tls: TLSConfig, now: Callable[[], float]) -> Credential | None:
    who = f"{user.file}: user {user.name!r}"
    token, token_file = user.text("token"), user.path("tokenFile")
    username, password = user.text("username"), user.text("password")
    plugin, provider = user.section("exec"), user.section("auth-provider")
    if (token or token_file) and username:
        raise ConfigError(f"{who} has a token and a password; remove one")
    if plugin is not None and provider is not None:
        raise ConfigError(f"{who} has exec and auth-provider; remove one")
    if token_file is not None:
        return TokenFile(token_file, fallback=token)
    if token:
        return StaticToken(token)
    if username:
        return BasicAuth(username, password)
    if plugin is not None:
        exec_plugin = _exec_plugin(files.Entry(user.name, plugin, user.file), cluster, tls)
        return IssuedCredential(exec_plugin, f"exec plugin {exec_plugin.command}", now=now)
    if provider is not None:
        return _auth_provider(files.Entry(user.name, provider, user.file), now)
    return None


def _exec_plugin(plugin: files.Entry, cluster: files.Entry, tls: TLSConfig) -> ExecPlugin:
    who = f"{plugin.file}: exec of user {plugin.name!r}"
    command = plugin.text("command")
    if not command:
        raise ConfigError(f"{who} has no command; add it")
    if plugin.text("interactiveMode") == "Always":
        raise ConfigError(
            f"{who} needs a terminal (interactiveMode: Always), and an operator has none. Use another user"
        )
    env: dict[str, str] = {}
    for item in plugin.items("env"):
        if not isinstance(item, Mapping) or "name" not in item:
            raise ConfigError(f"{who}: each item of env must have name and value")
        named = cast("Mapping[str, Any]", item)
        env[str(named["name"])] = str(named.get("value", ""))
    return ExecPlugin(
        # A bare name is found on PATH; one with a folder starts at the kubeconfig's, as for kubectl.
        command=str(Path(plugin.file).parent / command) if "/" in command else command,
        api_version=plugin.text("apiVersion"),
        args=tuple(str(argument) for argument in plugin.items("args")),
        env=env,
        install_hint=plugin.text("installHint"),
        cluster_info=_cluster_info(cluster, tls) if plugin.flag("provideClusterInfo") else None,
    )


def _cluster_info(cluster: files.Entry, tls: TLSConfig) -> Mapping[str, Any]:
    import base64

    info: dict[str, Any] = {"server": cluster.text("server")}
    if tls.server_name:
        info["tls-server-name"] = tls.server_name
    if tls.insecure_skip_verify:
        info["insecure-skip-tls-verify"] = True
    authority = tls.ca_data or (Path(tls.ca_file).read_bytes() if tls.ca_file else None)
    if authority:
        info["certificate-authority-data"] = base64.b64encode(authority).decode()
    for key in ("proxy-url", "disable-compression"):
        if cluster.fields.get(key):
            info[key] = cluster.fields[key]
    for extension in cluster.items("extensions"):
        if isinstance(extension, Mapping) and extension.get("name") == EXEC_CLUSTER_EXTENSION:
            info["config"] = cast("Mapping[str, Any]", extension).get("extension")
    return info


# What took the place of the auth-providers that client-go 1.26 removed.
_EXEC_PLUGINS = {
    "azure": "the exec plugin kubelogin (`kubelogin convert-kubeconfig`)",
    "gcp": "the exec plugin gke-gcloud-auth-plugin (`gcloud container clusters get-credentials CLUSTER` configures it)",
}


def _auth_provider(provider: files.Entry, now: Callable[[], float]) -> Credential:
    name = provider.text("name")
    settings = provider.section("config") or {}
    match name:
        case "oidc":
            options = files.Entry(provider.name, settings, provider.file)
            authority = options.data("idp-certificate-authority-data")
            if authority is None and (path := options.path("idp-certificate-authority")):
                try:
                    authority = Path(path).read_bytes()
                except OSError as error:
                    raise ConfigError(
                        f"cannot read the identity provider's authority {path} ({error.strerror})"
                    ) from error
            return IssuedCredential(OIDCProvider(settings, authority, now=now), "oidc", now=now)
        case _:
            plugin = _EXEC_PLUGINS.get(name or "", "an exec plugin")
            raise ConfigError(
                f"{provider.file}: user {provider.name!r} uses the auth-provider {name!r}, which is not supported; "
                f"use {plugin}"
            )


def _impersonation(user: files.Entry) -> Impersonation | None:
    name, uid, groups = user.text("as"), user.text("as-uid"), user.items("as-groups")
    extra = files.Entry(user.name, user.section("as-user-extra") or {}, user.file)
    if not name:
        if uid or groups or extra.fields:
            raise ConfigError(
                f"{user.file}: user {user.name!r} has as-uid, as-groups or as-user-extra without `as`; add it"
            )
        return None
    return Impersonation(
        user=name,
        groups=tuple(str(group) for group in groups),
        uid=uid,
        extra={str(key): tuple(map(str, extra.items(key))) for key in extra.fields},
    )


# --- parts ----------------------------------------------------------------------------------------------------------


def _address_of(server: str, tls: TLSConfig) -> str:
    """Complete an address without scheme as client-go does: https where TLS is configured, else http."""
    server = server.strip().rstrip("/")
    if "://" in server:
        return server
    return f"{'http' if tls == TLSConfig() else 'https'}://{server}"


def _proxy(url: str | None, where: str) -> str | None:
    if not url:
        return None
    from ctrlruntime.rest.pool import Address  # brings an HTTP parser, and few have a proxy

    try:
        Address.parse_proxy(url)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    return url


def _is_address(url: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _encoded(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
