"""The webhooks of a Game: set defaults, and reject invalid hosts."""

from __future__ import annotations

import ctrlruntime as ctrl
from examples.game.api import Game

IMAGE = "alexwhen/docker-2048"
DOMAIN = "mygame.io"
REVIEWS = ("v1", "v1beta1")


def register_webhooks(mgr: ctrl.Manager) -> None:
    (
        ctrl.new_webhook_managed_by(mgr)
        .for_(Game)
        .with_defaulter(GameDefaulter(), admission_review_versions=REVIEWS)
        .with_validator(GameValidator(), admission_review_versions=REVIEWS)
        .complete()
    )


def fill_in(game: Game) -> None:
    """Set the defaults. With generateName the name is unknown, so the host stays empty."""
    game.spec.image = game.spec.image or IMAGE
    if not game.spec.host and game.metadata.name:
        game.spec.host = f"{game.metadata.name}.{game.metadata.namespace}.{DOMAIN}"


class GameDefaulter:
    async def default(self, game: Game) -> None:
        fill_in(game)


class GameValidator:
    async def validate_create(self, game: Game) -> None:
        validate(game)

    async def validate_update(self, _old: Game, new: Game) -> None:
        validate(new)


def validate(game: Game) -> None:
    """Reject a host with a wildcard. Raises: Invalid."""
    if "*" in game.spec.host:
        error = ctrl.webhook.FieldError.invalid("spec.host", game.spec.host, "must not contain *")
        raise ctrl.webhook.invalid(Game, game.metadata.name, [error])
