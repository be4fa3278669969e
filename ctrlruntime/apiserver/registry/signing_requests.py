"""CertificateSigningRequests: the server records who asks, the spec never changes, the rest is written through subresources.

As pkg/registry/certificates/certificates/strategy.go and pkg/apis/certificates/validation/validation.go have it. Those also tolerate what an
earlier version of Kubernetes has stored.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.authorization import user_info
from ctrlruntime.apiserver.interfaces import UserIdentity
from ctrlruntime.apiserver.registry.pem import certificates_problem, read_request
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, quoted, required, too_long
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import choice_causes, label_problems, spec_of, subdomain_problems

REQUESTS: Final = ("certificates.k8s.io", "certificatesigningrequests")
_DECISIONS: Final = ("Approved", "Denied")
_LASTING: Final = (*_DECISIONS, "Failed")
"""Types of conditions that are True and stay."""
_STATUSES: Final[Mapping[str, Sequence[str]]] = dict.fromkeys(_LASTING, ("True",))
_ANY_STATUS: Final = ("False", "True", "Unknown")
_PATH: Final = "status.conditions"
_SIGNER: Final = "spec.signerName"
_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip


def stamp(document: Document, user: UserIdentity) -> None:
    """Write down who asks, whatever the request says."""
    spec: Document = document.setdefault("spec", {})
    for name in ("username", "uid", "groups", "extra"):
        spec.pop(name, None)
    spec.update(user_info(user))


def prepare(document: Document, old: Document, subresource: str, moment: str) -> None:
    """Put back what a write through this path cannot change, and date conditions that say no time."""
    document["spec"] = old["spec"]
    if not subresource:
        return
    status, before = document.get("status") or {}, old.get("status") or {}
    conditions: list[Document] = status.get("conditions") or []
    if subresource == "approval":
        kept = {name: value for name, value in before.items() if name != "conditions"}
        document["status"] = {**({"conditions": conditions} if conditions else {}), **kept}
    else:
        _keep_decisions(conditions, before.get("conditions") or ())
    for condition in conditions:
        alike = (
            c for c in before.get("conditions") or () if all(c.get(n) == condition.get(n) for n in ("type", "status"))
        )
        since = next((one["lastTransitionTime"] for one in alike if one.get("lastTransitionTime")), moment)
        for name, time in (("lastUpdateTime", moment), ("lastTransitionTime", since)):
            condition[name] = condition.get(name) or time


def _keep_decisions(conditions: list[Document], before: Sequence[Document]) -> None:
    """Take the old state of decisions, unless there are more or fewer of them: the validation refuses that."""
    for kind in _DECISIONS:
        places = [index for index, condition in enumerate(conditions) if condition.get("type") == kind]
        kept = [condition for condition in before if condition.get("type") == kind]
        if len(places) == len(kept):
            for index, condition in zip(places, kept, strict=True):
                conditions[index] = dict(condition)


# --- validation


def creation_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """The rules of the spec. An update through the object itself changes neither it nor the status."""
    if old is not None:
        return
    spec = spec_of(document)
    try:
        read_request(base64.b64decode(spec.get("request") or ""))
    except ValueError as error:
        yield invalid_value("spec.request", spec.get("request"), str(error))
    yield from _usage_causes(spec.get("usages") or [])
    yield from _signer_causes(spec.get("signerName") or "")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        yield invalid_value("spec.expirationSeconds", seconds, text)


def _usage_causes(usages: Sequence[Any]) -> Iterator[StatusCause]:
    if not usages:
        yield required("spec.usages")
    for index, usage in enumerate(usages):
        yield from choice_causes(usage, f"spec.usages[{index}]", _USAGES)
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            yield duplicate(f"spec.usages[{index}]", usage)


def _signer_causes(signer: str) -> Iterator[StatusCause]:
    """As ValidateSignerName in pkg/apis/core/validation/names.go."""
    domain, _, path = signer.partition("/")
    if not signer:
        yield required(_SIGNER)
    elif signer == "kubernetes.io/legacy-unknown":
        yield invalid_value(_SIGNER, signer, "the legacy signerName is not allowed via this API version")
    elif signer.count("/") != 1:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid_value(_SIGNER, signer, text)
    else:
        if len(domain) > 253:
            yield too_long(_SIGNER, 253)
        yield from _segment_causes(domain, label_problems)
        if "." not in domain:
            yield invalid_value(_SIGNER, domain, "should be a domain with at least two segments separated by dots")
        yield from _segment_causes(path, subdomain_problems)
        if len(signer) > 571:
            yield too_long(_SIGNER, 571)


def _segment_causes(segment: str, problems: Callable[[str], list[str]]) -> Iterator[StatusCause]:
    """What is wrong with the first bad label of a segment of a signer's name."""
    bad = next((label for label in segment.split(".") if problems(label)), None)
    if bad is not None:
        for problem in problems(bad):
            yield invalid_value(_SIGNER, segment, f"validating label {quoted(bad)}: {problem}")


def approval_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    conditions, before = _conditions(document), _conditions(old)
    yield from _condition_causes(conditions)
    yield from _change_causes(conditions, before, may_decide=True)


def status_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    conditions, before = _conditions(document), _conditions(old)
    certificate, present = (((each or {}).get("status") or {}).get("certificate") or "" for each in (document, old))
    yield from _condition_causes(conditions)
    if certificate and certificate != present and (problem := certificates_problem(base64.b64decode(certificate))):
        yield invalid_value("status.certificate", "<certificate data>", problem)
    yield from _change_causes(conditions, before, may_decide=False)
    if present and certificate != present:
        yield forbidden_field("status.certificate", "updates may not modify existing certificate content")


def _condition_causes(conditions: Sequence[Document]) -> Iterator[StatusCause]:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, kind, status = f"{_PATH}[{index}]", condition.get("type") or "", condition.get("status") or ""
        if not kind:
            yield required(f"{where}.type")
        if status:
            yield from choice_causes(status, f"{where}.status", _STATUSES.get(kind, _ANY_STATUS))
        else:
            yield required(f"{where}.status")
        if kind in _DECISIONS and seen & set(_DECISIONS) - {kind}:
            yield invalid_value(_PATH, kind, "Approved and Denied conditions are mutually exclusive")
        if kind in seen:
            yield duplicate(f"{where}.type", kind)
        seen.add(kind)


def _change_causes(
    conditions: Sequence[Document], before: Sequence[Document], *, may_decide: bool
) -> Iterator[StatusCause]:
    """What lasts is never removed, and a decision is only added through the approval."""
    now, then = (Counter(condition.get("type") for condition in each) for each in (conditions, before))
    for kind in _LASTING:
        if now[kind] < then[kind]:
            yield forbidden_field(_PATH, f'updates may not remove a condition of type "{kind}"')
    for kind in () if may_decide else _DECISIONS:
        if now[kind] > then[kind]:
            yield forbidden_field(_PATH, f'updates may not add a condition of type "{kind}"')


def _conditions(document: Document | None) -> Sequence[Document]:
    return ((document or {}).get("status") or {}).get("conditions") or ()
