"""A process that joins a cgroup, holds memory and, when told to, grows until told to stop.

hog.py CGROUP.PROCS OOM_SCORE_ADJ BYTES STEP_BYTES
"""

from __future__ import annotations

import os
import select
import sys

procs, adjustment, size, step = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
for path, text in ((procs, str(os.getpid())), ("/proc/self/oom_score_adj", adjustment)):
    with open(path, "w") as file:  # noqa: PTH123 - a hog imports little, to be small
        file.write(text)
held = [bytearray(b"\1") * size]
sys.stdout.write("ready\n")
sys.stdout.flush()
sys.stdin.readline()
# Growth is slow enough for whoever watches to say stop before a second process must die.
while not select.select([sys.stdin], [], [], 0.002)[0]:
    held.append(bytearray(b"\1") * step)
