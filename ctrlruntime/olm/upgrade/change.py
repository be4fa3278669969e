"""Changes between two bundles other than those of CRDs, by their codes.

Codes and their levels do not change. The codes of CRDs are in `ctrlruntime.project.compatibility`, and have the same form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from typing_extensions import override

from ctrlruntime.project.compatibility import Described, Level, Rule

__all__ = ["RULES", "Change", "Code"]


class Code(StrEnum):
    """The kind of a change."""

    # The release
    PACKAGE_CHANGED = "package-changed"
    NAME_NOT_CHANGED = "name-not-changed"
    VERSION_NOT_HIGHER = "version-not-higher"
    NOT_REACHED = "release-not-reached"
    CHANNEL_LEFT = "channel-left"
    MODE_REMOVED = "install-mode-removed"
    MODE_ADDED = "install-mode-added"
    KUBERNETES_RAISED = "min-kube-version-raised"
    REQUIREMENT_ADDED = "requirement-added"
    PERMISSIONS_GROWN = "permissions-grown"
    # Its CRDs, in addition to the comparison of two of them
    NOT_DEPRECATED = "version-not-deprecated"
    CONVERSION_MISSING = "conversion-missing"
    # Objects that exist
    OBJECT_REFUSED = "object-refused"
    OBJECT_PRUNED = "object-pruned"
    OBJECT_NOT_CHECKED = "object-not-checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Described):
    """A change from one bundle to the next that is not in a CRD."""

    code: Code

    @property
    @override
    def rule(self) -> Rule:
        return RULES[self.code]


RULES: Final[Mapping[Code, Rule]] = {
    Code.PACKAGE_CHANGED: Rule(Level.BREAKING, "OLM does not upgrade from one package to another"),
    Code.NAME_NOT_CHANGED: Rule(
        Level.BREAKING,
        "OLM identifies releases by metadata.name, so it treats this one as installed. Name it after its version",
    ),
    Code.VERSION_NOT_HIGHER: Rule(
        Level.BREAKING,
        "a release requires a higher version than the previous one, or the same version and a higher spec.release",
    ),
    Code.NOT_REACHED: Rule(
        Level.RISKY,
        "OLM does not upgrade the old release to this one, unless releases between them lead to it. Add the old release to "
        "spec.replaces or spec.skips, or its version to the annotation olm.skipRange",
    ),
    Code.CHANNEL_LEFT: Rule(Level.RISKY, "subscribers of the channel do not get this release"),
    Code.MODE_REMOVED: Rule(
        Level.BREAKING,
        "if the operator is installed in this mode, OLM fails the new release with UnsupportedOperatorGroup",
    ),
    Code.MODE_ADDED: Rule(Level.HARMLESS, "the operator can be installed in one more way"),
    Code.KUBERNETES_RAISED: Rule(
        Level.RISKY,
        "on older clusters the new ClusterServiceVersion stays Pending, and the subscription is stuck until they are upgraded",
    ),
    Code.REQUIREMENT_ADDED: Rule(
        Level.RISKY, "the upgrade waits until an operator in the cluster's catalogs provides the kind"
    ),
    Code.PERMISSIONS_GROWN: Rule(
        Level.HARMLESS, "OLM grants it. If installations are approved by hand, inform the approver"
    ),
    Code.NOT_DEPRECATED: Rule(
        Level.RISKY, "users of the version got no warning. Release it with deprecated=True once before this"
    ),
    Code.CONVERSION_MISSING: Rule(
        Level.BREAKING,
        "the two versions differ, and no webhook converts them. A write through one version drops fields that only the other one has",
    ),
    Code.OBJECT_REFUSED: Rule(
        Level.BREAKING, "an object is valid in the old release, but not in this one, so OLM rejects the upgrade"
    ),
    Code.OBJECT_PRUNED: Rule(Level.RISKY, "the field is dropped from the object when it is read"),
    Code.OBJECT_NOT_CHECKED: Rule(Level.RISKY, "no CRD of the new bundle has its kind in this version"),
}
