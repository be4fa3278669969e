"""Development mode by itself; with an operator on both servers it is in tests/conformance/test_webhook_server.py."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from cryptography import x509

import ctrlruntime as ctrl
from ctrlruntime.certificates import KeyPair
from ctrlruntime.certwatcher import check_key_pair
from ctrlruntime.errors import ConfigError
from ctrlruntime.webhook import Registration
from ctrlruntime.webhook.configurations import Mutating
from ctrlruntime.webhook.development import DevelopmentCertificates, DevelopmentMode


async def test_certificates_are_for_this_machine_and_renewed_by_the_same_authority():
    waits: list[float] = []
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) > 2:
            enough.set()
            await asyncio.Event().wait()

    source = DevelopmentCertificates(DevelopmentMode(host="192.0.2.1", lifetime=900.0), None, sleep=sleep)
    pairs = [await source.prepare()]
    following = asyncio.ensure_future(source.follow(pairs.append))
    await enough.wait()
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following

    assert waits == [600.0] * 3
    assert len(set(pairs)) == 3
    authority = x509.load_pem_x509_certificate(source._ca().pem)
    for pair in pairs:
        check_key_pair(pair)
        leaf = x509.load_pem_x509_certificate(pair.certificate)
        leaf.verify_directly_issued_by(authority)
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.1", "127.0.0.1", "::1"]


def test_options_that_cannot_be_meant_are_refused():
    for options in ({"host": ""}, {"lifetime": 0}):
        with pytest.raises(ConfigError):
            DevelopmentMode(**options)


class Server:
    def __init__(self, *registrations: Registration) -> None:
        self.registrations = registrations
        self.port = 1234


def registration(name: str, path: str = "/p") -> Registration:
    rule = ctrl.webhook.WebhookRule(
        mutating=True, name=name, groups=["none.example.com"], versions=["v1"], resources=["nones"]
    )
    return Registration(path=path, kind="admission", rule=rule)


async def test_webhooks_are_registered_by_url_and_taken_back(cluster):
    source = DevelopmentCertificates(DevelopmentMode(name="mine", host="::1"), cluster.unfenced_client())
    pair: KeyPair = await source.prepare()
    await source.announce(Server(registration("a.b.c", "/one"), Registration(path="/raw", kind="admission")))

    found = await cluster.api_reader.get(Mutating, ctrl.NamespacedName("", "mine"))
    (entry,) = found["webhooks"]
    assert entry["clientConfig"]["url"] == "https://[::1]:1234/one"
    assert entry["clientConfig"]["caBundle"]
    assert pair

    await source.retire()
    assert await cluster.api_reader.get_or_none(Mutating, ctrl.NamespacedName("", "mine")) is None
    await source.retire()


async def test_registering_again_replaces_the_webhooks_and_leaves_what_others_wrote(cluster):
    client, name = cluster.unfenced_client(), ctrl.NamespacedName("", "again")
    for webhook in ("a.b.c", "d.e.f"):
        source = DevelopmentCertificates(DevelopmentMode(name=name.name), client)
        await source.prepare()
        await source.announce(Server(registration(webhook)))
        present = await client.api_reader.get(Mutating, name)
        theirs = ctrl.merge_patch({"metadata": {"labels": {webhook: "theirs"}}})
        await client.patch(present, theirs)

    found = await client.api_reader.get(Mutating, name)
    await source.retire()

    assert [entry["name"] for entry in found["webhooks"]] == ["d.e.f"]
    assert found.metadata.labels == {"a.b.c": "theirs", "d.e.f": "theirs"}


async def test_a_conversion_without_its_definition_says_what_to_install(cluster):
    from webhook_reviews import Game

    from ctrlruntime.api import kind_of

    source = DevelopmentCertificates(DevelopmentMode(), cluster.unfenced_client())
    await source.prepare()
    conversion = Registration(path="/convert", kind="conversion", converted=((kind_of(Game),),))
    with pytest.raises(ConfigError, match=r"games\.games\.example\.com has a conversion, but its CRD is not installed"):
        await source.announce(Server(conversion))


async def test_what_cannot_be_taken_back_is_said_and_no_error(environment, capsys):
    cluster = ctrl.Cluster(ctrl.get_config(str(environment.kubeconfig_path)))
    source = DevelopmentCertificates(DevelopmentMode(name="stays"), cluster.unfenced_client())
    await source.prepare()
    await source.announce(Server(registration("a.b.c")))
    forbidden = environment.add_user("nobody")
    path = environment.kubeconfig_path.with_name("nobody")
    path.write_text(forbidden)
    other = ctrl.Cluster(ctrl.get_config(str(path)))
    source._client = other.unfenced_client()

    await source.retire()

    assert "cannot delete development webhook configuration" in capsys.readouterr().err
    await other.close()
    await cluster.close()
