"""The certificate in a Secret: made once, renewed in time, trusted before it is used, shared by all replicas."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.certificates import KeyPair, make_authority
from ctrlruntime.certwatcher import check_key_pair
from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import eventually
from ctrlruntime.webhook.configurations import CustomResourceDefinition, Mutating, Validating
from ctrlruntime.webhook.secret import SecretCertificates, SecretStore, renewed

DAY = 86400.0
OPTIONS = SecretCertificates(
    name="webhook-server-cert", namespace="ns", service="webhook-service", lifetime=90 * DAY, ca_lifetime=900 * DAY
)
NOW = datetime.now(UTC)


def days(number: float) -> datetime:
    return NOW + timedelta(days=number)


def is_trusted(data: dict[str, bytes], bundle: bytes | None = None) -> bool:
    """Whether a client with the bundle accepts the certificate, by OpenSSL's own judgement of the chain."""
    leaf = x509.load_pem_x509_certificate(data["tls.crt"])
    for authority in x509.load_pem_x509_certificates(data["ca.crt"] if bundle is None else bundle):
        with contextlib.suppress(Exception):
            leaf.verify_directly_issued_by(authority)
            return True
    return False


def test_the_first_one_is_made_whole():
    data = renewed({}, OPTIONS, NOW)

    check_key_pair(KeyPair(data["tls.crt"], data["tls.key"]))
    assert is_trusted(data)
    leaf = x509.load_pem_x509_certificate(data["tls.crt"])
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "webhook-service.ns.svc",
        "webhook-service.ns.svc.cluster.local",
        "webhook-service.ns",
    ]
    assert timedelta(days=89) < leaf.not_valid_after_utc - NOW < timedelta(days=90)
    assert renewed(data, OPTIONS, NOW) is None


def test_a_certificate_is_renewed_after_two_thirds_by_the_same_authority():
    data = renewed({}, OPTIONS, NOW)

    assert renewed(data, OPTIONS, days(58)) is None
    fresh = renewed(data, OPTIONS, days(62))
    assert fresh["tls.crt"] != data["tls.crt"]
    assert fresh["ca.crt"] == data["ca.crt"]
    assert is_trusted(fresh, data["ca.crt"])


def test_a_new_authority_is_trusted_before_it_signs():
    first = renewed({}, OPTIONS, NOW)
    old = renewed(first, OPTIONS, days(599))
    announced = renewed(old, OPTIONS, days(601))

    assert old["ca.crt"] == first["ca.crt"]
    assert announced["tls.crt"] == old["tls.crt"]
    assert announced["ca.crt"].count(b"BEGIN CERTIFICATE") == 2
    assert is_trusted(old, announced["ca.crt"])

    assert renewed(announced, OPTIONS, days(601) + timedelta(seconds=OPTIONS.interval / 2)) is None
    signing = renewed(announced, OPTIONS, days(601) + timedelta(seconds=OPTIONS.interval + 1))
    assert signing["tls.crt"] != old["tls.crt"]
    assert not is_trusted(signing, old["ca.crt"])
    assert is_trusted(signing, announced["ca.crt"])
    assert is_trusted(old, signing["ca.crt"])  # replicas that have not looked yet
    assert "next.crt" not in signing


def test_an_expired_authority_leaves_the_bundle():
    old = renewed(
        {}, SecretCertificates(name="a", namespace="ns", service="webhook-service", ca_lifetime=100 * DAY), NOW
    )
    signing = renewed(renewed(old, OPTIONS, days(90)), OPTIONS, days(91))
    assert signing["ca.crt"].count(b"BEGIN CERTIFICATE") == 2

    assert is_trusted(signing)
    later = renewed(signing, OPTIONS, days(101))
    assert later["ca.crt"].count(b"BEGIN CERTIFICATE") == 1
    assert is_trusted(later)


@pytest.mark.parametrize("name", ["tls.crt", "tls.key", "ca.crt", "signer.crt", "signer.key"])
@pytest.mark.parametrize("content", [None, b"nonsense"])
def test_what_is_missing_or_broken_is_made_anew(name, content):
    data = renewed({}, OPTIONS, NOW)
    broken = {key: value for key, value in data.items() if key != name}
    if content is not None:
        broken[name] = content

    mended = renewed(broken, OPTIONS, NOW)

    assert is_trusted(mended)
    check_key_pair(KeyPair(mended["tls.crt"], mended["tls.key"]))
    assert renewed(mended, OPTIONS, NOW) is None


@pytest.mark.parametrize("name", ["signer", "next"])
@pytest.mark.parametrize("other", ["a leaf", "another key", "a key of another kind"])
def test_what_cannot_sign_is_no_authority(name, other):
    data = renewed(renewed({}, OPTIONS, NOW), OPTIONS, days(601))
    wrong = {
        "a leaf": lambda: make_authority().server(["a"]),
        "another key": lambda: KeyPair(make_authority().pem, make_authority().pair.key),
        "a key of another kind": of_another_kind,
    }[other]()
    broken = data | {f"{name}.crt": wrong.certificate, f"{name}.key": wrong.key}

    mended = renewed(broken, OPTIONS, days(602))

    assert is_trusted(mended)
    assert mended["signer.crt"] != wrong.certificate


def of_another_kind() -> KeyPair:
    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, days(900))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None)
    )
    pem = serialization.Encoding.PEM
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(built.public_bytes(pem), key.private_bytes(pem, *form))


def test_an_expired_authority_is_followed_by_the_one_that_is_announced():
    announced = renewed(renewed({}, OPTIONS, NOW), OPTIONS, days(601))

    signing = renewed(announced, OPTIONS, days(901))

    assert signing["signer.crt"] == announced["next.crt"]


def test_the_certificate_of_a_clock_that_is_ahead_is_made_anew():
    ahead = renewed({}, OPTIONS, days(1))

    mended = renewed(ahead, OPTIONS, NOW)

    assert is_trusted(mended)
    assert x509.load_pem_x509_certificate(mended["tls.crt"]).not_valid_before_utc < NOW
    assert is_trusted(ahead, mended["ca.crt"])
    assert renewed(mended, OPTIONS, days(1)) is None


def test_what_others_keep_in_the_secret_stays():
    stranger = make_authority("stranger").pem
    data = renewed({}, OPTIONS, NOW)
    edited = data | {"theirs": b"1", "ca.crt": b"# their words\nnonsense\n" + stranger + data["ca.crt"]}

    mended = renewed(edited, OPTIONS, NOW)

    assert mended == data | {"theirs": b"1", "ca.crt": data["ca.crt"] + stranger}
    assert renewed(mended, OPTIONS, NOW) is None
    assert renewed(mended, OPTIONS, days(62))["theirs"] == b"1"


@pytest.mark.parametrize("host", ["10.0.0.1", "::1", "*.example.com"])
def test_addresses_are_names_too(host):
    wanted = replace(OPTIONS, dns_names=[host])
    data = renewed(renewed({}, OPTIONS, NOW), wanted, NOW)

    assert renewed(data, wanted, NOW) is None


def test_replicas_that_want_different_names_do_not_undo_each_other():
    one, other = replace(OPTIONS, dns_names=["one"]), replace(OPTIONS, dns_names=["other"])
    data = renewed(renewed({}, one, NOW), other, NOW)

    assert renewed(data, one, NOW) is None
    assert renewed(data, other, NOW) is None
    # With the next renewal goes what nobody wants any more.
    renewal = renewed(data, other, days(62))
    assert renewed(renewal, other, days(62)) is None
    assert renewed(renewal, one, days(62)) is not None


def test_long_names_have_certificates():
    options = SecretCertificates(name="s" * 253, namespace="n" * 63, service="s" * 63)
    data = renewed({}, options, NOW)

    assert is_trusted(data)
    assert renewed(data, options, NOW) is None


def test_a_short_life_is_a_life():
    options = replace(OPTIONS, lifetime=600.0, ca_lifetime=1200.0)
    data = renewed({}, options, NOW)

    assert renewed(data, options, NOW + timedelta(seconds=390)) is None
    assert renewed(data, options, NOW + timedelta(seconds=410)) is not None


def test_another_service_needs_another_certificate():
    data = renewed({}, OPTIONS, NOW)
    other = SecretCertificates(name="a", namespace="ns", service="other-service")

    assert is_trusted(renewed(data, other, NOW), data["ca.crt"])


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"lifetime": 0},
        {"lifetime": 2e9},
        {"interval": 0},
        {"lifetime": 100},
        {"mutating": "one"},
        {"dns_names": ["ä"]},
    ],
)
def test_options_that_cannot_be_meant_are_refused(options):
    with pytest.raises(ConfigError):
        SecretCertificates(**{"name": "a", "namespace": "b", "service": "c", **options})


# In a cluster


@pytest.fixture
def namespace(environment):
    return environment.create_namespace()


def options(namespace: str, **more) -> SecretCertificates:
    return SecretCertificates(name="cert", namespace=namespace, service="webhook-service", **more)


async def test_replicas_that_start_at_once_share_one_certificate(cluster, namespace):
    stores = [SecretStore(options(namespace), cluster.unfenced_client()) for _ in range(5)]

    pairs = await asyncio.gather(*(store.prepare() for store in stores))

    assert len(set(pairs)) == 1
    secret = await cluster.api_reader.get(core.Secret, ctrl.NamespacedName(namespace, "cert"))
    assert secret.type == "kubernetes.io/tls"
    assert secret.data["tls.crt"] == pairs[0].certificate


async def test_replicas_that_renew_at_once_agree(cluster, namespace):
    client = cluster.unfenced_client()
    first = await SecretStore(options(namespace), client).prepare()
    later = datetime.now(UTC) + timedelta(days=62)
    stores = [SecretStore(options(namespace, lifetime=90 * DAY), client, now=lambda: later) for _ in range(5)]

    pairs = await asyncio.gather(*(store._settle() for store in stores))

    secret = await cluster.api_reader.get(core.Secret, ctrl.NamespacedName(namespace, "cert"))
    assert {secret.data["tls.crt"]} == {pair.certificate for pair, _ in pairs}
    assert first.certificate not in {pair.certificate for pair, _ in pairs}
    assert len({bundle for _, bundle in pairs}) == 1


async def test_the_bundle_is_injected_where_it_was_said(cluster, namespace):
    client = cluster.unfenced_client()
    service = {"clientConfig": {"service": {"namespace": namespace, "name": "webhook-service", "path": "/p"}}}
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}
    webhook = {"name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [rule], **service}
    for kind in (Mutating, Validating):
        obj = kind.from_dict({"metadata": {"name": namespace}, "webhooks": [webhook, {**webhook, "name": "d.e.f"}]})
        obj.api_version, obj.kind = "admissionregistration.k8s.io/v1", kind.__name__
        await client.create(obj)
    schema = {"openAPIV3Schema": {"type": "object"}}
    definition = CustomResourceDefinition.from_dict(
        {
            "metadata": {"name": f"things.{namespace}.example.com"},
            "spec": {
                "group": f"{namespace}.example.com",
                "names": {"kind": "Thing", "plural": "things"},
                "scope": "Cluster",
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
                "conversion": {"strategy": "Webhook", "webhook": {**service, "conversionReviewVersions": ["v1"]}},
            },
        }
        | {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    )
    await client.create(definition)
    where = {"mutating": [namespace], "validating": [namespace, "missing"], "definitions": [definition.metadata.name]}

    await SecretStore(options(namespace, **where), client).prepare()

    secret = await cluster.api_reader.get(core.Secret, ctrl.NamespacedName(namespace, "cert"))
    bundle = secret.to_dict()["data"]["ca.crt"]
    for kind in (Mutating, Validating):
        found = await cluster.api_reader.get(kind, ctrl.NamespacedName("", namespace))
        assert [entry["clientConfig"]["caBundle"] for entry in found["webhooks"]] == [bundle, bundle]
    found = await cluster.api_reader.get(CustomResourceDefinition, ctrl.NamespacedName("", definition.metadata.name))
    assert found["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == bundle


async def test_a_server_shows_what_another_replica_put_into_the_secret(cluster, namespace):
    client = cluster.unfenced_client()
    secret_options = options(namespace, interval=0.02, dns_names=["localhost"])
    webhooks = ctrl.webhook.WebhookServer(
        ctrl.webhook.WebhookOptions(host="127.0.0.1", port=0, secret=secret_options), client=client
    )
    await webhooks.start()
    try:
        secret = await cluster.api_reader.get(core.Secret, ctrl.NamespacedName(namespace, "cert"))
        first = secret.data["tls.crt"]
        assert await shown(webhooks.port, secret.data["ca.crt"]) == first
        secret.data.pop("tls.crt")
        secret.data["tls.crt"] = b""
        await client.update(secret)

        async def is_renewed() -> bool:
            present = await cluster.api_reader.get(core.Secret, ctrl.object_key(secret))
            certificate = present.data.get("tls.crt")
            return (
                bool(certificate)
                and certificate != first
                and await shown(webhooks.port, present.data["ca.crt"]) == certificate
            )

        await eventually(is_renewed)
    finally:
        await webhooks.stop()


async def shown(port: int, bundle: bytes) -> bytes:
    context = ssl.create_default_context(cadata=bundle.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        await writer.wait_closed()
    return ssl.DER_cert_to_PEM_cert(found).encode()


async def test_a_secret_that_cannot_be_read_is_tried_again(cluster, namespace, capsys):
    store = SecretStore(options(namespace, interval=0.01), cluster.unfenced_client())
    pair = await store.prepare()
    seen: list[KeyPair] = []
    namespace_object = core.Namespace(metadata=meta.ObjectMeta(name=namespace))
    await cluster.unfenced_client().delete(core.Secret(metadata=meta.ObjectMeta(name="cert", namespace=namespace)))
    await cluster.unfenced_client().delete(namespace_object)
    task = asyncio.ensure_future(store.follow(seen.append))

    async def has_failed() -> bool:
        return store.errors >= 2

    await eventually(has_failed)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

    assert pair not in seen
    assert capsys.readouterr().err.count("cannot update the certificate's Secret") == 1


def test_the_variables_of_a_deployment_say_where_the_certificate_is_kept():
    environ = {
        "WEBHOOK_SECRET": "cert",
        "POD_NAMESPACE": "ns",
        "WEBHOOK_SERVICE": "hooks",
        "WEBHOOK_MUTATING": "m",
        "WEBHOOK_DEFINITIONS": "one,two",
    }

    found = SecretCertificates.from_environ(environ)

    assert found == SecretCertificates(
        name="cert", namespace="ns", service="hooks", mutating=["m"], validating=[], definitions=["one", "two"]
    )
    assert SecretCertificates.from_environ({}) is None
    with pytest.raises(ConfigError, match="POD_NAMESPACE and WEBHOOK_SERVICE not"):
        SecretCertificates.from_environ({"WEBHOOK_SECRET": "cert"})


async def test_what_is_missing_is_looked_for_soon_and_named_once(cluster, namespace, capsys):
    """A deployment applies its webhook configurations when the operator is available: after the first look."""
    client = cluster.unfenced_client()
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            late = Mutating.from_dict({"metadata": {"name": f"{namespace}-late"}, "webhooks": []})
            late.api_version, late.kind = "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"
            await client.create(late)
        if len(waits) == 5:
            raise asyncio.CancelledError

    store = SecretStore(options(namespace, mutating=[f"{namespace}-late"], interval=60.0), client, sleep=sleep)
    await store.prepare()
    with contextlib.suppress(asyncio.CancelledError):
        await store.follow(lambda _pair: None)

    assert waits == [2.0, 2.0, 2.0, 60.0, 60.0]
    assert capsys.readouterr().err.count("no object to inject the CA into") == 1
