"""`ctrl helm`: the Helm chart of a project, without overwriting the user's changes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from ctrlruntime.cli.output import say, warn
from ctrlruntime.project.helm import CHART, Plan, chart_files, planned
from ctrlruntime.project.settings import find_project, read_settings
from ctrlruntime.project.tree import folder_for

__all__ = ["helm"]

_HELP = """Create a Helm chart of the project: the objects of config/default, with values.

    Chart.yaml is created once. Other files that you edited or deleted are not changed, and are listed; --force overwrites them. The file
    .checksums has the checksums of the generated files, to detect your changes: commit it.

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
@click.option("--force", is_flag=True, help="Overwrite edited files, and create deleted ones again.")
def helm(*, folder: Path, force: bool) -> None:
    project = find_project(Path.cwd())
    chart = folder_for("chart", project, folder)
    plan = planned(chart, chart_files(project, read_settings(project), warn=warn), once=[CHART], force=force)
    plan.apply()
    _tell(plan, folder)


def _tell(plan: Plan, folder: Path) -> None:
    for word, names in (("created", plan.created), ("changed", plan.changed), ("removed", plan.removed)):
        for name in names:
            say(f"{word} {folder / name}")
    if plan.is_empty:
        say(f"{len(plan.sums) + 1} files in {folder}: up to date")
    _report(plan.kept, folder, "not changed, because you edited it. Overwrite it with --force")
    _report(plan.deleted, folder, "not created, because you deleted it. Create it with --force")
    _report(
        plan.left,
        folder,
        "not deleted, because you edited it, but the chart no longer requires it. Delete it, or use --force",
    )


def _report(names: Iterable[str], folder: Path, text: str) -> None:
    for name in names:
        warn(f"{folder / name}: {text}")
