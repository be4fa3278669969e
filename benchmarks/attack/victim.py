"""The operator under attack, as a process: a webhook server with one typed validator. Prints its port; at the end of stdin its numbers."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
from pathlib import Path

import psutil
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.certificates import make_authority
from ctrlruntime.metrics import Metrics
from ctrlruntime.webhook import WebhookServer

PATH = "/validate"


class GameSpec(ctrl.Model):
    """What is wanted."""

    replicas: int = 1
    sides: dict[str, str] = Field(default_factory=dict)


class Game(ctrl.Object, group="games.example.com", version="v1"):
    """A kind with a webhook."""

    spec: GameSpec = Field(default_factory=GameSpec)


async def _validate(request: ctrl.webhook.AdmissionRequest) -> ctrl.webhook.AdmissionResponse:
    game = request.decode(Game)
    return ctrl.webhook.allowed() if game.spec.replicas < 10 else ctrl.webhook.denied("at most nine replicas")


def _write_certificate(folder: str) -> None:
    pair = make_authority("attack").server(["127.0.0.1"])
    Path(folder, "tls.crt").write_bytes(pair.certificate)
    Path(folder, "tls.key").write_bytes(pair.key)


async def _main() -> None:
    metrics = Metrics()
    with tempfile.TemporaryDirectory() as folder:
        _write_certificate(folder)
        server = WebhookServer(ctrl.webhook.WebhookOptions(host="127.0.0.1", port=0, cert_dir=folder), metrics=metrics)
        server.register(PATH, ctrl.webhook.Admission(_validate))
        await server.start()
        gc.collect()
        gc.freeze()  # as ctrl.run does
        print(server.port, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        numbers = {
            "limited": metrics.server("webhook").limited,
            "connections": metrics.server("webhook").connections,
            "peak_mib": _peak_mib(),
            "cpu_seconds": sum(psutil.Process().cpu_times()[:2]),
        }
        await server.stop()
    print(json.dumps(numbers), flush=True)


def _peak_mib() -> float:
    """Return the most memory the process ever had in RAM (Linux's VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not say the peak of memory; run this on Linux")


if __name__ == "__main__":
    asyncio.run(_main())
