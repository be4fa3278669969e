"""Validation of FlowSchemas and PriorityLevelConfigurations (pkg/apis/flowcontrol/validation/validation.go)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, not_supported, required
from ctrlruntime.schema.trees import Document, is_same
from ctrlruntime.schema.values import choice_causes, label_problems, spec_of, subdomain_causes, without

_MOST_QUEUES: Final = 10_000_000
_HASH_BITS: Final = 60
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS: Final = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
"""Kinds of subjects, and the field that has what each says."""
_CHECKED: Final = ("serviceAccount", "user", "group")
_DISTINGUISHERS: Final = ("ByNamespace", "ByUser")


def flow_schema_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    precedence, level = spec.get("matchingPrecedence", 1), (spec.get("priorityLevelConfiguration") or {}).get("name")
    if precedence <= 0:
        yield invalid_value("spec.matchingPrecedence", precedence, "must be a positive value")
    if precedence > 10_000:
        yield invalid_value("spec.matchingPrecedence", precedence, "must not be greater than 10000")
    if precedence == 1 and document["metadata"].get("name") != "exempt":
        text = "only the schema named 'exempt' may have matchingPrecedence 1"
        yield invalid_value("spec.matchingPrecedence", precedence, text)
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type", "") not in _DISTINGUISHERS:
        listed = ", ".join(json.dumps(one) for one in _DISTINGUISHERS)
        shown = json.dumps({"Type": method.get("type", "")}, separators=(",", ":"))
        text = f"Unsupported value: {shown}: supported values: {listed}"
        yield StatusCause("FieldValueNotSupported", text, "spec.distinguisherMethod.type")
    if not level:
        yield required("spec.priorityLevelConfiguration.name", "must reference a priority level")
    else:
        yield from subdomain_causes(level, "spec.priorityLevelConfiguration.name")
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _rule_causes(rule or {}, f"spec.rules[{index}]")
    name = document["metadata"].get("name", "")
    if name in _FIXED_SCHEMAS and not is_same(spec, _FIXED_SCHEMAS[name]):
        shown = internal("flowcontrol.FlowSchemaSpec", spec)
        yield invalid_value("spec", shown, f"spec of '{name}' must equal the fixed value")


_EVERYTHING: Final[Document] = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}


def _of_groups(*names: str) -> Document:
    return {"subjects": [{"kind": "Group", "group": {"name": name}} for name in names], **_EVERYTHING}


_FIXED_SCHEMAS: Final[Mapping[str, Document]] = {
    "catch-all": {
        "priorityLevelConfiguration": {"name": "catch-all"},
        "matchingPrecedence": 10_000,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [_of_groups("system:unauthenticated", "system:authenticated")],
    },
    "exempt": {
        "priorityLevelConfiguration": {"name": "exempt"},
        "matchingPrecedence": 1,
        "rules": [_of_groups("system:masters")],
    },
}
_FIXED_LEVELS: Final[Mapping[str, Document]] = {
    "catch-all": {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}, "lendablePercent": 0},
    },
    "exempt": {"type": "Exempt"},
}
"""What is mandatory has a spec that never changes (apiserver's pkg/apis/flowcontrol/bootstrap); of the level `exempt` the part
`exempt` may.
"""


def _rule_causes(rule: Document, path: str) -> Iterator[StatusCause]:
    subjects, resources, others = (rule.get(name) or [] for name in ("subjects", "resourceRules", "nonResourceRules"))
    if not subjects:
        yield required(f"{path}.subjects", "subjects must contain at least one value")
    for index, subject in enumerate(subjects):
        yield from _subject_causes(subject or {}, f"{path}.subjects[{index}]")
    if not resources and not others:
        yield required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, one in enumerate(resources):
        yield from _resource_causes(one or {}, f"{path}.resourceRules[{index}]")
    for index, one in enumerate(others):
        where, paths = f"{path}.nonResourceRules[{index}]", (one or {}).get("nonResourceURLs") or []
        yield from _verb_causes((one or {}).get("verbs") or [], f"{where}.verbs")
        at = f"{where}.nonResourceURLs"
        yield from _some_causes(paths, at, "nonResourceURLs must contain at least one value", "non-resource URLs")
        for number, text in enumerate(paths if "*" not in paths else ()):
            yield from _path_causes(text, f"{at}[{number}]")


def _resource_causes(rule: Document, path: str) -> Iterator[StatusCause]:
    yield from _verb_causes(rule.get("verbs") or [], f"{path}.verbs")
    for field, one, others in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        yield from _some_causes(
            rule.get(field) or [], f"{path}.{field}", f"resource rules must supply at least one {one}", others
        )
    where, names = f"{path}.namespaces", rule.get("namespaces") or []
    if not names and not rule.get("clusterScope"):
        yield required(where, "resource rules that are not cluster scoped must supply at least one namespace")
    elif "*" in names:
        yield from _some_causes(names, where, "", "namespaces")
    else:
        head = "each member of this list must be '*' or a DNS-1123 label; "
        for index, name in enumerate(names):
            yield from (invalid_value(f"{where}[{index}]", name, head + text) for text in label_problems(name))


def _some_causes(given: Sequence[str], path: str, none: str, others: str) -> Iterator[StatusCause]:
    """A list that is not empty, and has a wildcard only alone."""
    if not given:
        yield required(path, none)
    elif len(given) > 1 and "*" in given:
        yield invalid_value(path, given, f"if '*' is present, must not specify other {others}")


def _verb_causes(verbs: Sequence[str], path: str) -> Iterator[StatusCause]:
    yield from _some_causes(verbs, path, "verbs must contain at least one value", "verbs")
    if verbs and "*" not in verbs and not set(verbs) <= set(_VERBS):
        yield not_supported(path, verbs, _VERBS)


def _path_causes(text: str, path: str) -> Iterator[StatusCause]:
    """A path of a URL, with a wildcard at most as its last part (validateNonResourceURLPath)."""
    problem = ""
    if not text:
        problem = "must not be empty"
    elif not text.startswith("/"):
        problem = "must start with slash"
    elif " " in text:
        problem = "must not contain white-space"
    elif "//" in text:
        problem = "must not contain double slash"
    elif "*" in text[:-1] or (text.endswith("*") and not text.endswith("/*")):
        problem = "wildcard can only do suffix matching"
    if problem:
        yield invalid_value(path, text, problem)


def _subject_causes(subject: Document, path: str) -> Iterator[StatusCause]:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        yield not_supported(f"{path}.kind", kind, tuple(_SUBJECTS))
        return
    yield from _named_causes(subject, kind, path)
    for field in _CHECKED:
        if field != _SUBJECTS[kind] and subject.get(field) is not None:
            other = next(name for name, its in _SUBJECTS.items() if its == field)
            yield forbidden_field(f"{path}.{field}", f"{field} is forbidden when subject kind is not '{other}'")


def _named_causes(subject: Document, kind: str, path: str) -> Iterator[StatusCause]:
    """What a subject of its kind names."""
    wanted = _SUBJECTS[kind]
    found, where = subject.get(wanted), f"{path}.{wanted}"
    if found is None:
        yield required(where, f"{wanted} is required when subject kind is '{kind}'")
        return
    if not found.get("name"):
        yield required(f"{where}.name")
    elif kind == "ServiceAccount" and found["name"] != "*":
        yield from subdomain_causes(found["name"], f"{where}.name")
    if kind == "ServiceAccount" and not found.get("namespace"):
        yield required(f"{where}.namespace", "must specify namespace for service account")
    elif kind == "ServiceAccount":
        problems = label_problems(found["namespace"])
        yield from (invalid_value(f"{where}.namespace", found["namespace"], text) for text in problems)


def condition_types_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    """The conditions of a status: each has a type of its own."""
    seen: set[str] = set()
    for index, condition in enumerate((document.get("status") or {}).get("conditions") or ()):
        path, kind = f"status.conditions[{index}].type", condition.get("type", "")
        if kind in seen:
            yield duplicate(path, kind)
        seen.add(kind)
        if not kind:
            yield required(path)


def priority_level_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    """As ValidatePriorityLevelConfigurationSpec in pkg/apis/flowcontrol/validation/validation.go."""
    spec = spec_of(document)
    kind: str = spec.get("type", "")
    limited: Document | None = spec.get("limited")
    if (document["metadata"].get("name") == "exempt") != (kind == "Exempt"):
        yield invalid_value("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    yield from choice_causes(kind, "spec.type", ("Exempt", "Limited"))
    if kind == "Exempt" and limited is not None:
        yield forbidden_field("spec.limited", "must be nil if the type is not Limited")
    if kind == "Limited" and spec.get("exempt") is not None:
        yield forbidden_field("spec.exempt", "must be nil if the type is Limited")
    if kind == "Limited":
        missing = required("spec.limited", "must not be empty when type is Limited")
        yield from (missing,) if limited is None else _limited_causes(limited)
    name = document["metadata"].get("name", "")
    if name in _FIXED_LEVELS and not is_same(without(spec, ("exempt",)), _FIXED_LEVELS[name]):
        shown = internal("flowcontrol.PriorityLevelConfigurationSpec", spec)
        part = " except the 'spec.exempt' field" if name == "exempt" else ""
        yield invalid_value("spec", shown, f"spec of '{name}'{part} must equal the fixed value")


def _limited_causes(limited: Document) -> Iterator[StatusCause]:
    response: Document = limited.get("limitResponse") or {}
    path, queuing = "spec.limited.limitResponse", response.get("queuing")
    if limited.get("nominalConcurrencyShares", 0) < 0:
        text = "must be a non-negative integer"
        yield invalid_value("spec.limited.nominalConcurrencyShares", limited["nominalConcurrencyShares"], text)
    if response.get("type") == "Reject" and queuing is not None:
        yield forbidden_field(f"{path}.queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif response.get("type") == "Queue" and queuing is None:
        yield required(f"{path}.queuing", "must not be empty if limited.limitResponse.type is Limited")
    elif response.get("type") == "Queue" and queuing is not None:
        yield from _queuing_causes(queuing, f"{path}.queuing")
    else:
        yield from choice_causes(response.get("type", ""), f"{path}.type", ("Queue", "Reject"))
    lent, borrowed = limited.get("lendablePercent", 0), limited.get("borrowingLimitPercent", 0)
    if not 0 <= lent <= 100:
        yield invalid_value("spec.limited.lendablePercent", lent, "must be between 0 and 100, inclusive")
    if borrowed < 0:
        text = "if specified, must be a non-negative integer"
        yield invalid_value("spec.limited.borrowingLimitPercent", borrowed, text)


def _queuing_causes(queuing: Document, path: str) -> Iterator[StatusCause]:
    queues, hand = queuing["queues"], queuing["handSize"]
    for name in ("queueLengthLimit", "queues"):
        if queuing[name] <= 0:
            yield invalid_value(f"{path}.{name}", queuing[name], "must be positive")
    if queues > _MOST_QUEUES:
        yield invalid_value(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}")
    if hand <= 0:
        yield invalid_value(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        yield invalid_value(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    elif math.ceil(math.log2(queues) * hand) > _HASH_BITS:
        why = f"deckSize {queues} and handSize {hand} should not be greater than {_HASH_BITS}"
        yield invalid_value(f"{path}.handSize", hand, f"required entropy bits of {why}")
