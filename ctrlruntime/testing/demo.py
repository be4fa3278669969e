"""A cluster for an example: the configured one, or an embedded API server.

Only for `__main__` modules of examples. An existing configuration is used, or raises an error. The embedded server is started on request,
or without any configuration.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from ctrlruntime import log
from ctrlruntime.api.object import Unstructured
from ctrlruntime.client.observers import Call, Ended
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import AlreadyExists, CtrlError, NoConfigError, NoMatchError
from ctrlruntime.generate.definitions import read_definitions
from ctrlruntime.generate.documents import read_documents
from ctrlruntime.install import install_crds, served_kinds
from ctrlruntime.rest.config import Config, get_config
from ctrlruntime.rest.redaction import shown_url
from ctrlruntime.signals import handled

if TYPE_CHECKING:
    from ctrlruntime.manager.flags import Flags
    from ctrlruntime.manager.manager import Manager

PATIENCE = 10.0
"""Seconds until the API server must respond. An operator in a cluster waits longer."""


_READS = frozenset({"get", "list", "watch"})

_KUSTOMIZE = "kustomize.config.k8s.io/"
"""The group of a kustomization, which may be among the samples and is not an object."""


class Demo:
    """The cluster of an example.

    `prepare` applies the samples with a manager, if it runs on an embedded server.
    """

    def __init__(
        self, config: Config, *, crds: Path | None, samples: Path | str, is_embedded: bool, install: bool
    ) -> None:
        self.config = config
        self.is_embedded = is_embedded
        self._crds = crds
        self._samples = samples
        self._install = install or is_embedded
        self._log = log.get_logger("demo")

    def prepare(self, manager: Manager, *, print_writes: bool = False) -> None:
        """Apply the samples when the manager starts, but only on the embedded server. `print_writes`: a line for each write."""
        if print_writes:
            manager.cluster.observers.add_observer(_Printed(manager))
        if self.is_embedded:
            manager.add(_Samples(manager, self._samples))

    async def prepare_definitions(self) -> None:
        """Install the CRDs, or log missing ones in one line.

        Raises: CtrlError if the API server does not respond in time.
        """
        if self._crds is None:
            return
        cluster = Cluster(self.config)
        try:
            async with asyncio.timeout(PATIENCE):
                if self._install:
                    names = await install_crds(cluster.unfenced_client(), self._crds, wait=PATIENCE)
                    self._log.info("CRDs installed", names=names)
                else:
                    await self._tell_missing(cluster, self._crds)
        except TimeoutError as error:
            raise CtrlError(f"{shown_url(self.config.host)} did not answer within {PATIENCE:g} s") from error
        finally:
            await cluster.close()

    async def _tell_missing(self, cluster: Cluster, crds: Path) -> None:
        missing: list[str] = []
        for definition in read_definitions(crds):
            try:
                for kind in served_kinds(definition):
                    await cluster.mapper.resource_for(kind)
            except NoMatchError:
                missing.append(str(definition["metadata"]["name"]))
        if missing:
            self._log.warning(
                "CRDs are not installed, waiting",
                missing=missing,
                install=f"run with --install, or kubectl apply -f {crds}",
            )


class _Printed:
    """Prints each write that succeeded: controller, verb, kind and name."""

    def __init__(self, manager: Manager) -> None:
        self._mapper = manager.mapper

    def __call__(self, call: Call) -> Ended | None:
        if call.verb in _READS or call.origin != "client":
            return None
        return lambda error: None if error else self._print(call)

    def _print(self, call: Call) -> None:
        known = ((each.group, each.plural, each.kind) for each in self._mapper.loaded())
        kind = next((kind for *resource, kind in known if resource == [call.group, call.resource]), call.resource)
        what = f"{kind}/{call.subresource}" if call.subresource else kind
        name = f"{call.namespace}/{call.name}" if call.namespace else call.name
        by = call.actor.controller if call.actor else "manager"
        sys.stdout.write(f"{by}: {call.verb} {what} {name}\n")
        sys.stdout.flush()


class _Samples:
    """Applies the manifests of a folder, or of a text."""

    name = "samples"
    needs_leader_election = False

    def __init__(self, manager: Manager, source: Path | str) -> None:
        self._manager = manager
        self._source = source
        self._log = log.get_logger("demo")

    async def start(self) -> None:
        client = self._manager.cluster.unfenced_client()
        for sample in self._read():
            if sample.api_version.startswith(_KUSTOMIZE):
                continue
            with contextlib.suppress(AlreadyExists):
                await client.create(sample)
                self._log.info("sample applied", kind=sample.kind, name=sample.metadata.name)

    def _read(self) -> Iterator[Unstructured]:
        if isinstance(self._source, str):
            yield from map(Unstructured.from_dict, read_documents(self._source, "the sample"))
        else:
            for file in sorted(self._source.glob("*.yaml")):
                yield Unstructured.from_yaml(file.read_text(encoding="utf-8"))


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add --embedded, --kubeconfig-out and --install to an example's parser."""
    parser.add_argument("--embedded", action="store_true", help="run on an embedded API server, whatever is configured")
    parser.add_argument(
        "--kubeconfig-out", metavar="PATH", type=Path, help="where the embedded server's kubeconfig is written"
    )
    parser.add_argument(
        "--install", action="store_true", help="install the example's definitions into the cluster first"
    )


@contextlib.contextmanager
def cluster(flags: Flags, *, crds: Path | None, samples: Path | str, shows: str) -> Generator[Demo]:
    """Find the cluster, and install the CRDs of `crds` if requested.

    Args:
        flags: The flags of the process.
        crds: The folder of the CRDs; None if the example has no CRDs.
        samples: The folder of the samples, or their YAML.
        shows: The resources in the line with the kubectl command ("memcacheds,deployments,pods").

    Exits with code 1 and one line for an invalid configuration or an API server that does not respond, and with code 0 for SIGTERM and
    SIGINT.

    """
    with _signals_end_it():
        config = None if flags.args.embedded else _configured(flags)
        with contextlib.ExitStack() as stack:
            is_embedded = config is None
            if config is None:
                config = stack.enter_context(_embedded(flags, shows))
            demo = Demo(config, crds=crds, samples=samples, is_embedded=is_embedded, install=flags.args.install)
            try:
                asyncio.run(demo.prepare_definitions())
            except CtrlError as error:
                _give_up(error)
            yield demo


@contextlib.contextmanager
def _signals_end_it() -> Generator[None]:
    """Exit with code 0 on SIGTERM and SIGINT, wherever the example stands; while it runs, the manager has them."""

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        sys.exit(0)

    with handled(end):
        yield


def _configured(flags: Flags) -> Config | None:
    """Return the configuration there is, None when there is none at all."""
    try:
        return get_config(flags.kubeconfig, flags.context)
    except NoConfigError as error:
        if flags.kubeconfig or flags.context:
            _give_up(error)
        return None
    except CtrlError as error:
        _give_up(error)


def _give_up(error: CtrlError) -> NoReturn:
    sys.stderr.write(f"error: {error}; run with --embedded to do without a cluster\n")
    sys.exit(1)


@contextlib.contextmanager
def _embedded(flags: Flags, shows: str) -> Generator[Config]:
    from ctrlruntime.apiserver import Options, ServerThread

    kubeconfig_out: Path | None = flags.args.kubeconfig_out
    with contextlib.ExitStack() as stack:
        server = ServerThread(Options())
        server.start()
        stack.callback(server.stop)
        path = (
            kubeconfig_out
            or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ctrlruntime-"))) / "kubeconfig"
        )
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_text(server.server.kubeconfig(), encoding="utf-8")
        why = "" if flags.args.embedded else "no cluster is configured: "
        sys.stderr.write(
            f"{why}running on an embedded API server at {server.url}\n"
            f"look at it with:  kubectl --kubeconfig {path} get {shows} --watch\n"
        )
        yield get_config(str(path))
