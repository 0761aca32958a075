"""How often the kernel does as predicted: ten rehearsals each of the race, the incident and the questions.

python bench/rehearse.py [--times 10] [SCENARIO …]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

REHEARSALS = {
    "race": ["--until", "8s", "--scale", "1/16"],
    "oom-by-class": ["--until", "5s", "--scale", "1/16"],
    "oom-by-usage": ["--until", "5s", "--scale", "1/16"],
    "oom-loop": ["--until", "9s", "--scale", "1/16"],
    "oom-by-request": ["--until", "5s", "--scale", "1/16"],
    "accidental-burstable": ["--until", "100s"],
    "accidental-burstable-fixed": ["--until", "140s"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="(default: all)")
    arguments = parser.parse_args()
    times = arguments.times
    failed = 0
    for name in arguments.scenarios or REHEARSALS:
        options = REHEARSALS[name]
        same, shifts, started = 0, [], time.perf_counter()
        for _ in range(times):
            command = [sys.executable, "-m", "podqos", "rehearse", name, *options, "-o", "json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            report = json.loads(done.stdout)
            same += report["sameVictims"] and report["sameOrder"]
            shifts += [
                abs(each["real"]["atSeconds"] - each["predicted"]["atSeconds"])
                for each in report["victims"]
                if each["real"] and each["predicted"]
            ]
        failed += times - same
        late = f", at most {max(shifts):.2f} s apart" if shifts else ""
        seconds = time.perf_counter() - started
        print(f"{name:>26}: {same} of {times} the same victims in the same order{late} ({seconds:.0f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
