"""Where a bundle uses an API that Kubernetes no longer serves.

A use is an error if the bundle must run on a version without the API. The versions are the value `k8s-version`, the newest Kubernetes it must
run on, and `spec.minKubeVersion`. Otherwise it is a warning: the bundle does not work from that version on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final, TypeAlias

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.errors import ConfigError
from ctrlruntime.olm import semver
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.optional.removals import REMOVED, Removal
from ctrlruntime.olm.validation.optional.rules import csv_rules, role_rules
from ctrlruntime.olm.validation.optional.suite import FAILED, OPERATOR_FRAMEWORK
from ctrlruntime.olm.validation.validator import Subject, Validator, about

__all__ = ["CHECKS", "VALIDATOR", "run"]

_NAME: Final = "alpha-deprecated-apis"
_VALUE: Final = "k8s-version"

_GONE: Final = Check(
    code="api-removed",
    level=Level.ERROR,
    type=FAILED,
    suite=_NAME,
    summary=f"the bundle uses an API that Kubernetes no longer serves in the version of {_VALUE} or minKubeVersion",
)
_ENDS: Final = Check(
    code="api-removed-later",
    level=Level.WARNING,
    type=FAILED,
    suite=_NAME,
    summary="the bundle uses an API that newer Kubernetes versions no longer serve",
)
_PERMISSION: Final = Check(
    code="api-removed-permission",
    level=Level.WARNING,
    type=FAILED,
    suite=_NAME,
    summary="a permission is for PodSecurityPolicies, which Kubernetes 1.25 removed",
)
CHECKS: Final = (_GONE, _ENDS, _PERMISSION)

_NONE: Final = -1


def run(subject: Subject) -> Iterator[Finding]:
    """Yield each use of such an API. Raises: ConfigError if `k8s-version` is not a version."""
    newest = _newest(subject)
    for use, removal in chain(_objects(subject), _fields(subject)):
        yield replace(use, check=_GONE) if newest >= removal.since else use
    yield from _permissions(subject)


_Use: TypeAlias = tuple[Finding, Removal]


def _objects(subject: Subject) -> Iterator[_Use]:
    for each in subject.bundle.objects:
        removal = REMOVED.get(each.gvk)
        if removal is not None:
            yield about(_ENDS, each, f"{each.gvk.api_version} {removal}", "apiVersion"), removal


def _fields(subject: Subject) -> Iterator[_Use]:
    """Yield the uses in the ClusterServiceVersion: resources that it lists, and native APIs that it requires."""
    if subject.csv is None:
        return
    definitions = subject.csv.spec.customresourcedefinitions
    for name, descriptions in (("owned", definitions.owned), ("required", definitions.required)):
        for index, description in enumerate(descriptions):
            for number, resource in enumerate(description.resources):
                path = f"spec.customresourcedefinitions.{name}[{index}].resources[{number}]"
                yield from _field(subject, path, GroupVersionKind.parse(resource.version, resource.kind))
    for index, api in enumerate(subject.csv.spec.native_apis):
        yield from _field(subject, f"spec.nativeAPIs[{index}]", GroupVersionKind(api.group, api.version, api.kind))


def _field(subject: Subject, path: str, gvk: GroupVersionKind) -> Iterator[_Use]:
    removal = REMOVED.get(gvk)
    if removal is not None:
        yield about(_ENDS, subject.csv_object, f"{gvk.kind} of {gvk.api_version} {removal}", path), removal


def _permissions(subject: Subject) -> Iterator[Finding]:
    # Only a rule that names the resource counts; one with * does not.
    for each in chain(csv_rules(subject), role_rules(subject)):
        groups, resources = each.rule.api_groups, each.rule.resources
        if "podsecuritypolicies" in resources and not {"policy", "extensions"}.isdisjoint(groups):
            text = "Kubernetes 1.25 removed PodSecurityPolicies. Remove podsecuritypolicies"
            yield about(_PERMISSION, each.found, text, each.path)


def _newest(subject: Subject) -> int:
    """Return the newest minor version of Kubernetes that the bundle is known to be for."""
    value = subject.values.get(_VALUE, "")
    asked = _minor(value)
    if value and asked is None:
        raise ConfigError(f"invalid {_VALUE} {value!r}. Write a Kubernetes version such as 1.32 or 1.32.0")
    least = _minor(subject.csv.spec.min_kube_version if subject.csv else "")
    return max(_NONE if each is None else each for each in (asked, least))


def _minor(text: str) -> int | None:
    """Return the minor version of `1.32`, `v1.32` or `1.32.0`; None for what is not a version of Kubernetes 1."""
    numbers = text.strip().removeprefix("v")
    found = semver.parse(f"{numbers}.0" if numbers.count(".") == 1 else numbers)
    return found.numbers[1] if found is not None and found.numbers[0] == 1 else None


VALIDATOR: Final = Validator(
    name=_NAME,
    suite=OPERATOR_FRAMEWORK,
    summary="no API is used that Kubernetes has removed; --optional-values k8s-version=1.32 selects the Kubernetes version to check",
    checks=CHECKS,
    run=run,
)
