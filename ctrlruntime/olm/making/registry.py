"""Digests from the registries, with the distribution API of OCI: /v2/NAME/manifests/TAG.

The digest of an image for several platforms is that of its index, so the pinned image runs on all of them. The first request has no login;
the next one has it, if the registry requires one. Registries on this machine are queried by http, all others by https with the
certificates that the system trusts. HTTPS_PROXY and NO_PROXY apply.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.making.logins import Login, Logins
from ctrlruntime.olm.making.transport import MOST, Answer, Challenge, Transport, challenges_of, is_local
from ctrlruntime.olm.reference import DIGEST, DOCKER_HUB, Reference
from ctrlruntime.olm.trees import mapping, maps

__all__ = ["Registries"]

_PATIENCE: Final = 20.0
_AT_ONCE: Final = 4
_HUB_HOST: Final = "registry-1.docker.io"
"""The host of Docker Hub, which differs from the registry in its image names."""

_ACCEPT: Final = (
    "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
)
_DIGEST: Final = "Docker-Content-Digest"
_TOKEN: Final = re.compile(r"[!-~]+")
_ASK_AGAIN: Final = frozenset({400, 404, 405, 501})
"""Responses to HEAD after which GET is sent: some registries have no HEAD, and only a body has the cause."""


class Registries:
    """Queries registries for digests, each image once. `patience`: seconds to wait for the next bytes of a response."""

    def __init__(self, environ: Mapping[str, str], *, patience: float = _PATIENCE) -> None:
        """Use logins from the files of `environ` (see `Logins`), which are read if a registry requires one."""
        self._environ = environ
        self._transport = Transport(patience=patience)

    @cached_property
    def _logins(self) -> Logins:
        return Logins(self._environ)

    def digests_of(self, images: Iterable[str]) -> dict[str, str]:
        """Return the reference with a digest for each image, as `read_digests` does; those that have a digest are left out.

        Raises: ConfigError for an invalid reference, and for images without a digest: the cause for the first, the names of the rest.
        """
        references = {image: Reference.of(image) for image in images}
        wanted = list(dict.fromkeys(each for each in references.values() if not each.digest))
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            found = dict(zip(wanted, threads.map(self._tried, wanted), strict=True))
        failed = {each.text: result for each, result in found.items() if isinstance(result, ConfigError)}
        if failed:
            (first, error), *others = failed.items()
            rest = f". Digests of {', '.join(image for image, _ in others)} are also missing" if others else ""
            raise ConfigError(f"{first}: {error}{rest}") from error
        return {image: each.pinned_to(str(found[each])) for image, each in references.items() if not each.digest}

    def _tried(self, reference: Reference) -> str | ConfigError:
        try:
            return _Question(reference, self._transport, lambda: self._logins).digest()
        except ConfigError as error:
            return error


class _Question:
    """A query for the digest of an image: by HEAD, and then by GET if that is not enough."""

    def __init__(self, reference: Reference, transport: Transport, logins: Callable[[], Logins]) -> None:
        host = _HUB_HOST if reference.registry == DOCKER_HUB else reference.registry
        self._reference = reference
        self._transport = transport
        self._logins = logins
        self._login: Login | None = None
        self._host = host
        self._url = f"{'http' if is_local(host) else 'https'}://{host}/v2/{reference.path}/manifests/{reference.tag}"
        self._authorization = ""

    def digest(self) -> str:
        """Return it. Raises: ConfigError, which does not name the image."""
        head = self._ask("HEAD")
        said = head.headers.get(_DIGEST, "")
        if head.status == 200 and DIGEST.fullmatch(said):
            return said
        if head.status == 200 or head.status in _ASK_AGAIN:
            return self._digest_of(self._ask("GET"))
        raise self._failure(head)

    def _digest_of(self, answer: Answer) -> str:
        if answer.status != 200:
            raise self._failure(answer)
        if len(answer.body) > MOST or _tree(answer.body).get("schemaVersion") != 2:
            raise ConfigError(
                f"the response of {self._reference.registry} is not an image manifest. Check the registry"
            )
        digest = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
        said = answer.headers.get(_DIGEST, "")
        if DIGEST.fullmatch(said) and said != digest:
            raise ConfigError(
                f"{self._reference.registry} returned a manifest with the digest {digest} instead of {said}. Do not trust it"
            )
        return digest

    def _ask(self, method: str) -> Answer:
        answer = self._send(method)
        if answer.status != 401 or self._authorization:
            return answer
        # Who sent the request elsewhere may not see the login of that place: it is asked there at once.
        self._url = answer.url
        self._authorization = self._authorized(answer)
        return self._send(method) if self._authorization else answer

    def _send(self, method: str) -> Answer:
        return self._transport.ask(self._url, method=method, accept=_ACCEPT, authorization=self._authorization)

    # Logging in

    def _authorized(self, answer: Answer) -> str:
        """Return the header that a response of status 401 requires; empty without a value for it."""
        offers = {challenge.scheme: challenge for challenge in challenges_of(answer.headers)}
        host = urlsplit(answer.url).netloc
        self._login = self._logins().of(
            self._reference if host == self._host else replace(self._reference, registry=host)
        )
        if "bearer" in offers:
            held = self._login.access_token if self._login else ""
            return f"Bearer {held or self._token(offers['bearer'])}"
        return f"Basic {self._login.basic}" if "basic" in offers and self._login and self._login.basic else ""

    def _token(self, challenge: Challenge) -> str:
        """Return the token of the registry's token service, with the login or anonymous."""
        registry, realm = self._reference.registry, challenge.parameters.get("realm", "")
        try:
            answer = self._token_answer(realm, challenge)
        except ConfigError as error:
            raise ConfigError(f"cannot authenticate to {registry}: {error}") from error
        if answer.status in {401, 403}:
            raise self._refusal()
        tree = _tree(answer.body)
        token = tree.get("token") or tree.get("access_token")
        if answer.status != 200 or not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise ConfigError(
                f"cannot authenticate to {registry}: {realm} returned no token ({_status(answer.status)}). "
                "Retry later, or pass the digest as an option"
            )
        return token

    def _token_answer(self, realm: str, challenge: Challenge) -> Answer:
        scopes = challenge.parameters.get("scope") or f"repository:{self._reference.path}:pull"
        said = [(key, value) for key, value in challenge.parameters.items() if key == "service"]
        if self._login and self._login.refresh_token:
            grant = [("grant_type", "refresh_token"), ("refresh_token", self._login.refresh_token)]
            form = [*grant, ("client_id", "ctrlruntime"), *said, ("scope", scopes)]
            return self._transport.ask(realm, method="POST", form=urlencode(form).encode())
        query = urlencode([*said, *(("scope", scope) for scope in scopes.split())])
        authorization = f"Basic {self._login.basic}" if self._login else ""
        return self._transport.ask(f"{realm}{'&' if '?' in realm else '?'}{query}", authorization=authorization)

    # Failing

    def _failure(self, answer: Answer) -> ConfigError:
        registry, path, tag = self._reference.registry, self._reference.path, self._reference.tag
        match answer.status:
            case 401 | 403:
                return self._refusal()
            case 404 if "MANIFEST_UNKNOWN" in _codes(answer.body):
                return ConfigError(f"{registry} has no tag {tag} of {path}. Push the image first, or use another tag")
            case 404 if "NAME_UNKNOWN" in _codes(answer.body):
                return ConfigError(
                    f"{registry} has no repository {path}{self._whose()}. Push the image first, or correct its name"
                )
            case 429:
                return ConfigError(f"{registry} returned {_status(429)}. Retry later, or log in")
            case status if status >= 500:
                return ConfigError(
                    f"{registry} returned {_status(status)}. Retry later, or pass the digest as an option"
                )
            case status:
                return ConfigError(f"{registry} returned {_status(status)} for {path}. Check the name of the registry")

    def _refusal(self) -> ConfigError:
        registry, path = self._reference.registry, self._reference.path
        if self._login:
            return ConfigError(
                f"{registry} rejected the login in {self._login.file} for {path}. Log in again, or get the permission to pull"
            )
        what = f"{registry} requires a login for {path}{self._whose()}"
        logins = self._logins()
        helper = logins.helper_of(self._reference)
        if helper:
            return ConfigError(
                f"{what}, but the credential helper {helper} is not run. Write the login as auth to a file, and set "
                "REGISTRY_AUTH_FILE to it, or pass the digest as an option"
            )
        places = " or ".join(map(str, logins.places))
        return ConfigError(f"{what}, but {places} has none. Run `docker login {registry}`, or correct the name")

    def _whose(self) -> str:
        is_short = self._reference.registry == DOCKER_HUB and DOCKER_HUB not in self._reference.name
        return f" ({DOCKER_HUB} is the default registry)" if is_short else ""


def _tree(body: bytes) -> Mapping[str, Any]:
    try:
        return mapping(json.loads(body))
    except (ValueError, RecursionError):
        return {}


def _codes(body: bytes) -> set[str]:
    """Return the error codes in a response of a registry."""
    return {str(each.get("code")) for each in maps(_tree(body).get("errors"))}


def _status(code: int) -> str:
    try:
        return f"{code} ({HTTPStatus(code).phrase})"
    except ValueError:
        return str(code)
