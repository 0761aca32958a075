"""Check a repository of manifests, against explaining it: a ratio within one run.

Both read the same files, use all cores and print what they print by default. Positions are part of it: nearly every
workload of the corpus has findings, and each is told with line and column. Beside it: starting up to check one file.
"""

from __future__ import annotations

from pathlib import Path

import generate
from history import record
from run import DATA, PODQOS, best_of, peak_bytes, report

ROUNDS = 5


def main() -> None:
    """Measure and print."""
    folder = DATA / "manifests"
    if not folder.exists():
        DATA.mkdir(exist_ok=True)
        generate.manifests(folder)
    gate = ["--fail-on", "never", "--config-file", "none"]
    for output, name in (
        ([], "check 10 MB of YAML / explain"),
        (["-o", "json"], "  check 10 MB of YAML as JSON / explain"),
    ):
        ours = [PODQOS, "check", "-f", str(folder), *output, *gate]
        mine, other = best_of(ours, [PODQOS, "explain", "-f", str(folder), *output], ROUNDS)
        report(name, mine, other, "at most 1.5")
    size = sum(file.stat().st_size for file in folder.rglob("*.yaml"))
    peak = peak_bytes([PODQOS, "check", "-f", str(folder), *gate])
    print(f"{'  peak memory / size of the files':<44} {peak / 1e6:8.1f} MB of {size / 1e6:6.1f} MB: {peak / size:.1f}")
    record("check 10 MB of YAML, peak memory / size of the files", peak / size, "ratio")
    file = Path(__file__).parent.parent / "scenarios/content-platform/platform/article-service.yaml"
    mine, other = best_of([PODQOS, "check", str(file), *gate], [PODQOS, "explain", "-f", str(file)], 20)
    report("check one file / explain it", mine, other, "at most 2")


if __name__ == "__main__":
    main()
