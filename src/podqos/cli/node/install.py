"""Make the node a service: print a systemd unit that runs it, or write it with --write.

The options are those of `podqos node run` and end up in the unit. Nothing is started or enabled.
"""

from __future__ import annotations

import argparse
import os
import sys

from podqos.cli.node.run_options import add_run_options
from podqos.errors import HostError, InvalidOption

SUMMARY = "print or write a systemd unit"

_FOLDER = "/etc/systemd/system"

_UNIT = """\
# Made by `podqos node install`.
[Unit]
Description=podqos node: pods on this machine with Kubernetes' survival rules
After=local-fs.target network.target

[Service]
Type=exec
ExecStart={command}
Restart=always
RestartSec=1
# The pods outlive a restart of the agent, which takes them over again: only the agent itself is signalled.
KillMode=process
TimeoutStopSec=2min
StateDirectory={state_directory}
StateDirectoryMode=0700

# The last to be killed, and not to be paged out (the agent itself has the same, but not before it runs).
OOMScoreAdjust=-999
MemoryMin=64M
LimitMEMLOCK=infinity
LimitNOFILE=65536

{confinement}
[Install]
WantedBy=multi-user.target
"""

# A container runtime confines containers itself, and needs everything to do so.
_CONFINEMENT = """\
# It needs cgroups, mounts and signals, and nothing beyond. Pods are processes of the service and inherit this.
CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_IPC_LOCK CAP_KILL
CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_SETGID CAP_SETUID CAP_SYS_ADMIN CAP_SYS_NICE CAP_SYS_PTRACE
CapabilityBoundingSet=CAP_SYS_RESOURCE CAP_SYSLOG
NoNewPrivileges=yes
RestrictNamespaces=mnt
ProtectSystem=yes
ProtectKernelModules=yes
ProtectHostname=yes
LockPersonality=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos node install``."""
    parser.add_argument("--write", action="store_true", help=f"write the unit to {_FOLDER} instead of printing it")
    parser.add_argument("--name", metavar="NAME", default="podqos-node", help="name of the unit (podqos-node)")
    parser.add_argument("--force", action="store_true", help="overwrite a different unit of the same name")
    parser.add_argument("--unit-dir", metavar="DIR", default=_FOLDER, help=argparse.SUPPRESS)
    add_run_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print or write the unit."""
    if not arguments.name.replace("-", "").replace("_", "").isalnum():
        raise InvalidOption(f"{arguments.name!r}", where="--name", fix="letters, digits, - and _")
    unit = _unit(arguments)
    if not arguments.write:
        print(unit, end="")
        return 0
    if os.geteuid() != 0:
        raise HostError(f"only root can write to {arguments.unit_dir}; without --write the unit is printed")
    file = os.path.join(arguments.unit_dir, f"{arguments.name}.service")
    _write(file, unit, replace=arguments.force)
    print(f"{file} written; nothing is started yet. To start it:")
    print(f"  systemctl daemon-reload && systemctl enable --now {arguments.name}")
    return 0


def _write(file: str, unit: str, *, replace: bool) -> None:
    try:
        with open(file) as there:
            if there.read() != unit and not replace:
                raise HostError(f"{file} already exists with other content; --force replaces it")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise HostError(f"{file}: {error.strerror}") from error
    try:
        with open(f"{file}.new", "w") as partial:
            partial.write(unit)
        os.replace(f"{file}.new", file)
    except OSError as error:
        raise HostError(f"{file}: {error.strerror}") from error


def _unit(arguments: argparse.Namespace) -> str:
    state_dir = os.path.abspath(arguments.state_dir)
    below = os.path.relpath(state_dir, "/var/lib")
    text = _UNIT.format(
        command=" ".join(map(_quoted, [*_program(), "node", "run", *_run_options(arguments)])),
        state_directory=below,
        confinement=_CONFINEMENT if arguments.runtime == "process" else "",
    )
    if below.startswith(".."):
        kept = [line for line in text.splitlines(keepends=True) if not line.startswith("StateDirectory")]
        text = "".join(kept)
    return text


def _run_options(arguments: argparse.Namespace) -> list[str]:
    """Return the options of ``run`` that were given; paths are made to lead there from anywhere."""
    declared = argparse.ArgumentParser(add_help=False)
    add_run_options(declared)
    words = []
    for action in declared._actions:  # noqa: SLF001 - the parser is the one list of options there is
        value = getattr(arguments, action.dest)
        if value == action.default:
            continue
        for each in value if isinstance(value, list) else [value]:
            words += _option(action, each)
    return words


def _option(action: argparse.Action, value: object) -> list[str]:
    name = action.option_strings[-1]
    if value is True:
        return [name]
    text = os.path.abspath(str(value)) if action.metavar in {"DIR", "FILE", "PATH"} else str(value)
    return [f"{name}={text}"] if text.startswith("-") else [name, text]


def _program() -> list[str]:
    """Return how this very podqos is started."""
    beside = os.path.join(os.path.dirname(sys.executable), "podqos")
    return [beside] if os.access(beside, os.X_OK) else [sys.executable, "-m", "podqos"]


def _quoted(word: str) -> str:
    """Return a word of a command line as systemd reads it."""
    if "\n" in word:
        raise InvalidOption(f"{word!r} cannot be written to a unit", fix="choose a name without line breaks")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or not word or any(each in " \t;'" for each in word) else word
