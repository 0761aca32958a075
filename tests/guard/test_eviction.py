"""What is done to one pod, step by step: whatever the server says, and wherever the guard is killed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.guard.eviction import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Answered,
    EventTaken,
    KillContainers,
    KillWhen,
    LetGo,
    Outcome,
    Pause,
    PauseOver,
    PostEvent,
    ProcessesGone,
    Report,
    SendPatch,
    StillFalling,
    StopGrowth,
    Unanswered,
    Victim,
    begin,
    follow,
    taken_up,
)

VICTIM = Victim("shop", "web-0", "11111111-2222-3333-4444-555555555555", "The node was low on resource: memory.", "now")
STATUSES = (200, 201, 401, 403, 404, 409, 422, 429, 500, 503, 504)


def kinds(actions):
    return [type(action) for action in actions]


def test_growth_is_stopped_before_the_server_is_told_and_containers_die_at_that_moment():
    _, actions = begin(VICTIM, KillWhen.PATCH)

    assert kinds(actions) == [StopGrowth, SendPatch, KillContainers]


def test_containers_can_wait_for_the_answer():
    eviction, actions = begin(VICTIM, KillWhen.ANSWER)
    assert kinds(actions) == [StopGrowth, SendPatch]

    eviction, actions = follow(eviction, Answered(200))
    assert kinds(actions) == [KillContainers, PostEvent, Report]
    assert eviction.outcome is Outcome.EVICTED


def test_without_an_answer_a_held_pod_stays_held_unless_memory_goes_on_falling():
    eviction, _ = begin(VICTIM, KillWhen.ANSWER)
    eviction, actions = follow(eviction, Unanswered())
    assert kinds(actions) == [Pause]

    eviction, actions = follow(eviction, StillFalling())
    assert kinds(actions) == [KillContainers]
    assert follow(eviction, StillFalling())[1] == ()
    assert kinds(follow(eviction, PauseOver())[1]) == [SendPatch]


def test_a_pod_of_the_same_name_is_left_alone():
    eviction, actions = follow(begin(VICTIM, KillWhen.PATCH)[0], Answered(422))

    assert actions == (Report(Outcome.REPLACED),)
    assert follow(eviction, PauseOver())[1] == ()


def test_a_guard_that_may_not_lets_the_pod_go_on():
    eviction, actions = follow(begin(VICTIM, KillWhen.ANSWER)[0], Answered(403, "pods/status is forbidden"))

    assert actions == (LetGo(), Report(Outcome.REFUSED, "pods/status is forbidden"))
    assert eviction.is_over
    assert not eviction.has_killed


def test_a_server_that_does_not_answer_is_asked_less_and_less_often():
    eviction, pauses = begin(VICTIM, KillWhen.PATCH)[0], []
    for _ in range(12):
        eviction, (pause,) = follow(eviction, Answered(503))
        pauses.append(pause.seconds)

    assert pauses[0] == FIRST_PAUSE_SECONDS
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_SECONDS


def test_a_conflict_is_asked_again_at_once():
    assert follow(begin(VICTIM, KillWhen.PATCH)[0], Answered(409))[1] == (Pause(0.0),)


EVENTS = st.one_of(
    st.sampled_from(STATUSES).map(Answered),
    st.booleans().map(EventTaken),
    st.sampled_from([Unanswered(), StillFalling(), ProcessesGone(), "kill -9"]),
)
IN_THE_END = [Answered(200), EventTaken(is_there=True), ProcessesGone()]


@pytest.mark.parametrize("when", KillWhen)
@given(drawn=st.lists(EVENTS, max_size=12))
def test_no_kill_without_its_status_and_event_and_nothing_stays_held(when, drawn):
    """Events come in any order, and the guard is killed between any two; in the end the server answers."""
    eviction, actions = begin(VICTIM, when)
    done, asked, is_pausing = [], [], False

    def take(step):
        nonlocal eviction, is_pausing
        eviction, actions = step
        done.extend(kinds(actions))
        asked.extend(each for each in kinds(actions) if each in {SendPatch, PostEvent})
        is_pausing |= Pause in kinds(actions)

    take((eviction, actions))
    for event in [*drawn, *IN_THE_END * 3]:
        if event == "kill -9":
            asked.clear()
            is_pausing = False
            take(taken_up(eviction))
            continue
        if is_pausing and not asked:
            is_pausing = False
            take(follow(eviction, PauseOver()))
        answers = {Answered: SendPatch, Unanswered: SendPatch, EventTaken: PostEvent}
        if type(event) in answers:
            if answers[type(event)] not in asked:
                continue
            asked.remove(answers[type(event)])
        if isinstance(event, ProcessesGone) and (not eviction.has_killed or eviction.is_gone):
            continue
        take(follow(eviction, event))

    assert eviction.is_over
    assert LetGo in done, "left held"
    assert done[0] is StopGrowth
    if KillContainers in done:
        assert done.index(SendPatch) < done.index(KillContainers)
        assert eviction.outcome is not Outcome.REFUSED
        assert eviction.is_known
    if eviction.outcome is Outcome.EVICTED:
        assert eviction.has_event
        assert eviction.has_killed
