"""Bundles as `ctrl bundle` makes them: of the examples, and of projects that a test makes."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.olm.bundle import Bundle, read_bundle

EXAMPLES = Path(__file__).parents[2] / "examples"


def bundle_of(project: Path, folder: Path) -> Bundle:
    """Make the bundle of a project below `folder` and return what is in it."""
    run("bundle", "--project", str(project), "--version", "0.0.1", "--output-dir", str(folder / "bundle"))
    return read_bundle(folder / "bundle")


def run(*words: str) -> None:
    """Run `ctrl` in this process."""
    done = CliRunner().invoke(ctrl, words)
    assert done.exit_code == 0, done.output
