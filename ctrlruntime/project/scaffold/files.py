"""Which files a project has from its scaffold, and their texts. Everything is a function of the settings."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.scaffold.words import Words
from ctrlruntime.project.settings import PYPROJECT, Resource, Settings

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Part", "kind_files", "parts_of", "scaffold_files", "with_packages"]

Part: TypeAlias = Literal["api", "controller", "webhook"]
"""What a kind can have in a project."""

_TEMPLATES: Final = Path(__file__).parent / "templates"
_LICENSE: Final = "LICENSE"
_TAG: Final = re.compile(r"(:[^:/@]+)?(@.*)?$")
"""The tag and the digest of an image."""

_NEEDS: Final = ">=0.1,<0.2"  # before 1.0 a minor version can break
"""The versions of ctrlruntime a project runs with."""


def scaffold_files(settings: Settings) -> dict[str, str]:
    """Return the text of each file that a project gets once, by its path in the project's folder.

    `config/` is not among them, nor is the table `[tool.ctrlruntime]` in the text of pyproject.toml. Raises: ConfigError for a package
    that exists elsewhere.
    """
    _refuse_other_source(settings)
    files = dict(_project(settings))
    for resource in settings.resources:
        files.update(kind_files(settings, resource, parts_of(resource)))
    return dict(sorted(files.items()))


def _project(settings: Settings) -> Iterator[tuple[str, str]]:
    package = settings.package
    texts = {
        PYPROJECT: "pyproject.toml",
        "README.md": "README.md",
        "AGENTS.md": "AGENTS.md",
        "Makefile": "Makefile",
        "Dockerfile": "Dockerfile",
        ".dockerignore": "dockerignore",
        ".gitignore": "gitignore",
        ".github/workflows/e2e.yml": "e2e.yml",
        ".github/workflows/lint.yml": "lint.yml",
        ".github/workflows/test.yml": "test.yml",
        f"{package}/__main__.py": "main.py",
        f"{package}/operator.py": "operator.py",
        "tests/conftest.py": "conftest.py",
        "tests/test_manifests.py": "test_manifests.py",
        "tests/test_operator.py": "test_operator.py",
    }
    words = {"election": _election(settings), "needs": _NEEDS, "image_base": _TAG.sub("", settings.image)}
    for path, template in texts.items():
        yield path, _text(path, f"project/{template}", settings, **words)
    for folder in ("", "api/", "controllers/", "webhooks/"):
        yield f"{package}/{folder}__init__.py", ""
    if settings.license == "apache2":
        yield _LICENSE, (_TEMPLATES / "project" / "apache2.txt").read_text(encoding="utf-8")


def kind_files(settings: Settings, resource: Resource, parts: Collection[Part]) -> dict[str, str]:
    """Return the files of one version of a kind, as far as they belong to these parts. Raises: as `scaffold_files`."""
    _refuse_other_source(settings)
    k = Words(settings, resource)
    image = "image_" if resource.image else ""
    flavour = "fleet_" if resource.fleet else image
    files: dict[str, str] = {}
    if "api" in parts:
        files.update(_module(k.api_module, f"{image}api.py", settings, k))
    if "controller" in parts:
        files.update(_module(k.controller_module, f"{flavour}controller.py", settings, k))
        path = f"tests/{k.test_stem}_controller.py"
        files[path] = _text(path, f"kind/test_{flavour}controller.py", settings, k=k)
    if "webhook" in parts:
        files.update(_module(k.webhook_module, "webhook.py", settings, k))
        path = f"tests/{k.test_stem}_{k.version}_webhook.py"
        files[path] = _text(path, "kind/test_webhook.py", settings, k=k)
    return files


def _refuse_other_source(settings: Settings) -> None:
    if PurePath(settings.source_dir) != PurePath():
        raise ConfigError(
            f"cannot create files: the source-dir of this project is {settings.source_dir!r}, and the package must be next to {PYPROJECT}. "
            "Write the classes by hand, and generate config/ with `ctrl manifests`"
        )


def parts_of(resource: Resource) -> list[Part]:
    """Return the parts that a version of a kind has in the project."""
    there: dict[Part, bool] = {
        "api": not resource.is_external and not resource.python_class,
        "controller": resource.controller,
        "webhook": resource.has_webhook,
    }
    return [part for part, is_there in there.items() if is_there]


def with_packages(files: Mapping[str, str]) -> dict[str, str]:
    """Return modules with the `__init__.py` of the packages that they are in."""
    found: dict[str, str] = {}
    for path, text in files.items():
        *folders, _ = path.split("/")
        found |= {"/".join([*folders[:depth], "__init__.py"]): "" for depth in range(1, len(folders) + 1)}
        found[path] = text
    return found


def _module(name: str, template: str, settings: Settings, k: Words) -> Iterator[tuple[str, str]]:
    """Yield a module and the packages it stands in."""
    parts = name.split(".")
    for depth in range(1, len(parts)):
        yield "/".join([*parts[:depth], "__init__.py"]), ""
    path = f"{'/'.join(parts)}.py"
    yield path, _text(path, f"kind/{template}", settings, k=k)


def _election(settings: Settings) -> str:
    """Return the name of the operator's lease: the same for a project at any time, and another for any other."""
    digest = hashlib.sha256(f"{settings.project_name}.{settings.domain}".encode()).hexdigest()
    return f"{digest[:8]}.{settings.domain}"


# Texts


def _text(path: str, template: str, settings: Settings, **words: Any) -> str:
    text: str = _environment().get_template(f"{template}.jinja").render(settings=settings, **words)
    return _head(settings) + text if path.endswith(".py") else text


def _head(settings: Settings) -> str:
    lines: list[str] = []
    if settings.license != "none" and settings.owner:
        lines.append(f"# Copyright {settings.owner}")
    if settings.license == "apache2":
        lines.append("# SPDX-License-Identifier: Apache-2.0")
    return "".join(f"{line}\n" for line in lines) + ("\n" if lines else "")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - these texts are code, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["toml"] = _quoted
    return environment


def _quoted(text: str) -> str:
    """Return a text in double quotes, as TOML and Python both read it."""
    return json.dumps(text, ensure_ascii=False)
