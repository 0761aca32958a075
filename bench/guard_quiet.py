"""What the guard costs while nothing happens, beside a real kubelet with 110 pods; and while pods come and go.

    PODQOS_TEST_KUBELET=kubeconfig PODQOS_TEST_IMAGE=image bench/guard_quiet.py [--pods 110] [--seconds 180]
        [--churn-seconds 60]

The pods sleep; those that are on the node already count, too. While pods come and go one is deleted and another made
every two seconds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from node_quiet import cpu_seconds, memory_mb
from real_kubelet import IMAGE, Guard, RealKubelet

SETTLE_SECONDS = 15
"""Starting a hundred pods leaves work behind."""
MOST_CPU, MOST_MB = 0.005, 50.0


def sleeper(kubelet: RealKubelet, name: str) -> None:
    """Start a pod that sleeps; of each three, one asks for nothing, one for memory, and one has limits."""
    number = sum(map(ord, name))
    asked = {"memory": "8Mi", "cpu": "2m"}
    kinds: tuple[dict[str, object], ...] = ({}, {"requests": asked}, {"requests": asked, "limits": asked})
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "100000"],
        "resources": kinds[number % 3],
    }
    spec = {
        "nodeName": kubelet.node,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    path = f"/api/v1/namespaces/{kubelet.namespace}/pods"
    status = kubelet.send("POST", path, {"metadata": {"name": name}, "spec": spec})
    assert status == 201, (name, status)


def running(kubelet: RealKubelet) -> int:
    """Return how many pods of the node run."""
    pods = kubelet.get(f"/api/v1/pods?fieldSelector=spec.nodeName={kubelet.node},status.phase=Running")
    return len(pods["items"])


def report(title: str, guard: Guard, used: float, seconds: float, pods: int) -> None:
    """Print what the guard used."""
    resident, peak = memory_mb(guard.pid, "VmRSS"), memory_mb(guard.pid, "VmHWM")
    descriptors = sum(1 for _ in Path(f"/proc/{guard.pid}/fd").iterdir())
    print(
        f"{title}: {pods} pods, {used / seconds:.2%} of a core over {seconds:.0f} s (at most {MOST_CPU:.1%}),"
        f" {resident:.1f} MB (peak {peak:.1f} MB; at most {MOST_MB:.0f} MB), {descriptors} descriptors",
        flush=True,
    )


def main() -> None:
    """Start the pods, then the guard; measure it twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=110)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--churn-seconds", type=float, default=60)
    parser.add_argument("--shadow", action="store_true", help="without --enforce")
    arguments = parser.parse_args()
    with RealKubelet() as kubelet:
        began = time.monotonic()
        wanted = arguments.pods - running(kubelet)
        for number in range(wanted):
            sleeper(kubelet, f"quiet-{number}")
        kubelet.until(lambda: running(kubelet) >= arguments.pods, 300, 1)
        print(f"{wanted} pods started in {time.monotonic() - began:.0f} s", flush=True)
        with Guard(kubelet, *([] if arguments.shadow else ["--enforce"])) as guard:
            time.sleep(SETTLE_SECONDS)
            before, began = cpu_seconds(guard.pid), time.monotonic()
            time.sleep(arguments.seconds)
            report("quiet", guard, cpu_seconds(guard.pid) - before, time.monotonic() - began, running(kubelet))
            before, began = cpu_seconds(guard.pid), time.monotonic()
            changes = 0
            while time.monotonic() < began + arguments.churn_seconds:
                kubelet.delete(f"quiet-{changes}")
                sleeper(kubelet, f"again-{changes}")
                changes += 1
                time.sleep(max(0.0, began + 2 * changes - time.monotonic()))
            if changes:
                used, seconds = cpu_seconds(guard.pid) - before, time.monotonic() - began
                report(f"{changes} pods come and go", guard, used, seconds, running(kubelet))


if __name__ == "__main__":
    main()
