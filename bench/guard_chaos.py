"""A guard that nothing leads astray, beside a real kubelet: killed, cut off and fooled while pods grow.

In each round pods grow as in ``guard_race.py``, and one thing goes wrong: the guard is killed -9 when it acts, and
started again; the API server is away, mute or slow for it (not for the kubelet), through a relay between the two; the
growing pod is deleted and made again with the same name. Whatever happens: a pod that the kernel did not kill has died
only if it was a right one, then it is Failed and Evicted with its Event in the end, a new pod of the same name runs
unharmed, and no cgroup is left frozen.

    PODQOS_TEST_KUBELET=kubeconfig PODQOS_TEST_IMAGE=image bench/guard_chaos.py [--rounds 40] [--seed N]
        [--steps [--kill-after patch|answer]]

With ``--steps`` each round kills the guard (-9) before or after one step of its work, and each step has its turn, some
of them in the guard that takes up the eviction, too. A pod whose guard dies between its kill and the API server's
answer may be restarted once, by a kubelet that knows no better: that is counted by step, and wrong with ``--kill-after
answer``.
"""

from __future__ import annotations

import argparse
import itertools
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from guard_race import UNLIMITED, Cast, casts, event_sources, is_evicted, owners, rename, threshold_bytes
from real_kubelet import MI, Guard, Member, RealKubelet

from podqos.manifest.documents import plain_documents

DONE = (
    "_look 1", "_evict 1", "keep 1", "hold 1", "freeze 1", "keep 2", "kill_charged 1", "thaw 1", "let_go 1",
    "patch_status 1", "_hear 1", "keep 3", "post_event 1", "_hear 2", "forget 1",
)  # fmt: skip
STEPS = [
    *((f"{when} {done}",) for done in DONE for when in ("before", "after")),
    # The guard that takes it up dies as well.
    ("after freeze 1", "after freeze 1"),
    ("after keep 2", "before kill_charged 1"),
    ("after kill_charged 1", "before patch_status 1"),
    ("after patch_status 1", "before post_event 1"),
    ("before post_event 1", "before forget 1"),
]
"""At which step the guard kills itself, and at which the next one does."""
SLOW_SECONDS = 10.0
LAST_SECONDS = 60.0
"""By then everything has been told: the guard asks less and less often, every 30 s at last."""


class Relay:
    """Stands between the guard and the API server, and passes everything on; or not."""

    def __init__(self, kubelet: RealKubelet) -> None:
        address = urlsplit(kubelet.server)
        self._to = (address.hostname or "", address.port or 443)
        self.mode = "pass"
        """``pass``, ``away`` (connections are refused and cut), ``mute`` (nothing is passed on), or ``slow``."""
        self._open: set[socket.socket] = set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.kubeconfig = kubelet.folder / "relayed"
        (document,) = plain_documents(kubelet.kubeconfig, Path(kubelet.kubeconfig).read_bytes())
        text = msgspec.json.encode(document.value).decode()
        mine = f"https://127.0.0.1:{self._listening.getsockname()[1]}"
        named = f'"{mine}","tls-server-name":"{self._to[0]}"'
        self.kubeconfig.write_text(text.replace(f'"{kubelet.server}"', named))
        threading.Thread(target=self._accept, daemon=True).start()

    def be(self, mode: str) -> None:
        """Behave differently from now on."""
        self.mode = mode
        if mode == "away":
            for each in tuple(self._open):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            near = self._listening.accept()[0]
            if self.mode == "away":
                near.close()
                continue
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._to) as far:
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open |= {near, far}
            with suppress(OSError):
                while True:
                    for ready in select.select([near, far], [], [])[0]:
                        data = ready.recv(1 << 16)
                        if not data:
                            return
                        if ready is near and self.mode == "slow":
                            time.sleep(SLOW_SECONDS)
                        while self.mode == "mute":
                            time.sleep(0.01)
                        (far if ready is near else near).sendall(data)
            self._open -= {near, far}


class Chaos:
    """One guard, many rounds."""

    def __init__(self, kubelet: RealKubelet, chance: random.Random, when: str) -> None:
        self._kubelet = kubelet
        self._chance = chance
        self._relay = Relay(kubelet)
        self.when = when
        self.guard = Guard(
            kubelet, "--enforce", "--kill-after", when, *UNLIMITED, kubeconfig=str(self._relay.kubeconfig)
        )
        self.problems: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self.restarts: Counter[str] = Counter()
        """Restarted pods, by what went wrong."""
        self._replaced: list[Member] = []
        self._by_kernel: set[str] = set()

    def faults(self) -> dict[str, Callable[[Member], None]]:
        """Return what can go wrong."""
        return {
            "nothing": lambda _: None,
            "guard killed": lambda _: self._kill_guard(),
            "guard killed twice": lambda _: self._kill_guard(again=True),
            "API away": lambda _: self._without_api("away"),
            "API mute": lambda _: self._without_api("mute"),
            "API slow": lambda _: self._without_api("slow"),
            "API away, guard killed": lambda _: self._without_api("away", is_killed=True),
            "made again": self._make_again,
        }

    def round(self, number: int, fault: str, cast: Cast, steps: Sequence[str] = ()) -> None:
        """Let pods grow while something goes wrong, and look at what is left; with steps, the guard dies at these."""
        kubelet = self._kubelet
        rename(cast, f"chaos-{number}")
        self._replaced = []
        kubelet.start(cast.members)
        kubelet.kernel_kills()
        if steps:
            self.guard.end()
            self.guard.start(dies=steps[0])
        doing = (lambda _: self._die_at(fault, steps)) if steps else self.faults()[fault]
        growing = [member for member in cast.members if member.grows_to_mib]
        if fault.startswith("API"):
            self._relay.be(fault.split()[1].rstrip(","))
        acting = threading.Thread(target=doing, args=(growing[0],))
        acting.start()
        for member in growing:
            member.memory[0].grow(member.grows_to_mib * MI)
        died = self._deaths(cast.members, acting)
        end = time.monotonic() + LAST_SECONDS
        while (left := list(self._left(cast.members, died, cast.right))) and time.monotonic() < end:
            died |= self._deaths(cast.members, None)
            time.sleep(0.2)
        self.problems += [f"round {number}, {fault}, {cast.title}: {each}" for each in left]
        kernel = self._by_kernel & {member.name for member in cast.members}
        self.outcomes[f"{fault}: {'the kernel was first' if kernel else 'no kernel kill'}"] += 1
        restarted = [
            member.name
            for member in cast.members
            if member.name not in kernel and any(memory.starts > 1 for memory in member.memory)
        ]
        self.restarts[fault] += len(restarted)
        if restarted and self.when == "answer":
            self.problems.append(f"round {number}, {fault}: restarted {', '.join(restarted)}")
        kubelet.end([*cast.members, *self._replaced])
        gone = {member.uid for member in (*cast.members, *self._replaced)}
        kubelet.until(lambda: not kubelet.has_processes(gone), 60, 0.1)

    def _deaths(self, members: list[Member], acting: threading.Thread | None) -> set[str]:
        """Return which pods have lost a process; waits while something goes wrong, and for five seconds after."""
        watched = {descriptor: member.name for member in members for descriptor in member.pidfds}
        died: set[str] = set()
        end = time.monotonic() + (5 if acting else 0)
        while True:
            for descriptor in select.select(list(watched), [], [], 0.05)[0]:
                died.add(watched.pop(descriptor))
            if acting is not None and acting.is_alive():
                end = time.monotonic() + 5
            if time.monotonic() > end or not watched:
                return died

    def _left(self, members: list[Member], died: set[str], right: list[str]) -> Iterator[str]:
        """Yield what is not as it should be; some of it becomes so within a minute."""
        kubelet = self._kubelet
        pods = kubelet.pods()
        events = kubelet.events()
        self._by_kernel |= {name for path in kubelet.kernel_kills() for name in owners(path, members)}
        replaced = {member.name for member in self._replaced}
        for member in members:
            pod = pods.get(member.name)
            if member.name in replaced or pod is None or pod["metadata"]["uid"] != member.uid:
                continue
            evicted = is_evicted(pod)
            if evicted and member.name not in right:
                yield f"{member.name} is evicted, and is not the right one"
            if evicted and not event_sources(events, member.uid):
                yield f"{member.name} has no Event"
            if member.name in died and member.name not in self._by_kernel and not evicted:
                yield f"{member.name} has died and is not Evicted: {pod['status'].get('reason')}"
        for member in self._replaced:
            pod = pods.get(member.name)
            if pod is None or pod["status"]["phase"] != "Running" or member.memory[0].starts > 1:
                yield f"{member.name}, made again, does not run: {pod and pod['status']}"
        yield from (f"{path} is frozen" for path in kubelet.frozen())
        if self.guard.process is None or self.guard.process.poll() is not None:
            yield "the guard does not run"

    # ---- what goes wrong ---------------------------------------------------------------------------------------------

    def _await_crossing(self) -> None:
        level = self._kubelet.limit_bytes - threshold_bytes(self._kubelet)
        end = time.monotonic() + 5
        while self._kubelet.working_set_bytes < level and time.monotonic() < end:
            time.sleep(0.001)

    def _kill_guard(self, *, again: bool = False) -> None:
        self._await_crossing()
        time.sleep(self._chance.uniform(0, 0.04))
        self.guard.end(9)
        time.sleep(self._chance.choice([0, self._chance.uniform(0, 2)]))
        self.guard.start()
        if again:
            time.sleep(self._chance.uniform(0, 0.5))
            self.guard.end(9)
            self.guard.start()

    def _die_at(self, fault: str, steps: Sequence[str]) -> None:
        """Wait until the guard has killed itself, and start the next one, which may do the same."""
        for following in (*steps[1:], ""):
            assert self.guard.process is not None
            with suppress(subprocess.TimeoutExpired):
                self.guard.process.wait(20)
            if self.guard.process.poll() != -signal.SIGKILL:
                self.outcomes[f"{fault}: not reached"] += 1
                self.guard.end()
            time.sleep(self._chance.choice([0, 1, self._chance.uniform(0, 2)]))
            self.guard.start(dies=following)

    def _without_api(self, mode: str, *, is_killed: bool = False) -> None:
        if is_killed:
            self._await_crossing()
            time.sleep(self._chance.uniform(0, 0.1))
            self.guard.end(9)
            self.guard.start()
        time.sleep(13 if mode == "slow" else self._chance.uniform(0.5, 6))
        self._relay.be("pass")

    def _make_again(self, member: Member) -> None:
        if self._chance.random() < 0.7:
            self._await_crossing()
        time.sleep(self._chance.uniform(0, 0.02))
        self._kubelet.delete(member.name)
        again = Member(member.name)
        self._kubelet.start([again], suffix="-again")
        self._replaced.append(again)


def main() -> None:
    """Run the rounds; print what was wrong, and fail then."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--skip", type=int, default=0, help="begin after so many rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="faults whose name has this")
    parser.add_argument("--steps", action="store_true", help="kill the guard at each step of its work")
    parser.add_argument("--kill-after", choices=["patch", "answer"], help="of the guard; by default by chance")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with RealKubelet() as kubelet:
        chaos = Chaos(kubelet, chance, arguments.kill_after or chance.choice(["patch", "answer"]))
        if arguments.steps:
            named = {", then ".join(steps): steps for steps in STEPS}
        else:
            named = dict.fromkeys(chaos.faults(), ())
        turns = itertools.cycle([fault for fault in named if arguments.only in fault])
        rounds = zip(turns, casts(arguments.skip + arguments.rounds, arguments.seed), strict=False)
        with chaos.guard:
            for number, (fault, cast) in itertools.islice(enumerate(rounds), arguments.skip, None):
                problems = len(chaos.problems)
                chaos.round(number, fault, cast, named[fault])
                outcome = "as it should be" if len(chaos.problems) == problems else "WRONG"
                again = f", {chaos.restarts[fault]} restarted once" if chaos.restarts[fault] else ""
                print(f"{number}: {fault}: {outcome}{again}", flush=True)
    for name, count in chaos.outcomes.items():
        again = chaos.restarts[name.rpartition(":")[0]]
        print(f"  {name}: {count}" + (f", {again} restarted once" if again else ""))
    print("\n".join(chaos.problems))
    print(f"seed {arguments.seed}, {arguments.rounds} rounds: {len(chaos.problems)} problems")
    sys.exit(bool(chaos.problems))


if __name__ == "__main__":
    main()
