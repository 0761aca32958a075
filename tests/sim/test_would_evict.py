"""The quick answer to "whom would the kubelet evict" is that of the ranking."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eviction.nodes import pod
from podqos.eviction.ranking import Policy, Ranking, rank
from podqos.eviction.signals import Signal
from podqos.model.profile import LATEST
from podqos.model.stats import MemoryStats, PodStats
from podqos.sim.engine.gauge import FRACTION_BITS
from podqos.sim.node.memory_group import MemoryGroup
from podqos.sim.node.pods import SimPod
from podqos.sim.node.would_evict import MemoryRequests, place_of, would_evict

pods = st.lists(
    st.tuples(
        st.sampled_from(["", "memory=1", "memory=50", "memory=100"]),
        st.integers(0, 120),
        st.sampled_from([0, 0, 5, 2_000_000_000]),
    ),
    max_size=8,
)


@given(pods, st.sampled_from([None, *Policy]))
def test_it_names_the_first_of_the_ranking_that_may_be_evicted(described, policy):
    ranking = Ranking(Signal.MEMORY, policy=policy)
    requests = MemoryRequests(LATEST)
    running = []
    for index, (request, usage, priority) in enumerate(described):
        made = pod(f"p{index}", request, priority=priority)
        held = SimPod(made, MemoryGroup("/", None, None), None, requests.of(made).nanos)
        held.working_set.change(0, usage << FRACTION_BITS, 0)
        running.append(held)
    found = would_evict(running, 0, ranking, threshold_met=True)
    stats = {each.uid: PodStats(memory=MemoryStats(working_set_bytes=each.working_set_bytes(0))) for each in running}
    ranked = rank((each.pod for each in running), stats, ranking)
    place = next((index for index, entry in enumerate(ranked) if entry.spared is None), None)
    if place is None:
        assert found is None
        return
    entry = ranked[place]
    following = ranked[place + 1].pod.key if place + 1 < len(ranked) else None
    assert (found.pod, found.usage, found.request) == (entry.pod.key, entry.usage, entry.request.value)
    assert (found.over_request, found.priority) == (entry.over_request, entry.priority)
    assert (found.next_pod, found.before_next_by) == (following, entry.before_next_by)
    evictable = [entry.pod.metadata.uid for entry in ranked if entry.spared is None]
    places = {each.uid: place_of(each, running, 0, ranking, {}) for each in running}
    assert places == {each.uid: evictable.index(each.uid) + 1 if each.uid in evictable else None for each in running}
