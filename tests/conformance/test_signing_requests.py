"""CertificateSigningRequests of Kubernetes' own signers: signed when they are approved, or failed, on both servers alike."""

from __future__ import annotations

import base64
import ipaddress
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ctrlruntime.errors import Invalid
from ctrlruntime.testing import Environment, eventually
from ctrlruntime.testing.connection import Connection

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT, KUBELET, SERVING = (
    f"kubernetes.io/{name}" for name in ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving")
)
DNS, IP = x509.DNSName("a"), x509.IPAddress(ipaddress.ip_address("192.0.2.1"))
EMAIL, URI = x509.RFC822Name("a@example.com"), x509.UniformResourceIdentifier("https://example.com")
USAGES = "usages did not match [digital signature key encipherment server auth]"
REFUSED = {
    "another usage": (CLIENT, "u", [], "server auth", "invalid usage for client certificate: server auth"),
    "no usage": (CLIENT, "u", [], "digital signature", "missing required usage for client certificate: client auth"),
    "no node": (KUBELET, "u", [], "client auth", "subject organization is not system:nodes"),
    "no node's name": (KUBELET, "system:nodes/u", [], "client auth", "subject common name does not begin with system:node:"),
    "no node's name and too few usages": (
        KUBELET, "system:nodes/u", [], "client auth only", "subject common name does not begin with system:node:",
    ),
    "a name": (KUBELET, "system:nodes/system:node:a", [DNS], "client auth", "DNS subjectAltNames are not allowed"),
    "no name": (SERVING, "system:nodes/system:node:a", [], "server auth", "DNS or IP subjectAltName is required"),
    "an address of mail": (SERVING, "system:nodes/system:node:a", [IP, EMAIL], "server auth", "Email subjectAltNames are not allowed"),
    "a URI": (SERVING, "system:nodes/system:node:a", [DNS, URI], "server auth", "URI subjectAltNames are not allowed"),
    "too few usages": (SERVING, "system:nodes/system:node:a", [DNS], "server auth only", USAGES),
}  # fmt: skip


class Requests:
    """Requests on one server, deleted at the end."""

    def __init__(self, server: Environment) -> None:
        self._server, self._names = server, list[str]()

    async def create(
        self, signer: str, subject: str, names: list[Any], usages: list[str], **spec: Any
    ) -> ec.EllipticCurvePrivateKey:
        """Create a request for `group,group/user` and approve it; return its key."""
        groups, _, user = subject.rpartition("/")
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups.split(",") if group]
        attributes.insert(0, x509.NameAttribute(NameOID.COMMON_NAME, user))
        builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        request = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        spec |= {"signerName": signer, "usages": usages, "request": base64.b64encode(request).decode()}
        made = self._server.connection.request("POST", REQUESTS, {"metadata": {"generateName": "test-"}, "spec": spec})
        self._names.append(made["metadata"]["name"])
        made["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}
        self._server.connection.request("PUT", f"{REQUESTS}/{self._names[-1]}/approval", made)
        return key

    async def status(self) -> dict[str, Any]:
        """Return the status of the last one, when the signer has decided."""

        async def look() -> dict[str, Any] | None:
            found = self._server.connection.request("GET", f"{REQUESTS}/{self._names[-1]}")["status"]
            return found if found.get("certificate") or len(found["conditions"]) > 1 else None

        return await eventually(look)

    def close(self) -> None:
        for name in self._names:
            self._server.connection.request("DELETE", f"{REQUESTS}/{name}")


@pytest.fixture
def requests(server: Environment):
    made = Requests(server)
    yield made
    made.close()


async def test_signed_certificate_authenticates_its_user(server, requests):
    key = await requests.create(CLIENT, "team/jo", [], ["client auth"], expirationSeconds=600)
    pem = base64.b64decode((await requests.status())["certificate"])

    certificate = x509.load_pem_x509_certificate(pem)
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lifetime.total_seconds() == 900  # five minutes for clocks that are behind
    assert [type(extension.value).__name__ for extension in certificate.extensions] == [
        "ExtendedKeyUsage",
        "BasicConstraints",
        "AuthorityKeyIdentifier",
    ]
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    config = yaml.safe_load(server.kubeconfig)
    pair = {"client-certificate-data": pem, "client-key-data": private}
    config["users"][0]["user"] = {name: base64.b64encode(data).decode() for name, data in pair.items()}
    review = Connection(config).request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert review["status"]["userInfo"]["username"] == "jo"
    assert review["status"]["userInfo"]["groups"] == ["team", "system:authenticated"]


async def test_certificate_of_a_kubelet_has_its_names_and_usages(requests):
    usages = ["server auth", "digital signature", "key encipherment"]
    await requests.create(SERVING, "system:nodes/system:node:a", [DNS, IP], usages)

    certificate = x509.load_pem_x509_certificate(base64.b64decode((await requests.status())["certificate"]))

    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [DNS, IP]
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (True, True, False)
    assert (
        certificate.not_valid_after_utc - certificate.not_valid_before_utc
    ).days >= 364  # not longer than the authority


async def test_subject_names_and_purposes_of_a_certificate_have_the_order_of_go(requests):
    await requests.create(CLIENT, "ops,dev/jo", [URI, IP, EMAIL, DNS], ["client auth"])

    certificate = x509.load_pem_x509_certificate(base64.b64decode((await requests.status())["certificate"]))

    assert [[part.value for part in parts] for parts in certificate.subject.rdns] == [["dev", "ops"], ["jo"]]
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert (list(names.value), names.critical) == ([DNS, EMAIL, IP, URI], False)


@pytest.mark.parametrize("case", REFUSED)
async def test_request_that_its_signer_refuses_has_failed(requests, case):
    signer, subject, names, usage, text = REFUSED[case]
    usages = (
        [usage.removesuffix(" only")] if usage.endswith(" only") else list(dict.fromkeys([usage, "digital signature"]))
    )
    await requests.create(signer, subject, names, usages)

    failed = (await requests.status())["conditions"][-1]

    assert (failed["type"], failed["reason"], failed["message"]) == ("Failed", "SignerValidationFailure", text)


async def test_legacy_signer_is_refused(requests):
    with pytest.raises(Invalid, match="the legacy signerName is not allowed via this API version"):
        await requests.create("kubernetes.io/legacy-unknown", "u", [], ["client auth"])
