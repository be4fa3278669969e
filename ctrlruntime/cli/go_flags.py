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
    "--license": "it is set by `ctrl init`. Change the file LICENSE, and license in [tool.ctrlruntime] of pyproject.toml",
    "--owner": "it is set by `ctrl init`. Change owner in [tool.ctrlruntime] of pyproject.toml",
    "--force": "generated files are always updated, and your files are never overwritten",
    "--legacy-path": "webhooks have one place, PACKAGE/webhooks",
    "--defaulting-path": "the path follows from the kind. For another one, use `path=` of with_defaulter in PACKAGE/webhooks",
    "--validation-path": "the path follows from the kind. For another one, use `path=` of with_validator in PACKAGE/webhooks",
}
"""Flags of kubebuilder without a counterpart in a command, and what to use instead."""


class GoFlagsCommand(click.Command):
    """A command whose boolean flags also take a value, as in Go."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*self._rewritten(ctx, args[:end]), *args[end:]])

    def _rewritten(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = {name: each for each in self.get_params(ctx) if isinstance(each, click.Option) for name in each.opts}
        rewritten: list[str] = []
        for argument in args:
            name, sign, value = argument.partition("=")
            option = options.get(name)
            if option is None and name in _INSTEAD:
                raise click.UsageError(f"{name} is a flag of kubebuilder: {_INSTEAD[name]}", ctx)
            if option is None or not option.is_flag or not sign or value not in _TRUE | _FALSE:
                rewritten.append(argument)
            elif value in _TRUE:
                rewritten.append(name)
            else:
                rewritten += option.secondary_opts[:1]
        return rewritten
