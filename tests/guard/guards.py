"""The acting half of a guard, for tests that decide themselves."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from guard.kubelets import Kubelet, RunningPod, SuiteKubelet
from podqos.cluster.asking import Client
from podqos.cluster.writing import Writer
from podqos.guard.acting import Did, Evictor, Instruments, Noted
from podqos.guard.eviction import GuardVictim, KillWhen
from podqos.guard.intents import Intents
from podqos.guard.sender import Sender
from podqos.guard.tree import pod_at
from podqos.host.linux.loop import Loop

MESSAGE = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 99Mi. "
    "Container c0 was using 1Gi, request is 0, has larger consumption of memory. "
)


def victim_of(pod: RunningPod, node: str = "node-1") -> GuardVictim:
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return GuardVictim(
        pod.namespace,
        pod.name,
        pod.uid,
        MESSAGE,
        now,
        1,
        "memory.available<100Mi",
        node,
        {"starved_resource": "memory"},
    )


class Guard:
    """Runs its loop only while a test waits."""

    def __init__(self, kubelet: Kubelet, when: KillWhen = KillWhen.PATCH, intents: Path | None = None) -> None:
        """Beside the suite's own kubelet, which is quick, whatever starts is ended for a shorter time."""
        self.kubelet = kubelet
        self.noted: list[Noted] = []
        self.is_falling = False
        self.loop = Loop()
        # As /run, a directory in memory.
        self._own = None if intents else Path(tempfile.mkdtemp(prefix="podqos-guard-", dir="/dev/shm"))
        self.folder = intents or self._own
        self._client = Client(kubelet.access, environment={})
        self.sender = Sender(self.loop, Writer(self._client))
        self.acting = Evictor(
            self.loop,
            kubelet.cgroups,
            Instruments(self.sender, Intents(self.folder)),
            kill_when=when,
            tell=lambda _victim, noted: self.noted.append(noted),
            is_falling=lambda: self.is_falling,
        )
        if isinstance(kubelet, SuiteKubelet):
            kill = self.acting._kill
            self.acting._kill = lambda running, _seconds: kill(running, 0.4)

    def __enter__(self) -> Self:
        self.acting.take_up()
        self.until(lambda: self.sender.is_reachable or self._is_away(), "the first word of the server")
        return self

    def __exit__(self, *_: object) -> None:
        self.acting.close()
        self._client.close()
        self.loop.close()
        if self._own is not None:
            shutil.rmtree(self._own)

    def evict(self, pod: RunningPod) -> GuardVictim:
        victim = victim_of(pod, self.kubelet.node)
        self.acting.evict(victim, pod_at(self.kubelet.cgroups, pod.uid, pod.cgroup), pod.container_ids)
        return victim

    def until(self, condition: Callable[[], object], what: str, seconds: float = 300.0) -> None:
        """Run until something has happened."""
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, f"not within {seconds:g} s: {what}"
            self.loop.step(0.01)

    def over(self) -> Noted:
        """Run until the guard is done with a pod; return its last note."""
        self.until(lambda: self.noted and self.noted[-1].what is Did.OVER, "the guard is done")
        return self.noted[-1]

    def done(self) -> list[Did]:
        return [each.what for each in self.noted]

    def _is_away(self) -> bool:
        api = getattr(self.kubelet, "api", None)
        return api is not None and api.is_away
