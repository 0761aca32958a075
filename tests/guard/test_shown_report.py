"""The guard against kernel and kubelet: whose death it would have prevented, and by how much it was ahead."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import msgspec
import pytest

from guard.journals import (
    NODE,
    START_US,
    at,
    chose,
    cleared,
    evicted,
    killed,
    met,
    watching,
    written,
)
from podqos.agent.journal import By, encode
from podqos.agent.reasons import OOMLevel
from podqos.cli.main import main
from podqos.eviction.signals import Signal
from podqos.guard.known_pods import GuardedMeta, GuardedPod, KnownPods
from podqos.questions.guard import GuardReport, NodeHindsight, Verdict, judged
from podqos.reading.guard_journal import known_names

SHORT = met(1.0, Signal.ALLOCATABLE_MEMORY)


def verdicts(*entries):
    return [(each.pod, each.verdict) for each in judged(entries).deaths]


def test_the_guard_that_chose_the_pod_that_died_is_confirmed():
    report = judged([watching(), SHORT, chose(1.0, "a/x"), killed(1.4, "a/x")])
    (death,) = report.deaths

    assert death.verdict is Verdict.SAME
    assert death.margin_us == 400_000
    assert death.by is By.KERNEL


def test_the_guard_that_chose_another_pod_would_have_prevented_it():
    report = judged([watching(), SHORT, chose(1.0, "a/x"), killed(1.4, "a/y")])
    (death,) = report.deaths

    assert (death.verdict, death.decision.pod) == (Verdict.OTHER, "a/x")
    assert report.unneeded == ()


def test_pods_that_die_in_the_order_chosen_are_all_the_same():
    found = verdicts(watching(), SHORT, chose(1.0, "a/x"), killed(1.4, "a/x"), chose(1.5, "a/y"), killed(1.9, "a/y"))

    assert found == [("a/x", Verdict.SAME), ("a/y", Verdict.SAME)]


def test_the_second_choice_that_dies_first_would_have_lived():
    found = verdicts(watching(), SHORT, chose(1.0, "a/x"), chose(1.2, "a/y"), killed(1.4, "a/y"))

    assert found == [("a/y", Verdict.OTHER)]


def test_a_choice_that_is_made_again_at_every_look_counts_from_the_first():
    report = judged([watching(), SHORT, *(chose(1.0 + each, "a/x") for each in range(5)), evicted(7.0, "a/x")])

    assert [each.margin_us for each in report.deaths] == [6_000_000]


def test_pressure_that_passes_without_a_death_was_for_nothing():
    report = judged([watching(), SHORT, chose(1.0, "a/x"), cleared(3.0), met(60.0, Signal.PID)])

    assert [each.pod for each in report.unneeded] == ["a/x"]
    assert report.deaths == ()


def test_a_death_that_is_told_late_still_belongs_to_the_pressure():
    found = verdicts(watching(), SHORT, chose(1.0, "a/x"), cleared(3.0), evicted(12.0, "a/x"))

    assert found == [("a/x", Verdict.SAME)]


def test_a_death_long_after_the_pressure_is_another_matter():
    found = verdicts(watching(), SHORT, chose(1.0, "a/x"), cleared(3.0), evicted(300.0, "a/x"))

    assert found == [("a/x", Verdict.UNFORESEEN)]


@pytest.mark.parametrize("level", [OOMLevel.CONTAINER, OOMLevel.POD])
def test_a_pod_at_its_own_limit_is_no_case_for_eviction(level):
    assert verdicts(watching(), killed(1.0, "a/x", level)) == [("a/x", Verdict.OWN_LIMIT)]
    assert verdicts(watching(), SHORT, chose(1.0, "a/y"), killed(1.4, "a/x", level)) == [("a/x", Verdict.OWN_LIMIT)]


def test_a_pod_at_its_own_limit_that_was_chosen_before_would_have_been_evicted():
    assert verdicts(watching(), SHORT, chose(1.0, "a/x"), killed(1.4, "a/x", OOMLevel.POD)) == [("a/x", Verdict.SAME)]


def test_a_pod_at_its_own_limit_is_judged_by_the_latest_pressure_and_not_by_an_earlier_one():
    earlier = SHORT, chose(1.0, "a/x"), cleared(3.0)
    later = met(10.0, Signal.MEMORY), chose(10.0, "a/y")
    found = verdicts(watching(), *earlier, *later, killed(11.0, "a/x", OOMLevel.CONTAINER))
    assert found == [("a/x", Verdict.OWN_LIMIT)]


def test_a_choice_after_the_death_came_too_late():
    report = judged([watching(), killed(1.0, "a/x"), met(1.005, Signal.MEMORY), chose(1.005, "a/y")])
    (death,) = report.deaths

    assert (death.verdict, death.margin_us) == (Verdict.LATE, -5_000)


def test_a_death_without_any_choice_was_not_foreseen():
    assert verdicts(watching(), killed(1.0, "a/x"), met(30.0, Signal.MEMORY)) == [("a/x", Verdict.UNFORESEEN)]


def test_nobody_is_to_blame_while_no_guard_watches():
    found = verdicts(watching(), watching(1.0, ended=True), killed(2.0, "a/x"), watching(3.0), killed(9.0, "a/y"))

    assert found == [("a/x", Verdict.NOT_WATCHING), ("a/y", Verdict.UNFORESEEN)]


def test_several_processes_of_a_pod_die_once():
    found = verdicts(watching(), SHORT, chose(1.0, "a/x"), killed(1.4, "a/x"), killed(1.5, "a/x"), killed(9.0, "a/x"))

    assert len(found) == 2


def test_nodes_do_not_judge_for_each_other():
    found = verdicts(
        watching(), watching(node="worker-2"), SHORT, chose(1.0, "a/x"), killed(1.4, "a/x", node="worker-2")
    )

    assert found == [("a/x", Verdict.UNFORESEEN)]


def test_what_the_guard_evicted_is_not_for_nothing():
    report = judged(
        [watching(enforce=True), SHORT, chose(1.0, "a/x", enforced=True), cleared(1.5), met(90.0, Signal.PID)]
    )

    assert report.unneeded == ()
    assert [each.pod for each in report.evicted] == ["a/x"]
    assert [each.enforces for each in report.nodes] == [True]


def test_what_is_heard_as_it_happens_is_judged_the_same():
    entries = [
        watching(), SHORT, chose(1.0, "a/x"), killed(1.4, "a/y"), cleared(2.0), met(50.0, Signal.MEMORY),
        chose(50.0, "a/z"), cleared(52.0), met(100.0, Signal.PID),
    ]  # fmt: skip
    hindsight = NodeHindsight()
    live = [found for entry in entries for found in hindsight.heard(entry)]
    report = judged(entries)

    assert live == [*report.deaths, *report.unneeded]


def test_a_guard_that_runs_for_years_does_not_grow():
    hindsight = NodeHindsight()
    for number in range(3000):
        second = number * 100.0
        for entry in (
            met(second, Signal.MEMORY), chose(second, f"a/{number}"), killed(second + 1, f"a/{number}"),
            cleared(second + 2),
        ):  # fmt: skip
            list(hindsight.heard(entry))

    assert len(hindsight._episodes) <= 8
    assert len(hindsight._last_death) <= 1001
    assert not hindsight._waiting


# ---- the command -----------------------------------------------------------------------------------------------------


def printed(capsys, *arguments):
    code = main(["guard", "report", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_report_says_how_many_would_have_lived(capsys, tmp_path):
    deaths = [killed(10 + each, f"shop/victim-{each}") for each in range(5)]
    same = [killed(20.0, "shop/batch-1"), killed(30.0, "shop/batch-2")]
    entries = [
        watching(), met(9.0, Signal.MEMORY), chose(9.0, "shop/batch-0"), *deaths, cleared(15.0),
        met(19.0, Signal.MEMORY), chose(19.0, "shop/batch-1"), same[0], cleared(21.0),
        met(29.0, Signal.MEMORY), chose(29.0, "shop/batch-2"), same[1],
    ]  # fmt: skip
    code, out, _ = printed(capsys, "--state", written(tmp_path, *entries))

    assert code == 0
    assert (
        "The kernel killed 7 pods: for 5 the guard would have evicted another pod first and for 2 the guard had "
        "chosen the same pod."
    ) in " ".join(out.split())
    assert "It was 1.0 s to 5.0 s ahead" in " ".join(out.split())
    assert "would evict shop/batch-0" in out


def test_json_has_every_death_and_can_be_read_again(capsys, tmp_path):
    state = written(tmp_path, watching(), SHORT, chose(1.0, "a/x"), killed(1.4, "a/y"))
    _, out, _ = printed(capsys, "--state", state, "-o", "json")
    value = json.loads(out)

    assert value["kind"] == "GuardReport"
    assert value["tallies"][0] == {"by": "kernel", "pods": 1, "verdicts": {"Other": 1}}
    assert value["deaths"][0]["decision"]["pod"] == "a/x"
    assert msgspec.json.decode(out, type=GuardReport).deaths[0].verdict is Verdict.OTHER


def test_an_older_file_of_the_journal_is_read_first(capsys, tmp_path):
    state = written(tmp_path, killed(1.4, "a/x"))
    (state / "journal.jsonl.1").write_bytes(encode([watching(), SHORT, chose(1.0, "a/x")]))
    _, out, _ = printed(capsys, "--state", state, "-o", "csv")

    assert out.splitlines()[1].split(",")[3:7] == ["a/x", "Same", "a/x", "400000"]


def test_journals_of_several_nodes_make_one_report(capsys, tmp_path):
    one = written(tmp_path / "1", watching(), SHORT, chose(1.0, "a/x"), killed(1.4, "a/x"))
    two = written(
        tmp_path / "2",
        watching(node="worker-2"),
        met(1.0, Signal.MEMORY, node="worker-2"),
        chose(1.0, "a/x", node="worker-2"),
        evicted(3.0, "a/z", node="worker-2"),
    )
    _, out, _ = printed(capsys, "--journal", one, "--journal", two / "journal.jsonl", "-o", "json")
    value = json.loads(out)

    assert [each["node"] for each in value["nodes"]] == ["worker-1", "worker-2"]
    assert [(each["pod"], each["verdict"]) for each in value["deaths"]] == [("a/x", "Same"), ("a/z", "Other")]


UID = "6c2d3e4f-0000-4000-8000-00000000000a"
KERNEL_LOG = """\
{at} {host} kernel: stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=1000
{at} {host} kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,\
oom_memcg=/kubepods,task_memcg=/kubepods/besteffort/pod{uid}/{id},task=stress,pid=4242,uid=0
{at} {host} kernel: Memory cgroup out of memory: Killed process 4242 (stress) total-vm:500000kB, \
anon-rss:400000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:900kB oom_score_adj:1000
"""


def kernel_log(seconds, host=NODE, uid=UID, form="%Y-%m-%dT%H:%M:%S.%f+00:00"):
    when = datetime.fromtimestamp((START_US + seconds * 1e6) / 1e6, UTC).strftime(form)
    return KERNEL_LOG.format(at=when, host=host, uid=uid, id="ab" * 32)


def known(state):
    (state / "pods.json").write_text(json.dumps({"node": NODE, "savedUs": 1, "pods": [], "names": {UID: "shop/db-0"}}))


def test_a_kernel_log_tells_of_kills_that_the_guard_did_not_see(capsys, tmp_path):
    state = written(tmp_path / "s", watching(), SHORT, chose(1.0, "shop/batch-7"))
    known(state)
    log = tmp_path / "kern.log.gz"
    log.write_bytes(gzip.compress(kernel_log(1.5).encode()))
    code, out, _ = printed(capsys, "--state", state, "--kernel-log", log, "-o", "csv")

    assert code == 0
    assert out.splitlines()[1].split(",")[2:7] == ["kernel", "shop/db-0", "Other", "shop/batch-7", "500000"]


def test_a_kill_that_the_guard_saw_itself_is_counted_once(capsys, tmp_path):
    state = written(tmp_path / "s", watching(), SHORT, chose(1.0, "shop/db-0"), killed(1.5, "shop/db-0"))
    known(state)
    log = tmp_path / "kern.log"
    log.write_text(kernel_log(1.51))
    _, out, _ = printed(capsys, "--state", state, "--kernel-log", log, "-o", "csv")

    assert len(out.splitlines()) == 2


def test_a_time_in_whole_seconds_is_taken_for_the_end_of_that_second(capsys, tmp_path):
    state = written(tmp_path / "s", watching(), SHORT, chose(1.2, "shop/db-0"))
    known(state)
    log = tmp_path / "kern.log"
    log.write_text(kernel_log(1.5, form="%Y-%m-%dT%H:%M:%S+00:00"))
    _, out, _ = printed(capsys, "--state", state, "--kernel-log", log, "-o", "csv")

    assert out.splitlines()[1].split(",")[4:7] == ["Same", "shop/db-0", "799999"]


def test_kills_on_other_nodes_and_without_names_are_said(capsys, tmp_path):
    state = written(tmp_path / "s", watching(), watching(0.1, node="worker-2"), SHORT)
    log = tmp_path / "kern.log"
    log.write_text(kernel_log(1.5) + kernel_log(2.5, host="elsewhere"))
    _, out, err = printed(capsys, "--state", state, "--kernel-log", log, "-o", "csv")

    assert len(out.splitlines()) == 2
    assert "deaths on nodes without a journal: left out" in " ".join(err.split())
    assert "names of" in err


def test_what_happened_before_the_journal_begins_is_left_out(capsys, tmp_path):
    state = written(tmp_path / "s", watching(10.0))
    known(state)
    log = tmp_path / "kern.log"
    log.write_text(kernel_log(1.5) + kernel_log(12.5))
    _, out, err = printed(capsys, "--state", state, "--kernel-log", log, "-o", "csv")

    assert [line.split(",")[4] for line in out.splitlines()[1:]] == ["Unforeseen"]
    assert "1 deaths before the journal begins: left out" in " ".join(err.split())


def test_events_of_a_file_tell_what_the_kubelet_evicted_but_not_what_the_guard_did(capsys, tmp_path):
    state = written(
        tmp_path / "s", watching(enforce=True), SHORT, chose(1.0, "shop/own", enforced=True), chose(1.5, "shop/next")
    )

    def event(pod, seconds):
        when = datetime.fromtimestamp(at(seconds) / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{pod}.1", "namespace": "shop"},
            "involvedObject": {"kind": "Pod", "namespace": "shop", "name": pod},
            "reason": "Evicted",
            "message": "The node was low on resource: memory. Threshold quantity: 300Mi, available: 250Mi. ",
            "source": {"component": "kubelet", "host": NODE},
            "firstTimestamp": when,
            "lastTimestamp": when,
        }

    file = tmp_path / "events.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [event("own", 1.0), event("other", 8.0)]}))
    _, out, _ = printed(capsys, "--state", state, "-f", file, "-o", "json")

    assert [(each["pod"], each["by"], each["verdict"]) for each in json.loads(out)["deaths"]] == [
        ("shop/other", "kubelet", "Other")
    ]


def test_there_is_nothing_to_report_without_a_journal(capsys, tmp_path):
    code, out, err = printed(capsys, "--state", tmp_path)

    assert code == 3
    assert out == ""
    assert f"no journal at {tmp_path}/journal.jsonl" in err


def test_a_line_that_is_no_entry_is_named(capsys, tmp_path):
    state = written(tmp_path, watching())
    with (state / "journal.jsonl").open("ab") as file:
        file.write(b"{broken\n")
    code, _, err = printed(capsys, "--state", state)

    assert code == 2
    assert "journal.jsonl:2: not a journal entry" in err


def test_a_quiet_time_is_said(capsys, tmp_path):
    _, out, _ = printed(capsys, "--state", written(tmp_path, watching()))

    assert "No OOM kills and no evictions by the kubelet in this time." in out


def test_the_name_of_a_pod_outlives_it(tmp_path):
    def saved(known, *pods):
        known._pods.objects = {each.metadata.uid: each for each in pods}
        known._pods.is_complete = True
        known.save()

    def pod(name):
        return GuardedPod(metadata=GuardedMeta(name=name, namespace="shop", uid=f"uid-{name}"))

    file = tmp_path / "pods.json"
    saved(KnownPods(None, NODE, file, print), pod("gone"))
    saved(KnownPods(None, NODE, file, print), pod("new"))

    assert known_names(tmp_path) == {"uid-gone": "shop/gone", "uid-new": "shop/new"}
