"""`ctrl bundle`: the bundle of a project for the Operator Lifecycle Manager; and, below it, what is done with a bundle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from ctrlruntime.cli.lazy import Command, LazyGroup
from ctrlruntime.cli.output import read_text, say, source_name, warn
from ctrlruntime.cli.words import words

if TYPE_CHECKING:
    from ctrlruntime.olm.making import Material, Plan
    from ctrlruntime.project.settings import Settings

__all__ = ["bundle"]

_HELP = """Create the bundle of a project, for the Operator Lifecycle Manager (OLM).

    \b
      DIR/manifests/*.yaml            the ClusterServiceVersion, CRDs and other objects
      DIR/metadata/annotations.yaml   the package and its channels
      DIR/tests/scorecard/config.yaml
      DIR.Dockerfile                  the bundle image: docker build -f bundle.Dockerfile .

    The sources are the rendered config/manifests and your classes. Set the description, icon and other catalog fields in
    config/manifests/bases (`ctrl generate kustomize-manifests`). A warning names each missing field.

    Without options, version, channels and package stay the same. Files that are marked as generated in their first line are rewritten, and
    removed when their source no longer exists. Your own files in manifests/, metadata/dependencies.yaml and your annotations are kept.

    \b
    Examples:
      ctrl bundle --version 0.1.0
      ctrl bundle --version 0.2.0 --channels candidate,stable --default-channel stable
      ctrl bundle --check
      kubectl kustomize config/manifests | ctrl bundle --input - --package shop --version 0.1.0
    """

_DIGEST: Final = "@sha256:"
_BELOW: Final = {
    "compare": Command("ctrlruntime.cli.bundle_compare", "compare", "Compare two bundles."),
    "validate": Command("ctrlruntime.cli.bundle_validate", "validate", "Validate a bundle, without a cluster or a registry."),
}  # fmt: skip


@click.group(cls=LazyGroup, lazy=_BELOW, invoke_without_command=True, help=_HELP)
@click.option(
    "-v", "--version", metavar="VERSION", help="Version of the operator, like 0.1.0; required for a new bundle."
)
@click.option(
    "--channels", metavar="NAME[,NAME]", callback=words,
    help="Channels in a catalog.  [default: the current ones, or candidate]",
)  # fmt: skip
@click.option("--default-channel", metavar="NAME", help="Default channel of subscriptions.")
@click.option(
    "--package", metavar="NAME", help="Package name in a catalog.  [default: the current one, or the project's]"
)
@click.option(
    "--output-dir", "folder", default="bundle", show_default=True, metavar="DIR",
    type=click.Path(path_type=Path), help="Folder of the bundle, relative to the project.",
)  # fmt: skip
@click.option(
    "--project", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the project.  [default: the current folder, or the nearest parent that is a project]",
)  # fmt: skip
@click.option(
    "--input-dir", metavar="DIR", type=click.Path(path_type=Path),
    help="Folder with the objects of the bundle, instead of config/manifests.",
)  # fmt: skip
@click.option(
    "--input", "input_file", metavar="FILE|-", help="File with the objects of the bundle; - reads from standard input."
)
@click.option(
    "--base", metavar="FILE", type=click.Path(path_type=Path),
    help="With --input or --input-dir: file of the base ClusterServiceVersion, if it is not among the objects.",
)  # fmt: skip
@click.option(
    "--extra-service-accounts", metavar="NAME[,NAME]", callback=words,
    help="Additional ServiceAccounts whose permissions OLM grants, besides those of the Deployments.",
)  # fmt: skip
@click.option(
    "--image-digests", metavar="FILE", type=click.Path(path_type=Path),
    help='Pin images to the digests in a JSON file, such as {"quay.io/me/shop:v1": "sha256:..."}.',
)  # fmt: skip
@click.option("--use-image-digests", is_flag=True, help="Pin images to the digests that the registries return.")
@click.option(
    "--check", is_flag=True, help="Write nothing; print a diff of stale files, and exit with 1 if there are any."
)
@click.option("--diff", is_flag=True, help="Write nothing; print a diff of the changes.")
@click.option("--stdout", is_flag=True, help="Write nothing; print the objects of manifests/.")
@click.pass_context
def bundle(
    context: click.Context,
    *,
    version: str | None,
    channels: list[str] | None,
    default_channel: str | None,
    package: str | None,
    folder: Path,
    project: Path | None,
    input_dir: Path | None,
    input_file: str | None,
    base: Path | None,
    extra_service_accounts: list[str] | None,
    image_digests: Path | None,
    use_image_digests: bool,
    check: bool,
    diff: bool,
    stdout: bool,
) -> None:
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    if check + diff + stdout > 1:
        raise click.UsageError("use only one of --check, --diff and --stdout")
    if image_digests is not None and use_image_digests:
        raise click.UsageError("use --image-digests or --use-image-digests, not both")
    if input_dir is not None and input_file is not None:
        raise click.UsageError("use --input-dir or --input, not both")
    if base is not None and input_dir is None and input_file is None:
        raise click.UsageError(
            "--base requires --input-dir or --input. In a project, edit the base in config/manifests/bases"
        )
    from ctrlruntime.olm.making import Given, Request, planned
    from ctrlruntime.project.generated import folder_for

    is_read = input_dir is not None or input_file is not None
    root, settings = _project(project, is_needed=not is_read)
    request = Request(
        given=Given(package=package, version=version, channels=channels, default_channel=default_channel),
        name=settings.project_name if settings is not None else "",
        extra_service_accounts=extra_service_accounts or (),
        digests=_digests(image_digests, from_registries=use_image_digests),
        digests_file=str(image_digests or ""),
    )
    where = folder_for("bundle", root, folder)
    material = _material(root, settings, input_dir, input_file, base)
    plan = planned(where, material, request, environ=os.environ, warn=warn, is_renewed=not (check or diff))
    if stdout:
        _print(plan)
    elif check or diff:
        _show(plan, material, fail=check)
    else:
        plan.refresh.apply()
        _tell(plan, material, settings)


def _digests(
    file: Path | None, *, from_registries: bool
) -> Mapping[str, str] | Callable[[Iterable[str]], Mapping[str, str]] | None:
    from ctrlruntime.olm.making import Registries, read_digests

    if from_registries:
        return Registries(os.environ).digests_of
    return None if file is None else read_digests(file)


def _refuse_options(context: click.Context) -> None:
    for parameter in context.command.params:
        if context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"{parameter.opts[0]} is an option of `ctrl bundle`. Run `ctrl bundle {context.invoked_subcommand} --help` for its options"
            )


def _project(folder: Path | None, *, is_needed: bool) -> tuple[Path, Settings | None]:
    """Return the project's folder, relative to here as a person would name files, and its settings."""
    from ctrlruntime.project.settings import NoProjectError, find_project, has_table, read_settings

    if folder is None:
        try:
            folder = Path(os.path.relpath(find_project(Path.cwd())))
        except NoProjectError:
            if is_needed:
                raise
            return Path(), None
    # A project of another tool has no classes to ask.
    return folder, read_settings(folder) if is_needed or has_table(folder) else None


def _material(
    root: Path, settings: Settings | None, input_dir: Path | None, input_file: str | None, base: Path | None
) -> Material:
    from ctrlruntime.olm.making import of_folder, of_project, of_text, read_base, with_classes

    if settings is not None and input_dir is None and input_file is None:
        return of_project(root, settings, warn=warn)
    start = None if base is None else read_base(base)
    origin = "" if base is None else str(base)
    if input_dir is not None:
        found = of_folder(input_dir, base=start, origin=origin)
    else:
        name = input_file or "-"
        found = of_text(read_text(name), source_name(name), base=start, origin=origin)
    return found if settings is None else with_classes(found, root, settings)


# Telling


def _print(plan: Plan) -> None:
    from ctrlruntime.generate.text import dump_all

    say(dump_all([plan.assembled.csv, *plan.assembled.others]), nl=False)


def _show(plan: Plan, material: Material, *, fail: bool) -> None:
    for diff in plan.refresh.diffs():
        say(diff, nl=False)
    _tell_unpinned(plan)
    if not plan.refresh.changes:
        _say_lines(plan)
    if fail and (plan.refresh.stale or material.stale):
        # What the bundle is made from comes first: it may be the one that is behind.
        names = ", ".join(map(str, material.stale or plan.refresh.stale))
        advice = "Run ctrl manifests, then ctrl bundle" if material.stale else "Run ctrl bundle without --check"
        say(f"error: stale: {names}. {advice}", err=True)
        click.get_current_context().exit(1)


def _say_lines(plan: Plan) -> None:
    for line in plan.refresh.report():
        say(line)


def _tell_unpinned(plan: Plan) -> None:
    texts = ((change.before or "", change.after) for change in plan.refresh.changes if change.after is not None)
    if any(_DIGEST in before and _DIGEST not in after for before, after in texts):
        warn(
            "the existing bundle pins its images to digests, but the new one does not. Add --image-digests or --use-image-digests"
        )


def _tell(plan: Plan, material: Material, settings: Settings | None) -> None:
    _say_lines(plan)
    _tell_unpinned(plan)
    _report(plan.strangers, "not created by `ctrl bundle`, so it is kept as part of the bundle")
    _report(plan.refresh.replaced, "replaced, although it was not created by `ctrl bundle`")
    if plan.is_rewritten:
        _report([plan.refresh.folder / "metadata"], "the annotations were rewritten without their comments")
    for line in _unsaid(plan, material, settings):
        warn(line)


def _unsaid(plan: Plan, material: Material, settings: Settings | None) -> Iterable[str]:
    from ctrlruntime.generate.documents import read_one
    from ctrlruntime.olm.making import unsaid
    from ctrlruntime.project.config.olm import base_text

    scaffold = None if settings is None else read_one(base_text(settings), "the scaffold")
    is_namespaced = None if settings is None else settings.namespaced
    return unsaid(plan.assembled.csv, origin=material.origin, scaffold=scaffold, is_namespaced=is_namespaced)


def _report(paths: Iterable[Path], text: str) -> None:
    for path in paths:
        warn(f"{path}: {text}")
