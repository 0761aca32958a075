"""What is done to one pod, step by step: whatever the server says, and wherever the guard is killed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.guard.eviction import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    MOST_REPAIRS,
    EventAnswered,
    EvictionAnswered,
    EvictionOutcome,
    EvictionSent,
    GuardVictim,
    KillContainers,
    KillWhen,
    LetGo,
    LookAgain,
    Looked,
    Pause,
    PauseOver,
    PostEvent,
    ProcessesGone,
    ReasonLost,
    SendAgain,
    SendEviction,
    SendPatch,
    StillFalling,
    StopGrowth,
    TimeOver,
    Unanswered,
    begin,
    begin_softly,
    follow,
    taken_up,
)
from podqos.guard.requests import ANNOTATION, patch_of

UID = "11111111-2222-3333-4444-555555555555"
VICTIM = GuardVictim("shop", "web-0", UID, "The node was low on resource: memory.", "now")
STATUSES = (200, 201, 401, 403, 404, 409, 422, 429, 500, 503, 504)


def kinds(actions):
    return [type(action) for action in actions]


def after(*events, when=KillWhen.PATCH):
    """Return the eviction after some events, and what the last one asks for."""
    step = begin(VICTIM, when)
    for event in events:
        step = follow(step[0], event)
    return step


def test_growth_is_stopped_before_the_server_is_told_and_containers_die_at_that_moment():
    eviction, actions = begin(VICTIM, KillWhen.PATCH)
    assert kinds(actions) == [StopGrowth, SendPatch]
    assert not eviction.has_killed, "a guard killed before that has not begun to kill"

    eviction, actions = follow(eviction, EvictionSent())
    assert kinds(actions) == [KillContainers]
    assert eviction.has_killed


def test_containers_can_wait_for_the_answer():
    eviction, actions = after(EvictionSent(), when=KillWhen.ANSWER)
    assert actions == ()

    eviction, actions = follow(eviction, EvictionAnswered(200))
    assert kinds(actions) == [KillContainers, PostEvent]
    assert eviction.outcome is EvictionOutcome.EVICTED


def test_without_an_answer_a_held_pod_stays_held_unless_memory_goes_on_falling():
    eviction, actions = after(EvictionSent(), Unanswered(), when=KillWhen.ANSWER)
    assert kinds(actions) == [Pause]

    eviction, actions = follow(eviction, StillFalling())
    assert kinds(actions) == [KillContainers]
    assert follow(eviction, StillFalling())[1] == ()
    assert kinds(follow(eviction, PauseOver())[1]) == [SendPatch]


def test_a_pod_that_came_back_before_the_server_was_told_is_killed_again():
    eviction, _ = after(EvictionSent(), Unanswered(), ProcessesGone())

    eviction, actions = follow(eviction, StillFalling())
    assert kinds(actions) == [KillContainers]
    assert not eviction.is_gone


@pytest.mark.parametrize("when", KillWhen)
def test_a_pod_of_the_same_name_is_left_alone_and_what_is_left_of_the_old_one_dies(when):
    eviction, actions = after(EvictionSent(), EvictionAnswered(422, "metadata.uid: field is immutable"), when=when)
    assert kinds(actions) == [LookAgain]

    eviction, actions = follow(eviction, Looked("another uid", is_told=True))
    assert eviction.outcome is EvictionOutcome.REPLACED
    assert kinds(actions) == [PostEvent] if when is KillWhen.PATCH else [KillContainers, PostEvent]
    assert eviction.has_killed
    assert SendPatch not in kinds(follow(eviction, PauseOver())[1])


@pytest.mark.parametrize("status", [404, 409, 422])
def test_a_pod_that_is_gone_needs_no_status(status):
    eviction, _ = after(EvictionSent(), EvictionAnswered(status), Looked(None))

    assert eviction.outcome is EvictionOutcome.GONE
    assert eviction.needs_event


def test_a_policy_that_does_not_allow_it_lets_the_pod_go_on():
    """A ValidatingAdmissionPolicy says 422, as for another uid; the uid tells which it is."""
    why = "denied request: guard may only evict pods of its own node"
    eviction, actions = after(EvictionSent(), EvictionAnswered(422, why), Looked(UID), when=KillWhen.ANSWER)

    assert (eviction.outcome, eviction.refusal) == (EvictionOutcome.REFUSED, why)
    assert actions == (LetGo(),)
    assert eviction.is_over
    assert follow(eviction, StillFalling())[1] == ()


def test_a_policy_that_does_not_allow_it_is_asked_again_about_what_is_killed():
    eviction, actions = after(EvictionSent(), EvictionAnswered(422, "denied"), Looked(UID))

    assert kinds(actions) == [Pause]
    assert kinds(follow(eviction, PauseOver())[1]) == [SendPatch]


@pytest.mark.parametrize("next_event", [Unanswered(), StillFalling()])
def test_nothing_is_killed_that_the_server_does_not_want_evicted(next_event):
    eviction, _ = after(EvictionSent(), EvictionAnswered(422, "denied"), next_event, when=KillWhen.ANSWER)

    assert not eviction.has_killed


def test_a_guard_that_may_not_lets_the_pod_go_on():
    eviction, actions = after(EvictionSent(), EvictionAnswered(403, "pods/status is forbidden"), when=KillWhen.ANSWER)

    assert actions == (LetGo(),)
    assert (eviction.outcome, eviction.refusal) == (EvictionOutcome.REFUSED, "pods/status is forbidden")
    assert eviction.is_over
    assert not eviction.has_killed


def test_a_server_that_does_not_answer_is_asked_less_and_less_often():
    eviction, pauses = begin(VICTIM, KillWhen.PATCH)[0], []
    for _ in range(12):
        eviction, (pause,) = follow(eviction, EvictionAnswered(503))
        pauses.append(pause.seconds)

    assert pauses[0] == FIRST_PAUSE_SECONDS
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_SECONDS


def test_a_conflict_with_the_same_pod_is_asked_again_at_once():
    assert after(EvictionSent(), EvictionAnswered(409), Looked(UID))[1] == (Pause(0.0),)


def test_a_patch_whose_answer_was_lost_is_known_when_looked_for():
    eviction, _ = after(EvictionSent(), Unanswered(), EvictionAnswered(409), Looked(UID, is_told=True))

    assert eviction.outcome is EvictionOutcome.EVICTED


def test_a_reason_that_the_kubelet_has_lost_is_told_again_a_few_times():
    eviction, actions = after(EvictionSent(), ReasonLost())
    assert actions == (), "the server has not been told yet"

    eviction, sent = after(EvictionSent(), EvictionAnswered(200))[0], []
    for _ in range(MOST_REPAIRS + 2):
        eviction, actions = follow(eviction, ReasonLost())
        sent += actions
    assert sent == [SendAgain()] * MOST_REPAIRS
    marks = {patch_of(VICTIM, each)["metadata"]["annotations"][ANNOTATION] for each in range(MOST_REPAIRS + 1)}
    assert len(marks) == MOST_REPAIRS + 1, "a kubelet only looks at what has changed"


@pytest.mark.parametrize(("status", "is_there"), [(200, True), (201, True), (409, True), (404, False), (422, False)])
def test_an_event_that_is_there_or_never_will_be_is_not_posted_again(status, is_there):
    eviction, actions = follow(after(EvictionSent(), EvictionAnswered(200))[0], EventAnswered(status, "why"))

    assert eviction.has_event
    assert actions == ()
    assert eviction.event_refusal == ("" if is_there else f"{status} why")


def test_an_event_that_is_not_allowed_is_posted_again_for_some_minutes():
    eviction, pauses = after(EvictionSent(), EvictionAnswered(200))[0], []
    while not eviction.has_event:
        eviction, actions = follow(eviction, EventAnswered(403, "events is forbidden"))
        pauses += actions
        assert eviction.has_event or kinds(follow(eviction, PauseOver())[1]) == [PostEvent]

    assert 60 < sum(pause.seconds for pause in pauses) < 1800
    assert eviction.event_refusal == "403 events is forbidden"


# ---- soft thresholds ------------------------------------------------------------------------------------------------


def test_for_a_soft_threshold_the_server_evicts_and_nothing_is_held_or_killed():
    eviction, actions = begin_softly(VICTIM, 30)
    assert kinds(actions) == [SendEviction]

    eviction, actions = follow(eviction, EvictionAnswered(201))
    assert kinds(actions) == [PostEvent]
    assert follow(eviction, EventAnswered(201))[0].is_over


def test_a_disruption_budget_is_honoured_and_asked_again_until_the_time_is_over():
    eviction, actions = follow(begin_softly(VICTIM, 30)[0], EvictionAnswered(429, "disruption budget"))
    assert kinds(actions) == [Pause]
    assert kinds(follow(eviction, PauseOver())[1]) == [SendEviction]
    assert follow(eviction, StillFalling())[1] == ()

    eviction, _ = follow(eviction, TimeOver())
    assert eviction.outcome is EvictionOutcome.REFUSED
    assert eviction.is_over


# ---- a guard that was killed ----------------------------------------------------------------------------------------


def test_a_guard_that_comes_back_soon_goes_on():
    assert kinds(taken_up(after(when=KillWhen.ANSWER)[0])[1]) == [StopGrowth, SendPatch]
    assert kinds(taken_up(after(EvictionSent())[0])[1]) == [SendPatch, KillContainers]


@pytest.mark.parametrize("when", KillWhen)
def test_a_guard_that_comes_back_late_does_not_begin_to_kill(when):
    eviction, actions = taken_up(begin(VICTIM, when)[0], is_late=True)
    assert kinds(actions) == [LetGo, LookAgain]

    assert follow(eviction, Looked(UID))[0].outcome is EvictionOutcome.DROPPED
    for event in (Looked(UID, is_told=True), Looked(None), Looked("another"), StillFalling()):
        assert not follow(eviction, event)[0].has_killed
    told, actions = follow(eviction, Looked(UID, is_told=True))
    assert told.outcome is EvictionOutcome.EVICTED
    assert kinds(actions) == [PostEvent]


def test_a_guard_that_comes_back_late_finishes_what_it_had_begun_to_kill():
    assert kinds(taken_up(after(EvictionSent())[0], is_late=True)[1]) == [SendPatch, KillContainers]


EVENTS = st.one_of(
    st.sampled_from(STATUSES).map(EvictionAnswered),
    st.sampled_from((*STATUSES, 400)).map(EventAnswered),
    st.sampled_from([Looked(None), Looked("another"), Looked(UID), Looked(UID, is_told=True)]),
    st.sampled_from([Unanswered(), StillFalling(), ProcessesGone(), ReasonLost(), "kill -9", "kill -9, late"]),
)
IN_THE_END = [EvictionAnswered(200), Looked(UID, is_told=True), EventAnswered(201), ProcessesGone()]
ANSWERS = {
    SendPatch: (EvictionAnswered, Unanswered),
    LookAgain: (Looked, Unanswered),
    PostEvent: (EventAnswered, Unanswered),
}


@pytest.mark.parametrize("when", KillWhen)
@given(drawn=st.lists(EVENTS, max_size=16))
def test_no_kill_without_its_status_and_event_and_nothing_stays_held(when, drawn):
    """Events come in any order, and the guard is killed between any two; in the end the server answers."""
    done, asked, is_pausing, is_held = [], None, False, False

    def take(step):
        nonlocal eviction, asked, is_pausing, is_held
        eviction, actions = step
        done.extend(kinds(actions))
        for action in actions:
            if type(action) in ANSWERS:
                assert asked is None, "one question at a time"
                asked = type(action)
            is_pausing |= isinstance(action, Pause)
            is_held = isinstance(action, StopGrowth) or (is_held and not isinstance(action, LetGo | KillContainers))
            if isinstance(action, SendPatch):
                take(follow(eviction, EvictionSent()))

    eviction, actions = begin(VICTIM, when)
    take((eviction, actions))
    for event in [*drawn, *IN_THE_END * 4]:
        if isinstance(event, str):
            asked, is_pausing = None, False
            take(taken_up(eviction, is_late="late" in event))
            continue
        if is_pausing and asked is None:
            is_pausing = False
            take(follow(eviction, PauseOver()))
        if isinstance(event, EvictionAnswered | Unanswered | Looked | EventAnswered):
            if asked is None or not isinstance(event, ANSWERS[asked]):
                continue
            asked = None
        if isinstance(event, ProcessesGone) and (not eviction.has_killed or eviction.is_gone):
            continue
        take(follow(eviction, event))

    assert eviction.is_over
    assert not is_held, "left held"
    assert done[0] is StopGrowth
    if KillContainers in done:
        assert done.index(SendPatch) < done.index(KillContainers)
        assert eviction.outcome not in {EvictionOutcome.REFUSED, EvictionOutcome.DROPPED}
        assert eviction.has_event
    if eviction.outcome is EvictionOutcome.EVICTED:
        assert eviction.has_event
