import asyncio
import datetime as dt
import ssl
import tempfile
from pathlib import Path

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError
from ctrlruntime.rest.tls import ClientCertificate, TLSConfig, TLSContexts, certificate_facts, make_context


@pytest.fixture(scope="module")
def authority():
    return make_authority("test authority")


@pytest.fixture(scope="module")
def pair(authority):
    return authority.client("jane", ["system:masters"])


async def shake_hands(authority, context, *, server_hostname="localhost", names=("localhost", "127.0.0.1")):
    """Connect with `context` to a server that asks for a client certificate; return the name the client showed."""
    server_pair = authority.server(names)
    server_context = make_server_context(authority, server_pair)
    shown = asyncio.get_running_loop().create_future()

    async def serve(reader, writer):
        subject = writer.get_extra_info("peercert") or {}
        shown.set_result(dict(part[0] for part in subject.get("subject", ())).get("commonName", ""))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=server_hostname)
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                return await shown
        finally:
            writer.close()


def make_server_context(authority, server_pair):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=authority.pem.decode())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.pem"
        path.write_bytes(server_pair.key + server_pair.certificate)
        context.load_cert_chain(path)
    return context


async def test_data_makes_a_context_that_trusts_and_shows_a_certificate(authority, pair):
    context = make_context(TLSConfig(ca_data=authority.pem, cert_data=pair.certificate, key_data=pair.key))

    assert await shake_hands(authority, context) == "jane"


async def test_a_server_of_another_authority_is_refused(authority):
    context = make_context(TLSConfig(ca_data=make_authority("other").pem))

    with pytest.raises(ssl.SSLCertVerificationError):
        await shake_hands(authority, context)


async def test_insecure_trusts_any_server(authority):
    context = make_context(TLSConfig(insecure_skip_verify=True))

    assert await shake_hands(authority, context, server_hostname="nobody.example.com") == ""


@pytest.mark.parametrize("authority", [{"ca_data": b"x"}, {"ca_file": "/ca.crt"}])
def test_an_authority_that_would_not_be_looked_at_is_refused(authority):
    with pytest.raises(ConfigError, match="remove one of them"):
        TLSConfig(insecure_skip_verify=True, **authority)


def test_a_common_name_is_no_name():
    assert make_context(TLSConfig()).hostname_checks_common_name is False


async def test_server_name_is_what_the_certificate_must_bear(authority):
    contexts = TLSContexts(TLSConfig(ca_data=authority.pem, server_name="kubernetes.default"))

    shown = await shake_hands(
        authority, contexts.current(), server_hostname=contexts.server_hostname, names=["kubernetes.default"]
    )

    assert shown == ""


def test_data_wins_over_the_file_of_the_same_meaning(authority):
    config = TLSConfig(ca_data=authority.pem, ca_file="/does/not/exist")

    assert make_context(config).get_ca_certs()
    assert config.files == ()


def test_no_file_is_left_behind(authority, pair, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    make_context(TLSConfig(ca_data=authority.pem, cert_data=pair.certificate, key_data=pair.key))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (TLSConfig(ca_file="/does/not/exist"), r"cannot read the certificate authority /does/not/exist \(No such file"),
        (TLSConfig(ca_data=b"nonsense"), "certificate authority in the kubeconfig is not a PEM certificate"),
        (TLSConfig(ca_data=b""), "it is empty"),
        (
            TLSConfig(cert_data=b"nonsense", key_data=b"nonsense"),
            "client certificate in the kubeconfig and its key cannot",
        ),
        (TLSConfig(cert_data=b"x"), "a certificate but no key; set client-key"),
        (TLSConfig(key_data=b"x"), "a key but no certificate; set client-certificate"),
    ],
)
def test_what_cannot_be_used_is_named(config, message):
    with pytest.raises(ConfigError, match=message):
        make_context(config)


def test_a_key_of_another_certificate_is_refused(authority, pair):
    other = authority.client("john")

    with pytest.raises(ConfigError, match="belong together"):
        make_context(TLSConfig(cert_data=pair.certificate, key_data=other.key))


class FileTLS:
    """Certificates in files, and contexts whose clock the test moves."""

    def __init__(self, folder, authority):
        self.folder, self.time = folder, 0.0
        self.put("ca.crt", authority.pem)
        self.config = TLSConfig(
            ca_file=self.path("ca.crt"), cert_file=self.path("tls.crt"), key_file=self.path("tls.key")
        )
        self.contexts = TLSContexts(self.config, clock=lambda: self.time)

    def path(self, name):
        return str(self.folder / name)

    def put(self, name, content):
        (self.folder / (name + ".new")).write_bytes(content)
        (self.folder / (name + ".new")).rename(self.folder / name)

    def put_pair(self, pair):
        self.put("tls.crt", pair.certificate)
        self.put("tls.key", pair.key)


@pytest.fixture
def file_tls(tmp_path, authority, pair):
    made = FileTLS(tmp_path, authority)
    made.put_pair(pair)
    return made


def test_the_context_is_the_same_while_files_are(file_tls):
    first = file_tls.contexts.current()
    file_tls.time += 100

    assert file_tls.contexts.current() is first


async def test_a_replaced_certificate_is_used_after_the_check_interval(file_tls, authority):
    first = file_tls.contexts.current()
    file_tls.put_pair(authority.client("john"))

    assert file_tls.contexts.current() is first
    file_tls.time += 1.0
    assert await shake_hands(authority, file_tls.contexts.current()) == "john"


async def test_during_half_a_rotation_the_old_pair_serves(file_tls, authority):
    first = file_tls.contexts.current()
    new = authority.client("john")

    file_tls.put("tls.crt", new.certificate)
    file_tls.time += 1.0
    assert file_tls.contexts.current() is first
    file_tls.put("tls.key", new.key)
    file_tls.time += 1.0
    assert await shake_hands(authority, file_tls.contexts.current()) == "john"


async def test_a_replaced_authority_is_trusted_after_the_check_interval(file_tls, authority):
    file_tls.put("ca.crt", make_authority("another").pem)
    file_tls.time += 1.0
    with pytest.raises(ssl.SSLCertVerificationError):
        await shake_hands(authority, file_tls.contexts.current())

    file_tls.put("ca.crt", authority.pem)
    file_tls.time += 1.0

    assert await shake_hands(authority, file_tls.contexts.current()) == "jane"


async def test_the_credentials_certificate_takes_the_place_of_the_configs(authority, pair):
    class Issued:
        client_certificate = None

    credential, john = Issued(), authority.client("john")
    contexts = TLSContexts(
        TLSConfig(ca_data=authority.pem, cert_data=pair.certificate, key_data=pair.key), credential, clock=lambda: 0.0
    )

    assert await shake_hands(authority, contexts.current()) == "jane"
    credential.client_certificate = ClientCertificate(john.certificate, john.key)
    assert await shake_hands(authority, contexts.current()) == "john"


def test_facts_of_a_certificate(pair):
    from cryptography import x509

    known = x509.load_pem_x509_certificate(pair.certificate)

    facts = certificate_facts(b"# a comment\n" + pair.certificate)

    assert facts.common_name == "jane"
    assert facts.not_after == known.not_valid_after_utc
    assert facts.not_before == known.not_valid_before_utc


def test_facts_after_2049_are_read(monkeypatch):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "o"), x509.NameAttribute(NameOID.COMMON_NAME, "Ö" * 20)]
    )
    end = dt.datetime(2123, 4, 5, 6, 7, 8, tzinfo=dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(dt.datetime(1999, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )

    facts = certificate_facts(certificate.public_bytes(serialization.Encoding.PEM))

    assert (facts.common_name, facts.not_before.year, facts.not_after) == ("Ö" * 20, 1999, end)


@pytest.mark.parametrize("pem", [b"", b"text", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"])
def test_what_is_no_certificate_has_no_facts(pem):
    with pytest.raises(ConfigError, match="not a PEM certificate"):
        certificate_facts(pem)


def test_reprs_show_no_secrets(pair):
    config = TLSConfig(ca_data=b"AUTHORITY", cert_data=pair.certificate, key_data=pair.key)

    assert "PRIVATE" not in repr(config) + repr(config.client_certificate())


def test_equal_certificates_have_one_context(authority, pair):
    other = authority.client("joe")

    def config(pair: ClientCertificate, **more) -> TLSConfig:
        return TLSConfig(ca_data=authority.pem, cert_data=pair.certificate, key_data=pair.key, **more)

    context = make_context(config(pair))
    assert make_context(config(pair, server_name="another")) is context
    assert make_context(TLSConfig(ca_data=authority.pem), ClientCertificate(pair.certificate, pair.key)) is context
    others = [config(other), TLSConfig(ca_data=authority.pem), TLSConfig(ca_data=other.certificate), TLSConfig()]
    assert len({id(each) for each in [context, *[make_context(each) for each in others]]}) == 5
