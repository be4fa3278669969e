"""Run the Memcached operator: `python -m examples.memcached [--embedded] [--kubeconfig PATH] [--install] …`.

With --embedded, or if no cluster is configured, it starts the embedded API server, installs the CRD, applies the sample and runs the operator
until Ctrl-C. With a cluster it installs the CRD only with --install.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import ctrlruntime as ctrl
from ctrlruntime.testing import demo
from examples.memcached.api import Memcached
from examples.memcached.controller import ELECTION, setup

CONFIG = Path(__file__).parent / "config"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.memcached", description=__doc__.partition("\n")[0] if __doc__ else None
    )
    demo.add_flags(parser)
    parser.add_argument(
        "--sharding", action="store_true", help="share the objects with other replicas that run with this flag"
    )
    parser.add_argument(
        "--shard-slots", type=int, choices=(64, 128, 256), default=256, help="parts to divide (default: 256)"
    )
    flags = ctrl.parse_flags(parser=parser, log_options=ctrl.log.Options(devel=True, log_level="info"))
    with demo.cluster(
        flags, crds=CONFIG / "crd" / "bases", samples=CONFIG / "samples", shows="memcacheds,deployments,pods"
    ) as cluster:
        sharded = flags.args.sharding
        mgr = ctrl.new_manager(
            cluster.config,
            scheme=ctrl.Scheme(Memcached),
            flags=replace(flags, leader_elect=True) if sharded else flags,
            leader_election=None if sharded else ELECTION,
            sharding=ctrl.Sharding(ELECTION.id, slots=flags.args.shard_slots) if sharded else None,
        )
        cluster.prepare(mgr)
        setup(mgr, sharded=sharded)
        ctrl.run(mgr)


if __name__ == "__main__":
    main()
