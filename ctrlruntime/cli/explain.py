"""`ctrl explain`: the fields of a class, as `kubectl explain` prints those of an installed kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from ctrlruntime.api.object import Object
from ctrlruntime.cli.connection import package_here
from ctrlruntime.cli.output import say, warn
from ctrlruntime.errors import GenerateError
from ctrlruntime.project.fields import Explanation, Field, UnknownKindError, plaintext
from ctrlruntime.project.fields import explain as explained
from ctrlruntime.project.package import load

__all__ = ["explain"]

_HELP = """Print the fields of a kind from its class, as kubectl explain does after its CRD is installed.

    KIND is a kind, plural, singular or short name, and may be followed by the path of a field. The classes of the project, or of MODULE,
    take precedence over built-in kinds. Built-in kinds have types, but no descriptions.

    \b
      ctrl explain Website
      ctrl explain website.spec.image --module shop
      ctrl explain Deployment.spec.template --recursive
    """


@click.command(help=_HELP)
@click.argument("what", metavar="KIND[.PATH]")
@click.option("--module", metavar="MODULE", help="Dotted name of the operator's package.  [default: the project's]")
@click.option("--recursive", is_flag=True, help="Print nested fields too, without descriptions.")
@click.option("--api-version", default="", metavar="GROUP/VERSION", help="Version of the kind.")
@click.option(
    "--output",
    "form",
    type=click.Choice(["plaintext", "json"]),
    default="plaintext",
    show_default=True,
    help="Output format.",
)
def explain(*, what: str, module: str | None, recursive: bool, api_version: str, form: str) -> None:
    kinds, is_known = _kinds(module)
    try:
        explanation = explained(what, kinds, api_version=api_version, recursive=recursive)
    except UnknownKindError as error:
        if is_known:
            raise
        text = str(error)
        raise UnknownKindError(
            f"{text}{'' if text.endswith('?') else '.'} For a kind of your own, pass --module MODULE, or run this command in a project"
        ) from error
    if form == "json":
        say(json.dumps(_as_json(explanation), indent=2))
        return
    say(plaintext(explanation, recursive=recursive))
    if explanation.is_builtin:
        say("note: built-in kinds have no descriptions here. Run kubectl explain to get them from a cluster", err=True)


def _kinds(module: str | None) -> tuple[Sequence[type[Object]], bool]:
    """Return the classes to look through, and whether the operator's package is known."""
    if module is not None:
        return load(module).kinds, True
    package = package_here()
    if package is None:
        return (), False
    try:
        return load(package).kinds, True
    except GenerateError as error:  # while the code does not work, the built-in kinds can be looked up
        warn(f"only built-in kinds are known: {error}")
        return (), True


def _as_json(explanation: Explanation) -> Mapping[str, Any]:
    kind = explanation.kind
    return {
        "group": kind.group,
        "version": kind.version,
        "kind": kind.kind,
        "path": ".".join(explanation.path),
        **({"type": explanation.type} if explanation.type else {}),
        **({"enum": list(explanation.enum)} if explanation.enum else {}),
        "description": explanation.description.rstrip("\n"),
        "fields": _fields_as_json(explanation.fields),
    }


def _fields_as_json(fields: Iterable[Field]) -> list[Mapping[str, Any]]:
    return [
        {
            "name": field.name,
            "type": field.type,
            "required": field.required,
            **({"enum": list(field.enum)} if field.enum else {}),
            "description": field.description,
            **({"fields": _fields_as_json(field.fields)} if field.fields else {}),
        }
        for field in fields
    ]
