"""The Game kind: a browser game that is served by some replicas of an image under a host name."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime import crd

Phase: TypeAlias = Literal["Running", "Pending", "NotReady", "Failed"]


class GameSpec(ctrl.Model):
    replicas: ctrl.Int32 = Field(default=1, ge=1, description="How many pods serve the game.")
    image: str = Field(default="", description="What the pods run; 2048 when it is left out.")
    host: str = Field(default="", description="Where the game is found; NAME.NAMESPACE.mygame.io when it is left out.")


class GameStatus(ctrl.Model, always_sent=("replicas", "ready_replicas")):
    phase: Phase | None = Field(default=None, description="How the game is doing.")
    replicas: ctrl.Int32 = Field(default=0, description="How many pods there are.")
    ready_replicas: ctrl.Int32 = Field(default=0, description="How many of them are ready.")
    label_selector: str = Field(default="", description="Selects the pods; autoscalers read it.")


@crd.printcolumn("Phase", ".status.phase")
@crd.printcolumn("Host", ".spec.host")
@crd.printcolumn("DESIRED", ".spec.replicas")
@crd.printcolumn("CURRENT", ".status.replicas")
@crd.printcolumn("READY", ".status.readyReplicas")
@crd.printcolumn("AGE", ".metadata.creationTimestamp", type="date")
class Game(
    ctrl.Object,
    group="myapp.qingwave.github.io",
    version="v1",
    scale=crd.ScalePaths(".spec.replicas", ".status.replicas", ".status.labelSelector"),
):
    """A game in the browser."""

    spec: GameSpec = Field(default_factory=GameSpec)
    status: GameStatus = Field(default_factory=GameStatus)
