"""Development mode: webhooks on your machine, without cert-manager and without manual steps.

It creates a CA and a pair in memory, and renews the pair while the operator runs. At the start it registers the webhooks by URL
(`https://127.0.0.1:PORT/path`) and sets the conversion of CRDs. At the end it removes both.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ctrlruntime import log
from ctrlruntime.api.kind import KindInfo
from ctrlruntime.api.object import Unstructured
from ctrlruntime.certificates import Authority, KeyPair, make_authority
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import ConfigError, CtrlError
from ctrlruntime.webhook.certificates import Announcement
from ctrlruntime.webhook.configurations import (
    CustomResourceDefinition,
    Mutating,
    Validating,
    change,
    definition_name,
    put,
    remove,
    webhook_configuration,
)

__all__ = ["DevelopmentCertificates", "DevelopmentMode"]

_RETIRING = 10.0  # seconds to take the registration back when the operator ends


@dataclass(frozen=True, slots=True, kw_only=True)
class DevelopmentMode:
    """Creates certificates and registers the webhooks while the operator runs.

    If the operator is killed, its registration remains and requests fail; the next start replaces it.
    """

    host: str = "127.0.0.1"
    """The address of this machine for the API server (for a cluster in containers, that of their bridge)."""

    name: str = ""
    """The name of the two webhook configurations; default: `development-` and the name of the first webhook."""

    lifetime: float = 7 * 86400.0
    """Seconds for which a certificate is valid; it is renewed after two thirds."""

    def __post_init__(self) -> None:
        if self.lifetime <= 0 or not self.host:
            raise ConfigError(
                f"DevelopmentMode(host={self.host!r}, lifetime={self.lifetime}): give a host, and seconds above 0"
            )


class DevelopmentCertificates:
    """The certificates and the registration of development mode."""

    def __init__(
        self, options: DevelopmentMode, client: Client, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._options = options
        self._client = client
        self._sleep = sleep
        self._authority: Authority | None = None
        self._name = ""
        self._previous: dict[str, Any] = {}
        self.reads = 0
        self.errors = 0
        self._log = log.get_logger("webhook")

    async def prepare(self) -> KeyPair:
        # The hour that certificates reach back is for clocks that differ.
        self._authority = make_authority("ctrlruntime development", lifetime=self._options.lifetime * 52)
        return self._issue()

    async def follow(self, use: Callable[[KeyPair], None]) -> None:
        while True:
            await self._sleep(self._options.lifetime * 2 / 3)
            use(self._issue())
            self._log.info("development certificate renewed")

    async def announce(self, server: Announcement) -> None:
        host = f"[{self._options.host}]" if ":" in self._options.host else self._options.host
        bundle = base64.b64encode(self._ca().pem).decode()

        def client_config(path: str) -> dict[str, Any]:
            return {"url": f"https://{host}:{server.port}{path}", "caBundle": bundle}

        names = sorted(each.rule.name for each in server.registrations if each.rule is not None)
        self._name = self._options.name or (f"development-{names[0]}" if names else "")
        for each in server.registrations:
            for versions in each.converted:
                await self._convert(versions, client_config(each.path))
        for kind in (Mutating, Validating):
            wanted = webhook_configuration(kind, self._name, server.registrations, client_config)
            if wanted is not None:
                await put(self._client, wanted)
        self._log.info(
            "webhooks registered for development",
            name=self._name,
            webhooks=names,
            conversions=sorted(self._previous),
            port=server.port,
        )

    async def retire(self) -> None:
        try:
            async with asyncio.timeout(_RETIRING):
                await self._retire()
        except (TimeoutError, CtrlError) as error:
            self._log.warning(
                "cannot delete development webhook configuration",
                hint="delete it, or API requests fail",
                name=self._name,
                error=log.describe(error),
            )

    async def _retire(self) -> None:
        if self._name:
            for kind in (Mutating, Validating):
                await remove(self._client, kind, self._name)
        for name, previous in self._previous.items():
            await change(self._client, CustomResourceDefinition, name, _conversion_is(previous))
        self._name = ""
        self._previous.clear()

    async def _convert(self, versions: tuple[KindInfo, ...], client_config: dict[str, Any]) -> None:
        name = definition_name(versions)
        wanted = {
            "strategy": "Webhook",
            "webhook": {"clientConfig": client_config, "conversionReviewVersions": ["v1"]},
        }

        def make(definition: Unstructured) -> bool:
            present = definition.get_path("spec", "conversion", default={"strategy": "None"})
            # A URL is what a development mode before this one left behind.
            left_behind = "url" in (present.get("webhook") or {}).get("clientConfig", {})
            self._previous[name] = {"strategy": "None"} if left_behind else present
            definition["spec"]["conversion"] = wanted
            return True

        if await change(self._client, CustomResourceDefinition, name, make) is None:
            raise ConfigError(
                f"{name} has a conversion, but its CRD is not installed. Install the CRD before the manager starts"
            )

    def _ca(self) -> Authority:
        assert self._authority is not None, "prepare() comes first"
        return self._authority

    def _issue(self) -> KeyPair:
        self.reads += 1
        return self._ca().server(dict.fromkeys([self._options.host, "127.0.0.1", "::1", "localhost"]))


def _conversion_is(conversion: Any) -> Callable[[Unstructured], bool]:
    def make(definition: Unstructured) -> bool:
        definition["spec"]["conversion"] = conversion
        return True

    return make
