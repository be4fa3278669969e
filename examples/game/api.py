"""The Game kind: a browser game, served by replicas of an image under a host name."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime import crd

Phase: TypeAlias = Literal["Running", "Pending", "NotReady", "Failed"]


class GameSpec(ctrl.Model):
    replicas: ctrl.Int32 = Field(default=1, ge=1, description="The number of pods.")
    image: str = Field(default="", description="The image of the pods. Default: 2048.")
    host: str = Field(default="", description="The host name. Default: NAME.NAMESPACE.mygame.io.")


class GameStatus(ctrl.Model, always_sent=("replicas", "ready_replicas")):
    phase: Phase | None = Field(default=None, description="The state of the game.")
    replicas: ctrl.Int32 = Field(default=0, description="The number of existing pods.")
    ready_replicas: ctrl.Int32 = Field(default=0, description="The number of ready pods.")
    label_selector: str = Field(default="", description="The label selector of the pods, for autoscalers.")


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
