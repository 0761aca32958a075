"""What would have saved a pod that the guard selected: the same pass, repeated with one change.

That takes longer than a reaction may, so it is done a moment later, in another thread.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import PodSaving, WouldHaveSaved
from podqos.agent.state import AgentState
from podqos.eviction.manager import ManagerConfig
from podqos.eviction.signals import Observation
from podqos.guard.node_pods import Journal
from podqos.host.linux.background import Background
from podqos.host.linux.notes import words
from podqos.host.shell.agent_thread import AgentThread

_LATER_SECONDS = 0.3
_AGAIN_US = 60_000_000


class Decided(Struct, frozen=True):
    """A decided eviction, with everything the agent knew."""

    entry: Entry
    before: AgentState
    """The agent's state before its pass."""
    now_us: int


class DecisionExplainer:
    """Records what would have saved pods; for a pod selected repeatedly in shadow mode, only from time to time."""

    def __init__(self, config: ManagerConfig, thread: AgentThread, background: Background, journal: Journal) -> None:
        self._config, self._thread, self._background, self._journal = config, thread, background, journal
        self._last_us: dict[str, int] = {}

    def explain(self, decided: Decided, observation: Observation) -> None:
        """Explain a decision from these statistics, a moment later."""
        pod, now_us = decided.entry.pod or "", decided.now_us
        self._last_us = {each: us for each, us in self._last_us.items() if us > now_us - _AGAIN_US}
        if pod in self._last_us and decided.entry.kind is not Kind.EVICTED:
            return
        self._last_us[pod] = now_us

        def done(result: WouldHaveSaved | Exception) -> None:
            if isinstance(result, Exception):
                self._thread.note(f"could not compute what would have saved {pod}: {words(result)}")
            else:
                self._journal(Kind.EXPLAINED, pod, By.GUARD, result)

        self._thread.loop.call_after(
            _LATER_SECONDS,
            lambda: self._background.run(lambda: what_would_have_saved(self._config, decided, observation), done),
        )


def what_would_have_saved(config: ManagerConfig, decided: Decided, observation: Observation) -> WouldHaveSaved:
    """Return the changes that work."""
    from podqos.orders.trials import KubeletMoment, kubelet_counterfactuals

    pods = decided.before.active_pods
    moment = KubeletMoment(config, decided.before.manager, decided.now_us, observation, pods)
    uid = next((pod.metadata.uid for pod in pods if pod.key == decided.entry.pod), "")
    return WouldHaveSaved(
        tuple(
            PodSaving(
                counterfactual.change.value,
                counterfactual.resource,
                counterfactual.amount,
                counterfactual.container,
                counterfactual.decision.instead,
            )
            for counterfactual in kubelet_counterfactuals(moment, uid)
            if counterfactual.saves
        )
    )
