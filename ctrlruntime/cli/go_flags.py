"""Flags as kubebuilder's users type them: `--namespaced=false`, `--controller=true`, and flags that have no counterpart here."""

from __future__ import annotations

from typing import Final

import click
from typing_extensions import override

__all__ = ["GoFlagsCommand"]

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
"""The values of a boolean flag in Go (strconv.ParseBool)."""

_INSTEAD: Final = {
    "--repo": "it is the path of a Go module. Use --package for the name of the Python package",
    "--plugins": "plugins do not exist here. For deploy-image use `ctrl create api --image`, for Helm `ctrl helm`",
    "--project-version": "the project has no layout version. `ctrl upgrade` upgrades its files",
    "--make": "nothing is generated with make. `ctrl create` updates config/ itself",
    "--skip-go-version-check": "no Go is needed",
    "--external-api-module": "it is the path of a Go module. Pass the module with the class in --external-api-path",
}
"""Flags of kubebuilder without a counterpart, and what to use instead."""


class GoFlagsCommand(click.Command):
    """A command whose boolean flags also take a value, as in Go."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*self._rewritten(ctx, args[:end]), *args[end:]])

    def _rewritten(self, ctx: click.Context, args: list[str]) -> list[str]:
        switches = {
            name: option
            for option in self.get_params(ctx)
            if isinstance(option, click.Option) and option.is_flag
            for name in option.opts
        }
        rewritten: list[str] = []
        for argument in args:
            name, sign, value = argument.partition("=")
            if name in _INSTEAD:
                raise click.UsageError(f"{name} is a flag of kubebuilder: {_INSTEAD[name]}", ctx)
            switch = switches.get(name) if sign else None
            if switch is None or value not in _TRUE | _FALSE:
                rewritten.append(argument)
            elif value in _TRUE:
                rewritten.append(name)
            else:
                rewritten += switch.secondary_opts[:1]
        return rewritten
