"""Whether the API server can call the webhooks: the CA it trusts, the certificate, and the endpoints."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ctrlruntime.api import core, discovery
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Unstructured
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import ConfigError, CtrlError
from ctrlruntime.project.deployment.objects import Named
from ctrlruntime.project.doctor.check import Check, Subject, failed, fine, warned
from ctrlruntime.rest.tls import certificate_facts

__all__ = ["webhook_checks"]

_KINDS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_SOON: Final = timedelta(days=7)
_FLAG: Final = "--webhook-cert-path="
_VARIABLE: Final = re.compile(r"\$\((\w+)\)")
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)


async def webhook_checks(client: Client, subject: Subject, *, now: datetime | None = None) -> AsyncIterator[Check]:
    """Yield the checks of the project's webhook configurations."""
    configurations = [Named.of(each) for each in subject.documents if each["kind"] in _KINDS]
    if not configurations:
        return
    secret = await _secret(client, subject)
    if secret is not None:
        yield _validity(secret, now or datetime.now(UTC))
    services: set[NamespacedName] = set()
    for named in configurations:
        found = await client.api_reader.get_or_none(Unstructured.of(named.kind.api_version, named.kind.kind), named.key)
        if found is None:
            yield failed("webhook", f"{named} does not exist", "Run `ctrl deploy`")
            continue
        configs = [each["clientConfig"] for each in found.get_path("webhooks", default=[])]
        yield _trust(named, configs, secret)
        services |= {
            NamespacedName(each["service"]["namespace"], each["service"]["name"])
            for each in configs
            if "service" in each
        }
    for service in sorted(services):
        yield await _endpoints(client, service)


async def _secret(client: Client, subject: Subject) -> core.Secret | None:
    """Return the Secret with the certificate: named to the operator by WEBHOOK_SECRET, or mounted at its --webhook-cert-path."""
    if subject.deployment is None:
        return None
    name = next(_secret_names(subject), "")
    if not name:
        return None
    namespace = Named.of(subject.deployment).namespace or subject.settings.namespace
    try:
        return await client.api_reader.get_or_none(core.Secret, NamespacedName(namespace, name))
    except CtrlError:  # Secrets are not for everybody's eyes
        return None


def _secret_names(subject: Subject) -> Iterator[str]:
    assert subject.deployment is not None
    container = subject.container
    environ = {str(each.get("name")): str(each.get("value") or "") for each in container.get("env") or ()}
    if environ.get("WEBHOOK_SECRET"):
        yield environ["WEBHOOK_SECRET"]
    arguments = [
        _VARIABLE.sub(lambda found: environ.get(found[1], ""), str(each)) for each in container.get("args") or ()
    ]
    paths = {each.removeprefix(_FLAG) for each in arguments if each.startswith(_FLAG)}
    mounted = {each["name"] for each in container.get("volumeMounts") or () if each.get("mountPath") in paths}
    for volume in subject.deployment["spec"]["template"]["spec"].get("volumes") or ():
        if volume["name"] in mounted and "secret" in volume:
            yield str(volume["secret"]["secretName"])


def _validity(secret: core.Secret, now: datetime) -> Check:
    name = f"{secret.metadata.namespace}/{secret.metadata.name}"
    try:
        facts = certificate_facts(secret.data.get("tls.crt", b""))
    except ConfigError as error:
        return failed(
            "certificate", f"Secret {name}: tls.crt: {error}", "Let cert-manager or the operator create it again"
        )
    end = f"{facts.not_after:%Y-%m-%d %H:%M} UTC"
    if facts.not_after <= now:
        return failed(
            "certificate",
            f"Secret {name}: expired at {end}",
            "Check why cert-manager or the operator did not renew it",
        )
    if facts.not_after - now < _SOON:
        return warned("certificate", f"Secret {name}: valid until {end}", "Check that it is renewed")
    return fine("certificate", f"Secret {name}: valid until {end}")


def _trust(named: Named, configs: list[dict[str, Any]], secret: core.Secret | None) -> Check:
    bundles = [base64.b64decode(each.get("caBundle") or "") for each in configs]
    if not all(bundles):
        return failed(
            "webhook", f"{named} has no CA bundle", "Check the log of cert-manager's injector, or of the operator"
        )
    if secret is None:
        return warned(
            "webhook", f"{named}: the Secret with its certificate is missing, or you cannot read it", "Check the Secret"
        )
    signers = _certificates(secret.data.get("ca.crt") or secret.data.get("tls.crt") or b"")
    if not all(signers & _certificates(bundle) for bundle in bundles):
        return failed(
            "webhook",
            f"{named} does not trust the CA of Secret {secret.metadata.name}",
            "Let cert-manager's injector or the operator update its caBundle",
        )
    return fine("webhook", f"{named} trusts the certificate")


def _certificates(pem: bytes) -> set[bytes]:
    return {b"".join(each.split()) for each in _CERTIFICATE.findall(pem)}


async def _endpoints(client: Client, service: NamespacedName) -> Check:
    slices = await client.api_reader.list(
        discovery.EndpointSlice,
        namespace=service.namespace,
        labels={"kubernetes.io/service-name": service.name},
    )
    ready = [
        endpoint
        for each in slices.valid
        for endpoint in each.endpoints
        # No word on readiness means ready.
        if endpoint.conditions.ready is not False
    ]
    if not ready:
        return failed("service", f"Service {service} has no ready endpoint", "Check whether the operator runs")
    return fine("service", f"Service {service} has {len(ready)} ready endpoint{'' if len(ready) == 1 else 's'}")
