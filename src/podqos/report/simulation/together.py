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
        case TogetherReason.REPLACED:
            when = seconds(why.time_us, 1)
            return f"at {when} {why.what} replaces a pod and may go to any node (`recreate: false` makes none)"
        case TogetherReason.AUTOSCALED:
            return f"the {why.what} may change any node"
        case TogetherReason.DRAINED:
            return f"{why.what} is drained, which concerns pods on all nodes"
        case TogetherReason.ONE_NODE:
            return "there is only one node"
