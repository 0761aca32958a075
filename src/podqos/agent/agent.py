"""The node agent: ``(config, state, now, event) → (state, commands, journal entries)``.

It has no side effects. A world (``ports``) carries out its commands and reports the results; the simulator and a real
node run the same agent. It admits pods and assigns their cgroups (``pods``), watches the node and evicts
(``eviction_loop``), and restarts containers (``containers``); this module only dispatches events.
"""

from __future__ import annotations

from msgspec.structs import replace

from podqos.agent import active_deadline, containers, eviction_loop, pods, unhealthy
from podqos.agent.commands import CreateCgroup
from podqos.agent.events import (
    ContainerExited,
    ContainerStarted,
    Event,
    MemoryNotified,
    Observed,
    PodAdopted,
    PodBound,
    PodCleanedUp,
    PodDeleted,
    PodStarted,
    PodStopped,
    ProbeFailed,
    ReadinessChanged,
    Woken,
)
from podqos.agent.state import AgentConfig, AgentState, AgentStep, Resting
from podqos.agent.turn import Turn
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.model.time_units import MICROSECOND_NS, SECOND_US
from podqos.qos.cgroup import tier_cgroups


def start(config: AgentConfig, now_us: int, first_pass_us: int | None = None) -> AgentStep:
    """Set up a node: its cgroups and the first pass of the eviction loop, by default immediately."""
    turn = Turn(config, AgentState(loop=Resting(now_us if first_pass_us is None else first_pass_us)), now_us)
    turn.ask(*map(CreateCgroup, tier_cgroups(turn.state.tiers, config.cgroups, config.profile)))
    return turn.step()


def handle(config: AgentConfig, state: AgentState, now_us: int, event: Event) -> AgentStep:
    """Handle one event. ``now_us`` never decreases."""
    turn = Turn(config, state, now_us)
    match event:
        case Woken():
            active_deadline.woken(turn)
            eviction_loop.woken(turn)
            containers.woken(turn)
            pods.woken(turn)
        case MemoryNotified():
            eviction_loop.notified(turn)
        case Observed(observation):
            eviction_loop.observed(turn, observation)
        case PodBound(pod):
            pods.bind(turn, pod)
        case PodAdopted():
            pods.adopt(turn, event)
        case PodStarted(uid):
            pods.started(turn, uid)
        case ContainerStarted(uid, name):
            containers.started(turn, uid, name)
        case ContainerExited():
            phase = containers.exited(turn, event)
            if phase is not None:
                pods.finish(turn, event.uid, phase)
        case ProbeFailed():
            unhealthy.kill(turn, event)
        case ReadinessChanged():
            unhealthy.readiness(turn, event)
        case PodDeleted():
            pods.delete(turn, event)
        case PodStopped(uid):
            pods.stopped(turn, uid)
            eviction_loop.stopped(turn, uid)
            pods.made_room(turn, uid)
        case PodCleanedUp(uid):
            pods.cleaned_up(turn, uid)
            eviction_loop.cleaned_up(turn, uid)
    return turn.step()


def skip_idle_passes(config: AgentConfig, state: AgentState, until_us: int | None) -> AgentState:
    """Return the state as if all passes before ``until_us`` had run and seen nothing.

    For worlds that know when nothing happens. A pass that clears a condition is not skipped: if the time is None, all
    passes before the next of those are.
    """
    loop = state.loop
    assert isinstance(loop, Resting)
    assert is_idle(state)
    interval_us = MONITORING_INTERVAL_SECONDS * SECOND_US
    ends = [each for each in (until_us, idle_until_us(config, state)) if each is not None]
    skipped = -(-(min(ends, default=loop.wake_us) - loop.wake_us) // interval_us)
    if skipped <= 0:
        return state
    wake_us = loop.wake_us + skipped * interval_us
    watched_us = None if state.watched_us is None else wake_us - interval_us
    return replace(state, loop=Resting(wake_us), watched_us=watched_us)


def is_idle(state: AgentState) -> bool:
    """Whether the eviction loop is resting and remembers no threshold: a pass that sees nothing changes nothing."""
    manager = state.manager
    return isinstance(state.loop, Resting) and not (manager.thresholds_met or manager.first_observed_us)


def idle_until_us(config: AgentConfig, state: AgentState) -> int | None:
    """Return from when on a pass that sees nothing clears a condition; None if there is none to clear."""
    last_us, period_ns = state.manager.last_observed_us, config.eviction.pressure_transition_period_ns
    first_us = min((last_us[condition] for condition in state.manager.conditions), default=None)
    return None if first_us is None else first_us - (-period_ns // MICROSECOND_NS)
