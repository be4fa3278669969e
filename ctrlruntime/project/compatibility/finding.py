"""Findings: the changes of a CRD by their codes, and what each code means.

A code never changes its level: a change with several levels has several codes. Scripts use codes, which do not change. Texts are for
people.

Since 1.30, an update may keep a value that a tightened schema rejects, if it does not change that value ("ratcheting").
The object around a newly required field is such a value, too: it is rejected when any field in it changes. An embedded resource
without apiVersion and kind is always rejected. `Rule.refuses` has the case; before 1.30 all are rejected.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

from typing_extensions import override

__all__ = ["RULES", "Code", "Described", "Finding", "Level", "Refuses", "Rule"]


class Level(StrEnum):
    """How bad a change is, worst first."""

    BREAKING = "breaking"
    """Existing objects, data or requests stop working."""

    RISKY = "risky"
    """It works, but not as before: look at it."""

    HARMLESS = "harmless"
    """No action needed."""


class Code(StrEnum):
    """What changed."""

    # The CRD
    DEFINITION_REMOVED = "definition-removed"
    DEFINITION_ADDED = "definition-added"
    GROUP_CHANGED = "group-changed"
    KIND_CHANGED = "kind-changed"
    PLURAL_CHANGED = "plural-changed"
    SCOPE_CHANGED = "scope-changed"
    NAMES_CHANGED = "names-changed"
    NAMES_ADDED = "names-added"
    CONVERSION_REMOVED = "conversion-removed"
    CONVERSION_ADDED = "conversion-added"
    CONVERSION_CHANGED = "conversion-changed"
    CONVERSION_NOT_NEEDED = "conversion-not-needed"
    # Its versions
    STORED_VERSION_REMOVED = "stored-version-removed"
    SERVED_VERSION_REMOVED = "served-version-removed"
    UNSERVED_VERSION_REMOVED = "unserved-version-removed"
    MIGRATED_VERSION_REMOVED = "migrated-version-removed"
    VERSION_NOT_SERVED = "version-not-served"
    VERSION_SERVED = "version-served"
    VERSION_ADDED = "version-added"
    VERSION_DEPRECATED = "version-deprecated"
    DEPRECATION_CHANGED = "deprecation-changed"
    STORAGE_VERSION_CHANGED = "storage-version-changed"
    STATUS_REMOVED = "status-subresource-removed"
    STATUS_ADDED = "status-subresource-added"
    SCALE_REMOVED = "scale-subresource-removed"
    SCALE_CHANGED = "scale-subresource-changed"
    SCALE_ADDED = "scale-subresource-added"
    SELECTABLE_REMOVED = "selectable-field-removed"
    SELECTABLE_ADDED = "selectable-field-added"
    COLUMNS_CHANGED = "columns-changed"
    # Fields
    FIELD_REMOVED = "field-removed"
    FIELD_UNCHECKED = "field-unchecked"
    FIELD_ADDED = "field-added"
    FIELD_CHECKED = "field-checked"
    REQUIRED_ADDED = "required-added"
    REQUIRED_WITH_DEFAULT = "required-with-default"
    REQUIRED_REMOVED = "required-removed"
    TYPE_CHANGED = "type-changed"
    TYPE_NARROWED = "type-narrowed"
    TYPE_WIDENED = "type-widened"
    INT_OR_STRING_NARROWED = "int-or-string-narrowed"
    NULLABLE_REMOVED = "nullable-removed"
    NULLABLE_ADDED = "nullable-added"
    DEFAULT_ADDED = "default-added"
    DEFAULT_CHANGED = "default-changed"
    DEFAULT_REMOVED = "default-removed"
    UNKNOWN_FIELDS_PRUNED = "unknown-fields-pruned"
    UNKNOWN_FIELDS_KEPT = "unknown-fields-kept"
    VALUES_PRUNED = "additional-properties-removed"
    VALUES_KEPT = "additional-properties-added"
    LIST_TYPE_CHANGED = "list-type-changed"
    MAP_KEYS_CHANGED = "map-keys-changed"
    MAP_TYPE_CHANGED = "map-type-changed"
    EMBEDDED_ADDED = "embedded-resource-added"
    EMBEDDED_REMOVED = "embedded-resource-removed"
    # Values
    ENUM_ADDED = "enum-added"
    ENUM_VALUE_REMOVED = "enum-value-removed"
    ENUM_VALUE_ADDED = "enum-value-added"
    ENUM_REMOVED = "enum-removed"
    BOUND_TIGHTENED = "bound-tightened"
    BOUND_LOOSENED = "bound-loosened"
    PATTERN_CHANGED = "pattern-changed"
    PATTERN_REMOVED = "pattern-removed"
    FORMAT_TIGHTENED = "format-tightened"
    FORMAT_LOOSENED = "format-loosened"
    RULE_ADDED = "rule-added"
    RULE_REMOVED = "rule-removed"
    RULE_TEXT_CHANGED = "rule-text-changed"
    BRANCH_ADDED = "branch-added"
    BRANCH_REMOVED = "branch-removed"
    DOCUMENTATION_CHANGED = "documentation-changed"
    OTHER_CHANGED = "other-changed"


Refuses: TypeAlias = Literal["", "new values", "updates"]
"""Which writes the API server rejects: none, those that change the value, or also updates of existing objects that change another field."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a code means."""

    level: Level
    effect: str
    """What happens."""

    refuses: Refuses = ""
    fix: str = ""
    """What to do about it, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described(ABC):
    """What changed, by a rule. `version` and `path` are empty if the change is about the whole CRD or version.

    `path` is like `spec.containers[].name`; `[]` means the items of a list, `{}` the values of a map. `was` and `now` are the old and
    the new JSON value there, or None.
    """

    version: str = ""
    path: str = ""
    was: Any = None
    now: Any = None

    @property
    @abstractmethod
    def rule(self) -> Rule:
        """What its code means."""

    @property
    def level(self) -> Level:
        return self.rule.level

    @property
    def text(self) -> str:
        """The effect and the fix."""
        return ". ".join(part for part in (self.rule.effect, self.rule.fix) if part)

    @property
    def refuses(self) -> Refuses:
        return self.rule.refuses


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Described):
    """A change of a CRD."""

    code: Code

    @property
    @override
    def rule(self) -> Rule:
        return RULES[self.code]


_OTHER_NAME: Final = Rule(
    Level.BREAKING,
    "it becomes another resource, and objects of the old one remain",
    fix="Create a second CRD instead",
)

RULES: Final[Mapping[Code, Rule]] = {
    Code.DEFINITION_REMOVED: Rule(Level.BREAKING, "every object of the kind is deleted with it"),
    Code.DEFINITION_ADDED: Rule(Level.HARMLESS, "it is not in use yet"),
    Code.GROUP_CHANGED: _OTHER_NAME,
    Code.KIND_CHANGED: Rule(Level.BREAKING, "existing objects have the old kind", fix="Create a second CRD instead"),
    Code.PLURAL_CHANGED: _OTHER_NAME,
    Code.SCOPE_CHANGED: Rule(Level.BREAKING, "the API server rejects it", fix="Create a CRD with another name instead"),
    Code.NAMES_CHANGED: Rule(Level.RISKY, "commands and clients that use the old names fail"),
    Code.NAMES_ADDED: Rule(Level.HARMLESS, "it has additional names"),
    Code.CONVERSION_REMOVED: Rule(
        Level.BREAKING,
        "versions are no longer converted, so fields that only one of them has are pruned",
        fix="Keep the webhook",
    ),
    Code.CONVERSION_ADDED: Rule(Level.RISKY, "reads and writes need the webhook from now on", fix="Deploy it first"),
    Code.CONVERSION_CHANGED: Rule(Level.RISKY, "the webhook must respond at its new address before you apply this"),
    Code.CONVERSION_NOT_NEEDED: Rule(Level.HARMLESS, "only one version remains, so no conversion is needed"),
    Code.STORED_VERSION_REMOVED: Rule(
        Level.BREAKING,
        "objects may be stored in it, and the API server rejects the removal while status.storedVersions lists it",
        fix="Store another version, run `ctrl storage migrate`, then remove it",
    ),
    Code.SERVED_VERSION_REMOVED: Rule(
        Level.BREAKING, "clients that use it get 404", fix="Deprecate it and stop serving it first"
    ),
    Code.UNSERVED_VERSION_REMOVED: Rule(
        Level.RISKY,
        "objects may be stored in it",
        fix="Check status.storedVersions in the cluster, and run `ctrl storage migrate` if it is listed",
    ),
    Code.MIGRATED_VERSION_REMOVED: Rule(Level.HARMLESS, "it is not served, and no objects are stored in it"),
    Code.VERSION_NOT_SERVED: Rule(Level.BREAKING, "clients that use it get 404", fix="Deprecate it first"),
    Code.VERSION_SERVED: Rule(Level.HARMLESS, "clients can use it"),
    Code.VERSION_ADDED: Rule(Level.HARMLESS, "it is not in use yet"),
    Code.VERSION_DEPRECATED: Rule(Level.HARMLESS, "clients that use it get a warning"),
    Code.DEPRECATION_CHANGED: Rule(Level.HARMLESS, "clients get another warning, or none"),
    Code.STORAGE_VERSION_CHANGED: Rule(
        Level.RISKY,
        "objects stay stored in the old version until they are written",
        fix="Run `ctrl storage migrate` afterwards",
    ),
    Code.STATUS_REMOVED: Rule(
        Level.BREAKING,
        "clients that write the status subresource get 404, and every write of the object can change its status",
    ),
    Code.STATUS_ADDED: Rule(
        Level.RISKY, "writes of the object no longer write its status", fix="Use the status client"
    ),
    Code.SCALE_REMOVED: Rule(Level.BREAKING, "kubectl scale and autoscalers get 404"),
    Code.SCALE_CHANGED: Rule(Level.RISKY, "kubectl scale and autoscalers read and write other fields"),
    Code.SCALE_ADDED: Rule(Level.HARMLESS, "kubectl scale works"),
    Code.SELECTABLE_REMOVED: Rule(Level.BREAKING, "lists and watches that select by it are rejected"),
    Code.SELECTABLE_ADDED: Rule(Level.HARMLESS, "lists and watches can select by it"),
    Code.COLUMNS_CHANGED: Rule(Level.HARMLESS, "kubectl get prints other columns"),
    Code.FIELD_REMOVED: Rule(
        Level.BREAKING, "its data is pruned when an object is read", fix="Mark it as deprecated and keep it"
    ),
    Code.FIELD_UNCHECKED: Rule(Level.HARMLESS, "its data is kept, and no longer checked"),
    Code.FIELD_ADDED: Rule(Level.HARMLESS, "objects without it do not change"),
    Code.FIELD_CHECKED: Rule(
        Level.RISKY, "unknown fields were kept here, so objects may have any value under this name", "new values"
    ),
    Code.REQUIRED_ADDED: Rule(
        Level.BREAKING,
        "objects without it are rejected when another field changes",
        "updates",
        fix="Give it a default, or leave it optional",
    ),
    Code.REQUIRED_WITH_DEFAULT: Rule(Level.HARMLESS, "objects without it get its default"),
    Code.REQUIRED_REMOVED: Rule(Level.HARMLESS, "objects may leave it out"),
    Code.TYPE_CHANGED: Rule(
        Level.BREAKING, "values of the old type are invalid", "new values", fix="Add a field, or a version"
    ),
    Code.TYPE_NARROWED: Rule(
        Level.BREAKING, "some values of the old type are invalid", "new values", fix="Add a field, or a version"
    ),
    Code.TYPE_WIDENED: Rule(Level.RISKY, "clients that read it may get a type that they do not support"),
    Code.INT_OR_STRING_NARROWED: Rule(
        Level.BREAKING, "objects may have a value of the other type", "new values", fix="Add a field, or a version"
    ),
    Code.NULLABLE_REMOVED: Rule(
        Level.BREAKING, "null is dropped when an object is read, and rejected if the field is required"
    ),
    Code.NULLABLE_ADDED: Rule(Level.HARMLESS, "null is allowed"),
    Code.DEFAULT_ADDED: Rule(Level.RISKY, "existing objects without a value get this one as soon as they are read"),
    Code.DEFAULT_CHANGED: Rule(
        Level.RISKY, "new objects get the new value, and objects stored with the old value keep it"
    ),
    Code.DEFAULT_REMOVED: Rule(Level.RISKY, "new objects have no value here"),
    Code.UNKNOWN_FIELDS_PRUNED: Rule(
        Level.BREAKING, "fields that are not in the schema were kept here, and are dropped now"
    ),
    Code.UNKNOWN_FIELDS_KEPT: Rule(Level.HARMLESS, "fields that are not in the schema are kept"),
    Code.VALUES_PRUNED: Rule(Level.BREAKING, "keys that are not in the schema were allowed here, and are dropped now"),
    Code.VALUES_KEPT: Rule(Level.HARMLESS, "keys that are not in the schema are allowed"),
    Code.LIST_TYPE_CHANGED: Rule(
        Level.BREAKING, "lists are merged and validated in another way", "new values", fix="Add a field"
    ),
    Code.MAP_KEYS_CHANGED: Rule(Level.BREAKING, "items are identified by other keys", "new values", fix="Add a field"),
    Code.MAP_TYPE_CHANGED: Rule(
        Level.BREAKING, "server-side apply merges it in another way, and owners of its fields lose them"
    ),
    Code.EMBEDDED_ADDED: Rule(Level.BREAKING, "values without apiVersion and kind are rejected", "updates"),
    Code.EMBEDDED_REMOVED: Rule(Level.HARMLESS, "values do not need apiVersion and kind"),
    Code.ENUM_ADDED: Rule(Level.BREAKING, "other values are rejected", "new values"),
    Code.ENUM_VALUE_REMOVED: Rule(Level.BREAKING, "the value is rejected", "new values"),
    Code.ENUM_VALUE_ADDED: Rule(Level.HARMLESS, "one more value is allowed"),
    Code.ENUM_REMOVED: Rule(Level.HARMLESS, "every value is allowed"),
    Code.BOUND_TIGHTENED: Rule(Level.BREAKING, "values outside the bound are rejected", "new values"),
    Code.BOUND_LOOSENED: Rule(Level.HARMLESS, "more values are allowed"),
    Code.PATTERN_CHANGED: Rule(Level.BREAKING, "values that do not match are rejected", "new values"),
    Code.PATTERN_REMOVED: Rule(Level.HARMLESS, "every string is allowed"),
    Code.FORMAT_TIGHTENED: Rule(Level.BREAKING, "values in another format are rejected", "new values"),
    Code.FORMAT_LOOSENED: Rule(Level.HARMLESS, "more values are allowed"),
    Code.RULE_ADDED: Rule(Level.BREAKING, "values that violate the rule are rejected", "new values"),
    Code.RULE_REMOVED: Rule(Level.HARMLESS, "more values are allowed"),
    Code.RULE_TEXT_CHANGED: Rule(Level.HARMLESS, "the error message differs"),
    Code.BRANCH_ADDED: Rule(Level.BREAKING, "values that do not match are rejected", "new values"),
    Code.BRANCH_REMOVED: Rule(Level.HARMLESS, "more values are allowed"),
    Code.DOCUMENTATION_CHANGED: Rule(Level.HARMLESS, "kubectl explain prints other text"),
    Code.OTHER_CHANGED: Rule(Level.RISKY, "the effect of this change is unknown"),
}
