"""The plan for a bundle in a folder: the files to write and remove, and the user's files that stay."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_text
from ctrlruntime.generate.options import Document, Warn
from ctrlruntime.generate.text import dump
from ctrlruntime.olm.bundle import ANNOTATIONS_FILE, CONFIG_FILE, MANIFESTS, METADATA, Bundle, read_bundle
from ctrlruntime.olm.csv import Assembled, Sources, assemble
from ctrlruntime.olm.making.files import (
    MARK,
    annotations_edited,
    annotations_in,
    dockerfile,
    dockerignore,
    manifest_files,
    with_mark,
)
from ctrlruntime.olm.making.folder import refuse_foreign
from ctrlruntime.olm.making.identity import BundleIdentity, Given, identity_of
from ctrlruntime.olm.making.omissions import omitted
from ctrlruntime.olm.making.pinning import images_of, pinned
from ctrlruntime.olm.making.sources import Material
from ctrlruntime.project.generated import Refresh, changes, marked, refreshed

__all__ = ["EPOCH", "Plan", "Request", "planned"]

EPOCH: Final = "SOURCE_DATE_EPOCH"
"""The environment variable with the current time in seconds since 1970, for reproducible builds."""

_CREATED: Final = "createdAt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of a bundle."""

    given: Given
    name: str = ""
    """The default name of the package, if neither `given` nor the existing bundle has one. Empty: the name of the base."""

    extra_service_accounts: Sequence[str] = ()
    digests: Mapping[str, str] | Callable[[Iterable[str]], Mapping[str, str]] | None = None
    """References with digests by image, or a function that returns them for images. None: images do not change."""

    digests_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A planned bundle, and its folder."""

    refresh: Refresh
    """The files to write and remove. A new time of creation alone does not count as a change."""

    assembled: Assembled
    strangers: tuple[Path, ...]
    """Files of `manifests/` that are not generated: they are kept, and are part of the bundle."""

    is_rewritten: bool
    """The annotations could not be edited in place: their comments are lost."""


def planned(
    folder: Path,
    material: Material,
    request: Request,
    *,
    environ: Mapping[str, str],
    warn: Warn,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    is_renewed: bool = True,
) -> Plan:
    """Return the plan for the bundle in `folder`; nothing is written.

    The creation time changes only if something else changes. Without `is_renewed` it never changes, as a comparison requires.
    Raises: ConfigError for invalid options and for files that cannot be read; GenerateError for objects that cannot become a bundle.
    """
    existing = read_bundle(folder) if folder.is_dir() else None
    refuse_foreign(folder, existing)
    identity = identity_of(request.given, existing, request.name or material.name)
    assembled = _assembled(material, identity, request, warn)
    left_out = omitted(material.objects, assembled.csv) if material.is_given else ""
    if left_out:
        warn(left_out)
    now = _moment(environ, clock)
    before = _created_at(existing)
    plan = _plan(folder, _created(assembled, before or now), material, identity, existing)
    if before and is_renewed and plan.refresh.stale:
        return _plan(folder, _created(assembled, now), material, identity, existing)
    return plan


def _assembled(material: Material, identity: BundleIdentity, request: Request, warn: Warn) -> Assembled:
    sources = Sources(
        package=identity.package,
        version=identity.version,
        base=material.base,
        objects=material.objects,
        kinds=material.kinds,
        owns=material.owns,
        extra_service_accounts=request.extra_service_accounts,
    )
    assembled = assemble(sources, warn=warn)
    if request.digests is None:
        return assembled
    digests = request.digests if isinstance(request.digests, Mapping) else request.digests(images_of(assembled.csv))
    return replace(assembled, csv=pinned(assembled.csv, digests, where=request.digests_file))


def _plan(
    folder: Path,
    assembled: Assembled,
    material: Material,
    identity: BundleIdentity,
    existing: Bundle | None,
) -> Plan:
    files = manifest_files(assembled, identity.package)
    if material.scorecard is not None:
        files[CONFIG_FILE] = with_mark(dump(_without_namespace(material.scorecard)))
    paths = {folder / name: text for name, text in files.items()}
    own_tests = _files(folder / Path(CONFIG_FILE).parent) - set(marked(folder, MARK))
    with_tests = CONFIG_FILE in files or bool(own_tests)
    name, text = _annotations(folder, existing)
    annotations = folder / name
    edited = annotations_edited(text, identity, assembled.csv, with_tests=with_tests, where=str(annotations))
    image = folder.resolve().name
    docker = folder.parent / f"{image}.Dockerfile"
    paths[annotations] = edited.text
    paths[docker] = dockerfile(image, annotations_in(edited.text), with_tests=with_tests)
    paths[docker.with_name(f"{docker.name}.dockerignore")] = dockerignore(image)
    # Files of another tool are replaced: users edit the base, and the annotations, which have no mark.
    found = refreshed(folder, paths, mark=MARK, force=True)
    every = [each for each in found.changes if each.path != annotations] + changes({annotations: edited.text})
    return Plan(
        refresh=replace(found, changes=sorted(every, key=lambda each: (each.after is None, each.path))),
        assembled=assembled,
        strangers=tuple(sorted(_files(folder / MANIFESTS) - {*paths, *found.removed})),
        is_rewritten=edited.is_rewritten,
    )


def _annotations(folder: Path, existing: Bundle | None) -> tuple[str, str | None]:
    """Return the file of the annotations in the bundle, and its text, None without one. Raises: ConfigError for an unreadable one."""
    name = (existing.annotations_file if existing else "") or ANNOTATIONS_FILE
    for broken in existing.unreadable if existing else ():
        if broken.file.startswith(f"{METADATA}/"):
            raise ConfigError(f"{folder / broken.file}: {broken.text}")
    path = folder / name
    return name, read_text(path) if path.is_file() else None


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.iterdir() if path.is_file()} if folder.is_dir() else set()


def _without_namespace(document: Document) -> Document:
    metadata = {key: value for key, value in document["metadata"].items() if key != "namespace"}
    return {**document, "metadata": metadata}


# The time of creation


def _created(assembled: Assembled, moment: str) -> Assembled:
    csv = copy.deepcopy(assembled.csv)
    csv["metadata"]["annotations"] = {**(csv["metadata"].get("annotations") or {}), _CREATED: moment}
    return replace(assembled, csv=csv)


def _created_at(existing: Bundle | None) -> str:
    csv = existing.csv if existing else None
    annotations: Any = csv.metadata.get("annotations") if csv else None
    found: Any = annotations.get(_CREATED) if isinstance(annotations, dict) else None
    return found if isinstance(found, str) else ""


def _moment(environ: Mapping[str, str], clock: Callable[[], datetime]) -> str:
    seconds = environ.get(EPOCH)
    try:
        moment = datetime.fromtimestamp(int(seconds), UTC) if seconds else clock()
    except (ValueError, OverflowError, OSError) as error:
        raise ConfigError(f"{EPOCH} is {seconds!r}: it must be seconds since 1970") from error
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
