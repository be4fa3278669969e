"""`ctrl upgrade`: the scaffold of a project, brought to this version."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from ctrlruntime.cli.output import Coloured, say
from ctrlruntime.project.settings import Settings, find_project, read_settings
from ctrlruntime.project.upgrade import Outcome, Upgrade, apply, check_work_tree, plan

__all__ = ["upgrade"]

_COLORS: Final = {Outcome.CONFLICT: "red", Outcome.MERGED: "yellow", Outcome.UPDATED: "green", Outcome.ADDED: "green"}

_HELP = """Upgrade the files that `ctrl init` and `ctrl create` wrote to this version of ctrl.

    Each file is merged three ways: the originally generated version (in .ctrlruntime/scaffold.json), your version and the newly generated
    version. A file that you did not edit is replaced, and a file that you deleted is not restored. Conflicting lines are written between
    <<<<<<< and >>>>>>>, and the exit code is 1. The git work tree must be clean. Then `git status` and `git diff` show the upgrade, and `git
    stash -u` takes it back.

    \b
    Examples:
      ctrl upgrade --dry-run
      ctrl upgrade && ctrl manifests && pytest
    """


@click.command(help=_HELP)
@click.option("--dry-run", is_flag=True, help="Print the change of each file, and write nothing.")
@click.option("--force", is_flag=True, help="Continue in a folder that is not in git.")
def upgrade(*, dry_run: bool, force: bool) -> None:
    folder = find_project(Path.cwd())
    settings = read_settings(folder)
    if not dry_run:
        check_work_tree(folder, force=force)
    planned = plan(folder, settings, newest_files(settings), version("ctrlruntime"))
    if not dry_run:
        apply(planned)
    _print(planned, dry_run=dry_run)
    if planned.conflicts:
        click.get_current_context().exit(1)


def newest_files(settings: Settings) -> dict[str, str]:
    """Return what this version would scaffold for a project: path below its folder -> text."""
    from ctrlruntime.project.config import first_files
    from ctrlruntime.project.scaffold import scaffold_files

    return {**scaffold_files(settings), **{f"config/{path}": text for path, text in first_files(settings).items()}}


def _print(planned: Upgrade, *, dry_run: bool) -> None:
    for step in planned.steps:
        outcome = Coloured(f"{step.outcome:<9}", _COLORS.get(step.outcome))
        say(outcome, f"  {step.path}{f' ({step.note})' if step.note else ''}")
    counts = Counter(step.outcome for step in planned.steps)
    say(", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]) or "no files")
    if dry_run:
        say("nothing was written")
    elif planned.conflicts:
        say("Resolve the conflicts between <<<<<<< and >>>>>>>, then run ctrl manifests and the tests", err=True)
    elif planned.texts:
        say(f"the project is upgraded to {planned.now}. Run ctrl manifests and the tests, then commit")
