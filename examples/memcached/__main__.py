"""Run the Memcached operator: `python -m examples.memcached [--embedded] [--kubeconfig PATH] [--install] …`.

With --embedded, or if no cluster is configured, it starts the embedded API server, installs the CRD, applies the sample and runs the operator
until Ctrl-C. With a cluster it installs the CRD only with --install.
"""

from __future__ import annotations

import argparse
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
    flags = ctrl.parse_flags(parser=parser, log_options=ctrl.log.Options(devel=True, log_level="info"))
    with demo.cluster(
        flags, crds=CONFIG / "crd" / "bases", samples=CONFIG / "samples", shows="memcacheds,deployments,pods"
    ) as cluster:
        mgr = ctrl.new_manager(
            cluster.config,
            scheme=ctrl.Scheme(Memcached),
            flags=flags,
            leader_election=ELECTION,
        )
        cluster.prepare(mgr)
        setup(mgr)
        ctrl.run(mgr)


if __name__ == "__main__":
    main()
