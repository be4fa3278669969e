"""Kubeconfig files: read, merged as in kubectl, and one context selected.

`load` returns the content of the files with their names, so that relative paths and error messages refer to the right file. `config`
creates a configuration from it. `kubernetes_asyncio_piece` loads the parts of kubernetes_asyncio for credentials.
"""

from __future__ import annotations

import base64
import binascii
import builtins
import importlib.util
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ctrlruntime.errors import ConfigError

SEPARATOR = ":"
MAX_SIZE = 16 * 1024 * 1024
"""The maximum bytes of a file; one with a thousand clusters has about 5 MB."""

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One named cluster, user or context: its fields, and its file."""

    name: str
    fields: Mapping[str, Any] = field(repr=False)
    file: str

    def text(self, key: str) -> str:
        """Return a field as text; empty if it is missing.

        Raises: ConfigError for another type.
        """
        value = self.fields.get(key)
        if value is None:
            return ""
        if isinstance(value, str | int | float):  # `token: 12345` is text to whoever writes it
            text = str(value)
            if "\0" in text or _SURROGATES.search(text):
                raise ConfigError(
                    f"{self.file}: {key} of {self.name!r} contains a character that is not allowed in files and headers"
                )
            return text
        raise ConfigError(f"{self.file}: {key} of {self.name!r} must be text, not {type(value).__name__}")

    def flag(self, key: str) -> bool:
        value = self.fields.get(key, False)
        if not isinstance(value, bool):
            raise ConfigError(f"{self.file}: {key} of {self.name!r} must be true or false, not {type(value).__name__}")
        return value

    def path(self, key: str) -> str | None:
        """Return a field with a file name; a relative path starts at the kubeconfig's folder."""
        text = self.text(key)
        return str(Path(self.file).parent / text) if text else None

    def data(self, key: str) -> bytes | None:
        """Return a decoded base64 field. Raises: ConfigError."""
        text = self.text(key)
        try:
            return base64.b64decode("".join(text.split()), validate=True) if text else None
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"{self.file}: {key} of {self.name!r} is not base64 ({error})") from error

    def section(self, key: str) -> Mapping[str, Any] | None:
        value = self.fields.get(key)
        if value is None or isinstance(value, Mapping):
            return cast("Mapping[str, Any] | None", value)
        raise ConfigError(f"{self.file}: {key} of {self.name!r} must be a mapping, not {type(value).__name__}")

    def items(self, key: str) -> list[Any]:
        value = self.fields.get(key)
        if value is None or isinstance(value, list):
            return value or []
        raise ConfigError(f"{self.file}: {key} of {self.name!r} must be a list, not {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class Context:
    """A cluster, a user (None: anonymous) and a namespace."""

    name: str
    cluster: Entry
    user: Entry | None
    namespace: str


def load(files: Sequence[str], context: str | None = None) -> Context:
    """Return `context` (None: the current one) of the merged `files`, which must exist.

    Raises: ConfigError.
    """
    merged = _Merged()
    for file in files:
        merged.add(file, _read(file))
    return merged.pick(context, " and ".join(files))


def parse(raw: bytes, where: str, context: str | None = None) -> Context:
    """Return `context` (None: the current one) of the content of a kubeconfig.

    `where`: its place, for messages. Raises: ConfigError.
    """
    merged = _Merged()
    merged.add(where, _content(raw, where))
    return merged.pick(context, where)


def contexts(file: str) -> list[str]:
    """Return the names of the contexts in a kubeconfig. Raises: ConfigError."""
    merged = _Merged()
    merged.add(file, _read(file))
    return list(merged.contexts)


class _Merged:
    """The merged files: the first of two entries with one name, and of two current contexts, is used."""

    def __init__(self) -> None:
        self.clusters: dict[str, Entry] = {}
        self.users: dict[str, Entry] = {}
        self.contexts: dict[str, Entry] = {}
        self.current = ""

    def add(self, file: str, content: Mapping[str, Any]) -> None:
        whole = Entry("the file", content, file)
        self.current = self.current or whole.text("current-context")
        for section, key in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            known: dict[str, Entry] = getattr(self, section)
            for name, entry in _entries(whole, section, key).items():
                known.setdefault(name, entry)

    def pick(self, name: str | None, files: str) -> Context:
        there = ", ".join(sorted(self.contexts)) or "none"
        if not (name := name or self.current):
            raise ConfigError(f"{files}: no current-context is set; name one (contexts there: {there})")
        if (context := self.contexts.get(name)) is None:
            raise ConfigError(f"{files}: context {name!r} does not exist; contexts there: {there}")
        return Context(
            name=name,
            cluster=self._refer(context, "cluster", self.clusters),
            user=self._refer(context, "user", self.users) if context.text("user") else None,
            namespace=context.text("namespace"),
        )

    @staticmethod
    def _refer(context: Entry, kind: str, known: Mapping[str, Entry]) -> Entry:
        name = context.text(kind)
        if entry := known.get(name):
            return entry
        there = ", ".join(sorted(known)) or "none"
        asked = f"names the {kind} {name!r}, which is not defined" if name else f"names no {kind}"
        raise ConfigError(f"{context.file}: context {context.name!r} {asked}; {kind}s there: {there}")


def _entries(whole: Entry, section: str, key: str) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for number, item in enumerate(whole.items(section), 1):
        name = item.get("name") if isinstance(item, Mapping) else None
        if not isinstance(name, str | int | float):
            raise ConfigError(f"{whole.file}: item {number} of {section} has no name")
        if str(name) in entries:
            raise ConfigError(f"{whole.file}: {section} has two items named {name!r}; remove or rename one")
        fields = Entry(str(name), cast("Mapping[str, Any]", item), whole.file).section(key) or {}
        entries[str(name)] = Entry(str(name), fields, whole.file)
    return entries


def _read(file: str) -> Mapping[str, Any]:
    try:
        with Path(file).open("rb") as opened:
            raw = opened.read(MAX_SIZE + 1)
    except OSError as error:
        raise ConfigError(f"cannot read kubeconfig {file} ({error.strerror}); check the path") from error
    return _content(raw, file)


def _content(raw: bytes, file: str) -> Mapping[str, Any]:
    import yaml

    from ctrlruntime.api import yaml_nodes

    if len(raw) > MAX_SIZE:
        raise ConfigError(f"kubeconfig {file} has more than {MAX_SIZE // 2**20} MiB. Check the path")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"kubeconfig {file} is not text ({error.reason})") from error
    try:
        content = yaml_nodes.load(text)
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise ConfigError(f"kubeconfig {file} is not YAML{_yaml_problem(error)}") from None
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise ConfigError(
            f"kubeconfig {file} contains a {type(content).__name__}; a kubeconfig is a mapping of kind Config"
        )
    return cast("Mapping[str, Any]", content)


def _yaml_problem(error: Exception) -> str:
    """Say what is wrong and where, without what the file holds: other errors of YAML quote it, and a password may look like a tag."""
    from yaml import parser, scanner

    from ctrlruntime.api.yaml_nodes import MeaningError

    if isinstance(error, MeaningError):
        return f": {error.problem} in line {error.line}"
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}" if mark is not None else ""
    problem = getattr(error, "problem", None) if isinstance(error, scanner.ScannerError | parser.ParserError) else None
    return f": {problem}{where}" if problem and "tag handle" not in problem else where


# --- the door to kubernetes_asyncio --------------------------------------------------------------------------------

_PACKAGE = "kubernetes_asyncio"
_door = threading.Lock()
_pieces: dict[str, ModuleType] = {}


def kubernetes_asyncio_piece(name: str) -> ModuleType:
    """Return a private copy of one module of kubernetes_asyncio, such as `config.openid`, without loading its models.

    A normal import would run the package's `__init__`, which loads every model (270 ms, 40 MB). Here only the module and its imports from
    the package run, under private names. `sys.modules` is never changed, so an import of the real package at any time is not affected.
    Raises: ConfigError if the package is not installed.
    """
    with _door:
        return _load_piece(f"{_PACKAGE}.{name}")


def _load_piece(name: str) -> ModuleType:
    if name in _pieces:
        return _pieces[name]
    path = _root().joinpath(*name.split(".")[1:]).with_suffix(".py")
    code = SourceFileLoader(name, str(path)).get_code(name)
    if code is None:
        raise ConfigError(f"{name} has no code at {path}; reinstall kubernetes_asyncio")
    module = ModuleType(name)
    module.__file__ = str(path)
    # The import statement looks its function up in the module's own builtins; this is where siblings are diverted.
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
    exec(code, module.__dict__)  # noqa: S102 - the code of an installed dependency, as import would run it
    _pieces[name] = module
    return module


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    if name.startswith(f"{_PACKAGE}.") and fromlist:
        return _load_piece(name)
    return builtins.__import__(name, globals, locals, fromlist, level)


def _root() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("kubernetes_asyncio is not installed; run: pip install kubernetes-asyncio")
    return Path(next(iter(spec.submodule_search_locations)))
