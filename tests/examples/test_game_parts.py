"""The Game example without a server: defaults, validation, phases, and the files that follow from its classes."""

from __future__ import annotations

from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import apps, meta
from ctrlruntime.field import Time
from ctrlruntime.project import load, manifests
from ctrlruntime.project.config import refresh
from ctrlruntime.project.settings import read_settings
from ctrlruntime.testing.properties import check_defaulting
from examples.game.api import Game, GameSpec
from examples.game.controller import GameReconciler, phase_of, status_of
from examples.game.webhook import GameDefaulter, GameValidator

PROJECT = Path(__file__).parents[2] / "examples" / "game"


def new_game(**spec) -> Game:
    return Game(metadata=meta.ObjectMeta(name="g", namespace="n"), spec=GameSpec(**spec))


def deployment(ready: int, **conditions: str) -> apps.Deployment:
    listed = [apps.DeploymentCondition(type=name, status=status) for name, status in conditions.items()]
    return apps.Deployment(status=apps.DeploymentStatus(replicas=2, ready_replicas=ready, conditions=listed))


def test_the_committed_manifests_are_the_generated_ones():
    assert refresh(PROJECT, read_settings(PROJECT)).stale == []


def test_webhooks_are_at_the_paths_kubebuilder_gives_them():
    [mutating, validating] = manifests(load("examples.game")).webhooks

    assert [(each["clientConfig"]["service"]["path"], each["admissionReviewVersions"]) for each in (*mutating["webhooks"], *validating["webhooks"])] == [
        ("/mutate-myapp-qingwave-github-io-v1-game", ["v1", "v1beta1"]),
        ("/validate-myapp-qingwave-github-io-v1-game", ["v1", "v1beta1"]),
    ]  # fmt: skip


async def test_what_is_said_is_not_replaced_by_a_default():
    game = new_game(image="nginx", host="a.io", replicas=3)
    before = game.deep_copy()

    await GameDefaulter().default(game)

    assert game == before


async def test_a_game_without_a_name_yet_gets_no_host():
    game = Game(metadata=meta.ObjectMeta(generate_name="g-", namespace="n"))

    await GameDefaulter().default(game)

    assert (game.spec.image, game.spec.host) == ("alexwhen/docker-2048", "")


def test_defaulting_twice_is_defaulting_once_and_the_patch_makes_the_defaulted_game():
    check_defaulting(Game, GameDefaulter())


@pytest.mark.parametrize("host", ["*.io", "a.*.io", "a*"])
async def test_a_host_with_a_star_is_invalid(host):
    with pytest.raises(ctrl.Invalid) as failed:
        await GameValidator().validate_create(new_game(host=host))

    assert [cause.field for cause in failed.value.causes] == ["spec.host"]


@pytest.mark.parametrize(
    ("ready", "conditions", "phase"),
    [
        (0, {}, "Pending"),
        (1, {"Progressing": "True"}, "NotReady"),
        (2, {"Progressing": "True", "Available": "True"}, "Running"),
        (0, {"Progressing": "False"}, "Failed"),
        (1, {"ReplicaFailure": "True"}, "Failed"),
    ],
)
def test_the_phase_follows_the_deployment(ready, conditions, phase):
    assert phase_of(new_game(replicas=2), deployment(ready, **conditions)) == phase


def test_the_status_has_a_selector_an_autoscaler_can_read():
    status = status_of(new_game(replicas=2), deployment(1))

    assert ctrl.selector.parse_labels(status.label_selector).matches({"myapp.qingwave.github.io/game": "g"})
    assert (status.replicas, status.ready_replicas) == (2, 1)


class Games:
    """A client that has these Games, and fails when anything else is asked of it."""

    def __init__(self, *games: Game) -> None:
        self.games = games

    async def get_or_none(self, _kind: type[Game], key: ctrl.Request) -> Game | None:
        return next((each for each in self.games if each.metadata.name == key.name), None)


async def test_a_game_that_is_gone_or_goes_is_done():
    going = new_game()
    going.metadata.deletion_timestamp = Time.now()
    reconciler = GameReconciler(Games(going))

    assert await reconciler.reconcile(ctrl.Request("n", "gone")) is None
    assert await reconciler.reconcile(ctrl.Request("n", "g")) is None
