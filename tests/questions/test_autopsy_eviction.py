"""Whether an eviction follows from the rule, as far as that can be known, and what would have spared the pod."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import container
from eviction.nodes import MI
from podqos.eviction.messages import Shortage, pressure_text
from podqos.eviction.ranking import Ranking, Spared, rank
from podqos.eviction.signals import Signal
from podqos.logs.said import EvictionCause, EvictionTrace, TraceSource, seconds_of
from podqos.model.event import Event, EventSource, ObjectReference
from podqos.model.pod import Container, ObjectMeta, PodSpec
from podqos.model.pod_fate import ContainerState, ContainerStatus, ContainerTerminated, FatedPod, FullPodStatus
from podqos.model.pod_fate import PodCondition as Condition
from podqos.model.quantity import Quantity
from podqos.model.stats import ContainerStats, MemoryStats, PodStats
from podqos.orders.counterfactual import with_priority, with_request
from podqos.questions.autopsy_death import Reason, SavedBy
from podqos.questions.autopsy_eviction import SceneNode, event_trace, examine_eviction, gathered, status_trace
from podqos.questions.autopsy_words import worded

AT, BEFORE, LATER = "2026-11-16T10:00:00Z", "2026-11-16T09:00:00Z", "2026-11-16T11:00:00Z"
SHORT = Shortage("memory", Quantity.parse("100Mi"), Quantity.parse("90Mi"))


def pod(name: str, *containers: Container, request: str = "", limit: str = "", **spec: object) -> FatedPod:
    """Return a pod that runs on node-1."""
    requests, limits = (f"memory={each}" if each else "" for each in (request, limit))
    own = containers or (container("main", requests=requests, limits=limits),)
    return FatedPod(
        ObjectMeta(name=name, namespace="shop", uid=f"uid-of-{name}"),
        PodSpec(containers=own, node_name="node-1", **spec),
        FullPodStatus(phase="Running", start_time=BEFORE),
    )


def stats_of(pod: FatedPod, **used: int) -> PodStats:
    each = tuple(ContainerStats(name, MemoryStats(working_set_bytes=mi * MI)) for name, mi in used.items())
    return PodStats(containers=each, memory=MemoryStats(working_set_bytes=sum(used.values()) * MI))


def evicted(pod: FatedPod, short: Shortage = SHORT, **used: int) -> EvictionTrace:
    """Return the event of an eviction, in the words of today's kubelet."""
    text = pressure_text(short, pod, stats_of(pod, **used)).message
    trace = event_trace(
        Event(
            reason="Evicted",
            message=text,
            involved_object=ObjectReference("Pod", "shop", pod.metadata.name, pod.metadata.uid),
            source=EventSource("kubelet", "node-1"),
            first_timestamp=AT,
        )
    )
    assert trace is not None
    return trace


def verdict(trace: EvictionTrace, *pods: FatedPod, **known: object) -> tuple[bool | None, Reason]:
    found = examine_eviction([trace], SceneNode("node-1", pods, **known))
    return found.follows_rule, found.reason


def test_the_only_pod_that_can_be_over_its_request_goes_first_whatever_the_others_used():
    web, safe = pod("web", request="1Gi"), pod("safe", request="2Gi", limit="2Gi")
    assert verdict(evicted(web, main=3000), web, safe) == (True, Reason.FIRST)


def test_the_lowest_priority_of_those_over_their_request_goes_first_whatever_the_others_used():
    web, hog = pod("web", request="1Gi", priority=1), pod("hog", priority=2)
    assert verdict(evicted(web, main=1025), web, hog) == (True, Reason.FIRST)


def test_a_pod_within_its_request_does_not_go_before_one_of_lower_priority():
    web, low = pod("web", request="4Gi", priority=5), pod("low", request="1Gi", priority=1)
    found = examine_eviction([evicted(web, main=100)], SceneNode("node-1", (web, low)))
    assert (found.follows_rule, found.reason, found.eviction.rivals) == (False, Reason.OTHER_IS_FIRST, ("shop/low",))


def test_where_usage_decides_nothing_is_claimed_and_the_rivals_are_named():
    web, hog, safe = pod("web"), pod("hog"), pod("safe", request="1Gi", limit="1Gi")
    found = examine_eviction([evicted(web, main=100)], SceneNode("node-1", (web, hog, safe)))
    assert (found.follows_rule, found.reason, found.eviction.rivals) == (None, Reason.USAGE_DECIDES, ("shop/hog",))


def test_next_is_one_that_may_have_used_more_than_it_requests():
    web, safe, hog = pod("web"), pod("safe", request="1Gi", limit="1Gi"), pod("hog", request="1Gi")
    found = examine_eviction([evicted(web, main=100)], SceneNode("node-1", (safe, web, hog)))
    assert found.eviction.runner_up.name == "shop/hog"


def test_what_the_others_used_at_another_moment_makes_it_likely():
    web, hog = pod("web"), pod("hog")
    stats = {hog.metadata.uid: stats_of(hog, main=50)}
    assert verdict(evicted(web, main=100), web, hog, stats=stats) == (True, Reason.FIRST_AS_MEASURED)
    stats = {hog.metadata.uid: stats_of(hog, main=500)}
    assert verdict(evicted(web, main=100), web, hog, stats=stats) == (None, Reason.USAGE_DECIDES)


def test_the_kubelets_own_ranking_counts_but_for_critical_pods():
    web, hog, static = pod("web"), pod("hog"), pod("static", priority=2_000_001_000)
    trace = replace(evicted(web, main=1), ranked=("shop/static", "shop/web", "shop/hog"))
    assert verdict(trace, web, hog, static) == (True, Reason.FIRST_IN_LOG)
    trace = replace(trace, ranked=("shop/hog", "shop/web"))
    assert verdict(trace, web, hog) == (None, Reason.USAGE_DECIDES)


def test_next_is_the_next_in_the_kubelets_own_ranking():
    web, low, hog, late = pod("web"), pod("low", request="1Gi", priority=-1), pod("hog"), pod("late")
    trace = replace(evicted(web, main=1), ranked=("shop/web", "shop/late", "shop/hog", "shop/low"))
    found = examine_eviction([trace], SceneNode("node-1", (low, hog, late, web)))
    assert found.eviction.runner_up.name == "shop/late"
    assert [each.name for each in found.ranking if each.priority == 0] == ["shop/web", "shop/late", "shop/hog"]


def test_a_critical_pod_of_the_ranking_is_marked_as_passed_over():
    web, hog, static = pod("web"), pod("hog"), pod("static", priority=2_000_001_000)
    found = examine_eviction([evicted(web, main=100)], SceneNode("node-1", (web, hog, static)))
    assert {each.name: each.mark for each in found.ranking if each.mark} == {
        "shop/static": Spared.CRITICAL,
        "shop/web": "evicted",
    }


@pytest.mark.parametrize(
    ("most_shown", "shown"),
    [(3, ["a", "b", "web"]), (2, ["a", "web"]), (1, ["web"]), (0, ["web"]), (9, ["a", "b", "web", "z"])],
)
def test_a_ranking_that_is_cut_still_has_the_evicted_pod(most_shown, shown):
    pods = [pod(name, priority=priority) for name, priority in (("a", 1), ("b", 2), ("web", 3), ("z", 4))]
    stats = {each.metadata.uid: stats_of(each, main=100) for each in pods}
    known = SceneNode("node-1", tuple(pods), stats=stats)
    found = examine_eviction([evicted(pods[2], main=100)], known, most_shown=most_shown)
    assert [each.name for each in found.ranking] == [f"shop/{name}" for name in shown]
    assert found.candidates == 4


def test_containers_within_their_requests_are_not_quoted_and_may_count():
    two = (container("a", requests="memory=1Gi"), container("b", requests="memory=1Gi"))
    web, other = pod("web", *two, priority=1), pod("other", request="1Gi", limit="1Gi", priority=1)
    # 1100Mi of 2Gi at least: whether the pod is over its request depends on what b used.
    found = examine_eviction([evicted(web, a=1100, b=1000)], SceneNode("node-1", (web, other)))
    assert found.reason is Reason.USAGE_DECIDES
    assert [each.is_at_least for each in found.ranking if each.name == "shop/web"] == [True]
    assert verdict(evicted(web, a=2100, b=1000), web, other) == (True, Reason.FIRST)


@pytest.mark.parametrize(
    ("known", "reason"),
    [((), Reason.POD_UNKNOWN), ((pod("web"),), Reason.PODS_UNKNOWN)],
)
def test_without_pods_nothing_is_claimed(known, reason):
    assert verdict(evicted(pod("web"), main=1), *known) == (None, reason)


def test_a_critical_pod_is_not_evicted_by_the_rule():
    web = pod("web", priority=2_000_000_000)
    assert verdict(evicted(web, main=1), web, pod("other")) == (False, Reason.IS_CRITICAL)


def test_only_pods_that_ran_on_the_node_then_are_candidates():
    web = pod("web")
    elsewhere = replace(pod("elsewhere"), spec=PodSpec(node_name="node-2"))
    younger = replace(pod("younger"), status=FullPodStatus(phase="Running", start_time=LATER))
    ended = replace(pod("ended"), status=FullPodStatus(phase="Failed", start_time=BEFORE))
    gone = pod("gone")
    by_then = replace(
        pod("by-then"),
        status=FullPodStatus(
            phase="Failed",
            start_time=BEFORE,
            container_statuses=(
                ContainerStatus("main", state=ContainerState(terminated=ContainerTerminated(finished_at=LATER))),
                ContainerStatus("not-started"),
                ContainerStatus("running", state=ContainerState()),
            ),
        ),
    )
    known = SceneNode("node-1", (web, elsewhere, younger, ended, gone, by_then))
    found = examine_eviction([evicted(web, main=1)], known, gone=frozenset({gone.metadata.uid}))
    assert {each.name for each in found.ranking} == {"shop/web", "shop/by-then"}


# ---- savings ---------------------------------------------------------------------------------------------------------


def test_what_spares_a_pod_was_tried_with_the_pass_itself():
    web, hog = pod("web", request="1Gi"), pod("hog", request="1Gi")
    known = SceneNode("node-1", (web, hog), {hog.metadata.uid: stats_of(hog, main=1500)})
    found = examine_eviction([evicted(web, main=2048)], known)
    saved = {each.change: each for each in found.saved_by}
    # By less than hog, which exceeds its request by 476Mi.
    assert (saved[SavedBy.REQUEST].more, saved[SavedBy.REQUEST].amount) == (549 * MI, (2048 - 475) * MI)
    assert (saved[SavedBy.USAGE].more, saved[SavedBy.USAGE].amount) == (549 * MI, 1499 * MI)
    assert (saved[SavedBy.PRIORITY].more, saved[SavedBy.PRIORITY].amount) == (None, 1)
    assert saved[SavedBy.THRESHOLD].amount == 90 * MI
    assert (saved[SavedBy.NODE_SIZE].more, saved[SavedBy.NODE_SIZE].advised) == (10 * MI, 1024 * MI)
    assert saved[SavedBy.REQUEST].instead == "shop/hog"
    assert not any(each.is_assumed for each in found.saved_by)


def test_no_advice_about_an_eviction_is_a_few_kibibytes():
    web, hog = pod("web", request="1Gi"), pod("hog", request="1Gi")
    known = SceneNode("node-1", (web, hog), {hog.metadata.uid: stats_of(hog, main=1500)})
    short = Shortage("memory", Quantity.parse("100Mi"), Quantity.parse("102396Ki"))
    found = examine_eviction([evicted(web, short, main=2048)], known)
    assert {SavedBy.THRESHOLD, SavedBy.NODE_SIZE} <= {each.change for each in found.saved_by}
    told = [saving.words for saving in worded(found).saved_by]
    assert "a node with 1Gi more memory" in told
    assert not any("threshold" in words or "Ki" in words for words in told)


@pytest.mark.parametrize("available", ["0", "100Mi", "120Mi"])
def test_a_message_whose_amounts_are_no_shortage_says_nothing_of_the_threshold_or_the_node(available):
    """The kubelet rounds them, and nothing left at all is a figure that was not there."""
    web, hog = pod("web", request="1Gi"), pod("hog", request="1Gi")
    known = SceneNode("node-1", (web, hog), {hog.metadata.uid: stats_of(hog, main=1500)})
    short = Shortage("memory", Quantity.parse("100Mi"), Quantity.parse(available))
    found = examine_eviction([evicted(web, short, main=2048)], known)
    of_pod = {SavedBy.REQUEST, SavedBy.CLASS, SavedBy.USAGE, SavedBy.PRIORITY}
    assert {each.change for each in found.saved_by} == of_pod


def test_a_saving_that_rests_on_an_assumption_says_so():
    web, other = pod("web"), pod("other", request="1Gi", priority=-1)
    found = examine_eviction([evicted(web, main=100)], SceneNode("node-1", (web, other)))
    assert [each.is_assumed for each in found.saved_by if each.instead] == [True, True]
    assert {each.instead for each in found.saved_by} == {"shop/other", ""}


def test_what_does_not_help_is_not_listed():
    web, safe = pod("web", request="1Gi"), pod("safe", request="2Gi", limit="2Gi", priority=9)
    found = examine_eviction([evicted(web, main=3000)], SceneNode("node-1", (web, safe)))
    assert {each.change for each in found.saved_by} == {SavedBy.THRESHOLD, SavedBy.NODE_SIZE}


# ---- the three rankings against all that can have been ---------------------------------------------------------------

amounts = st.sampled_from((0, 1, 64, 100, 500))


@st.composite
def nodes(draw: st.DrawFn) -> tuple[list[FatedPod], list[int]]:
    """Return pods, and what each used, never above its limit."""
    made, used = [], []
    for number in range(draw(st.integers(2, 5))):
        request, more = draw(amounts), draw(st.none() | amounts)
        limit = "" if more is None else f"{request + more}Mi"
        made.append(pod(f"p{number}", request=f"{request}Mi", limit=limit, priority=draw(st.integers(0, 2))))
        top = 2000 if more is None else request + more
        used.append(draw(st.integers(0, top)))
    return made, used


@given(nodes())
@settings(max_examples=60)
def test_a_verdict_is_never_wrong_about_what_the_rule_does(node):
    pods, used = node
    stats = {each.metadata.uid: stats_of(each, main=mi) for each, mi in zip(pods, used, strict=True)}
    order = rank(pods, stats, Ranking(Signal.MEMORY))
    for each, mi in zip(pods, used, strict=True):
        found = examine_eviction([evicted(each, main=mi)], SceneNode("node-1", tuple(pods)))
        is_first = order[0].pod.metadata.uid == each.metadata.uid
        if found.reason is Reason.FIRST:
            assert is_first
        if found.reason is Reason.OTHER_IS_FIRST:
            assert not is_first
    first = next(each for each in pods if each.metadata.uid == order[0].pod.metadata.uid)
    known = SceneNode("node-1", tuple(pods), stats)
    found = examine_eviction([evicted(first, main=used[pods.index(first)])], known)
    assert found.follows_rule is not False


@given(nodes())
@settings(max_examples=60)
def test_what_is_said_to_spare_a_pod_makes_another_first_among_all_pods(node):
    pods, used = node
    stats = {each.metadata.uid: stats_of(each, main=mi) for each, mi in zip(pods, used, strict=True)}
    first = rank(pods, stats, Ranking(Signal.MEMORY))[0].pod
    at = next(number for number, each in enumerate(pods) if each.metadata.uid == first.metadata.uid)
    found = examine_eviction([evicted(pods[at], main=used[at])], SceneNode("node-1", tuple(pods), stats))
    for saving in found.saved_by:
        changed, figures = first, stats
        if saving.change is SavedBy.REQUEST:
            changed = with_request(first, "main", "memory", saving.amount)
        elif saving.change is SavedBy.PRIORITY:
            changed = with_priority(first, saving.amount)
        elif saving.change is SavedBy.USAGE:
            figures = {**stats, first.metadata.uid: stats_of(pods[at], main=saving.amount // MI)}
        else:
            continue
        others = [changed if each.metadata.uid == first.metadata.uid else each for each in pods]
        order = rank(others, figures, Ranking(Signal.MEMORY))
        assert order[0].pod.key == saving.instead


# ---- traces ----------------------------------------------------------------------------------------------------------


def test_an_event_a_status_and_a_log_are_one_eviction():
    web = pod("web")
    event = evicted(web, main=100)
    failed = replace(
        web,
        status=FullPodStatus(
            phase="Failed",
            reason="Evicted",
            message=event.text,
            conditions=(Condition("DisruptionTarget", "True", "TerminationByKubelet", last_transition_time=AT),),
        ),
    )
    status = status_trace(failed)
    assert status is not None
    log = EvictionTrace(TraceSource.KUBELET_LOG, "shop/web", EvictionCause.NODE_PRESSURE, "Nov 16 10:00:00.5")
    (group,) = gathered([log, event, status])
    found = examine_eviction(group)
    assert found.eviction.found_in == (TraceSource.EVENT, TraceSource.STATUS, TraceSource.KUBELET_LOG)
    assert (found.when, found.where, found.pod_uid) == (AT, "node-1", "uid-of-web")
    assert found.eviction.containers[0].used == 100 * MI


def test_a_log_that_only_says_that_a_pod_was_evicted_does_not_outweigh_the_event():
    log = EvictionTrace(TraceSource.KUBELET_LOG, "shop/web", EvictionCause.LOCAL_STORAGE_LIMIT, "Nov 16 10:00:00.5")
    assert examine_eviction([evicted(pod("web"), main=100), log]).eviction.cause is EvictionCause.NODE_PRESSURE
    assert examine_eviction([log]).eviction.cause is EvictionCause.LOCAL_STORAGE_LIMIT


@pytest.mark.parametrize(
    ("stated", "signal"), [("nodefs.inodesFree", Signal.NODEFS_INODES), ("", Signal.NODEFS), ("x", Signal.NODEFS)]
)
def test_a_signal_that_a_log_states_comes_before_what_the_message_leaves_open(stated, signal):
    """The message names the resource alone."""
    disk = Shortage("ephemeral-storage", Quantity.parse("1Gi"), Quantity.parse("900Mi"))
    web = pod("web")
    message = replace(evicted(web, main=1), text=pressure_text(disk, web, stats_of(web, main=1)).message)
    read = event_trace(
        Event(
            reason="Evicted",
            message=message.text,
            involved_object=ObjectReference("Pod", "shop", "web", web.metadata.uid),
            first_timestamp=AT,
        )
    )
    log = EvictionTrace(
        TraceSource.KUBELET_LOG, "shop/web", EvictionCause.NODE_PRESSURE, "Nov 16 10:00:00.5", signal=stated
    )
    found = examine_eviction([read, log], SceneNode("", (web,)))
    assert (found.eviction.signal, found.where) == (signal, "node-1"), "the node is the pod's own"


def test_a_pod_that_came_back_under_its_name_was_evicted_twice():
    first = evicted(pod("db-0"), main=1)
    second = replace(first, uid="another", at="2026-11-16T12:00:00Z")
    logs = [
        EvictionTrace(TraceSource.KUBELET_LOG, "shop/db-0", EvictionCause.NODE_PRESSURE, at)
        for at in ("Nov 16 10:00:01", "Nov 16 12:00:01", "Nov 16 14:00:01")
    ]
    groups = gathered([first, second, *logs])
    assert [[each.at for each in group] for group in groups] == [
        [AT, "Nov 16 10:00:01"],
        ["2026-11-16T12:00:00Z", "Nov 16 12:00:01"],
        ["Nov 16 14:00:01"],
    ]


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (FullPodStatus(phase="Failed", reason="Preempting"), EvictionCause.CRITICAL_POD),
        (FullPodStatus(phase="Failed", reason="Terminated"), EvictionCause.NODE_SHUTDOWN),
        (FullPodStatus(phase="Failed", reason="NodeShutdown"), EvictionCause.NOT_ADMITTED_AT_SHUTDOWN),
        (FullPodStatus(phase="Failed", reason="Evicted", message="moved by hand"), EvictionCause.OTHER),
        (
            FullPodStatus(phase="Failed", reason="Evicted", message="The node had condition: [DiskPressure]. "),
            EvictionCause.NOT_ADMITTED,
        ),
        (
            FullPodStatus(
                phase="Running", conditions=(Condition("DisruptionTarget", "True", "EvictionByEvictionAPI"),)
            ),
            EvictionCause.EVICTION_API,
        ),
        (FullPodStatus(phase="Failed", reason="OutOfmemory"), EvictionCause.NO_ROOM),
        (FullPodStatus(phase="Failed", reason="OutOfcpu"), None),
        (FullPodStatus(phase="Running"), None),
        (
            FullPodStatus(phase="Running", conditions=(Condition("DisruptionTarget", "False", "DeletionByPodGC"),)),
            None,
        ),
    ],
)
def test_ends_of_pods_are_told_apart(status, cause):
    trace = status_trace(replace(pod("web"), status=status))
    assert (None if trace is None else trace.cause) == cause


@pytest.mark.parametrize(
    ("reason", "message", "cause", "node"),
    [
        (
            "Evicted",
            'Usage of EmptyDir volume "a" exceeds the limit "1Mi". ',
            EvictionCause.LOCAL_STORAGE_LIMIT,
            "node-1",
        ),
        ("Evicted", "moved by hand", EvictionCause.OTHER, ""),
        ("TaintManagerEviction", "Marking for deletion Pod shop/web", EvictionCause.TAINT, ""),
    ],
)
def test_the_node_of_an_event_is_where_its_kubelet_is(reason, message, cause, node):
    """Whoever else evicts runs on any machine."""
    trace = event_trace(
        Event(
            reason=reason,
            message=message,
            involved_object=ObjectReference("Pod", "shop", "web", "1"),
            source=EventSource("somebody", "node-1"),
            first_timestamp=AT,
        )
    )
    assert (trace.cause, trace.node) == (cause, node)


def test_events_of_the_newer_api_are_read_alike():
    old = evicted(pod("web"), main=100)
    new = event_trace(
        Event(
            reason="Evicted",
            note=old.text,
            regarding=ObjectReference("Pod", "shop", "web", "uid-of-web"),
            deprecated_source=EventSource("kubelet", "node-1"),
            event_time=AT,
        )
    )
    assert new == old


@pytest.mark.parametrize(
    ("at", "seconds"),
    [
        ("1970-01-01T00:00:01Z", 1.0),
        ("1970-01-01T01:00:01.5+01:00", 1.5),
        ("1794823200.25", 1794823200.25),
        ("Nov 16 10:00:00", None),
        ("12.000000", None),
        ("", None),
        ("0001-01-01T00:00:00Z", None),
        ("x" * 100_000, None),
    ],
)
def test_times_are_compared_where_they_say_enough(at, seconds):
    assert seconds_of(at) == seconds
