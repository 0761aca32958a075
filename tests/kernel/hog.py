"""A process that joins a cgroup, holds memory and, when told to, grows until told to stop, or another has died.

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
others = [os.pidfd_open(int(pid)) for pid in sys.stdin.readline().split()[1:]]
# Growth is slow enough for it to be heard of a death before a second process must die.
while not (heard := select.select([sys.stdin, *others], [], [], 0.002)[0]):
    held.append(bytearray(b"\1") * step)
if sys.stdin not in heard:
    sys.stdin.readline()
