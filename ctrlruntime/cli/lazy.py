"""A group of commands whose modules are loaded when a command is used, and not to print the help of all."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click
from typing_extensions import override

from ctrlruntime.spelling import did_you_mean

__all__ = ["Command", "LazyGroup"]


class Command(NamedTuple):
    """Where a command is, and its line in the group's help."""

    module: str
    attribute: str
    summary: str


class LazyGroup(click.Group):
    """Knows its commands by where they are."""

    def __init__(self, *args: Any, lazy: Mapping[str, Command], **options: Any) -> None:
        super().__init__(*args, **options)
        self._lazy = lazy

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._lazy)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self._lazy.get(cmd_name)
        if found is None:
            return None
        command: click.Command = getattr(importlib.import_module(found.module), found.attribute)
        return command

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if hint := did_you_mean(args[0], self._lazy, ""):
                raise click.UsageError(f"{error.message.rstrip('.')}{hint}", ctx) from error
            raise

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._lazy[name].summary) for name in self.list_commands(ctx)])
