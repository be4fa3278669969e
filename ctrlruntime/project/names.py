"""The rules for names in a project.

Each function returns the name, or raises a ConfigError with the cause alone: the caller adds the fix, since it has the source of the name.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.name_rules import is_label

__all__ = [
    "domain",
    "group",
    "is_subdomain",
    "kind",
    "label",
    "package",
    "plural",
    "project_name",
    "resource",
    "version",
]

_VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")

_LABEL_LENGTH: Final = 63
_DOMAIN_LENGTH: Final = 253
_ROOM_FOR_NAMES: Final = len("-controller-manager-metrics-service")
"""The longest suffix of the project's name in a name that must be a DNS label: that of a Service."""

_TAKEN: Final = frozenset(
    {"build", "bundle", "conftest", "config", "dist", "dockerfile", "license", "makefile", "test", "tests"}
)
"""Packages in the place of other files of a project, or that git ignores; `test` is also a module of Python that its list leaves out."""

_IMPORTABLE: Final = frozenset(
    {
        "aiohttp", "annotated_types", "anyio", "click", "cryptography", "ctrlruntime", "hatchling", "httptools",
        "hypothesis", "jinja2", "kubernetes_asyncio", "msgspec", "multidict", "mypy", "opentelemetry", "prometheus_client", "pydantic",
        "pydantic_core", "pytest", "pytest_asyncio", "re2", "ruff", "structlog", "tomlkit", "typing_extensions", "uvloop", "yaml", "yarl",
    }
)  # fmt: skip
"""Packages that a project and its tests import."""

_IMPORTED: Final = frozenset(
    {"Annotated", "AsyncGenerator", "AsyncIterator", "Awaitable", "Callable", "Field", "Iterator"}
)
"""Classes that a module with a kind imports under these names."""

_LEFT_OUT: Final = frozenset({"conftest", "tests"})
"""Modules that are tests, and not looked into."""


def project_name(name: str) -> str:
    """Take a DNS label that leaves room for the names made of it."""
    longest = _LABEL_LENGTH - _ROOM_FOR_NAMES
    if len(name) > longest:
        raise ConfigError(
            f"the project name {name!r} is longer than {longest} characters, so derived names would be too long"
        )
    if not is_label(name):
        raise ConfigError(f"the project name {name!r} is not a DNS label (a-z, 0-9 and dashes inside)")
    if not name[0].isalpha():  # a Service is named after it
        raise ConfigError(f"the project name {name!r} must begin with a letter")
    return name


def label(text: str) -> str:
    """Return a DNS label made of any text; empty when it has no letter and no digit."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def package(name: str) -> str:
    """Take the name of a Python package that hides no other one."""
    if not name.isidentifier() or not name.isascii():
        raise ConfigError(f"the package {name!r} is not a Python identifier")
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise ConfigError(f"the package {name!r} is a keyword of Python")
    if name in sys.stdlib_module_names or name in _IMPORTABLE:
        raise ConfigError(f"the package {name!r} would hide a module of that name")
    if name.lower() in _TAKEN:  # in lower case, since some file systems do not distinguish
        raise ConfigError(
            f"the package {name!r} would conflict with a file or folder of the project, or a module of that name"
        )
    return name


def domain(name: str) -> str:
    """Take a DNS subdomain with at least one dot, as groups of custom resources need it."""
    if not is_subdomain(name) or "." not in name:
        raise ConfigError(f"the domain {name!r} is not a DNS name with a dot, like example.com")
    return name


def group(name: str) -> str:
    """Take the part of an API group before the domain: lower case, a DNS subdomain."""
    if not is_subdomain(name):
        raise ConfigError(f"the group {name!r} is not a DNS name in lower case, like webapp")
    return name


def version(name: str) -> str:
    """Take the version of an API."""
    if not _VERSION.fullmatch(name):
        raise ConfigError(f"the version {name!r} is not one like v1, v1alpha1 or v2beta3")
    return name


def kind(name: str) -> str:
    """Take a kind whose module and class can have its name."""
    if not _KIND.fullmatch(name):
        raise ConfigError(f"the kind {name!r} is not in PascalCase, like Cart or ShopCart")
    if name in _IMPORTED or name.lower() in _LEFT_OUT:
        raise ConfigError(f"the kind {name!r} conflicts with a name in the generated code")
    if len(name) > _LABEL_LENGTH:
        raise ConfigError(f"the kind {name!r} is longer than {_LABEL_LENGTH} characters")
    if keyword.iskeyword(name) or keyword.iskeyword(name.lower()):
        raise ConfigError(f"the kind {name!r} cannot name a Python module: {name.lower()!r} is a keyword")
    return name


def plural(name: str) -> str:
    """Take a plural: a DNS label that begins with a letter."""
    if not is_label(name) or not name[0].isalpha() or len(name) > _LABEL_LENGTH:
        raise ConfigError(f"the plural {name!r} is not a DNS label in lower case, like carts")
    return name


def resource(full_group: str, versions: Iterable[str], its_kind: str, its_plural: str) -> None:
    """Check all names of a kind; the core group is empty."""
    if full_group:
        group(full_group)
    for each in versions:
        version(each)
    kind(its_kind)
    plural(its_plural)


def is_subdomain(name: str) -> bool:
    """Tell whether a name is a DNS subdomain in lower case: labels with dots between them."""
    if not name or len(name) > _DOMAIN_LENGTH:
        return False
    return all(len(part) <= _LABEL_LENGTH and is_label(part) for part in name.split("."))
