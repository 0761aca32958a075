"""``blast``: the impact of a leak in each pod on its neighbours, computed on all cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from podqos.answers import blast_radius as answers
from podqos.answers.blast_radius import BlastKeywords, BlastRequest, scenario_ground, snapshot_ground
from podqos.answers.workers import Workers
from podqos.library.parallel import fan_out, usable_cores
from podqos.objects.spreading import Progress
from podqos.sim.blast import BlastRadius, nodes_now
from podqos.sim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from podqos.answers.node_state import NodeState
    from podqos.model.snapshot import Snapshot


def blast(
    source: Scenario | Snapshot | NodeState,
    slow_bytes_per_second: int = 4 << 20,
    fast_bytes_per_second: int = 1 << 30,
    *,
    progress: Progress | None = None,
    cores: int | None = None,
    **options: Unpack[BlastKeywords],
) -> BlastRadius:
    """Let each pod leak in turn, slowly and fast, and return which other pods die, how soon and what kills them.

    The nodes are those of a scenario at its beginning, which brings its own kubelets and Kubernetes version; or the one
    node of a snapshot, or of a state, with the settings of ``kubelet`` and the rules of ``profile``. ``policy``
    overrides how the kubelet ranks. ``growing`` is the only pod to leak, or ``system``: what runs besides pods.
    ``progress`` gets how many leaks are done, and how many there are. ``cores``: by default all.
    """
    request = BlastRequest(
        slow_bytes_per_second=slow_bytes_per_second, fast_bytes_per_second=fast_bytes_per_second, **options
    )
    if isinstance(source, Scenario):
        ground = scenario_ground(source, nodes_now(source), request)
    else:
        ground = snapshot_ground(source, request)
    return answers.blast(ground, request, Workers(fan_out, cores or usable_cores(), progress))
