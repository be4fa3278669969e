"""`ctrl helm`: the Helm chart of a project, without overwriting the user's changes."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ctrlruntime.cli.output import say, warn
from ctrlruntime.project.generated import folder_for
from ctrlruntime.project.helm import chart_files, refresh
from ctrlruntime.project.settings import find_project, read_settings

__all__ = ["helm"]

_HELP = """Create a Helm chart of the project: the objects of config/default, with values.

    Chart.yaml, values.yaml and .helmignore are created if they are missing, and never changed. A warning names the values that the templates
    require and your values.yaml does not have. Templates are marked as generated in their first line. They are rewritten, and deleted when
    their source no longer exists. Remove the first line of a template to keep your own version.

    \b
    Examples:
      ctrl helm
      ctrl helm --output-dir charts/shop
      helm install shop dist/chart --namespace shop-system --create-namespace
    """


@click.command(help=_HELP)
@click.option(
    "--output-dir", "folder", default="dist/chart", show_default=True, metavar="DIR",
    type=click.Path(path_type=Path), help="Folder of the chart, relative to the project.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Also overwrite templates without the mark.")
def helm(*, folder: Path, force: bool) -> None:
    # Relative to here, as a person would name the files.
    project = Path(os.path.relpath(find_project(Path.cwd())))
    chart = folder_for("chart", project, folder)
    found = refresh(chart, chart_files(project, read_settings(project), warn=warn), warn=warn, force=force)
    found.apply()
    for line in found.report():
        say(line)
