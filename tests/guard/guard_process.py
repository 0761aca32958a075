"""Guards in processes of their own, each of which kills itself at a step that ``test_killed`` chose.

For each line of standard input a child, which has everything imported already, is such a guard; how it ended is a line
of standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import msgspec

from podqos.cluster.access import find_access
from podqos.cluster.asking import Client
from podqos.cluster.kubeconfig import Access
from podqos.cluster.writing import Writer
from podqos.guard.acting import Evictor, Instruments
from podqos.guard.eviction import GuardVictim, KillWhen
from podqos.guard.intents import Intents
from podqos.guard.sender import Sender
from podqos.guard.tree import pod_at
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.linux.loop import Loop

STEPS = {Intents: ("keep", "forget"), Writer: ("patch_status", "post_event"), Evictor: ("_hear",)}
CGROUP_STEPS = ("freeze", "kill_charged", "thaw")


class Killer:
    """Kills this process before or after the n-th time that something is done: ``before keep 2``."""

    def __init__(self, dies: str) -> None:
        self._dies = dies
        self._done: Counter[str] = Counter()

    def spy_on(self, owner: object, name: str) -> None:
        real = getattr(owner, name)

        def spied(*arguments: object, **named: object) -> object:
            if named.get("is_rehearsal"):
                return real(*arguments, **named)  # no step of an eviction
            self._done[name] += 1
            number = self._done[name]
            self._die_at(f"before {name} {number}")
            result = real(*arguments, **named)
            self._die_at(f"after {name} {number}")
            return result

        setattr(owner, name, spied)

    def _die_at(self, step: str) -> None:
        if step == self._dies:
            os.kill(os.getpid(), signal.SIGKILL)


def main(told: dict) -> None:
    killer = Killer(told["dies"])
    cgroups = open_cgroups(told["kubepods"])
    for owner, names in STEPS.items():
        for name in names:
            killer.spy_on(owner, name)
    for name in CGROUP_STEPS:
        killer.spy_on(cgroups, name)
    loop = Loop()
    access = find_access(kubeconfig=told["kubeconfig"]) if told["kubeconfig"] else Access(server=told["url"])
    sender = Sender(loop, Writer(Client(access, environment={})))
    acting = Evictor(
        loop,
        cgroups,
        Instruments(sender, Intents(Path(told["intents"]))),
        kill_when=KillWhen(told["kill_when"]),
        tell=lambda _victim, _noted: None,
        is_falling=lambda: False,
    )
    acting.take_up()
    until = time.monotonic() + 300
    while not sender.is_reachable and time.monotonic() < until:
        loop.step(0.01)
    if told["victim"] is not None:
        victim = msgspec.convert(told["victim"], GuardVictim)
        acting.evict(victim, pod_at(cgroups, victim.uid, told["cgroup"]), told["container_ids"])
    while acting.busy:
        loop.step(0.1)


def in_a_child(told: dict) -> int:
    """Be a guard in a process of its own; return its exit code."""
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        code = 1
        try:
            main(told)
            code = 0
        except BaseException:  # noqa: BLE001 - it is told, and this is not the parent
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    for line in sys.stdin:
        print(in_a_child(json.loads(line)), flush=True)  # noqa: T201 - its answer
