"""Compare what two commits or versions measured: ``bench/compare.py OLD NEW``, each a commit's beginning or a version.

Without arguments: the last two commits of bench/history.jsonl. The best figure of each counts; above × 1 it got worse.
Between machines only ratios are compared.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from history import HISTORY, Figure, figures


def chosen(every: list[Figure], name: str) -> list[Figure]:
    """Return the figures of a commit or version."""
    found = [each for each in every if each.version == name or each.commit.startswith(name)]
    return found or sys.exit(f"nothing was measured for {name!r}: {', '.join(dict.fromkeys(e.commit for e in every))}")


def best(measured: Iterable[Figure]) -> dict[tuple[str, str], float]:
    """Return the least value by name and unit."""
    least: dict[tuple[str, str], float] = {}
    for each in measured:
        key = each.name, each.unit
        least[key] = min(each.value, least.get(key, each.value))
    return least


def main() -> None:
    """Print a line per figure that both have."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="COMMIT", help="two commits or versions")
    parser.add_argument("--history", type=Path, default=HISTORY, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    every = figures(arguments.history)
    names = arguments.names or list(dict.fromkeys(each.commit for each in every))[-2:]
    if len(names) != 2:
        parser.error(f"two commits are needed, and {len(names)} are there")
    old, new = (chosen(every, name) for name in names)
    machines = {each.machine for each in (*old, *new)}
    print(f"{names[0]} ({old[-1].date}) → {names[1]} ({new[-1].date}) on {' / '.join(sorted(machines))}")
    before, after = best(old), best(new)
    for name, unit in before:
        if (name, unit) in after and (unit == "ratio" or len(machines) == 1):
            one, other = before[name, unit], after[name, unit]
            print(f"{name:<60} {one:14,.3f} {other:14,.3f} {unit:<6} × {other / one if one else float('inf'):.2f}")


if __name__ == "__main__":
    main()
