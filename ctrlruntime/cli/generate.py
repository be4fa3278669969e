"""`ctrl generate`: the base of a bundle, which people write what a catalog shows into."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ctrlruntime.cli.output import ask, read_text, say, warn
from ctrlruntime.cli.words import words, words_of
from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.capabilities import LEVELS

if TYPE_CHECKING:
    from ctrlruntime.olm.making import Answers

__all__ = ["generate"]

_HELP = """Create the base of a bundle, and set its catalog fields.

    The base is config/manifests/bases/PROJECT.clusterserviceversion.yaml. A missing file is created. In an existing file, only the fields that
    you set change, and comments stay. Leave out what your classes and manifests contain: `ctrl bundle` adds it.

    At a terminal, without options that set a field, you are prompted for the six most important ones. Press Enter to keep a value. An invalid
    value is prompted for again.

    \b
    Examples:
      ctrl generate kustomize-manifests
      ctrl generate kustomize-manifests --display-name Shop --provider "The Shop Authors" \\
          --maintainer "Ada:ada@example.com" --icon logo.svg --categories "Database, Monitoring"
    """


_QUESTIONS: Final = (
    ("display_name", "Display name", True),
    ("description", "Description", True),
    ("provider", "Name of the provider", True),
    ("provider_url", "URL of the provider", False),
    ("keywords", "Keywords (comma between them)", False),
    ("maintainers", "Maintainers (name:email, comma between them)", False),
)


@click.group()
def generate() -> None:
    """Write the base that `ctrl bundle` starts from."""


@click.group(hidden=True)
def kustomize() -> None:
    """Write the base of a bundle: operator-sdk's spelling."""


def _several(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> list[str] | None:
    return list(texts) or None


@generate.command("kustomize-manifests", help=_HELP, short_help="Create the base, and set its catalog fields.")
@click.option(
    "--project", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the project.  [default: the current folder, or the nearest parent that is a project]",
)  # fmt: skip
@click.option(
    "--interactive/--no-interactive",
    default=None,
    help="Prompt for the catalog fields.  [default: in a terminal, without other options]",
)
@click.option("--display-name", metavar="TEXT", help="Display name of the operator.")
@click.option("--description", metavar="TEXT", help="Description in Markdown.")
@click.option(
    "--description-file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the description in Markdown.",
)  # fmt: skip
@click.option("--short-description", metavar="TEXT", help="Summary in one sentence.")
@click.option("--provider", metavar="NAME", help="Name of the provider.")
@click.option("--provider-url", metavar="URL", help="URL of the provider.")
@click.option("--keywords", metavar="WORD[,WORD]", callback=words, help="Keywords for the search.")
@click.option(
    "--maintainer", "maintainers", multiple=True, metavar="NAME:EMAIL", callback=_several,
    help="Maintainer. Can be repeated.",
)  # fmt: skip
@click.option(
    "--link", "links", multiple=True, metavar="NAME=URL", callback=_several,
    help="Link to documentation. Can be repeated.",
)  # fmt: skip
@click.option(
    "--icon", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Icon file: SVG, PNG, JPEG or GIF.",
)  # fmt: skip
@click.option("--min-kube-version", metavar="VERSION", help="Lowest supported version of Kubernetes, like 1.28.0.")
@click.option("--maturity", metavar="WORD", help="Maturity, like alpha, beta or stable.")
@click.option("--capabilities", type=click.Choice(LEVELS), help="Capability level of the operator.")
@click.option("--categories", metavar="TEXT", help='Categories in a catalog, like "Database, Monitoring".')
@click.option("--container-image", metavar="IMAGE", help="Image of the operator.")
@click.option("--repository", metavar="URL", help="URL of the source repository.")
@click.option("--support", metavar="TEXT", help="Support contact: a name, or a URL.")
def kustomize_manifests(
    *, project: Path | None, interactive: bool | None, description_file: Path | None, **answers: Any
) -> None:
    from ctrlruntime.olm.making import Answers, base_of
    from ctrlruntime.project.generated import apply
    from ctrlruntime.project.settings import find_project, read_settings

    if description_file is not None:
        if answers["description"] is not None:
            raise click.UsageError("use --description or --description-file, not both")
        answers["description"] = read_text(str(description_file))
    folder = project if project is not None else Path(os.path.relpath(find_project(Path.cwd())))
    settings = read_settings(folder)
    said = Answers(**answers)
    if interactive or (interactive is None and said.is_empty and sys.stdin.isatty()):
        from ctrlruntime.olm.making import current_answers

        said = _asked(said, current_answers(folder, settings))
    base = base_of(folder, settings, said)
    _tell_of_categories(said.categories or "")
    if base.change is None:
        say(f"{base.path}: up to date")
        return
    apply([base.change])
    say(base.change.line())
    if base.is_rewritten:
        warn(f"{base.path} was rewritten without its comments")


def _tell_of_categories(text: str) -> None:
    from ctrlruntime.olm.validation.hub import CATEGORIES, VARIABLE
    from ctrlruntime.spelling import did_you_mean

    if os.environ.get(VARIABLE):  # the catalog has shelves of its own
        return
    for name in words_of(text):
        if name not in CATEGORIES:
            warn(f"{name!r} is not a category of OperatorHub.io{did_you_mean(name, CATEGORIES)}")


kustomize.add_command(kustomize_manifests, "manifests")
generate.add_command(kustomize)


# Asking


def _asked(said: Answers, now: Answers) -> Answers:
    """Ask for what was not said. What a person leaves as it is stays unsaid."""
    found = said
    for name, question, is_required in _QUESTIONS:
        if getattr(said, name) is None:
            found = replace(found, **{name: _ask(name, question, getattr(now, name), is_required=is_required)})
    return found


def _ask(name: str, question: str, now: Any, *, is_required: bool) -> Any:
    """Return the answer to a question, None when it stays as it is. What the field cannot hold is asked again, with the reason."""
    from ctrlruntime.olm.making import Answers

    is_list = name in {"keywords", "maintainers"}
    before = ", ".join(now or ()) if is_list else (now or "").strip()
    shown = _shown(before)
    while True:
        text = ask(f"{question} [{shown}]" if shown else question)
        if text in {"", before, shown}:
            if before or not is_required:
                return None
            say("error: a value is required", err=True)
            continue
        answer: Any = words_of(text) if is_list else text
        try:
            Answers(**{name: answer}).values()
        except ConfigError as error:
            say(f"error: {error}", err=True)
        else:
            return answer


def _shown(text: str) -> str:
    """Return what is shown of a text of several lines: the first one, and how many there are."""
    lines = text.splitlines()
    return f"{lines[0]} … ({len(lines)} lines)" if len(lines) > 1 else text
