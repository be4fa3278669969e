"""Registry logins from the files of docker and podman. Credential helpers are not run."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.reference import DOCKER_HUB, Reference
from ctrlruntime.olm.trees import mapping

__all__ = ["Login", "Logins"]

_HUB_NAMES: Final = frozenset({"index.docker.io", "registry-1.docker.io"})
_VERSIONS: Final = frozenset({"v1", "v2"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The login for a registry."""

    file: Path
    """The file that has it."""

    basic: str = field(default="", repr=False)
    """Name and password as in a header of basic authentication; empty without them."""

    refresh_token: str = field(default="", repr=False)
    """The token that the registry's token service accepts instead of a password."""

    access_token: str = field(default="", repr=False)
    """The token that the registry accepts directly."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    entries: Mapping[str, Mapping[str, Any]]
    helpers: Mapping[str, str]
    store: str


class Logins:
    """Finds the login for an image: of its repository, of a parent path, or of its registry, in the first file that has one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read REGISTRY_AUTH_FILE (or podman's own file), then config.json of DOCKER_CONFIG or ~/.docker, if they exist.

        Raises: ConfigError for a file that cannot be read.
        """
        self.places = tuple(_places(environ))
        self._files = [file for path in self.places if (file := _read(path)) is not None]

    def of(self, reference: Reference) -> Login | None:
        """Return the login for an image, None if no file has one. Raises: ConfigError for an invalid entry."""
        for file in self._files:
            for place in _scopes(reference):
                login = _login(file, place)
                if login is not None:
                    return login
        return None

    def helper_of(self, reference: Reference) -> str:
        """Return the name of the program that stores the login of the image's registry; empty without one."""
        for file in self._files:
            helper = file.helpers.get(reference.registry) or file.store
            if helper:
                return f"docker-credential-{helper}"
        return ""


def _places(environ: Mapping[str, str]) -> list[Path]:
    home = Path(environ.get("HOME") or Path.home())
    docker = Path(environ.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
    named, running = environ.get("REGISTRY_AUTH_FILE"), environ.get("XDG_RUNTIME_DIR")
    podman = Path(named) if named else Path(running) / "containers/auth.json" if running else None
    return [docker] if podman is None else [podman, docker]


def _read(path: Path) -> _File | None:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read registry logins from {path}: it is not JSON: {error}") from error
    whole = mapping(tree)
    auths, store = mapping(whole.get("auths")), whole.get("credsStore")
    # A key that is a plain place goes before one that only amounts to it.
    keys = sorted(auths, key=lambda key: _place(key) != key)
    entries: dict[str, Mapping[str, Any]] = {}
    for key in keys:
        entries.setdefault(_place(key), mapping(auths[key]))
    helpers = {_place(key): str(value) for key, value in mapping(whole.get("credHelpers")).items()}
    return _File(path, entries, helpers, store if isinstance(store, str) else "")


def _place(key: str) -> str:
    """Return registry and path of a key, which may be a URL with the version of an API behind."""
    _, scheme, rest = key.rpartition("://")
    host, slash, path = rest.rstrip("/").partition("/")
    host = DOCKER_HUB if host in _HUB_NAMES else host
    return host if scheme or path in _VERSIONS else f"{host}{slash}{path}"


def _scopes(reference: Reference) -> list[str]:
    """Where a login for an image may be kept, the nearest first."""
    parts = reference.path.split("/")
    paths = ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return [*(f"{reference.registry}/{path}" for path in paths), reference.registry]


def _login(file: _File, place: str) -> Login | None:
    entry = file.entries.get(place, {})
    said = {
        key: value for key in ("auth", "identitytoken", "registrytoken") if isinstance(value := entry.get(key), str)
    }
    basic = said.get("auth", "")
    if basic and not _is_basic(basic):
        raise ConfigError(f"{file.path}: auth of {place} is not NAME:PASSWORD in base64. Log in to {place} again")
    login = Login(
        file=file.path,
        basic=basic,
        refresh_token=said.get("identitytoken", ""),
        access_token=said.get("registrytoken", ""),
    )
    return login if login.basic or login.refresh_token or login.access_token else None


def _is_basic(text: str) -> bool:
    try:
        return b":" in base64.b64decode(text, validate=True)
    except ValueError:
        return False
