"""Why the nodes of a fleet were simulated together, in words."""

from __future__ import annotations

from podqos.report.simulation.timeline import seconds
from podqos.sim.shards import Together, TogetherReason


def together_words(why: Together) -> str:
    """Return the reason, and what to do about it."""
    match why.because:
        case TogetherReason.SCHEDULED:
            return f"the scheduler places the pods of {why.what} (`nodes` or `spread` bind them)"
        case TogetherReason.DAEMON_SET:
            return f"the scheduler places the pods of the DaemonSet {why.what}"
        case TogetherReason.CHANGED:
            return f"{why.what} is rolled out or scaled at {seconds(why.time_us, 1)}"
        case TogetherReason.REPLACED:
            when = seconds(why.time_us, 1)
            return f"at {when} {why.what} replaces a pod and may go to any node (`recreate: false` makes none)"
        case TogetherReason.AUTOSCALED:
            return f"the {why.what} may change any node"
        case TogetherReason.SERVICE:
            return f"the requests to {why.what} are divided among its pods on all nodes"
        case TogetherReason.JOB:
            what = f"at {seconds(why.time_us, 1)} the Job of {why.what}" if why.time_us else why.what
            return f"{what} counts its pods on all nodes (`recreate: false` does without)"
        case TogetherReason.DRAINED:
            return f"{why.what} is drained, which concerns pods on all nodes"
        case TogetherReason.ONE_NODE:
            return "there is only one node"
