"""The files of a project's chart, and how a folder differs from them.

Templates are generated. Chart.yaml, values.yaml and .helmignore are written once and belong to the user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from ctrlruntime.generate.documents import read_one, read_text
from ctrlruntime.generate.options import Warn
from ctrlruntime.project.generated import Refresh, refreshed
from ctrlruntime.project.helm.deployment import manager_values
from ctrlruntime.project.helm.forms import forms_of
from ctrlruntime.project.helm.templates import manager_of, template_files
from ctrlruntime.project.helm.texts import HELMIGNORE, MARK, chart_text, helpers_text, notes_text, values_text
from ctrlruntime.project.settings import Settings

__all__ = ["chart_files", "refresh"]

_TEMPLATES: Final = "templates"
_VALUES: Final = "values.yaml"
_READ: Final = re.compile(r"\.Values\.(\w+(?:\.\w+)*)")
_MISSING: Final = object()


def chart_files(folder: Path, settings: Settings, *, warn: Warn) -> dict[str, str]:
    """Return the text of each file of the chart of the project in `folder`.

    Raises: GenerateError for a package without manifests, ConfigError for a tree that cannot be rendered.
    """
    forms = forms_of(folder, settings, warn=warn)
    deployment = manager_of(forms, settings)
    tag = "" if deployment is None else manager_values(deployment)["image"]["tag"]
    files = {
        "Chart.yaml": chart_text(settings, tag or "latest"),
        _VALUES: values_text(forms, settings),
        ".helmignore": HELMIGNORE,
    }
    templates = {"_helpers.tpl": helpers_text(settings), "NOTES.txt": notes_text(settings)}
    templates |= template_files(forms, settings)
    return files | {f"{_TEMPLATES}/{path}": MARK + text for path, text in templates.items()}


def refresh(chart: Path, files: Mapping[str, str], *, warn: Warn, force: bool = False) -> Refresh:
    """Return how the chart in a folder differs from its generated files; nothing is written.

    `warn` takes a line for each file of the user that differs from the generated one. `force` replaces such templates. Raises: ConfigError
    for a file that cannot be read.
    """
    paths = {chart / name: text for name, text in files.items()}
    found = refreshed(chart, paths, mark=MARK, within=_TEMPLATES, force=force)
    for note in found.notes():
        warn(f"{note}, or use --force")
    if (chart / _VALUES).exists():
        _compare_values(chart / _VALUES, files, warn)
    return found


def _compare_values(path: Path, files: Mapping[str, str], warn: Warn) -> None:
    """Warn if the templates read values that the user's file does not have, or that are different from those of the project."""
    given = read_one(read_text(path), str(path))
    generated = read_one(files[_VALUES], _VALUES)
    read = sorted({name for text in files.values() for name in _READ.findall(text)})
    # Prose in a template can name a value, too.
    known = [name for name in read if _value(generated, name) is not _MISSING]
    missing = [name for name in known if _value(given, name) is _MISSING]
    other = [name for name in known if name not in missing and _value(given, name) != _value(generated, name)]
    notes = [
        *([f"the templates require {', '.join(missing)}"] if missing else ()),
        *([f"the project has other values for {', '.join(other)}"] if other else ()),
    ]
    if notes:
        warn(f"{path}: not changed, but {', and '.join(notes)}. Edit it, or delete it to get the generated one")


def _value(values: Any, name: str) -> Any:
    for key in name.split("."):
        values = cast("Mapping[str, Any]", values).get(key, _MISSING) if isinstance(values, Mapping) else _MISSING
    return values
