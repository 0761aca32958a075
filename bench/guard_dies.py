"""``podqos`` that kills itself (-9) at a step of an eviction: ``guard_dies.py "after freeze 1" guard run …``.

For ``guard_chaos.py --steps``: from outside, a step of microseconds is hit by luck alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from guard.guard_process import Killer
from podqos.cli.main import main
from podqos.cluster.writing import Writer
from podqos.guard.acting import Evictor
from podqos.guard.intents import Intents
from podqos.guard.lifeline import Lifeline
from podqos.guard.running import Guard
from podqos.guard.world import GuardWorld
from podqos.host.linux.cgroupfs import Cgroups


def spied() -> Iterator[tuple[type, str]]:
    """Yield what is done at each step, in order."""
    yield Guard, "_look"
    yield GuardWorld, "_evict"
    yield Intents, "keep"
    yield Lifeline, "hold"
    for owner in (Cgroups, *Cgroups.__subclasses__()):
        yield from ((owner, name) for name in ("freeze", "kill_charged", "thaw") if name in vars(owner))
    yield Lifeline, "let_go"
    yield Writer, "patch_status"
    yield Evictor, "_hear"
    yield Writer, "post_event"
    yield Intents, "forget"


if __name__ == "__main__":
    killer = Killer(sys.argv[1])
    for owner, name in spied():
        killer.spy_on(owner, name)
    sys.exit(main(sys.argv[2:]))
