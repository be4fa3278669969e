"""A cluster for an example to run on: the one that is configured, or an embedded API server made for the occasion.

For `__main__` modules of examples only. A configuration that exists is used, or is an error; the embedded server is started when it is asked
for, or when there is no configuration at all.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ctrlruntime import log
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Unstructured
from ctrlruntime.errors import AlreadyExists, CtrlError
from ctrlruntime.install import CustomResourceDefinition, install_crds
from ctrlruntime.rest.config import Config, NoConfigError, get_config

if TYPE_CHECKING:
    from ctrlruntime.manager.flags import Flags
    from ctrlruntime.manager.manager import Manager


class Demo:
    """Where an example runs. `prepare` makes a manager install and apply what the example needs once it runs."""

    def __init__(self, config: Config, *, crds: Path, samples: Path, is_embedded: bool, install: bool) -> None:
        self.config = config
        self.is_embedded = is_embedded
        self._crds = crds
        self._samples = samples
        self._install = install or is_embedded

    def prepare(self, manager: Manager) -> None:
        manager.add(_Preparation(manager, self._crds, self._samples, install=self._install, apply=self.is_embedded))


class _Preparation:
    """Installs the definitions (or says that they are missing) and applies the samples."""

    name = "demo"
    needs_leader_election = False

    def __init__(self, manager: Manager, crds: Path, samples: Path, *, install: bool, apply: bool) -> None:
        self._manager = manager
        self._crds = crds
        self._samples = samples
        self._install = install
        self._apply = apply
        self._log = log.get_logger("demo")

    async def start(self) -> None:
        import yaml

        client = self._manager.cluster.unfenced_client()
        if self._install:
            self._log.info("definitions installed", names=await install_crds(client, self._crds))
        else:
            for file in sorted(self._crds.glob("*.yaml")):
                name = yaml.safe_load(file.read_text(encoding="utf-8"))["metadata"]["name"]
                if await client.find(CustomResourceDefinition, NamespacedName("", name)) is None:
                    self._log.warning(
                        "the definition is not installed; the operator waits for it",
                        crd=name,
                        install=f"kubectl apply -f {file}, or run with --install",
                    )
        if self._apply:
            for file in sorted(self._samples.glob("*.yaml")):
                sample = Unstructured.from_yaml(file.read_text(encoding="utf-8"))
                with contextlib.suppress(AlreadyExists):
                    await client.create(sample)
                    self._log.info("sample applied", kind=sample.kind, name=sample.metadata.name)


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
def cluster(flags: Flags, *, crds: Path, samples: Path) -> Iterator[Demo]:
    """Find the cluster to run on. Exits with code 1 and one line for a configuration that cannot be used."""
    try:
        config = None if flags.args.embedded else _configured(flags)
    except CtrlError as error:
        sys.stderr.write(f"error: {error}; run with --embedded to do without a cluster\n")
        sys.exit(1)
    if config is not None:
        yield Demo(config, crds=crds, samples=samples, is_embedded=False, install=flags.args.install)
        return
    with _embedded(flags.args.kubeconfig_out) as config:
        yield Demo(config, crds=crds, samples=samples, is_embedded=True, install=True)


def _configured(flags: Flags) -> Config | None:
    try:
        return flags.get_config()
    except NoConfigError:
        if flags.kubeconfig or flags.context:
            raise
        return None


@contextlib.contextmanager
def _embedded(kubeconfig_out: Path | None) -> Iterator[Config]:
    from ctrlruntime.apiserver import Options, ServerThread

    with contextlib.ExitStack() as stack:
        server = ServerThread(Options())
        server.start()
        stack.callback(server.stop)
        path = (
            kubeconfig_out
            or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ctrlruntime-"))) / "kubeconfig"
        )
        path.write_text(server.server.kubeconfig(), encoding="utf-8")
        path.chmod(0o600)
        sys.stderr.write(
            f"running on an embedded API server at {server.url}\n"
            f"look at it with:  kubectl --kubeconfig {path} get memcacheds,deployments,pods --watch\n"
        )
        yield get_config(str(path))
