"""`ctrl init`: a folder becomes a project."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import click

from ctrlruntime.cli.go_flags import GoFlagsCommand
from ctrlruntime.cli.output import read_text, say, warn
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.project_file import ProjectFile, read_project_file
from ctrlruntime.project.scaffold import LICENSES, Added, Takeover, begin, new_project, take_over
from ctrlruntime.project.settings import Settings, in_go

__all__ = ["init", "show"]

_HELP = """Create a project in FOLDER (default: the current one) with a package, tests, manifests, a Dockerfile and workflows.

    The package can be imported and its tests pass. Add kinds with `ctrl create api`. The options are saved in [tool.ctrlruntime] of
    pyproject.toml.

    With --from, the project takes over a kubebuilder project in Go, which does not change: the names and the domain of its PROJECT file,
    classes from the CRDs in config/crd/bases, and new files for its controllers and webhooks, in which you write their code. Other options
    replace the settings of PROJECT. Run `make manifests` in the Go project first.

    \b
    Examples:
      ctrl init --domain example.com
      ctrl init shop --domain example.com --license apache2 --owner "The Shop Authors"
      ctrl init shop --from ../shop-in-go
    """
_NEW: Final = "  ctrl create api --group webapp --version v1 --kind Guestbook\n"
_DOMAIN: Final = "my.domain"


@click.command(cls=GoFlagsCommand, help=_HELP)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "source",
    metavar="GO_PROJECT",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of a kubebuilder project to take over.",
)
@click.option("--domain", default="", metavar="DOMAIN", help=f"Domain of your API groups.  [default: {_DOMAIN}]")
@click.option(
    "--project-name",
    default="",
    metavar="NAME",
    help="Name of the project, a DNS label.  [default: the name of the folder]",
)
@click.option("--package", default="", metavar="NAME", help="Python package.  [default: the name of the project]")
@click.option("--image", default="", metavar="IMAGE", help="Image of the operator.  [default: NAME:latest]")
@click.option(
    "--owner",
    default="",
    metavar="OWNER",
    help="Copyright holder, written to pyproject.toml and, with a license, to each Python file.",
)
@click.option(
    "--license", type=click.Choice(LICENSES), default="none", show_default=True, help="License of the project."
)
@click.option(
    "--license-file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the text of another license, copied to LICENSE.",
)  # fmt: skip
@click.option(
    "--namespaced", is_flag=True, help="Restrict the operator to its own namespace, with a Role for namespaced kinds."
)
@click.option("--multigroup", is_flag=True, help="Create classes in api/GROUP/VERSION, for several API groups.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(
    *,
    folder: Path,
    source: Path | None,
    domain: str,
    project_name: str,
    package: str,
    image: str,
    owner: str,
    license: str,
    license_file: Path | None,
    namespaced: bool,
    multigroup: bool,
    force: bool,
) -> None:
    if license_file is not None and license != "none":
        raise click.UsageError("use --license or --license-file, not both")
    if error := in_go(folder):
        raise error
    project = ProjectFile() if source is None else read_project_file(source)
    if source is not None and not (domain or project.domain):
        raise ConfigError(f"the file PROJECT in {source} has no domain. Add --domain, such as --domain example.com")
    settings = new_project(
        folder,
        domain=domain or project.domain or _DOMAIN,
        project_name=project_name or project.project_name,
        package=package,
        image=image,
        owner=owner,
        license="file" if license_file else license,
        namespaced=namespaced or project.namespaced,
        multigroup=multigroup or project.multigroup,
    )
    text = _text(license_file)
    notes: list[str] = []
    try:
        taken = Takeover(settings) if source is None else take_over(source, project, settings, warn=notes.append)
        added = begin(folder, taken.settings, warn=warn, license_text=text, modules=taken.modules, force=force)
        show(added, folder)
    finally:  # below the list of files, where they are seen
        for note in notes:
            warn(note)
    enter = "" if folder.absolute() == Path.cwd() else f"  cd {shlex.quote(str(folder))}\n"
    say(
        f"\nThe project {settings.project_name} is ready. Next:\n{enter}"
        "  python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[dev]'\n"
        f"{_NEW if source is None else _taken_over(source, settings)}"
        "  pytest"
    )


def _taken_over(source: Path, settings: Settings) -> str:
    return (
        f"  ctrl crd diff {shlex.quote(str(source.resolve() / 'config/crd/bases'))} config/crd/bases\n"
        f"  write the code of {settings.package}/controllers and {settings.package}/webhooks, as in Go\n"
    )


def show(added: Added, folder: Path) -> None:
    """Print what was written: each file of the scaffold, and how many there are in `config/`."""
    for file in added.files:
        if not file.path.startswith(("config/", ".ctrlruntime/")):
            say(f"{'created' if file.is_new else 'changed'} {folder / file.path}")
    count = sum(file.path.startswith("config/") for file in added.files) + len(added.config)
    say(f"wrote {count} file{'' if count == 1 else 's'} in {folder / 'config'}")


def _text(path: Path | None) -> str:
    if path is None:
        return ""
    text = read_text(str(path))
    if not text.strip():
        raise ConfigError(f"the license file {path} is empty")
    return text
