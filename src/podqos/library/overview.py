"""A cluster on one screen, checked on all cores where that pays."""

from __future__ import annotations

from podqos.answers import overview as answers
from podqos.library.parallel import over_cores
from podqos.model.profile import Profile
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.spreading import Progress


def overview(
    cluster: ClusterSnapshot, *, profile: Profile | None = None, progress: Progress | None = None
) -> answers.Overview:
    """Return how a cluster stands. ``progress`` gets the number of ranked nodes and the total."""
    return answers.overview(cluster, profile=profile, progress=progress, spread=over_cores())
