"""The checks of a catalog: errors that a catalog server rejects, and releases without an upgrade."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ctrlruntime.olm.catalog.graph import Entry, cycle, heads, stranded
from ctrlruntime.olm.catalog.reading import BUNDLE, CHANNEL, DEPRECATIONS, PACKAGE, Blob, Catalog
from ctrlruntime.olm.catalog.rules import CHECKS
from ctrlruntime.olm.finding import Finding, Level
from ctrlruntime.olm.release import Order, is_release, name_for, order_of
from ctrlruntime.olm.semver import Version, parse, parse_range

__all__ = ["validate"]

_SCHEMAS: Final = (PACKAGE, CHANNEL, BUNDLE, DEPRECATIONS)
_OBJECT: Final = "olm.bundle.object"
_METADATA: Final = frozenset(("olm.csv.metadata", _OBJECT))


def validate(catalog: Catalog) -> list[Finding]:
    """Return the problems of a catalog, errors first, each level in the order of the blobs."""
    findings = [*_blobs(catalog), *(each for package in _packages(catalog) for each in _package(catalog, package))]
    return sorted(findings, key=lambda finding: finding.level is not Level.ERROR)


def _finding(code: str, blob: Blob, text: str, path: str = "") -> Finding:
    return Finding(check=CHECKS[code], text=text, file=blob.file, object=str(blob), path=path)


def _blobs(catalog: Catalog) -> Iterator[Finding]:
    """Yield the problems of single blobs, and of pairs."""
    packages = {each.name for each in catalog.of_schema(PACKAGE)}
    seen: Counter[tuple[str, str, str]] = Counter()
    for blob in catalog.blobs:
        if not blob.schema:
            yield _finding(
                "blob-without-schema", blob, "a document of a catalog must have a schema, such as olm.package"
            )
            continue
        if blob.schema not in _SCHEMAS:
            yield _finding("schema-unknown", blob, f"OLM does not read this schema. Use one of {', '.join(_SCHEMAS)}")
            continue
        if not blob.name and blob.schema != DEPRECATIONS:
            yield _finding("blob-without-name", blob, f"is missing. Set the name of the {blob.schema}", "name")
            continue
        if blob.package not in packages:
            text = (
                f"the {PACKAGE} {blob.package!r} is missing. Add it" if blob.package else "is missing. Set the package"
            )
            yield _finding("package-missing", blob, text, "package")
        key = (blob.schema, blob.package, blob.name)
        seen[key] += 1
        if seen[key] == 2:
            yield _finding("blob-duplicate", blob, "is already in the catalog. Keep one of the two")


def _packages(catalog: Catalog) -> list[Blob]:
    return [each for each in catalog.of_schema(PACKAGE) if each.name]


def _package(catalog: Catalog, package: Blob) -> Iterator[Finding]:
    channels = [each for each in catalog.of_schema(CHANNEL, package.name) if each.name]
    bundles = {each.name: each for each in catalog.of_schema(BUNDLE, package.name) if each.name}
    yield from _default_channel(package, channels)
    for bundle in bundles.values():
        yield from _bundle(bundle)
    versions = {name: _order(blob, version) for name, blob in bundles.items() if (version := _version(blob))}
    yield from _same_versions(bundles, versions)
    for channel in channels:
        yield from _channel(channel, bundles.keys(), versions)
    listed = [entry.get("name") for channel in channels for entry in channel.maps("entries")]
    for name, blob in bundles.items():
        if name not in listed:
            yield _finding(
                "bundle-without-channel", blob, "no channel has an entry for it, so it cannot be installed. Add one"
            )
    for blob in catalog.of_schema(DEPRECATIONS, package.name):
        yield from _deprecations(blob, {each.name for each in channels}, bundles.keys())


def _default_channel(package: Blob, channels: Sequence[Blob]) -> Iterator[Finding]:
    default, names = package.text("defaultChannel"), [each.name for each in channels]
    if not default:
        yield _finding(
            "default-channel-missing",
            package,
            "is missing. Set the channel for users who do not choose one",
            "defaultChannel",
        )
    elif default not in names:
        there = f"Use one of {', '.join(names)}" if names else "Add it"
        yield _finding(
            "default-channel-unknown", package, f"the channel {default} does not exist. {there}", "defaultChannel"
        )
    if not channels:
        yield _finding("package-without-channels", package, f"has no {CHANNEL}, so it cannot be installed. Add one")


def _bundle(bundle: Blob) -> Iterator[Finding]:
    items = bundle.maps("properties")
    if not bundle.text("image") and not any(item.get("type") == _OBJECT for item in items):
        yield _finding(
            "bundle-without-image",
            bundle,
            f"is missing. Set the image of the bundle, or add its objects as {_OBJECT}",
            "image",
        )
    for index, item in enumerate(items):
        yield from _property(bundle, item, f"properties[{index}]")
    packages = [value.get("packageName") for value in _values(bundle, PACKAGE)]
    if packages != [bundle.package]:
        named = ", ".join(map(str, packages)) or "none"
        yield _finding(
            "bundle-package-property", bundle, f"expected one property {PACKAGE} with packageName {bundle.package}, got {named}", "properties"
        )  # fmt: skip
    elif _version(bundle) is None:
        found = _values(bundle, PACKAGE)[0].get("version")
        yield _finding("version-invalid", bundle, f"{found!r} is not a semantic version such as 1.2.3", "properties")
    else:
        yield from _released(bundle)
    if not _METADATA & {str(item.get("type")) for item in items}:
        yield _finding("csv-metadata-missing", bundle, "has no olm.csv.metadata, which consoles show", "properties")


def _released(bundle: Blob) -> Iterator[Finding]:
    version, release = _values(bundle, PACKAGE)[0]["version"], _release(bundle)
    if release in (None, ""):
        return
    expected = name_for(bundle.package, version, str(release))
    if not is_release(release):
        yield _finding(
            "version-invalid", bundle, f"the release {release!r} is invalid. Write it like 1 or 2.rc-1", "properties"
        )
    elif "+" in version:
        yield _finding(
            "version-invalid", bundle, f"{version} has build metadata and a release. Remove one of them", "properties"
        )
    elif bundle.name != expected:
        yield _finding("release-name", bundle, f"the bundle has the release {release}. Rename it to {expected}", "name")


def _property(bundle: Blob, item: Mapping[str, Any], path: str) -> Iterator[Finding]:
    word, value = item.get("type"), item.get("value")
    if not isinstance(word, str) or not word or value is None:
        yield _finding("property-invalid", bundle, "a property must have type and value", path)
    elif word == "olm.package.required":
        given = cast("Mapping[str, Any]", value).get("versionRange") if isinstance(value, dict) else None
        if not isinstance(given, str) or parse_range(given) is None:
            yield _finding("range-invalid", bundle, f"{given!r} is not a range such as >=1.0.0 <2.0.0", f"{path}.value")


def _values(bundle: Blob, type: str) -> list[Mapping[str, Any]]:
    """Return the values of the properties of a type that are maps."""
    values = (item.get("value") for item in bundle.maps("properties") if item.get("type") == type)
    return [cast("Mapping[str, Any]", value) for value in values if isinstance(value, dict)]


def _version(bundle: Blob) -> Version | None:
    values = _values(bundle, PACKAGE)
    version = values[0].get("version") if values else None
    return parse(version) if isinstance(version, str) else None


def _release(bundle: Blob) -> Any:
    return _values(bundle, PACKAGE)[0].get("release")


def _order(bundle: Blob, version: Version) -> Order:
    release = _release(bundle)
    return order_of(version, release if isinstance(release, str) else "")


def _same_versions(bundles: Mapping[str, Blob], versions: Mapping[str, Order]) -> Iterator[Finding]:
    first: dict[tuple[str, Order], str] = {}
    for name, order in versions.items():
        version = str(order[0])  # build metadata tells versions apart, too, though it orders none
        if (before := first.setdefault((version, order), name)) != name:
            yield _finding("version-duplicate", bundles[name], f"{before} has the same version {version}")


def _channel(channel: Blob, bundles: Container[str], versions: Mapping[str, Order]) -> Iterator[Finding]:
    entries: dict[str, Entry] = {}
    for index, item in enumerate(channel.maps("entries")):
        path = f"entries[{index}]"
        entry = _entry(item)
        if entry is None:
            yield _finding(
                "entry-invalid",
                channel,
                "an entry must have a name. Write replaces and skipRange as strings, and skips as a list of strings",
                path,
            )
            continue
        if entry.name in entries:
            yield _finding("entry-duplicate", channel, f"{entry.name} already has an entry. Keep one of them", path)
            continue
        entries[entry.name] = entry
        if entry.name not in bundles:
            yield _finding(
                "entry-without-bundle",
                channel,
                f"the package has no {BUNDLE} {entry.name}. Add it, or remove the entry",
                path,
            )
        if entry.skip_range and parse_range(entry.skip_range) is None:
            text = f"{entry.skip_range!r} is not a range such as >=1.0.0 <2.0.0"
            yield _finding("range-invalid", channel, text, f"{path}.skipRange")
    if entries:
        yield from _graph(channel, entries, versions)
    elif not channel.maps("entries"):
        yield _finding("channel-empty", channel, "is empty. Add an entry for each bundle", "entries")


def _entry(item: Mapping[str, Any]) -> Entry | None:
    name, replaces, skips, skip_range = (item.get(key) for key in ("name", "replaces", "skips", "skipRange"))
    names: list[Any] = skips if isinstance(skips, list) else [] if skips is None else [None]
    texts = (name, *names, replaces or "-", skip_range or "-")
    if not all(isinstance(text, str) and text for text in texts):
        return None
    return Entry(str(name), str(replaces or ""), tuple(map(str, names)), str(skip_range or ""))


def _graph(channel: Blob, entries: Mapping[str, Entry], versions: Mapping[str, Order]) -> Iterator[Finding]:
    found = heads(entries)
    if len(found) == 1 and (circle := cycle(entries, found[0])):
        text = (
            f"{' -> '.join(circle)} replace each other in a cycle. Remove one `replaces`, or set it to an older bundle"
        )
        yield _finding("channel-cycle", channel, text, "entries")
        return
    for entry in entries.values():
        old, new = versions.get(entry.replaces), versions.get(entry.name)
        if old and new and new < old:
            yield _finding(
                "replaces-newer", channel, f"{entry.name} replaces {entry.replaces}, which is newer", "entries"
            )
    if not found:
        yield _finding("channel-without-head", channel, "each entry is replaced or skipped by another one", "entries")
    elif len(found) > 1:
        text = f"no entry replaces or skips {', '.join(found)}. Let one of them replace or skip the others"
        yield _finding("channel-several-heads", channel, text, "entries")
    elif lost := stranded(entries, found[0]):
        text = f"the head {found[0]} does not reach {', '.join(lost)} by replaces. Let an entry replace or skip each of them"
        yield _finding("channel-stranded", channel, text, "entries")


def _deprecations(blob: Blob, channels: Container[str], bundles: Container[str]) -> Iterator[Finding]:
    known: Mapping[str, Container[str]] = {PACKAGE: ("",), CHANNEL: channels, BUNDLE: bundles}
    for index, item in enumerate(blob.maps("entries")):
        path, reference = f"entries[{index}]", item.get("reference")
        named: Mapping[str, Any] = cast("Mapping[str, Any]", reference) if isinstance(reference, dict) else {}
        schema, name = str(named.get("schema") or ""), str(named.get("name") or "")
        if not item.get("message"):
            yield _finding("deprecation-invalid", blob, "message is missing. Describe in it what to do instead", path)
        elif name not in known.get(schema, ()):
            what = f"{schema} {name}".strip()
            text = f"the package has no {what}. Correct the reference" if what else "the reference is missing"
            yield _finding("deprecation-invalid", blob, text, path)
