"""Signs approved CertificateSigningRequests of Kubernetes' own signers (kube-controller-manager's pkg/controller/certificates/signer)."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime
from typing import Final, Protocol

from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import Now, condition, is_true, own_key, timestamp, write_status
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.apiserver.registry.pem import read_request
from ctrlruntime.certificates import SigningRequest
from ctrlruntime.schema.trees import Document

_GROUP, _PLURAL = "certificates.k8s.io", "certificatesigningrequests"
_YEAR: Final = 365 * 86400
_OPTIONAL: Final = frozenset({"digital signature", "key encipherment"})
_SIGNERS: Final = frozenset(
    f"kubernetes.io/{name}" for name in ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving")
)
_ALTERNATIVES: Final = {"DNSName": "DNS", "RFC822Name": "Email", "IPAddress": "IP", "UniformResourceIdentifier": "URI"}
_ORDER: Final = ("DNS", "Email", "IP", "URI")


class Sign(Protocol):
    def __call__(self, asked: SigningRequest, usages: Collection[str], *, lifetime: float, now: datetime) -> bytes:
        """Return the certificate for a request, in PEM."""
        ...


class RequestSigning:
    name = "csrsigning"

    def __init__(self, sign: Sign, now: Now) -> None:
        self._sign = sign
        self._now = now

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [keys_of(api.watch(_GROUP, _PLURAL), own_key)]

    async def reconcile(self, api: API, key: Key) -> float | None:
        found = api.get(_GROUP, _PLURAL, *key)
        if found is None or found["spec"].get("signerName") not in _SIGNERS:
            return None
        status: Document = found.get("status") or {}
        if status.get("certificate") or not is_true(found, "Approved") or condition(found, "Failed") is not None:
            return None
        spec: Document = found["spec"]
        now, usages = self._now(), spec.get("usages") or []
        asked = read_request(base64.b64decode(spec["request"]))  # the validation has refused what cannot be read
        problem = _problem(spec["signerName"], asked, usages)
        if problem:
            failed = {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": problem}
            failed["lastUpdateTime"] = timestamp(now)
            status = {**status, "conditions": [*(status.get("conditions") or ()), failed]}
        else:
            lifetime = min(float(spec.get("expirationSeconds") or _YEAR), _YEAR)
            certificate = self._sign(asked, usages, lifetime=lifetime, now=now)
            status = {**status, "certificate": base64.b64encode(certificate).decode()}
        await write_status(api, _GROUP, _PLURAL, found, status)
        return None


def _problem(signer: str, asked: SigningRequest, usages: Sequence[str]) -> str:
    """Return why a signer refuses a request, as kube-controller-manager says it; empty when it signs."""
    if signer == "kubernetes.io/kube-apiserver-client":
        other = next((usage for usage in usages if usage not in {*_OPTIONAL, "client auth"}), None)
        if other is not None:
            return f"invalid usage for client certificate: {other}"
        return "" if "client auth" in usages else "missing required usage for client certificate: client auth"
    return _kubelet_problem(asked, usages, is_client=signer == "kubernetes.io/kube-apiserver-client-kubelet")


def _kubelet_problem(asked: SigningRequest, usages: Sequence[str], *, is_client: bool) -> str:
    """As ValidateKubeletServingCSR and ValidateKubeletClientCSR in pkg/apis/certificates/helpers.go, in their order."""
    from cryptography.x509.oid import NameOID

    given = {text for kind, text in _ALTERNATIVES.items() if any(type(name).__name__ == kind for name in asked.names)}
    purpose = "client auth" if is_client else "server auth"
    groups, users = (asked.subject.get_attributes_for_oid(o) for o in (NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME))
    allowed = set[str]() if is_client else {"DNS", "IP"}
    of_usages = (
        set(usages) in ({*_OPTIONAL, purpose}, {"digital signature", purpose}),
        f"usages did not match [{' '.join(sorted({*_OPTIONAL, purpose}))}]",
    )
    of_user = (
        bool(users) and str(users[-1].value).startswith("system:node:"),
        "subject common name does not begin with system:node:",
    )
    checks = (
        ([name.value for name in groups] == ["system:nodes"], "subject organization is not system:nodes"),
        (is_client or bool(given & allowed), "DNS or IP subjectAltName is required"),
        *((kind in allowed or kind not in given, f"{kind} subjectAltNames are not allowed") for kind in _ORDER),
        *((of_user, of_usages) if is_client else (of_usages, of_user)),
    )
    return next((text for is_met, text in checks if not is_met), "")


__all__ = ["RequestSigning", "Sign"]
