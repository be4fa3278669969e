"""The comparison of two states of a definition: names, versions, conversion, and each version's schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from ctrlruntime.project.compatibility.finding import Code, Finding, Level
from ctrlruntime.project.compatibility.schema import compare_schemas

__all__ = ["compare"]

Part: TypeAlias = Mapping[str, Any]

_WORST_FIRST: Final = tuple(Level)
_SPEC: Final = frozenset(("group", "names", "scope", "versions", "conversion", "preserveUnknownFields"))
_VERSION: Final = frozenset(
    (
        *("name", "served", "storage", "schema", "subresources", "additionalPrinterColumns", "selectableFields"),
        *("deprecated", "deprecationWarning"),
    )
)


def compare(old: Part, new: Part) -> list[Finding]:
    """Return every change between two CustomResourceDefinitions, the breaking ones first.

    `old` may carry its status: of a version that is removed, `status.storedVersions` then says whether anything is stored in it. Without
    one, that is known of the storage version only. Labels and annotations are not compared.
    """
    was, now = old["spec"], new["spec"]
    findings = [*_names(was, now), *_pruning(was, now), *_conversion(was, now), *_versions(old, new)]
    findings += _others(was, now, _SPEC)
    return sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.level))


# Names


def _names(old: Part, new: Part) -> Iterator[Finding]:
    was, now = old["names"], new["names"]
    for code, before, after in (
        (Code.GROUP_CHANGED, old["group"], new["group"]),
        (Code.KIND_CHANGED, was["kind"], now["kind"]),
        (Code.PLURAL_CHANGED, was["plural"], now["plural"]),
        (Code.SCOPE_CHANGED, old.get("scope"), new.get("scope")),
    ):
        if before != after:
            yield Finding(code=code, was=before, now=after)
    for word in ("singular", "listKind"):
        before, after = (_given_name(names, word) for names in (was, now))
        if before != after:
            yield Finding(code=Code.NAMES_CHANGED, path=word, was=before, now=after)
    for word in ("shortNames", "categories"):
        yield from _name_list(word, list(was.get(word) or ()), list(now.get(word) or ()))


def _given_name(names: Part, word: str) -> str:
    """A name, or what the server puts for one that is left out."""
    kind: str = names["kind"]
    return str(names.get(word) or (kind.lower() if word == "singular" else f"{kind}List"))


def _name_list(word: str, was: list[str], now: list[str]) -> Iterator[Finding]:
    if set(was) - set(now):
        yield Finding(code=Code.NAMES_CHANGED, path=word, was=was, now=now)
    elif set(now) - set(was):
        yield Finding(code=Code.NAMES_ADDED, path=word, was=was, now=now)


def _pruning(old: Part, new: Part) -> Iterator[Finding]:
    """What definitions of apiextensions v1beta1 said for all versions."""
    was, now = bool(old.get("preserveUnknownFields")), bool(new.get("preserveUnknownFields"))
    if was != now:
        yield Finding(code=Code.UNKNOWN_FIELDS_KEPT if now else Code.UNKNOWN_FIELDS_PRUNED, was=was, now=now)


def _others(old: Part, new: Part, known: frozenset[str], version: str = "") -> Iterator[Finding]:
    """What later versions of Kubernetes may add to definitions."""
    for word in sorted((old.keys() | new.keys()) - known):
        if old.get(word) != new.get(word):
            yield Finding(
                code=Code.OTHER_CHANGED, version=version, was={word: old.get(word)}, now={word: new.get(word)}
            )


# Conversion


def _conversion(old: Part, new: Part) -> Iterator[Finding]:
    was, now = _webhook(old), _webhook(new)
    if was == now:
        return
    if not now:
        several = len(new["versions"]) > 1
        yield Finding(code=Code.CONVERSION_REMOVED if several else Code.CONVERSION_NOT_NEEDED, was=was)
    elif not was:
        yield Finding(code=Code.CONVERSION_ADDED, now=now)
    else:
        yield Finding(code=Code.CONVERSION_CHANGED, was=was, now=now)


def _webhook(spec: Part) -> Part:
    """Where the webhook is and what it speaks; empty when there is none. Its CA is put in by others, and is left out."""
    conversion: Part = spec.get("conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return {}
    webhook = cast("dict[str, Any]", conversion.get("webhook") or {})
    client = cast("dict[str, Any]", webhook.get("clientConfig") or {})
    service = cast("dict[str, Any]", client.get("service") or {})
    if service:
        service = {"port": 443, **service}  # as the server has it when it is left out
    return {
        "service": service,
        "url": client.get("url"),
        "conversionReviewVersions": webhook.get("conversionReviewVersions"),
    }


# Versions


def _versions(old: Part, new: Part) -> Iterator[Finding]:
    was, now = (_by_name(definition) for definition in (old, new))
    stored, storing = (_storage(versions) for versions in (was, now))
    if stored != storing:
        yield Finding(code=Code.STORAGE_VERSION_CHANGED, was=stored, now=storing)
    for name, version in was.items():
        if name in now:
            yield from _version(name, version, now[name])
        else:
            yield Finding(code=_removed(old, version), version=name, was=name)
    for name in now:
        if name not in was:
            yield Finding(code=Code.VERSION_ADDED, version=name, now=name)


def _by_name(definition: Part) -> dict[str, Part]:
    return {version["name"]: version for version in definition["spec"]["versions"]}


def _storage(versions: Mapping[str, Part]) -> str:
    return next((name for name, version in versions.items() if version.get("storage")), "")


def _removed(old: Part, version: Part) -> Code:
    stored: Any = (old.get("status") or {}).get("storedVersions")
    if version["name"] in stored if stored else version.get("storage"):
        return Code.STORED_VERSION_REMOVED
    if version.get("served"):
        return Code.SERVED_VERSION_REMOVED
    return Code.MIGRATED_VERSION_REMOVED if stored else Code.UNSERVED_VERSION_REMOVED


def _version(name: str, old: Part, new: Part) -> Iterator[Finding]:
    if bool(old.get("served")) != bool(new.get("served")):
        yield Finding(
            code=Code.VERSION_SERVED if new.get("served") else Code.VERSION_NOT_SERVED,
            version=name,
            was=bool(old.get("served")),
            now=bool(new.get("served")),
        )
    yield from _deprecation(name, old, new)
    yield from _subresources(name, old.get("subresources") or {}, new.get("subresources") or {})
    yield from _selectable(name, old, new)
    was, now = old.get("additionalPrinterColumns") or [], new.get("additionalPrinterColumns") or []
    if was != now:
        yield Finding(code=Code.COLUMNS_CHANGED, version=name, was=was, now=now)
    yield from _others(old, new, _VERSION, name)
    yield from compare_schemas(_schema(old), _schema(new), version=name)


def _deprecation(name: str, old: Part, new: Part) -> Iterator[Finding]:
    was, now = ((bool(one.get("deprecated")), one.get("deprecationWarning")) for one in (old, new))
    if was != now:
        code = Code.VERSION_DEPRECATED if now[0] and not was[0] else Code.DEPRECATION_CHANGED
        yield Finding(code=code, version=name, was=was[1] or was[0], now=now[1] or now[0])


def _subresources(name: str, old: Part, new: Part) -> Iterator[Finding]:
    if ("status" in old) != ("status" in new):
        code = Code.STATUS_ADDED if "status" in new else Code.STATUS_REMOVED
        yield Finding(code=code, version=name, was="status" in old, now="status" in new)
    was, now = old.get("scale"), new.get("scale")
    if was != now:
        code = Code.SCALE_ADDED if was is None else Code.SCALE_REMOVED if now is None else Code.SCALE_CHANGED
        yield Finding(code=code, version=name, was=was, now=now)


def _selectable(name: str, old: Part, new: Part) -> Iterator[Finding]:
    was, now = ({field["jsonPath"] for field in one.get("selectableFields") or ()} for one in (old, new))
    for path in sorted(was - now):
        yield Finding(code=Code.SELECTABLE_REMOVED, version=name, path=path.removeprefix("."), was=path)
    for path in sorted(now - was):
        yield Finding(code=Code.SELECTABLE_ADDED, version=name, path=path.removeprefix("."), now=path)


def _schema(version: Part) -> Part:
    return cast("Part", (version.get("schema") or {}).get("openAPIV3Schema") or {})
