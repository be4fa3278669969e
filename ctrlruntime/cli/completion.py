"""`ctrl completion`: the lines that teach a shell to complete ctrl's commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ctrlruntime.cli.output import say

__all__ = ["completion"]

_HELP = """Print the script with which SHELL completes the commands and options of ctrl.

    \b
    Examples:
      eval "$(ctrl completion bash)"                                      # this session
      ctrl completion zsh > "${fpath[1]}/_ctrl"                           # every session
      ctrl completion fish > ~/.config/fish/completions/ctrl.fish
    """


@click.command(help=_HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    root = click.get_current_context().find_root()
    made_by = get_completion_class(shell)
    if made_by is None:
        raise click.UsageError(f"completion for {shell} is not supported")
    say(made_by(root.command, {}, "ctrl", "_CTRL_COMPLETE").source())
