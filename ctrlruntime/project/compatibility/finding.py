"""Findings: the changes of a definition by their codes, and what each code means.

A code never changes its level: what depends on circumstances has a code for each of them. Codes are for scripts and stay; texts are for
people.

From 1.30 on, Kubernetes tolerates in an update what a tightened schema refuses, as long as that value is not changed ("ratcheting").
The object around a field that became required is such a value, too: it is refused as soon as anything in it changes. An embedded
resource without apiVersion and kind is always refused. `Rule.refuses` says which it is; before 1.30 all are refused.
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

    # The definition
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
"""Which writes the server rejects: none; those that change the value; updates of existing objects that change something else, too."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a code means."""

    level: Level
    text: str
    """What happens, and what to do about it."""

    refuses: Refuses = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described(ABC):
    """What changed, by a rule. `version` and `path` are empty where it concerns the definition, or the version, as a whole.

    `path` is like `spec.containers[].name`; `[]` means the items of a list, `{}` the values of a map. `was` and `now` are what
    the definition says there, as JSON values; None where it says nothing.
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
        return self.rule.text

    @property
    def refuses(self) -> Refuses:
        return self.rule.refuses


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Described):
    """A change of a definition."""

    code: Code

    @property
    @override
    def rule(self) -> Rule:
        return RULES[self.code]


_OTHER_NAME: Final = "it is another resource now: objects of the old one stay behind; make a second definition instead"

RULES: Final[Mapping[Code, Rule]] = {
    Code.DEFINITION_REMOVED: Rule(Level.BREAKING, "every object of the kind is deleted with it"),
    Code.DEFINITION_ADDED: Rule(Level.HARMLESS, "it is not in use yet"),
    Code.GROUP_CHANGED: Rule(Level.BREAKING, _OTHER_NAME),
    Code.KIND_CHANGED: Rule(Level.BREAKING, "objects that exist name the old kind; make a second definition instead"),
    Code.PLURAL_CHANGED: Rule(Level.BREAKING, _OTHER_NAME),
    Code.SCOPE_CHANGED: Rule(Level.BREAKING, "the server refuses it; make a definition of another name instead"),
    Code.NAMES_CHANGED: Rule(Level.RISKY, "commands and clients that use the old names fail"),
    Code.NAMES_ADDED: Rule(Level.HARMLESS, "there are more names"),
    Code.CONVERSION_REMOVED: Rule(
        Level.BREAKING, "versions are no longer converted: what one has and another has not is pruned; keep the webhook"
    ),
    Code.CONVERSION_ADDED: Rule(Level.RISKY, "reads and writes need the webhook from now on: deploy it first"),
    Code.CONVERSION_CHANGED: Rule(Level.RISKY, "the webhook must answer at its new place before this is applied"),
    Code.CONVERSION_NOT_NEEDED: Rule(Level.HARMLESS, "one version is left, so nothing is converted"),
    Code.STORED_VERSION_REMOVED: Rule(
        Level.BREAKING,
        "objects may be stored in it, and the server refuses to remove it while status.storedVersions lists it: store another "
        "version, run `ctrl storage migrate`, then remove it",
    ),
    Code.SERVED_VERSION_REMOVED: Rule(
        Level.BREAKING, "clients that use it get 404: deprecate it and stop serving it first"
    ),
    Code.UNSERVED_VERSION_REMOVED: Rule(
        Level.RISKY,
        "objects may be stored in it: look at status.storedVersions in the cluster, and run `ctrl storage migrate` if it is there",
    ),
    Code.MIGRATED_VERSION_REMOVED: Rule(Level.HARMLESS, "it is not served, and nothing is stored in it"),
    Code.VERSION_NOT_SERVED: Rule(Level.BREAKING, "clients that use it get 404: deprecate it first"),
    Code.VERSION_SERVED: Rule(Level.HARMLESS, "clients can use it"),
    Code.VERSION_ADDED: Rule(Level.HARMLESS, "it is not in use yet"),
    Code.VERSION_DEPRECATED: Rule(Level.HARMLESS, "clients that use it get a warning"),
    Code.DEPRECATION_CHANGED: Rule(Level.HARMLESS, "clients get another warning, or none"),
    Code.STORAGE_VERSION_CHANGED: Rule(
        Level.RISKY,
        "objects stay stored in the old version until they are written: run `ctrl storage migrate` afterwards",
    ),
    Code.STATUS_REMOVED: Rule(
        Level.BREAKING, "who writes the status gets 404, and everybody may write it with the rest"
    ),
    Code.STATUS_ADDED: Rule(Level.RISKY, "writes of the object no longer write its status: use the status client"),
    Code.SCALE_REMOVED: Rule(Level.BREAKING, "kubectl scale and autoscalers get 404"),
    Code.SCALE_CHANGED: Rule(Level.RISKY, "kubectl scale and autoscalers read and write other fields"),
    Code.SCALE_ADDED: Rule(Level.HARMLESS, "kubectl scale works"),
    Code.SELECTABLE_REMOVED: Rule(Level.BREAKING, "lists and watches that select by it are refused"),
    Code.SELECTABLE_ADDED: Rule(Level.HARMLESS, "lists and watches may select by it"),
    Code.COLUMNS_CHANGED: Rule(Level.HARMLESS, "kubectl get prints other columns"),
    Code.FIELD_REMOVED: Rule(
        Level.BREAKING, "its data is pruned when an object is read: mark it as deprecated and keep it"
    ),
    Code.FIELD_UNCHECKED: Rule(Level.HARMLESS, "its data is kept, and no longer checked"),
    Code.FIELD_ADDED: Rule(Level.HARMLESS, "objects without it stay as they are"),
    Code.FIELD_CHECKED: Rule(
        Level.RISKY, "unknown fields were kept here, so objects may hold anything under this name", "new values"
    ),
    Code.REQUIRED_ADDED: Rule(
        Level.BREAKING,
        "objects without it are rejected once another field changes: give it a default, or leave it optional",
        "updates",
    ),
    Code.REQUIRED_WITH_DEFAULT: Rule(Level.HARMLESS, "objects without it get its default"),
    Code.REQUIRED_REMOVED: Rule(Level.HARMLESS, "objects may leave it out"),
    Code.TYPE_CHANGED: Rule(
        Level.BREAKING, "values of the old type do not fit: add a field, or a version", "new values"
    ),
    Code.TYPE_NARROWED: Rule(
        Level.BREAKING, "some values of the old type do not fit: add a field, or a version", "new values"
    ),
    Code.TYPE_WIDENED: Rule(Level.RISKY, "clients that read it may meet a type they do not know"),
    Code.INT_OR_STRING_NARROWED: Rule(
        Level.BREAKING, "objects may hold the other of the two: add a field, or a version", "new values"
    ),
    Code.NULLABLE_REMOVED: Rule(
        Level.BREAKING, "null is dropped when an object is read, and refused where the field is required"
    ),
    Code.NULLABLE_ADDED: Rule(Level.HARMLESS, "null is a value, too"),
    Code.DEFAULT_ADDED: Rule(Level.RISKY, "existing objects without a value get this one as soon as they are read"),
    Code.DEFAULT_CHANGED: Rule(Level.RISKY, "objects made from now on differ; those stored with the old value keep it"),
    Code.DEFAULT_REMOVED: Rule(Level.RISKY, "objects made from now on have no value here"),
    Code.UNKNOWN_FIELDS_PRUNED: Rule(Level.BREAKING, "fields the schema does not name were kept here, and are dropped"),
    Code.UNKNOWN_FIELDS_KEPT: Rule(Level.HARMLESS, "fields the schema does not name are kept"),
    Code.VALUES_PRUNED: Rule(Level.BREAKING, "keys the schema does not name were values here, and are dropped"),
    Code.VALUES_KEPT: Rule(Level.HARMLESS, "keys the schema does not name are values"),
    Code.LIST_TYPE_CHANGED: Rule(
        Level.BREAKING, "lists merge, and are checked, another way: add a field", "new values"
    ),
    Code.MAP_KEYS_CHANGED: Rule(Level.BREAKING, "items are identified by other keys: add a field", "new values"),
    Code.MAP_TYPE_CHANGED: Rule(
        Level.BREAKING, "server-side apply merges it another way: owners of its fields lose them"
    ),
    Code.EMBEDDED_ADDED: Rule(Level.BREAKING, "values without apiVersion and kind are refused", "updates"),
    Code.EMBEDDED_REMOVED: Rule(Level.HARMLESS, "values need no apiVersion and kind"),
    Code.ENUM_ADDED: Rule(Level.BREAKING, "other values are refused", "new values"),
    Code.ENUM_VALUE_REMOVED: Rule(Level.BREAKING, "the value is refused", "new values"),
    Code.ENUM_VALUE_ADDED: Rule(Level.HARMLESS, "there is one more value"),
    Code.ENUM_REMOVED: Rule(Level.HARMLESS, "every value is allowed"),
    Code.BOUND_TIGHTENED: Rule(Level.BREAKING, "values outside are refused", "new values"),
    Code.BOUND_LOOSENED: Rule(Level.HARMLESS, "more values are allowed"),
    Code.PATTERN_CHANGED: Rule(Level.BREAKING, "values that do not match are refused", "new values"),
    Code.PATTERN_REMOVED: Rule(Level.HARMLESS, "every text is allowed"),
    Code.FORMAT_TIGHTENED: Rule(Level.BREAKING, "values of another form are refused", "new values"),
    Code.FORMAT_LOOSENED: Rule(Level.HARMLESS, "more values are allowed"),
    Code.RULE_ADDED: Rule(Level.BREAKING, "values that break the rule are refused", "new values"),
    Code.RULE_REMOVED: Rule(Level.HARMLESS, "more values are allowed"),
    Code.RULE_TEXT_CHANGED: Rule(Level.HARMLESS, "a refusal reads differently"),
    Code.BRANCH_ADDED: Rule(Level.BREAKING, "values that do not fit are refused", "new values"),
    Code.BRANCH_REMOVED: Rule(Level.HARMLESS, "more values are allowed"),
    Code.DOCUMENTATION_CHANGED: Rule(Level.HARMLESS, "kubectl explain says something else"),
    Code.OTHER_CHANGED: Rule(Level.RISKY, "what this change does is not known here"),
}
