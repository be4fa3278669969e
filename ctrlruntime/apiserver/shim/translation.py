"""Turns kube-apiserver's flags into the server's options, and serves with them."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import logging
import os
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from ctrlruntime.apiserver.foreground import serve
from ctrlruntime.apiserver.options import DEFAULT_ISSUER, DEFAULT_NETWORK, FEATURE_GATES, Options, TokenUser
from ctrlruntime.apiserver.server import APIServer
from ctrlruntime.certificates import KeyPair, make_authority
from ctrlruntime.errors import ConfigError

Mode: TypeAlias = Literal["rbac", "always-allow"]

_DEFAULT_PORT: Final = 6443
_DEFAULT_FOLDER: Final = "/var/run/kubernetes"
_MODES: Final = frozenset({"AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"})
_LEVELS: Final = ((6, logging.DEBUG), (2, logging.INFO))
_NAMES: Final = ("kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost", "127.0.0.1")


class Flags(Protocol):
    """What this module reads of the flags; `kube_apiserver`, which imports this module to serve, parses them."""

    @property
    def values(self) -> Mapping[str, list[str]]: ...

    def last(self, name: str, default: str = "") -> str: ...

    def listed(self, name: str) -> list[str]: ...


def run(flags: Flags) -> int:
    """Serve until a signal ends the process; return the exit code."""
    try:
        logging.basicConfig(level=_level(flags), format="%(levelname)s %(name)s: %(message)s")
        options, warnings = options_from(flags)
        for warning in warnings:
            print(f"warning: {warning}", file=sys.stderr)  # noqa: T201 - a program's output
        asyncio.run(serve(options, _announce))
    except ConfigError as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def options_from(flags: Flags) -> tuple[Options, list[str]]:
    """Return the options of the flags, and the warnings. Raises: ConfigError."""
    warnings: list[str] = []
    address, port = flags.last("bind-address", "127.0.0.1"), _port(flags)
    issuers = flags.values.get("service-account-issuer") or [DEFAULT_ISSUER]
    key_files = flags.values.get("service-account-key-file", [])
    options = Options(
        address=address,
        port=port,
        serving_pair=_serving_pair(flags, address),
        authorization=_authorization(flags, warnings),
        client_ca=_read(flags, "client-ca-file"),
        tokens=_tokens(flags, warnings),
        service_account_issuer=issuers[0],
        service_account_issuers=issuers[1:],
        service_account_keys=[_content(path, "service-account-key-file") for path in key_files],
        service_account_signing_key=_read(flags, "service-account-signing-key-file") or None,
        service_network=_network(flags),
        disabled_admission=_disabled(flags),
        enabled_admission=frozenset(flags.listed("enable-admission-plugins")),
        unserved=_unserved(flags, warnings),
        feature_gates={name: True for name in FEATURE_GATES if f"{name}=true" in flags.listed("feature-gates")},
        controllers=(),
    )
    return options, warnings


def _announce(server: APIServer) -> None:
    gc.freeze()  # the collector need not look at modules and tables again
    gc.enable()
    # Some harnesses wait for these words.
    print(f"Serving securely on {server.options.address}:{server.port}", file=sys.stderr, flush=True)  # noqa: T201


def _level(flags: Flags) -> int:
    text = flags.last("v", "0")
    if not text.isdigit():
        raise ConfigError(f'invalid argument "{text}" for "-v, --v" flag: expected a number')
    return next((level for least, level in _LEVELS if int(text) >= least), logging.WARNING)


def _port(flags: Flags) -> int:
    text = flags.last("secure-port", str(_DEFAULT_PORT))
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise ConfigError(
            f"--secure-port {text} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
        )
    return int(text)


def _read(flags: Flags, name: str) -> bytes:
    path = flags.last(name)
    return _content(path, name) if path else b""


def _content(path: str | Path, name: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"--{name}: cannot read {path}: {error.strerror}") from None


def _serving_pair(flags: Flags, address: str) -> KeyPair:
    certificate, key = flags.last("tls-cert-file"), flags.last("tls-private-key-file")
    if certificate and key:
        return KeyPair(_content(certificate, "tls-cert-file"), _content(key, "tls-private-key-file"))
    if certificate or key:
        raise ConfigError("--tls-cert-file and --tls-private-key-file require each other. Set both, or neither")
    return _kept_pair(Path(flags.last("cert-dir", _DEFAULT_FOLDER)), address)


def _kept_pair(folder: Path, address: str) -> KeyPair:
    """Return the pair in the folder; if it has none, make one and leave it there, as kube-apiserver does."""
    files = (folder / "apiserver.crt", folder / "apiserver.key")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):  # several servers that start at once have one pair, not halves of two
            if not all(file.is_file() for file in files):
                made = _made_pair(address)
                files[1].touch(mode=0o600)
                files[0].write_bytes(made.certificate)
                files[1].write_bytes(made.key)
                return made
    except OSError as error:
        raise ConfigError(f"--cert-dir: cannot write to {folder}: {error.strerror}") from None
    return KeyPair(*(_content(file, "cert-dir") for file in files))


def _made_pair(address: str) -> KeyPair:
    """Make a pair with the authority behind the certificate."""
    authority = make_authority(f"{address}-ca")
    pair = authority.server([address, *(name for name in _NAMES if name != address)])
    return KeyPair(pair.certificate + authority.pem, pair.key)


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Hold the folder against other processes; closing it lets it go."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _authorization(flags: Flags, warnings: list[str]) -> Mode:
    modes = flags.listed("authorization-mode") or ["AlwaysAllow"]
    for mode in modes:
        if mode not in _MODES:
            raise ConfigError(f"--authorization-mode: mode {mode} does not exist. Use RBAC or AlwaysAllow")
        if mode not in {"RBAC", "AlwaysAllow", "Node"}:
            warnings.append(f"--authorization-mode: {mode} has no effect on this server")
    return "always-allow" if "AlwaysAllow" in modes else "rbac"


def _tokens(flags: Flags, warnings: list[str]) -> dict[str, TokenUser]:
    """Read lines of token,user,uid and perhaps "group,group"."""
    path = flags.last("token-auth-file")
    if not path:
        return {}
    import csv

    found: dict[str, TokenUser] = {}
    lines = _content(path, "token-auth-file").decode("utf-8", "replace").splitlines()
    for number, row in enumerate(csv.reader(lines, skipinitialspace=True), 1):
        if not row:
            continue
        if len(row) < 3:
            raise ConfigError(
                f"--token-auth-file: line {number} of {path} must have at least three columns: token,user,uid"
            )
        token, user, uid = (column.strip() for column in row[:3])
        if not token:
            warnings.append(f"--token-auth-file: line {number} of {path} has an empty token, so it is ignored")
            continue
        groups = tuple(group.strip() for group in row[3].split(",") if group.strip()) if len(row) > 3 else ()
        found[token] = TokenUser(user, uid, groups)
    return found


def _network(flags: Flags) -> str:
    """Return the first IPv4 network of the range; a second one, for IPv6, is not served."""
    networks = [network for network in flags.listed("service-cluster-ip-range") if ":" not in network]
    return networks[0] if networks else DEFAULT_NETWORK


def _disabled(flags: Flags) -> frozenset[str]:
    return frozenset(flags.listed("disable-admission-plugins")) - frozenset(flags.listed("enable-admission-plugins"))


def _unserved(flags: Flags, warnings: list[str]) -> frozenset[str]:
    """Read group/version=false and group/version/resource=false; what is not served cannot be switched on."""
    found: set[str] = set()
    for entry in flags.listed("runtime-config"):
        name, _, value = entry.partition("=")
        is_on = value.lower() in {"", "true", "1", "t"}
        if name in {"api/all", "api/ga", "api/beta", "api/alpha", "api/legacy"}:
            if not is_on and name in {"api/all", "api/ga"}:
                warnings.append(f"--runtime-config: {entry} has no effect on this server")
        elif not is_on:
            found.add(name)
    return frozenset(found)
