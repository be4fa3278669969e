"""Findings: the problems of a bundle, each with a stable code.

Each check has one code and one level. `type` is the name of the error group in operator-framework's own validator, so programs that
read its JSON can use it here, too. Codes are for scripts and do not change. Texts are for people and may change.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Check", "Finding", "Level"]


class Level(StrEnum):
    """How bad a finding is, worst first."""

    ERROR = "error"
    """OLM, a catalog or the API server refuses the bundle, or it does not work when it is installed."""

    WARNING = "warning"
    """It can be installed, but something recommended is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A rule for bundles. `summary` is the problem in one line."""

    code: str
    level: Level
    type: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A check that failed, and where."""

    check: Check
    text: str
    """What is wrong and what to do, in one line."""

    file: str = ""
    """The path below the bundle's folder; empty when it is about the bundle as a whole."""

    object: str = ""
    """Kind and name: `Deployment/shop-controller-manager`; empty if it is not about an object."""

    path: str = ""
    """The field; empty for the object as a whole."""

    @property
    def level(self) -> Level:
        return self.check.level

    @property
    def code(self) -> str:
        return self.check.code

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.object, self.path, self.text) if part)
