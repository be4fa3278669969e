"""`ctrl run`: the operator here, as a process of its own, against a cluster or an embedded API server."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from ctrlruntime.cli.connection import cluster_options, configuration, project_here, with_client
from ctrlruntime.cli.output import say
from ctrlruntime.errors import ConfigError, CtrlError
from ctrlruntime.manager.flags import DEBUG_ADDRESS_FILE
from ctrlruntime.project.package import with_source
from ctrlruntime.project.running import Operator, debug_address_file, install_definitions, source_folder
from ctrlruntime.project.settings import Settings

__all__ = ["run"]

_SAMPLES: Final = "config/samples"
_PATIENCE: Final = 15.0  # seconds in which samples have to be taken

_HELP = """Run the operator on this machine, as `python -m PACKAGE ARGS…` (default: the project's package).

    It uses the cluster of your kubeconfig. With --embedded it starts an API server with the CRDs and the project's config/samples. Ctrl-C stops
    both. The exit code is the operator's. Arguments after -- are passed to the operator.

    \b
    Examples:
      ctrl run --embedded --reload
      ctrl run --install --context test -- --zap-log-level=debug
      ctrl run --webhooks off
      ctrl run --clusters ~/.kube/fleet
    """


@click.command(help=_HELP)
@click.option("--module", metavar="PACKAGE", help="Dotted name of the package to run.  [default: the project's]")
@click.option("--embedded", is_flag=True, help="Start an embedded API server, and run the operator on it.")
@click.option(
    "--kubeconfig-out", metavar="PATH", type=click.Path(dir_okay=False, path_type=Path),
    help="With --embedded: file for its kubeconfig.  [default: a temporary file]",
)  # fmt: skip
@cluster_options
@click.option("--install", is_flag=True, help="Install the CRDs of your kinds first.")
@click.option(
    "--reload",
    is_flag=True,
    help="Restart the operator when a Python file of the package changes. With --embedded or --install, also install the CRDs again.",
)
@click.option(
    "--webhooks", type=click.Choice(["development", "files", "off"]),
    help="development: create a certificate, and register the webhooks by URL while the operator runs. files: use the certificate in "
    "--webhook-cert-path.  "
    "[default in a project: development with --embedded, else off]",
)  # fmt: skip
@click.option(
    "--clusters", metavar="PATH", type=click.Path(path_type=Path),
    help="Other clusters for the operator: a kubeconfig, one for each context, or a folder of kubeconfigs, one for each file.",
)  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS…]")
def run(
    *,
    module: str | None,
    embedded: bool,
    kubeconfig_out: Path | None,
    kubeconfig: str | None,
    context: str | None,
    install: bool,
    reload: bool,
    webhooks: str | None,
    clusters: Path | None,
    arguments: tuple[str, ...],
) -> None:
    if embedded and (kubeconfig or context):
        raise click.UsageError(
            "--embedded cannot be used with --kubeconfig or --context, because it starts its own API server"
        )
    if kubeconfig_out is not None and not embedded:
        raise click.UsageError("--kubeconfig-out requires --embedded")
    folder, settings = (Path(), None) if module is not None else project_here()
    package = module if module is not None else (settings.package if settings is not None else "")
    source = source_folder(package)
    fleet = _fleet_flags(clusters)
    with contextlib.ExitStack() as stack:
        if embedded:
            kubeconfig = str(stack.enter_context(_server(kubeconfig_out, settings)))
        configuration(kubeconfig, context)  # what is wrong with it is told here, and not by the operator
        environ = os.environ | {"PYTHONUNBUFFERED": "1"} | ({"KUBECONFIG": kubeconfig} if kubeconfig else {})
        if settings is not None:
            environ = with_source(environ, folder, settings)
            environ[DEBUG_ADDRESS_FILE] = str(stack.enter_context(debug_address_file(folder)))
        flags = ["--context", context] if context else []
        installs = [*flags, *(["--include-external"] if embedded else [])]  # no other project is on that server
        more = _webhook_flags(settings, webhooks, environ, embedded=embedded)

        def prepare() -> None:
            if embedded or (install and _has_kinds(settings)):
                say(install_definitions(package, installs, folder=folder, environ=environ), nl=False, err=True)

        operator = Operator(
            [sys.executable, "-m", package, *flags, *fleet, *more, *arguments],
            folder=folder,
            environ=environ,
            prepare=prepare,
            accompany=_Samples(folder, kubeconfig, after_webhooks="development" in more)
            if embedded and settings
            else _done,
            watched=source if reload else None,
            say=_say,
        )
        code = operator.run()
    click.get_current_context().exit(code)


def _say(text: str) -> None:
    say(text, err=True)


def _done() -> bool:
    return True


def _has_kinds(settings: Settings | None) -> bool:
    return settings is None or any(True for _ in settings.own_resources)


def _fleet_flags(path: Path | None) -> Sequence[str]:
    """Return the flags for the operator, which runs in another folder. Raises: ConfigError if the path has no clusters."""
    if path is None:
        return ()
    from ctrlruntime.fleet.providers import KubeconfigFiles

    path = path.absolute()
    try:
        KubeconfigFiles(path).read()
    except ConfigError as error:
        raise ConfigError(f"--clusters: {error}") from error
    return ("--clusters", str(path))


def _webhook_flags(
    settings: Settings | None, mode: str | None, environ: dict[str, str], *, embedded: bool
) -> Sequence[str]:
    """Return the flags for the operator; "off" is said by the environment, which every scaffolded operator reads."""
    if mode is None and (settings is None or not settings.has_webhooks):
        return ()
    mode = mode or ("development" if embedded else "off")
    if mode == "off":
        environ["ENABLE_WEBHOOKS"] = "false"
        return ()
    return ("--webhooks", mode)


@contextlib.contextmanager
def _server(kubeconfig_out: Path | None, settings: Settings | None) -> Generator[Path]:
    """Run an embedded API server and yield the path of its kubeconfig."""
    try:
        from ctrlruntime.apiserver import Options, ServerThread
    except ImportError as error:
        raise ConfigError(
            "the embedded API server is not installed. Run pip install 'ctrlruntime[apiserver]'"
        ) from error
    with contextlib.ExitStack() as stack:
        server = ServerThread(Options())
        server.start()
        stack.callback(server.stop)
        path = kubeconfig_out or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="ctrl-run-")), "kubeconfig"
        )
        try:
            server.server.write_kubeconfig(str(path))
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error
        shown = ",".join(dict.fromkeys(each.plural for each in settings.own_resources)) if settings is not None else ""
        _say(
            f"embedded API server at {server.url}; list its objects with:\n  kubectl --kubeconfig {shlex.quote(str(path))} get {shown or 'all'}"
        )
        yield path


class _Samples:
    """Applies the samples as soon as they are taken: an operator that is starting has not registered its webhooks yet."""

    def __init__(self, folder: Path, kubeconfig: str | None, *, after_webhooks: bool) -> None:
        self._folder = folder / _SAMPLES
        self._kubeconfig = kubeconfig
        self._after_webhooks = after_webhooks
        self._deadline: float | None = None

    def __call__(self) -> bool:
        """Try, and return whether it is over: they are there, or not taken in time."""
        if not self._folder.is_dir():
            return True
        if self._deadline is None:
            self._deadline = time.monotonic() + _PATIENCE
        is_late = time.monotonic() >= self._deadline
        try:
            failed = self._try(is_late=is_late)
        except CtrlError as error:
            failed = {"samples": str(error)}
        if failed is None or (failed and not is_late):
            return False
        for name, reason in failed.items():
            # Not `warn`: after each restart it is news again.
            _say(f"warning: cannot apply {name}: {reason}")
        return True

    def _try(self, *, is_late: bool) -> Mapping[Any, str] | None:
        from ctrlruntime.client.interfaces import Client
        from ctrlruntime.project.deployment.samples import apply_samples, has_webhooks
        from ctrlruntime.project.kustomize import render

        documents = render(self._folder)

        async def work(client: Client) -> Mapping[Any, str] | None:
            if self._after_webhooks and not is_late and not await has_webhooks(client):
                return None
            return await apply_samples(client, documents)

        return with_client(self._kubeconfig, None, work)
