"""CertificateSigningRequests: who asked is written down by the server, the spec is fixed, and approval has a door of its own."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.authorization import user_info
from ctrlruntime.apiserver.interfaces import UserIdentity
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported
from ctrlruntime.schema.trees import Document

REQUESTS: Final = ("certificates.k8s.io", "certificatesigningrequests")
_DECISIONS: Final = ("Approved", "Denied")
_PATH: Final = "status.conditions"


def stamp(document: Document, user: UserIdentity) -> None:
    """Write down who asks, whatever the request says."""
    spec: Document = document.setdefault("spec", {})
    for name in ("username", "uid", "groups", "extra"):
        spec.pop(name, None)
    spec.update(user_info(user))


def prepare(document: Document, old: Document, subresource: str, moment: str) -> None:
    """Put the spec back, let an approval change conditions only, and date conditions that say no time."""
    document["spec"] = old["spec"]
    status: Document = document.get("status") or {}
    if subresource == "approval":
        kept = {name: value for name, value in (old.get("status") or {}).items() if name != "conditions"}
        status = {**({"conditions": status["conditions"]} if status.get("conditions") else {}), **kept}
        document["status"] = status
    for condition in status.get("conditions") or ():
        for name in ("lastUpdateTime", "lastTransitionTime"):
            if not condition.get(name):
                condition[name] = moment


def approval_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    yield from _condition_causes(document, old)


def status_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    yield from _condition_causes(document, old)
    present = _types(old)
    for kind in _DECISIONS:
        if kind in _types(document) and kind not in present:
            yield forbidden_field(_PATH, f'updates may not add a condition of type "{kind}"')
    certificate = (document.get("status") or {}).get("certificate")
    if certificate and b"-----BEGIN CERTIFICATE-----" not in _decoded(certificate):
        text = "must contain at least one CERTIFICATE PEM block"
        yield invalid_value("status.certificate", "<certificate data>", text)


def _condition_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    seen: set[str] = set()
    for index, condition in enumerate((document.get("status") or {}).get("conditions") or ()):
        where, kind = f"{_PATH}[{index}]", str(condition.get("type", ""))
        allowed = ("True",) if kind in {*_DECISIONS, "Failed"} else ("False", "True", "Unknown")
        if condition.get("status") not in allowed:
            yield not_supported(f"{where}.status", condition.get("status", ""), allowed)
        if kind in seen:
            yield StatusCause("FieldValueDuplicate", f'Duplicate value: "{kind}"', f"{where}.type")
        if kind in _DECISIONS and seen & set(_DECISIONS) - {kind}:
            yield invalid_value(_PATH, kind, "Approved and Denied conditions are mutually exclusive")
        seen.add(kind)
    for kind in (*_DECISIONS, "Failed"):
        if kind in _types(old) and kind not in seen:
            yield forbidden_field(_PATH, f'updates may not remove a condition of type "{kind}"')


def _types(document: Document | None) -> set[str]:
    return {str(c.get("type", "")) for c in ((document or {}).get("status") or {}).get("conditions") or ()}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""
