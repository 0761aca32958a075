"""Print a script that makes your shell complete commands, options, values and files.

To set it up:
  bash  echo 'source <(podqos completion bash)' >> ~/.bashrc
  zsh   podqos completion zsh > "${fpath[1]}/_podqos"
  fish  podqos completion fish > ~/.config/fish/completions/podqos.fish
"""

from __future__ import annotations

import argparse

_SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos completion``."""
    parser.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=f"one of {', '.join(_SHELLS)}")


def run(arguments: argparse.Namespace) -> int:
    """Print the script, and return the exit code."""
    from podqos.cli.completion import bash, fish, zsh
    from podqos.cli.grammar import grammars

    print({"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell](grammars()), end="")
    return 0
