"""All benchmarks, each as a ratio within one run: ``make bench``. Figures worth keeping go to bench/RESULTS.md.

Every measurement alternates ours and theirs and takes the best of several rounds, so that a busy machine hurts both.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import generate
import repositories
from history import record

DATA = Path(__file__).parent / "data"
PODQOS = str(Path(sys.executable).with_name("podqos"))
ROUNDS = 5


def seconds(command: list[str]) -> float:
    """Run a command and return how long it took."""
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def peak_bytes(command: list[str]) -> int:
    """Run a command in a process of its own and return the peak memory of it and its children together."""
    script = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024


def best_of(ours: list[str], theirs: list[str], rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the best time of each, measured alternately."""
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def report(name: str, ours: float, theirs: float, target: str) -> None:
    """Print one line of figures."""
    print(f"{name:<44} {ours:8.3f} s against {theirs:8.3f} s: ratio {ours / theirs:.2f} (target {target})", flush=True)
    record(name.strip(), ours / theirs, "ratio")


def pod_list() -> None:
    """Explain a PodList of 20,000 pods, against merely loading it with the standard library."""
    file = DATA / "pods.json"
    if not file.exists():
        generate.pod_list(file)
    ours = [PODQOS, "explain", "-f", str(file), "-o", "csv"]
    theirs = [sys.executable, "-c", f"import gc, json; gc.disable(); json.load(open({str(file)!r}))"]
    mine, other = best_of(ours, theirs)
    report("explain 20,000 pods / json.load", mine, other, "at most 0.45")
    size = file.stat().st_size
    peak = peak_bytes(ours)
    name = "  peak memory / file size"
    print(f"{name:<44} {peak / 1e6:8.1f} MB of {size / 1e6:6.1f} MB: ratio {peak / size:.2f} (target at most 2)")
    record("explain 20,000 pods, peak memory / file size", peak / size, "ratio")


LOAD = (
    "import sys, yaml, pathlib\n"
    "for file in sorted(pathlib.Path(sys.argv[1]).rglob('*.yaml')):\n"
    "    for _ in yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader): pass\n"
)


def repository(name: str, make: Callable[[Path], object], what: str, target: str) -> None:
    """Explain a repository of YAML manifests, against merely loading it with PyYAML's C loader.

    On all cores, then on one; and as CPU time, which a busy machine changes least.
    """
    folder = DATA / name
    if not folder.exists():
        make(folder)
    ours = [PODQOS, "explain", "-f", str(folder), "-o", "csv"]
    on_one_core = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), *ours]
    commands = {"ours": ours, "one core": on_one_core, "theirs": [sys.executable, "-c", LOAD, str(folder)]}
    times: dict[str, list[tuple[float, float]]] = {key: [] for key in commands}
    for _ in range(ROUNDS):
        for key, command in commands.items():
            times[key].append(elapsed(command))
    wall = {key: min(each[0] for each in found) for key, found in times.items()}
    busy = {key: min(each[1] for each in found) for key, found in times.items()}
    report(f"explain {what} / CSafeLoader", wall["ours"], wall["theirs"], target)
    report("  on one core", wall["one core"], wall["theirs"], "none")
    report("  CPU time", busy["ours"], busy["theirs"], "none")


def elapsed(command: list[str]) -> tuple[float, float]:
    """Run a command and return how long it took, and the CPU time of it and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = seconds(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def manifests() -> None:
    """Explain manifests whose lines repeat from file to file."""
    repository("manifests", generate.manifests, "10 MB of repeating YAML", "at most 0.167, six times faster")


def distinct() -> None:
    """Explain manifests of which no two are alike."""
    repository("distinct", repositories.distinct, "10 MB of distinct YAML", "at most 0.25, four times faster")


def gitops() -> None:
    """Explain a repository that holds mostly other things than workloads."""
    repository("gitops", repositories.gitops, "a GitOps repository", "at most 0.1, ten times faster")


def start_up() -> None:
    """Explain one file, against importing the libraries it stands on."""
    file = Path(__file__).parent.parent / "scenarios/content-platform/platform/article-service.yaml"
    mine, other = best_of(
        [PODQOS, "explain", "-f", str(file)], [sys.executable, "-c", "import msgspec, argparse, ryml"], rounds=20
    )
    report("explain one file / importing libraries", mine, other, "at most 1.6")


BENCHES: dict[str, Callable[[], None]] = {
    "pod-list": pod_list,
    "manifests": manifests,
    "distinct": distinct,
    "gitops": gitops,
    "start-up": start_up,
}


def main() -> None:
    """Run the chosen benchmarks, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHES], metavar="NAME", help=f"of {', '.join(BENCHES)}")
    names = parser.parse_args().names or list(BENCHES)
    DATA.mkdir(exist_ok=True)
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, page size {resource.getpagesize()}")
    for name in names:
        BENCHES[name]()


if __name__ == "__main__":
    main()
