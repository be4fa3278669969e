"""Runs a recipe on the embedded API server, or on the cluster of a kubeconfig."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import ctrlruntime as ctrl
from ctrlruntime.generate.documents import read_documents
from ctrlruntime.testing import Environment, demo
from examples import webhook_flags

CONFIG = Path(__file__).parent / "config"


def run(
    setup: Callable[..., object],
    *kinds: type[ctrl.Object],
    sample: str,
    shows: str,
    webhooks: bool = False,
    other: str = "",
) -> None:
    """Run the operator until Ctrl-C, and print each of its writes.

    With --embedded, or if no cluster is configured, it starts the embedded API server, installs the CRDs of the recipe and applies the
    sample. On a cluster, --install installs the CRDs.

    Args:
        setup: Adds the controllers and webhooks to a manager. With `other`, it also gets the configuration of that cluster.
        kinds: The classes of the recipe.
        sample: YAML of the objects to create on the embedded server.
        shows: The resources to look at, as for kubectl get.
        webhooks: Whether the recipe has webhooks.
        other: The name of a second cluster. The sample is then created there.

    """
    module = sys.modules[setup.__module__]
    name = Path(str(module.__file__)).stem
    parser = argparse.ArgumentParser(prog=f"python -m examples.cookbook.{name}", description=title(module.__doc__))
    demo.add_flags(parser)
    if webhooks:
        webhook_flags.add_flags(parser)
    if other:
        parser.add_argument("--other-kubeconfig", metavar="PATH", help=f"the kubeconfig of the cluster {other!r}")
    flags = ctrl.parse_flags(parser=parser, log_options=ctrl.log.Options(devel=True, log_level="info"))
    crds = CONFIG / name / "crd" / "bases"
    with (
        demo.cluster(flags, crds=crds if kinds else None, samples="" if other else sample, shows=shows) as cluster,
        other_cluster(other, sample, flags, is_embedded=cluster.is_embedded) as others,
    ):
        mgr = ctrl.new_manager(
            cluster.config,
            scheme=ctrl.Scheme(*kinds),
            flags=flags,
            leader_election=ctrl.LeaderElection(f"{name.replace('_', '-')}.cookbook.example.com"),
            webhook=webhook_flags.webhook_options(flags, is_embedded=cluster.is_embedded) if webhooks else None,
        )
        cluster.prepare(mgr, print_writes=True)
        setup(mgr, *others)
        ctrl.run(mgr)


@contextlib.contextmanager
def other_cluster(name: str, sample: str, flags: ctrl.Flags, *, is_embedded: bool) -> Generator[list[ctrl.Config]]:
    """Yield the configuration of the second cluster, with the sample if it is embedded. Yield an empty list without a name."""
    if not name:
        yield []
    elif not is_embedded:
        if not flags.args.other_kubeconfig:
            sys.exit(f"error: the cluster {name!r} is not configured; pass --other-kubeconfig, or run with --embedded")
        yield [ctrl.get_config(flags.args.other_kubeconfig)]
    else:
        with Environment(backend="embedded") as environment:
            sys.stderr.write(f"the cluster {name!r} is:  kubectl --kubeconfig {environment.kubeconfig_path}\n")
            config = ctrl.get_config(str(environment.kubeconfig_path))
            asyncio.run(create(config, sample))
            yield [config]


async def create(config: ctrl.Config, sample: str) -> None:
    cluster = ctrl.Cluster(config)
    try:
        for document in read_documents(sample, "the sample"):
            await cluster.unfenced_client().create(ctrl.Unstructured.from_dict(document))
    finally:
        await cluster.close()


def title(docstring: str | None) -> str:
    return (docstring or "").partition("\n")[0]
