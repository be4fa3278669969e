"""`ctrl catalog`: a file-based catalog of bundles, written and checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import click
from typing_extensions import override

from ctrlruntime.cli.output import Coloured, read_text, say, source_name
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Document
from ctrlruntime.generate.text import dump_all
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.catalog import Catalog, blobs_in, read_catalog, render, validate
from ctrlruntime.olm.finding import Finding, Level

__all__ = ["catalog"]

_HELP: Final = """Create or validate a file-based catalog for the Operator Lifecycle Manager.

    \b
    Examples:
      ctrl catalog ./bundle > catalog.yaml
      ctrl catalog ./releases/1.0.0 ./releases/1.1.0 --image 'ghcr.io/me/shop-bundle:v{version}' > catalog.yaml
      ctrl catalog validate catalog.yaml

    `ctrl catalog BUNDLE...` is short for `ctrl catalog render BUNDLE...`. Write ./validate for a bundle in a folder named validate.
    """
_RENDER_HELP: Final = """Print the catalog of one or more bundles.

    BUNDLE... are the folders of all versions of a package. Each channel gets an entry for each of its bundles, with replaces, skips and
    olm.skipRange. If OLM would reject the catalog, the errors are printed instead.

    OLM installs a bundle from its image. The default is IMAGE-bundle:vVERSION, where IMAGE is the image of the operator, with -RELEASE at the
    end if the bundle has a release. A template for --image can contain {package}, {version} and {name} of the bundle.
    """
_VALIDATE_HELP: Final = """Validate the catalog in FILE, in all files below a folder, or from standard input (-).

    Prints one line for each problem: level, code, file, blob, field and message. Exits with 1 if there is an error.
    """


class _Catalog(click.Group):
    """What names no command is a bundle."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["render", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Catalog, help=_HELP, subcommand_metavar="BUNDLE... | validate FILE")
def catalog() -> None:
    pass


@catalog.command("render", help=_RENDER_HELP, short_help="Print a catalog of bundles.")
@click.argument("bundles", nargs=-1, required=True, metavar="BUNDLE...", type=click.Path(path_type=Path))
@click.option("--image", default="", metavar="TEMPLATE", help="Template of the bundle images.")
@click.option(
    "--default-channel", default="", metavar="CHANNEL", help="Default channel.  [default: that of the newest bundle]"
)
@click.option(
    "-o", "--output", type=click.Choice(("yaml", "json")), default="yaml", show_default=True,
    help="Format: YAML documents, or a sequence of JSON objects.",
)  # fmt: skip
def render_(*, bundles: tuple[Path, ...], image: str, default_channel: str, output: Literal["yaml", "json"]) -> None:
    blobs = render([read_bundle(each) for each in bundles], image=image, default_channel=default_channel)
    text = _text(blobs, output)
    findings = validate(blobs_in([("", text)]))
    for each in findings:
        say(*_line(each), err=True)
    if any(each.level is Level.ERROR for each in findings):
        raise ConfigError("cannot write the catalog: OLM would reject it. Fix the errors above")
    say(text, nl=False)


def _text(blobs: Sequence[Document], output: str) -> str:
    return dump_all(blobs) if output == "yaml" else "".join(json.dumps(blob, indent=2) + "\n" for blob in blobs)


@catalog.command("validate", help=_VALIDATE_HELP, short_help="Validate a catalog.")
@click.argument("file", metavar="FILE|DIR")
@click.option(
    "-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True,
    help="Format: text lines, or a JSON object.",
)  # fmt: skip
def validate_(*, file: str, output: Literal["text", "json"]) -> None:
    found = blobs_in([(source_name(file), read_text(file))]) if file == "-" else read_catalog(Path(file))
    findings = validate(found)
    passed = not any(each.level is Level.ERROR for each in findings)
    if output == "json":
        say(json.dumps({"passed": passed, "outputs": [_document(each) for each in findings]}, indent=2))
    else:
        for each in findings:
            say(*_line(each))
        say(_summary(found, findings), err=True)
    if not passed:
        click.get_current_context().exit(1)


def _line(finding: Finding) -> tuple[Coloured, str]:
    level = Coloured(f"{finding.level.value:<7}", "red" if finding.level is Level.ERROR else "yellow")
    return level, f"  {finding.code}  {finding}"


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "type": finding.level.value,
        "code": finding.code,
        "file": finding.file,
        "object": finding.object,
        "path": finding.path,
        "message": finding.text,
    }


def _summary(found: Catalog, findings: Sequence[Finding]) -> str:
    counts = Counter(each.level for each in findings)
    words = [(len(found.blobs), "blob"), (counts[Level.ERROR], "error"), (counts[Level.WARNING], "warning")]
    return ", ".join(f"{number} {word}{'' if number == 1 else 's'}" for number, word in words)
