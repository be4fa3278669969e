"""The plugin ResourceQuota (apiserver's pkg/admission/plugin/resourcequota): refuses what a namespace may not use any more.

It goes by the status of the quotas, and charges it in the step that stores the object: what is refused later costs nothing.
kube-apiserver charges that, too, and counts again minutes later.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ctrlruntime.apiserver.admission.following import Namespaced
from ctrlruntime.apiserver.admission.plugins.plugin import Plugin, forbidden
from ctrlruntime.apiserver.admission.plugins.quota_usage import (
    CLAIMS,
    IGNORED,
    Evaluator,
    Name,
    evaluator_of,
    is_in_scope,
    is_limited_in_time,
    sum_of,
    unspecified,
)
from ctrlruntime.apiserver.interfaces import PODS, AdmissionAttributes, Operation
from ctrlruntime.apiserver.registry.pod_amounts import Amounts
from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.services import SERVICES
from ctrlruntime.apiserver.registry.writes import WriteOptions
from ctrlruntime.quantities import canonical, parse, subtract
from ctrlruntime.schema.trees import Document

_UPDATES: Mapping[str, frozenset[Name]] = {
    "": frozenset({PODS, SERVICES, CLAIMS}),
    "resize": frozenset({PODS}),
    "status": frozenset({CLAIMS}),
}
"""By subresource: the kinds of which a change is counted. Of all others only a create is."""
_QUOTAS = ("", "resourcequotas")


@dataclass(frozen=True, slots=True)
class _Charge:
    quota: Document
    used: dict[str, str]
    """The whole `status.used` after it."""


class ResourceQuota(Plugin):
    """Refuses a write that exceeds a quota of its namespace, and charges the quotas."""

    writes = frozenset()  # any

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._quotas = Namespaced[Document](registry.store.table(*_QUOTAS), lambda quota: quota)

    def has_work(self) -> bool:
        return bool(self._quotas)

    def is_concerned(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        if (group, plural) in IGNORED:
            return False
        if operation == "CREATE":
            return not subresource
        return operation == "UPDATE" and (group, plural) in _UPDATES.get(subresource, ())

    def check(self, attributes: AdmissionAttributes) -> None:
        if not _is_counted(attributes):
            return
        for _ in self._charges(attributes):
            pass
        if not attributes.dry_run:
            attributes.last_steps.append(lambda: self._charge(attributes))

    def _charges(self, attributes: AdmissionAttributes) -> Iterator[_Charge]:
        """Raises: Forbidden."""
        quotas = self._quotas.of(attributes.namespace)
        return charges_of(quotas, attributes, time.time()) if quotas else iter(())

    def _charge(self, attributes: AdmissionAttributes) -> None:
        """Charge what is about to be stored, unless other writes have come between. Raises: Forbidden."""
        for charge in list(self._charges(attributes)):
            self._put(charge)

    def _put(self, charge: _Charge) -> None:
        metadata: Document = charge.quota["metadata"]

        def edit(old: Document | None) -> Document:
            document = old or charge.quota
            return {**document, "status": {**document["status"], "used": charge.used}}

        options = WriteOptions(is_stored=True)
        self._registry.writer.update_directly(
            self._registry.canonical(*_QUOTAS), metadata["namespace"], metadata["name"], edit, options, "status"
        )


def _is_counted(attributes: AdmissionAttributes) -> bool:
    """Of a Pod a change counts only where it moves between the scopes Terminating and NotTerminating."""
    resource: Resource = attributes.resource
    if attributes.operation == "CREATE" or resource.stored_as != PODS or attributes.subresource:
        return True
    return is_limited_in_time(attributes.object or {}) != is_limited_in_time(attributes.old or {})


def charges_of(quotas: list[Document], attributes: AdmissionAttributes, now: float) -> Iterator[_Charge]:
    """Yield what a request costs of each quota that counts it. Raises: Forbidden."""
    resource: Resource = attributes.resource
    evaluator, document = evaluator_of(resource.stored_as), attributes.object or {}
    counting = [quota for quota in quotas if _counts(evaluator, quota, document)]
    for quota in counting:
        _confirm(quota, [name for name in _status(quota, "hard") if evaluator.counts(name)], attributes)
    usage = evaluator.usage(document, now)
    negative = sorted(name for name, text in usage.items() if parse(text) < 0)
    if negative:
        raise forbidden(attributes, f"quota usage is negative for resource(s): {','.join(negative)}")
    old = attributes.old
    change = usage if old is None else _growth(usage, evaluator.usage(old, now))
    for quota in counting:
        was_counted = old is not None and is_in_scope(evaluator, quota, old)
        yield from _charge(quota, change if was_counted else usage, attributes)


def _counts(evaluator: Evaluator, quota: Document, document: Document) -> bool:
    return any(map(evaluator.counts, _status(quota, "hard"))) and is_in_scope(evaluator, quota, document)


def _confirm(quota: Document, names: list[str], attributes: AdmissionAttributes) -> None:
    resource: Resource = attributes.resource
    quota_name = quota["metadata"]["name"]
    if resource.stored_as == PODS and (problem := unspecified(names, attributes.object or {})):
        raise forbidden(attributes, f"failed quota: {quota_name}: {problem}")
    if not set(names) <= _status(quota, "used").keys():
        raise forbidden(attributes, f"status unknown for quota: {quota_name}, resources: {','.join(sorted(names))}")


def _charge(quota: Document, usage: Amounts, attributes: AdmissionAttributes) -> Iterator[_Charge]:
    hard, used = _status(quota, "hard"), _status(quota, "used")
    asked = {name: text for name, text in usage.items() if name in hard and parse(text)}
    if not asked:
        return
    total = sum_of(used, asked)
    exceeded = [name for name in sorted(asked) if parse(total[name]) > parse(hard[name])]
    if exceeded and attributes.subresource != "status":
        shown = (
            f"{what}: {','.join(f'{name}={canonical(amounts[name])}' for name in exceeded if name in amounts)}"
            for what, amounts in (("requested", asked), ("used", used), ("limited", hard))
        )
        raise forbidden(attributes, f"exceeded quota: {quota['metadata']['name']}, {', '.join(shown)}")
    yield _Charge(quota, total)


def _growth(usage: Amounts, before: Amounts) -> dict[str, str]:
    """Return how much more is used; what is used no more is given back when the quota is counted again."""
    grown = {name: subtract(text, before.get(name, "0")) for name, text in usage.items()}
    return {name: text if parse(text) > 0 else "0" for name, text in grown.items()}


def _status(quota: Document, side: str) -> Amounts:
    return (quota.get("status") or {}).get(side) or {}


__all__ = ["ResourceQuota", "charges_of"]
