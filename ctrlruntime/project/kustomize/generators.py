"""ConfigMaps and Secrets made of literals and files, and the hash of their content in their names."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Document
from ctrlruntime.project.kustomize.files import read_bytes, read_text
from ctrlruntime.project.kustomize.resources import Resource
from ctrlruntime.project.kustomize.settings import Entry

__all__ = ["generated", "hashed"]

_OPTIONS: Final = ("labels", "annotations", "disableNameSuffixHash", "immutable")
_FIELDS: Final = ("name", "namespace", "behavior", "literals", "files", "envs", "env", "options")
_BEHAVIORS: Final = ("create", "merge", "replace")
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+\Z")
_LINE: Final = 70


def generated(said: Entry, folder: Path) -> Iterator[Resource]:
    """Yield the objects that the generators of a kustomization make. Raises: ConfigError."""
    common = said.entry("generatorOptions", _OPTIONS)
    for entry in said.entries("configMapGenerator", _FIELDS):
        yield _Generator(entry, common, folder).config_map()
    for entry in said.entries("secretGenerator", (*_FIELDS, "type")):
        yield _Generator(entry, common, folder).secret()


class _Generator:
    """One entry of a generator."""

    def __init__(self, entry: Entry, common: Entry | None, folder: Path) -> None:
        self._entry = entry
        self._common = common or Entry({}, entry.where)
        self._own = entry.entry("options", _OPTIONS) or Entry({}, entry.where)
        self._folder = folder
        if not entry.text("name"):
            raise ConfigError(f"{entry.where}: the generator requires a name")
        self._behavior = entry.text("behavior", _BEHAVIORS[0])
        if self._behavior not in _BEHAVIORS:
            raise ConfigError(f"{entry.where}: behavior must be one of {', '.join(_BEHAVIORS)}")

    def config_map(self) -> Resource:
        tree = self._object("ConfigMap")
        for key, value in self._data():
            try:
                tree.setdefault("data", {})[key] = value.decode()
            except UnicodeDecodeError:
                tree.setdefault("binaryData", {})[key] = _base64(value)
        return self._resource(tree)

    def secret(self) -> Resource:
        tree = self._object("Secret")
        tree["type"] = self._entry.text("type", "Opaque")
        tree["data"] = {}
        for key, value in self._data():
            tree["data"][key] = _base64(value)
        return self._resource(tree)

    def _object(self, kind: str) -> Document:
        metadata: Document = {"name": self._entry.text("name")}
        if self._entry.text("namespace"):
            metadata["namespace"] = self._entry.text("namespace")
        for part in ("labels", "annotations"):
            both = {**self._common.pairs(part), **self._own.pairs(part)}
            if both:
                metadata[part] = both
        tree: Document = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
        if self._common.flag("immutable") or self._own.flag("immutable"):
            tree["immutable"] = True
        return tree

    def _resource(self, tree: Document) -> Resource:
        plain = self._common.flag("disableNameSuffixHash") or self._own.flag("disableNameSuffixHash")
        return Resource(tree, self._entry.where, needs_hash=not plain, behavior=self._behavior)

    def _data(self) -> Iterator[tuple[str, bytes]]:
        seen: set[str] = set()
        for key, value in self._pairs():
            if not _KEY.match(key):
                raise ConfigError(f"{self._entry.where}: invalid key {key!r}. Use letters, digits, '-', '_' and '.'")
            if key in seen:
                raise ConfigError(f"{self._entry.where}: duplicate key {key!r}")
            seen.add(key)
            yield key, value

    def _pairs(self) -> Iterator[tuple[str, bytes]]:
        envs = [*self._entry.texts("envs"), *([self._entry.text("env")] if self._entry.text("env") else [])]
        for name in envs:
            yield from self._lines(name)
        for literal in self._entry.texts("literals"):
            key, sign, value = literal.partition("=")
            if not sign or not key:
                raise ConfigError(f"{self._entry.where}: the literal {literal!r} must be KEY=VALUE")
            yield key, _unquoted(value).encode()
        for source in self._entry.texts("files"):
            key, sign, name = source.partition("=")
            if not sign:
                key, name = PurePosixPath(source).name, source
            yield key, read_bytes(self._folder, name, self._entry.where)

    def _lines(self, name: str) -> Iterator[tuple[str, bytes]]:
        for number, line in enumerate(read_text(self._folder, name, self._entry.where).splitlines(), 1):
            text = line.lstrip("\ufeff" if number == 1 else "").lstrip()
            if not text or text.startswith("#"):
                continue
            key, _, value = text.partition("=")  # a key alone has the empty value, as in kustomize
            yield key, value.encode()


def _unquoted(value: str) -> str:
    """The value without the pair of quotes around it."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _base64(value: bytes) -> str:
    """Base64; what is longer than a line stands in several, as kustomize writes it."""
    text = base64.b64encode(value).decode()
    if len(text) <= _LINE:
        return text
    return "".join(f"{text[at : at + _LINE]}\n" for at in range(0, len(text), _LINE))


# The hash in a name


def hashed(resource: Resource) -> str:
    """Return the ten characters for the content of an object in its name; the name itself is not part of it."""
    tree = resource.tree
    content: Any
    match resource.kind.kind:
        case "ConfigMap":
            content = {"kind": "ConfigMap", "name": "", "data": tree.get("data", "")}
            content |= {"binaryData": tree["binaryData"]} if tree.get("binaryData") else {}
        case "Secret":
            content = {"kind": "Secret", "type": tree.get("type", ""), "name": "", "data": tree.get("data", "")}
            content |= {"stringData": tree["stringData"]} if tree.get("stringData") else {}
        case _:
            content = tree
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":  # Go's JSON does not write these as they are
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return digest.translate(str.maketrans("013ae", "ghkmt"))
