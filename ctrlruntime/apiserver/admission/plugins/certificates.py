"""The plugins for CertificateSigningRequests (plugin/pkg/admission/certificates): who may approve and sign, and for which subject."""

from __future__ import annotations

import base64
from typing import ClassVar

from ctrlruntime.apiserver.admission.plugins.plugin import Plugin, forbidden
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.apiserver.registry.pem import read_request
from ctrlruntime.apiserver.registry.signing_requests import REQUESTS
from ctrlruntime.field_errors import quoted
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import spec_of

_CLIENT = "kubernetes.io/kube-apiserver-client"
_MASTERS = "system:masters"
_ORGANIZATION = "2.5.4.10"


class _SignerPermission(Plugin):
    """Asks whether the user has the permission for the signer, or for `DOMAIN/*` (pkg/certauthorization/certauthorization.go)."""

    verb: ClassVar[str]

    def check(self, attributes: AdmissionAttributes) -> None:
        if attributes.is_inside or not self.is_checked(attributes):
            return
        signer = str(spec_of(attributes.old).get("signerName", ""))
        question = {"verb": self.verb, "group": REQUESTS[0], "resource": "signers"}
        decide = self._registry.extensions.decide
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            if decide(attributes.user, {**question, "name": name})[0]:
                return
        raise forbidden(attributes, f"user not permitted to {self.verb} requests with signerName {quoted(signer)}")

    def is_checked(self, attributes: AdmissionAttributes) -> bool:
        """Tell whether the write needs the permission."""
        del attributes
        return True


class CertificateApproval(_SignerPermission):
    verb = "approve"
    writes = frozenset({(*REQUESTS, "approval", "UPDATE")})


class CertificateSigning(_SignerPermission):
    verb = "sign"
    writes = frozenset({(*REQUESTS, "status", "UPDATE")})

    def is_checked(self, attributes: AdmissionAttributes) -> bool:
        now, before = _status(attributes.object), _status(attributes.old)
        return any((now.get(name) or None) != (before.get(name) or None) for name in ("certificate", "conditions"))


class CertificateSubjectRestriction(Plugin):
    """Refuses client certificates for members of system:masters."""

    writes = frozenset({(*REQUESTS, "", "CREATE")})

    def check(self, attributes: AdmissionAttributes) -> None:
        from cryptography import x509

        spec = spec_of(attributes.object)
        if spec.get("signerName") != _CLIENT:
            return
        subject = read_request(base64.b64decode(spec["request"])).subject
        groups = subject.get_attributes_for_oid(x509.ObjectIdentifier(_ORGANIZATION))
        if any(group.value == _MASTERS for group in groups):
            raise forbidden(attributes, f"use of {_CLIENT} signer with {_MASTERS} group is not allowed")


def _status(document: Document | None) -> Document:
    return (document or {}).get("status") or {}


__all__ = ["CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction"]
