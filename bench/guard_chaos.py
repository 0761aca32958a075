"""A guard that nothing leads astray, beside a real kubelet: killed, cut off and fooled while pods grow.

In each round pods grow as in ``guard_race.py``, and one thing goes wrong: the guard is killed -9 when it acts, and
started again; the API server is away, mute or slow for it (not for the kubelet), through a relay between the two; the
growing pod is deleted and made again with the same name. Whatever happens: a pod that the kernel did not kill has died
only if it was a right one, then it is Failed and Evicted with its Event in the end, a new pod of the same name runs
unharmed, and no cgroup is left frozen.

    PODQOS_TEST_KUBELET=kubeconfig PODQOS_TEST_IMAGE=image bench/guard_chaos.py [--rounds 40] [--seed N]
"""

from __future__ import annotations

import argparse
import itertools
import random
import select
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from guard_race import UNLIMITED, Cast, casts, has_event, is_evicted, owners, rename, threshold_bytes
from real_kubelet import MI, Guard, Member, RealKubelet

from podqos.manifest.documents import plain_documents

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

    def __init__(self, kubelet: RealKubelet, chance: random.Random) -> None:
        self._kubelet = kubelet
        self._chance = chance
        self._relay = Relay(kubelet)
        when = chance.choice(["patch", "answer"])
        self.guard = Guard(
            kubelet, "--enforce", "--kill-after", when, *UNLIMITED, kubeconfig=str(self._relay.kubeconfig)
        )
        self.problems: list[str] = []
        self.outcomes: Counter[str] = Counter()
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

    def round(self, number: int, fault: str, cast: Cast) -> None:
        """Let pods grow while something goes wrong, and look at what is left."""
        kubelet = self._kubelet
        rename(cast, f"chaos-{number}")
        self._replaced = []
        kubelet.start(cast.members)
        kubelet.kernel_kills()
        doing = self.faults()[fault]
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
            if evicted and not has_event(events, member.uid):
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
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="faults whose name has this")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with RealKubelet() as kubelet:
        chaos = Chaos(kubelet, chance)
        faults = [each for each in chaos.faults() if arguments.only in each]
        with chaos.guard:
            turns = zip(itertools.cycle(faults), casts(arguments.rounds, arguments.seed), strict=False)
            for number, (fault, cast) in enumerate(turns):
                chaos.round(number, fault, cast)
                print("." if not chaos.problems else "x", end="", flush=True)
    print()
    for name, count in sorted(chaos.outcomes.items()):
        print(f"  {name}: {count}")
    print("\n".join(chaos.problems))
    print(f"seed {arguments.seed}, {arguments.rounds} rounds: {len(chaos.problems)} problems")
    sys.exit(bool(chaos.problems))


if __name__ == "__main__":
    main()
