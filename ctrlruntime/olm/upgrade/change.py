"""Changes between two bundles other than those of CRDs, by their codes.

Codes stay, and do not change their level. Those of definitions are in `ctrlruntime.project.compatibility`, and look the same.
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
    """What changed."""

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
    # Its definitions, beyond what compares two of them
    NOT_DEPRECATED = "version-not-deprecated"
    CONVERSION_MISSING = "conversion-missing"
    # Objects that exist
    OBJECT_REFUSED = "object-refused"
    OBJECT_PRUNED = "object-pruned"
    OBJECT_NOT_CHECKED = "object-not-checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Described):
    """A change from one bundle to the next, beyond those of a definition."""

    code: Code

    @property
    @override
    def rule(self) -> Rule:
        return RULES[self.code]


RULES: Final[Mapping[Code, Rule]] = {
    Code.PACKAGE_CHANGED: Rule(Level.BREAKING, "OLM never goes from one package to another"),
    Code.NAME_NOT_CHANGED: Rule(
        Level.BREAKING,
        "OLM knows releases by metadata.name: it takes this one for installed; name it after its version",
    ),
    Code.VERSION_NOT_HIGHER: Rule(
        Level.BREAKING,
        "a release has to have a higher version than the one before it, or the same and a higher spec.release",
    ),
    Code.NOT_REACHED: Rule(
        Level.RISKY,
        "the old release is not upgraded to this one, unless releases between them lead to it: name it in spec.replaces or "
        "spec.skips, or cover its version by the annotation olm.skipRange",
    ),
    Code.CHANNEL_LEFT: Rule(Level.RISKY, "who subscribed to the channel does not get this release"),
    Code.MODE_REMOVED: Rule(
        Level.BREAKING, "where the operator is installed so, OLM fails the new release: UnsupportedOperatorGroup"
    ),
    Code.MODE_ADDED: Rule(Level.HARMLESS, "the operator can be installed in one more way"),
    Code.KUBERNETES_RAISED: Rule(
        Level.RISKY,
        "on older clusters the new ClusterServiceVersion stays Pending, and the subscription is stuck until they are upgraded",
    ),
    Code.REQUIREMENT_ADDED: Rule(
        Level.RISKY, "the upgrade waits until something in the cluster's catalogs brings the kind"
    ),
    Code.PERMISSIONS_GROWN: Rule(
        Level.HARMLESS, "OLM grants it; where installations are approved by hand, tell the approver"
    ),
    Code.NOT_DEPRECATED: Rule(
        Level.RISKY, "who uses the version was never warned: release it with deprecated=True once before this"
    ),
    Code.CONVERSION_MISSING: Rule(
        Level.BREAKING,
        "the two versions differ and nothing converts them: what one does not know is dropped when an object is written through it",
    ),
    Code.OBJECT_REFUSED: Rule(
        Level.BREAKING, "an object that fits the old release does not fit this one, so OLM refuses the upgrade"
    ),
    Code.OBJECT_PRUNED: Rule(Level.RISKY, "the field is dropped from the object when it is read"),
    Code.OBJECT_NOT_CHECKED: Rule(Level.RISKY, "no definition of the new bundle has its kind in this version"),
}
