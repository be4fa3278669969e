"""What a rule of a role grants: whether it allows a request, and whether it covers another rule.

Pure functions over the rules as JSON trees. `missing_rules` answers what an author of a role would give away without
having it; it prints rules as kube-apiserver does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctrlruntime.apiserver.authorization.attributes import AuthorizationAttributes
from ctrlruntime.field_errors import shown

Rule: TypeAlias = Mapping[str, Any]


def rule_allows(rule: Rule, asked: AuthorizationAttributes) -> bool:
    """Tell whether the rule allows a request."""
    if not _has(rule.get("verbs"), asked.verb):
        return False
    if not asked.resource and not asked.is_resource:
        return any(_path_matches(pattern, asked.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("apiGroups"), asked.group)
        and _has_resource(rule.get("resources") or (), asked.resource, asked.subresource)
        and (not names or asked.name in names)
    )


def _has(values: Iterable[str] | None, wanted: str) -> bool:
    return values is not None and any(value in {"*", wanted} for value in values)


def _has_resource(values: Iterable[str], resource: str, subresource: str) -> bool:
    if not subresource:
        return any(value in {"*", resource} for value in values)
    return any(value in {"*", f"{resource}/{subresource}", f"*/{subresource}"} for value in values)


def _path_matches(pattern: str, path: str) -> bool:
    return pattern in {"*", path} or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


@dataclass(frozen=True, slots=True)
class _Atom:
    """One verb on one resource (of at most one name) or on one path: the grain in which rules are compared."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str = ""
    url: str = ""


def missing_rules(owned: Sequence[Rule], granted: Sequence[Rule]) -> list[str]:
    """Return the parts of `granted` that no rule of `owned` covers, compacted, sorted and worded; empty when all are."""
    missing = [atom for rule in granted for atom in _atoms(rule) if not any(_covers(own, atom) for own in owned)]
    verbs: dict[tuple[str, str, str], list[str]] = {}
    texts: list[str] = []
    for atom in missing:
        if atom.url:
            texts.append(f"{{NonResourceURLs:{_quoted([atom.url])}, Verbs:{_quoted([atom.verb])}}}")
        else:
            verbs.setdefault((atom.group, atom.resource, atom.name), []).append(atom.verb)
    for (group, resource, name), listed in verbs.items():
        names = f"ResourceNames:{_quoted([name])}, " if name else ""
        texts.append(
            f"{{APIGroups:{_quoted([group])}, Resources:{_quoted([resource])}, {names}Verbs:{_quoted(listed)}}}"
        )
    return sorted(texts)


def _atoms(rule: Rule) -> Iterator[_Atom]:
    verbs: Sequence[str] = rule.get("verbs") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                for name in rule.get("resourceNames") or ("",):
                    yield _Atom(verb, group, resource, name)
    for url in rule.get("nonResourceURLs") or ():
        for verb in verbs:
            yield _Atom(verb, url=url)


def _covers(own: Rule, atom: _Atom) -> bool:
    if not _has(own.get("verbs"), atom.verb):
        return False
    if atom.url:
        return any(_path_matches(pattern, atom.url) for pattern in own.get("nonResourceURLs") or ())
    names = own.get("resourceNames") or ()
    resource, _, subresource = atom.resource.partition("/")
    return (
        _has(own.get("apiGroups"), atom.group)
        and _has_resource(own.get("resources") or (), resource, subresource)
        and (not names or atom.name in names)
    )


def _quoted(values: Iterable[str]) -> str:
    return "[" + " ".join(shown(value) for value in values) + "]"
