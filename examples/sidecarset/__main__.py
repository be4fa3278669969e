"""Run the SidecarSet operator: `python -m examples.sidecarset [--embedded] [--kubeconfig PATH] [--install] [--webhooks WHICH] …`.

With --embedded, or if no cluster is configured, it starts the embedded API server, installs the CRD, applies the samples (a set, and a
Deployment with matching Pods) and runs the operator with its webhooks until Ctrl-C. With a cluster it installs the CRD only with --install.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import ctrlruntime as ctrl
from ctrlruntime.testing import demo
from examples import webhook_flags
from examples.sidecarset.api import SidecarSet
from examples.sidecarset.controller import ELECTION, setup

CONFIG = Path(__file__).parent / "config"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples.sidecarset", description=__doc__.partition("\n")[0] if __doc__ else None
    )
    demo.add_flags(parser)
    webhook_flags.add_flags(parser)
    flags = ctrl.parse_flags(parser=parser, log_options=ctrl.log.Options(devel=True, log_level="info"))
    with demo.cluster(
        flags, crds=CONFIG / "crd" / "bases", samples=CONFIG / "samples", shows="sidecarsets,pods"
    ) as cluster:
        webhook = webhook_flags.webhook_options(flags, is_embedded=cluster.is_embedded)
        mgr = ctrl.new_manager(
            cluster.config,
            scheme=ctrl.Scheme(SidecarSet),
            flags=flags,
            leader_election=ELECTION,
            webhook=webhook,
        )
        cluster.prepare(mgr)
        setup(mgr, webhooks=webhook is not None)
        ctrl.run(mgr)


if __name__ == "__main__":
    main()
