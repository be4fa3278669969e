"""`ctrl import`: pydantic classes from the file of a CustomResourceDefinition."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ctrlruntime.cli.output import read_text, say, source_name, warn
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.importing import chosen, importable, source_of
from ctrlruntime.project.staging import write

__all__ = ["import_definitions"]

_HELP = """Generate Python classes from the CustomResourceDefinitions in FILE (- reads from standard input).

    Each version of a kind becomes a ctrl.Object class, and each nested object a ctrl.Model class. The classes have external=True, because
    another project owns the CRD. Only `ctrl run --embedded` and `ctrl install --include-external` install it; no command deploys or deletes
    it. To take a CRD over into this project, use --own: `ctrl manifests` then generates it. A warning names the path of everything that
    classes cannot express. Without --output, the module is printed.

    \b
    Examples:
      ctrl import crontab.yaml -o shop/crontab.py
      kubectl get crd certificates.cert-manager.io -o yaml | ctrl import - -o shop/certificates.py
      ctrl import config/crd/bases/shop.example.com_carts.yaml --own -o shop/api/v1/cart.py
    """


def _package_files(module: Path) -> list[Path]:
    """Return the missing `__init__.py` files between a module and the package that its folder is in.

    Without them, `ctrl manifests` would not find the classes.
    """
    missing: list[Path] = []
    for folder in module.absolute().parents:
        if (folder / "__init__.py").is_file():
            return missing
        missing.append(folder / "__init__.py")
    return []


@click.command("import", help=_HELP)
@click.argument("file", metavar="FILE")
@click.option(
    "-o",
    "--output",
    metavar="OUT.py",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of the module.  [default: standard output]",
)
@click.option("--kind", metavar="KIND", help="Import only this kind.")
@click.option("--class-prefix", default="", metavar="PREFIX", help="Prefix of each class name.")
@click.option("--own", is_flag=True, help="Take the CRD over into this project.")
@click.option("--force", is_flag=True, help="Overwrite OUT.py if it exists.")
def import_definitions(
    *, file: str, output: Path | None, kind: str | None, class_prefix: str, own: bool, force: bool
) -> None:
    if class_prefix and not (class_prefix.isidentifier() and class_prefix[0].isupper()):
        raise click.BadParameter(
            f"{class_prefix!r} cannot start the name of a class. Use letters, the first a capital",
            param_hint="--class-prefix",
        )
    if output is not None and output.exists() and not force:
        raise ConfigError(f"cannot write {output}: it exists. Use another name, or --force")
    definitions = importable(read_text(file), source_name(file))
    if kind:
        definitions = chosen(definitions, kind)
    source = source_of(definitions, class_prefix=class_prefix, external=not own, warn=warn)
    if output is None:
        say(source, nl=False)
        return
    packages = _package_files(output)
    write({output: source, **dict.fromkeys(packages, "")})
    names = ", ".join(str(definition["spec"]["names"]["kind"]) for definition in definitions)
    say(f"{output}: {names}")
    for made in packages:
        say(f"created {os.path.relpath(made)}")
