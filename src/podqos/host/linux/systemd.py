"""Asks systemd over D-Bus for a scope with a delegated cgroup.

Under systemd the cgroup tree belongs to systemd, and unsolicited changes conflict with it. The rule is to ask for a
unit with ``Delegate=yes`` and to stay below it (systemd, CGROUP_DELEGATION). A scope needs a live process: that is the
shim, which lives as long as any pod, so that the scope outlives the agent.

    /system.slice/podqos.scope          systemd's; everything below is the node's
    ├── shim                            the shim
    └── node                            confined; below it kubepods and the pods, by the cgroupfs driver
"""

from __future__ import annotations

import socket
import time
from pathlib import Path

from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call
from jeepney.io.blocking import prep_socket
from jeepney.low_level import Message, Parser

from podqos.errors import HostError
from podqos.host.linux.procfs import Procfs

# systemd's private socket: available before any bus, and without a bus's Hello. Root only.
PRIVATE_SOCKET = "/run/systemd/private"
_MANAGER = DBusAddress(
    "/org/freedesktop/systemd1", bus_name="org.freedesktop.systemd1", interface="org.freedesktop.systemd1.Manager"
)
_ANSWER_SECONDS = 10.0
_POLL_SECONDS = 0.01


def scope_request(unit: str, pid: int) -> Message:
    """Return the call that puts a process into a new delegated scope."""
    properties = [
        ("Description", ("s", "Pods of podqos node")),
        ("Slice", ("s", "system.slice")),
        ("Delegate", ("b", True)),
        ("PIDs", ("au", [pid])),
    ]
    return new_method_call(_MANAGER, "StartTransientUnit", "ssa(sv)a(sa(sv))", (unit, "fail", properties, []))


def delegated_root(name: str, pid: int, procfs: Procfs, cgroup_mount: Path) -> str:
    """Return a cgroup for a node of this name that systemd does not touch, held by the shim with this process id."""
    unit = f"{name}.scope"
    if _scope(procfs, pid, unit) is None:
        _call(scope_request(unit, pid))
    scope = _awaited_scope(procfs, pid, unit)
    # A cgroup that distributes resources to others may not contain processes itself.
    own = cgroup_mount / scope.strip("/") / "shim"
    try:
        own.mkdir(exist_ok=True)
        (own / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        raise HostError(f"systemd created {scope}, but it cannot be used: {error.strerror}") from error
    return f"{scope}/node"


def _awaited_scope(procfs: Procfs, pid: int, unit: str) -> str:
    until = time.monotonic() + _ANSWER_SECONDS
    while time.monotonic() < until:
        scope = _scope(procfs, pid, unit)
        if scope is not None:
            return scope
        time.sleep(_POLL_SECONDS)
    raise HostError(f"systemd did not create {unit} within {_ANSWER_SECONDS:.0f} s")


def _scope(procfs: Procfs, pid: int, unit: str) -> str | None:
    where = procfs.cgroups(pid).get("", "")
    parts = where.split("/")
    return "/".join(parts[: parts.index(unit) + 1]) if unit in parts else None


def _call(message: Message) -> None:
    """Call systemd on its private socket, and wait for the reply."""
    try:
        connection = prep_socket(PRIVATE_SOCKET, timeout=_ANSWER_SECONDS)
    except OSError as error:
        raise HostError(f"systemd does not answer at {PRIVATE_SOCKET}: {error}") from error
    with connection:
        connection.settimeout(_ANSWER_SECONDS)
        connection.sendall(message.serialise(serial=1))
        reply = _reply(connection)
    if reply.header.message_type is MessageType.error:
        raise HostError(f"systemd refused: {' '.join(map(str, reply.body))}")


def _reply(connection: socket.socket) -> Message:
    parser = Parser()
    while True:
        try:
            data = connection.recv(4096)
        except OSError as error:
            raise HostError(f"systemd does not answer: {error}") from error
        if not data:
            raise HostError("systemd hung up")
        parser.add_data(data)
        while (message := parser.get_next_message()) is not None:
            if message.header.fields.get(HeaderFields.reply_serial) == 1:
                return message
