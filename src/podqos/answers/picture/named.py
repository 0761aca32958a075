"""The names of a run's pods in pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from podqos.answers.run_view import PodView


class PodNames:
    """Names pods, with their namespace where another pod has the same name."""

    def __init__(self, pods: Sequence[PodView]) -> None:
        self._pods = pods
        self._times = Counter(_bare(pod.key) for pod in pods)

    def of(self, place: int) -> str:
        """Return the name of the pod at a place of the list."""
        return self.by_key(self._pods[place].key)

    def by_key(self, key: str) -> str:
        """Return the name of a pod by its key."""
        return key if self._times[_bare(key)] > 1 else _bare(key)


def _bare(key: str) -> str:
    return key.partition("/")[2]
