"""`ctrl deploy` and `ctrl undeploy`: the project's kustomize tree, in a cluster and out of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ctrlruntime.cli.connection import cluster_options, project_here, with_cluster
from ctrlruntime.cli.output import say, say_objects, warn
from ctrlruntime.errors import ConfigError, CtrlError
from ctrlruntime.project.deployment import (
    Document,
    NotDeployedError,
    Options,
    Plan,
    Removal,
    Step,
    manager_deployment,
    with_image,
)
from ctrlruntime.project.deployment import deploy as put
from ctrlruntime.project.deployment import undeploy as take_away
from ctrlruntime.project.kustomize import render
from ctrlruntime.project.settings import Settings

__all__ = ["deploy", "undeploy"]

_DEFAULT = "config/default"
_overlay = click.argument("overlay", required=False, metavar="[OVERLAY]", type=click.Path(path_type=Path))

_DEPLOY = """Deploy the project to a cluster: apply OVERLAY, a kustomization (default: config/default).

    First it checks for missing kinds, missing permissions and objects of another deployment. Then it applies (server-side, field manager
    ctrl) Namespaces, CRDs and the operator, and when the operator is available, its webhooks. Objects of an earlier deploy that OVERLAY no
    longer contains are deleted, except Namespaces, and CRDs that have objects.

    Stale manifests cause a warning, or with --strict an error.

    \b
    Examples:
      ctrl deploy --image registry.example.com/shop:v1
      ctrl deploy config/overlays/test --context test --timeout 300
      ctrl deploy --dry-run
    """


@click.command(help=_DEPLOY)
@_overlay
@click.option("--image", metavar="IMAGE", help="Image of the operator.  [default: the image in the overlay]")
@cluster_options
@click.option(
    "--timeout", "wait", default=120.0, show_default=True, metavar="SECONDS", type=click.FloatRange(min=0, min_open=True),
    help="Time for the operator to become available.",
)  # fmt: skip
@click.option("--no-wait", is_flag=True, help="Do not wait for the operator.")
@click.option("--dry-run", is_flag=True, help="Let the API server validate everything, and change nothing.")
@click.option(
    "--force-conflicts",
    is_flag=True,
    help="Take over fields of other field managers, and objects of other deployments.",
)
@click.option("--strict", is_flag=True, help="Fail if the manifests are stale.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, at the end.")
def deploy(
    *,
    overlay: Path | None,
    image: str | None,
    kubeconfig: str | None,
    context: str | None,
    wait: float,
    no_wait: bool,
    dry_run: bool,
    force_conflicts: bool,
    strict: bool,
    as_json: bool,
) -> None:
    folder, settings = project_here()
    _check_stale(folder, settings, strict=strict)
    documents = render(overlay or folder / _DEFAULT)
    if image is not None:
        documents = with_image(documents, image)
    namespace = _namespace(documents, settings)
    options = Options(
        wait=None if no_wait else wait, dry_run=dry_run, force_conflicts=force_conflicts, version=_version()
    )
    report = _Report(as_json=as_json, suffix=" (dry run)" if dry_run else "")
    with report:
        with_cluster(
            kubeconfig,
            context,
            lambda cluster: put(
                cluster, documents, name=settings.project_name, namespace=namespace, options=options, tell=report.tell
            ),
        )


_UNDEPLOY = """Delete from a cluster everything that `ctrl deploy` created.

    Custom resources are deleted first, while the operator still runs its finalizers. The Namespace is deleted last. You are asked for
    confirmation before custom resources are deleted.

    \b
    Examples:
      ctrl undeploy
      ctrl undeploy config/overlays/test --context test --yes
      ctrl undeploy --yes --remove-finalizers
    """


@click.command(help=_UNDEPLOY)
@_overlay
@cluster_options
@click.option("--yes", is_flag=True, help="Delete without confirmation.")
@click.option("--ignore-not-found", is_flag=True, help="Succeed if nothing is deployed.")
@click.option(
    "--timeout", "wait", default=120.0, show_default=True, metavar="SECONDS", type=click.FloatRange(min=0, min_open=True),
    help="Time for everything to be deleted.",
)  # fmt: skip
@click.option(
    "--remove-finalizers", is_flag=True, help="Remove the finalizers of your kinds' objects, if the operator does not."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, at the end.")
def undeploy(
    *,
    overlay: Path | None,
    kubeconfig: str | None,
    context: str | None,
    yes: bool,
    ignore_not_found: bool,
    wait: float,
    remove_finalizers: bool,
    as_json: bool,
) -> None:
    folder, settings = project_here()
    namespace = _namespace_to_clear(overlay, folder, settings)
    removal = Removal(wait=wait, remove_finalizers=remove_finalizers, confirm=_go_on if yes else _ask)
    report = _Report(as_json=as_json)
    with report:
        try:
            with_cluster(
                kubeconfig,
                context,
                lambda cluster: take_away(
                    cluster, name=settings.project_name, namespace=namespace, removal=removal, tell=report.tell
                ),
            )
        except NotDeployedError as error:
            if not ignore_not_found:
                raise
            say(str(error), err=True)


class _Report:
    """Prints each step as it happens, or all of them as JSON when it is over, also when it ended in an error."""

    def __init__(self, *, as_json: bool, suffix: str = "") -> None:
        self._as_json = as_json
        self._suffix = suffix
        self._steps: list[Step] = []

    def tell(self, step: Step) -> None:
        self._steps.append(step)
        if not self._as_json:
            say(f"{step}{self._suffix}")

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._as_json:
            found: dict[str, Any] = {"steps": [step.to_json() for step in self._steps]}
            if isinstance(error, CtrlError):
                found["error"] = str(error)
            say(json.dumps(found, indent=2))


def _check_stale(folder: Path, settings: Settings, *, strict: bool) -> None:
    """Compare config/ with the code: a person may have changed a class and not run `ctrl manifests`."""
    from ctrlruntime.project.config import refresh

    try:
        stale = refresh(folder, settings, warn=lambda _text: None).stale
    except CtrlError as error:
        if strict:
            raise
        warn(f"cannot check whether the manifests are stale: {error}")
        return
    if not stale:
        return
    text = f"stale: {', '.join(str(path) for path in stale)}. Run `ctrl manifests`"
    if strict:
        raise ConfigError(f"{text}, or deploy without --strict")
    warn(text)


def _namespace(documents: Sequence[Document], settings: Settings) -> str:
    """Return where the operator runs: that is where the record of the deployment is kept."""
    deployment = manager_deployment(documents)
    return str((deployment or {}).get("metadata", {}).get("namespace") or settings.namespace)


def _namespace_to_clear(overlay: Path | None, folder: Path, settings: Settings) -> str:
    """Return where a deployment was made. A tree that no longer renders is not a reason not to remove what it was."""
    try:
        return _namespace(render(overlay or folder / _DEFAULT), settings)
    except ConfigError:
        if overlay is not None:
            raise
        return settings.namespace


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ctrlruntime")
    except PackageNotFoundError:
        return ""


def _go_on(_plan: Plan) -> None:
    return


def _ask(plan: Plan) -> None:
    """Ask before users' data goes. Raises: click.Abort."""
    for definition, objects in plan.custom.items():
        say_objects(definition.name, objects)
    if plan.custom:
        sys.stdout.flush()
        click.confirm("Continue?", abort=True, err=True)
