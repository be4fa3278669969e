"""All files of a project's chart, by path."""

from __future__ import annotations

from pathlib import Path

from ctrlruntime.generate.options import Warn
from ctrlruntime.project.helm.deployment import manager_values
from ctrlruntime.project.helm.forms import forms_of
from ctrlruntime.project.helm.templates import manager_of, template_files
from ctrlruntime.project.helm.texts import CHART, HELMIGNORE, chart_text, helpers_text, notes_text, values_text
from ctrlruntime.project.settings import Settings

__all__ = ["chart_files"]


def chart_files(folder: Path, settings: Settings, *, warn: Warn) -> dict[str, str]:
    """Return the text of each file of the chart of the project in `folder`.

    Raises: GenerateError for a package without manifests, ConfigError for a tree that cannot be rendered.
    """
    forms = forms_of(folder, settings, warn=warn)
    deployment = manager_of(forms, settings)
    tag = "" if deployment is None else manager_values(deployment)["image"]["tag"]
    files = {
        CHART: chart_text(settings, tag or "latest"),
        "values.yaml": values_text(forms, settings),
        ".helmignore": HELMIGNORE,
        "templates/_helpers.tpl": helpers_text(settings),
        "templates/NOTES.txt": notes_text(settings),
    }
    return files | {f"templates/{path}": text for path, text in template_files(forms, settings).items()}
