"""The texts of a bundle's files.

Generated files have a mark in the first line. The file of annotations has none: users can add annotations, and they are kept.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.documents import read_one
from ctrlruntime.generate.options import Document
from ctrlruntime.generate.text import dump, file_name
from ctrlruntime.olm.bundle import (
    ANNOTATIONS_FILE,
    CHANNELS,
    CONFIG_FILE,
    DEFAULT_CHANNEL,
    MANIFESTS,
    MEDIA_TYPE,
    METADATA,
    PACKAGE,
)
from ctrlruntime.olm.csv import Assembled
from ctrlruntime.olm.making.editing import REMOVED, Edited, with_values
from ctrlruntime.olm.making.identity import BundleIdentity
from ctrlruntime.olm.trees import mapping

__all__ = [
    "MARK",
    "annotations_edited",
    "annotations_in",
    "dockerfile",
    "dockerignore",
    "manifest_files",
    "with_mark",
]

MARK: Final = "# Written by `ctrl bundle`: change what it is made from, not this file.\n"

_CRD: Final = "CustomResourceDefinition"
_PREFIX: Final = "operators.operatorframework.io."
_MANIFESTS_KEY: Final = f"{_PREFIX}bundle.manifests.v1"
_METADATA_KEY: Final = f"{_PREFIX}bundle.metadata.v1"
_METRICS: Final = {"builder": f"{_PREFIX}metrics.builder", "project_layout": f"{_PREFIX}metrics.project_layout"}
"""The tool that created the bundle: the end of an annotation of the ClusterServiceVersion, and the bundle's annotation with its value."""

_SCORECARD: Final[Mapping[str, Any]] = {
    f"{_PREFIX}test.mediatype.v1": "scorecard+v1",
    f"{_PREFIX}test.config.v1": "tests/scorecard/",
}
_ANNOTATIONS_HEAD: Final = (
    "# `ctrl bundle` keeps its own lines here up to date. Lines you add are kept, and become labels of the image.\n"
)
_PLAIN: Final = re.compile(r"[-A-Za-z0-9._/+:,=@]+")


def with_mark(text: str) -> str:
    """Return a text with the mark of generated files."""
    return MARK + text


def manifest_files(assembled: Assembled, package: str) -> dict[str, str]:
    """Return the text of each file of `manifests/`, one for each object, by its path in the bundle.

    Raises: GenerateError for two objects with the same file name.
    """
    names: dict[str, Document] = {f"{package}.clusterserviceversion.yaml": assembled.csv}
    for each in assembled.others:
        name = _name_of_definition(each) if each["kind"] == _CRD else _name(each)
        if name in names:
            raise GenerateError(
                f"cannot write {MANIFESTS}/{name}: two objects have this name, and all objects of a bundle are in one namespace. "
                f"Rename one {each['kind']} {each['metadata']['name']}"
            )
        names[name] = each
    return {f"{MANIFESTS}/{name}": with_mark(dump(each)) for name, each in names.items()}


def _name_of_definition(each: Document) -> str:
    spec = mapping(each.get("spec"))
    words = (spec.get("group"), mapping(spec.get("names")).get("plural"))
    if not all(isinstance(word, str) and word and "/" not in word for word in words):
        raise GenerateError(f"{_CRD}/{each['metadata']['name']}: spec.group and spec.names.plural must be DNS names")
    return file_name(each)


def _name(each: Document) -> str:
    group, _, version = str(each["apiVersion"]).rpartition("/")
    parts = (each["metadata"]["name"], group, version, each["kind"])
    return "_".join(str(part) for part in parts if part).lower().replace(":", "-").replace("/", "-") + ".yaml"


def annotations_edited(
    text: str | None, identity: BundleIdentity, csv: Document, *, with_tests: bool, where: str
) -> Edited:
    """Return the text of the annotations: those of the bundle are set, and all others are kept.

    Raises: ConfigError, which names `where`, for a text without annotations.
    """
    wanted: dict[str, Any] = {
        MEDIA_TYPE: "registry+v1",
        _MANIFESTS_KEY: f"{MANIFESTS}/",
        _METADATA_KEY: f"{METADATA}/",
        PACKAGE: identity.package,
        CHANNELS: ",".join(identity.channels),
        DEFAULT_CHANNEL: identity.default_channel or REMOVED,
        **_metrics(csv),
        **(_SCORECARD if with_tests else dict.fromkeys(_SCORECARD, REMOVED)),
    }
    if text is None:
        annotations = {key: value for key, value in wanted.items() if value is not REMOVED}
        return Edited(_ANNOTATIONS_HEAD + dump({"annotations": annotations}), is_rewritten=False)
    return with_values(text, {("annotations", key): value for key, value in wanted.items()}, where)


def _metrics(csv: Document) -> Document:
    made_by = {key: mapping(csv["metadata"].get("annotations")).get(f"{_PREFIX.rstrip('.')}/{key}") for key in _METRICS}
    found = {_METRICS[key]: value for key, value in made_by.items() if value}
    return {f"{_PREFIX}metrics.mediatype.v1": "metrics+v1", **found} if found else {}


def annotations_in(text: str) -> Mapping[str, Any]:
    """Return the annotations in such a text."""
    found: Mapping[str, Any] = read_one(text, ANNOTATIONS_FILE)["annotations"]
    return found


def dockerfile(name: str, annotations: Mapping[str, Any], *, with_tests: bool) -> str:
    """Return the Dockerfile of the bundle in the folder `name`, built from the parent folder."""
    labels = "".join(f"LABEL {_quoted(key)}={_quoted(value)}\n" for key, value in annotations.items())
    tests = Path(CONFIG_FILE).parent.as_posix()
    copied = (MANIFESTS, METADATA, *((tests,) if with_tests else ()))
    return (
        f"{MARK}# Its labels are the annotations of {name}/{ANNOTATIONS_FILE}. Build it next to {name}:\n"
        f"#   docker build -f {shlex.quote(f'{name}.Dockerfile')} -t IMAGE .\n"
        f"FROM scratch\n\n{labels}\n" + "".join(_copy(f"{name}/{each}", f"/{each}/") for each in copied)
    )


def _copy(source: str, target: str) -> str:
    # What is not in the form of JSON is split at blanks.
    words = f"{source} {target}" if _PLAIN.fullmatch(source) else json.dumps([source, target], ensure_ascii=False)
    return f"COPY {words}\n"


def dockerignore(name: str) -> str:
    """Return the .dockerignore of the bundle, which excludes all except the bundle."""
    return f"{MARK}*\n!{name}\n"


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    if _PLAIN.fullmatch(text) and "=" not in text:
        return text
    escaped = re.sub(r'(["\\$])', r"\\\1", text).replace("\n", " ")
    return f'"{escaped}"'
