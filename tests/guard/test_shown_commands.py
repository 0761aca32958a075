"""What is shown of a guard: status, journal, metrics."""

from __future__ import annotations

import re
import time
from pathlib import Path

import msgspec
import pytest

from guard.journals import (
    MIB,
    REQUEST_MORE,
    chose,
    cleared,
    explained,
    killed,
    met,
    reported,
    watching,
    written,
)
from podqos.agent.guard_status import ApiStatus, ExcludedPod, GuardStatus, RateLimit, SignalStatus
from podqos.agent.journal import encode
from podqos.cli.main import main
from podqos.eviction.signals import Signal
from podqos.guard.metrics import GuardMetrics
from podqos.guard.requests import ANNOTATION
from podqos.host.api.http_request import HttpRefusal, KubeletRequest
from podqos.serve.installation import starter_policy

ROOT = Path(__file__).parents[2]
SHORT = met(1.0, Signal.ALLOCATABLE_MEMORY)


def printed(capsys, *arguments):
    code = main(["guard", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


# ---- the journal -----------------------------------------------------------------------------------------------------


def test_the_journal_is_printed_in_words_or_as_stored(capfdbinary, tmp_path):
    entries = [watching(), SHORT, chose(1.0, "a/x"), explained(1.2, "a/x", REQUEST_MORE)]
    state = written(tmp_path, *entries)
    assert main(["guard", "journal", "--state", str(state)]) == 0
    lines = capfdbinary.readouterr().out.decode().splitlines()

    assert lines[0] == "2026-11-16 19:46:06.000  the node is guarded: evicts nothing: shadow"
    assert lines[2].endswith("uses 512Mi, requests 100Mi, priority 0 (shadow)")
    assert lines[3].endswith("x would have been saved by: request 512Mi of memory for main")
    main(["guard", "journal", "--state", str(state), "-o", "jsonl"])
    assert capfdbinary.readouterr().out == encode(entries)


def test_the_end_of_the_journal_or_what_is_new_can_be_asked_for(capfdbinary, tmp_path):
    state = written(tmp_path, *(chose(each, f"a/{each}") for each in range(10)))
    main(["guard", "journal", "--state", str(state), "--tail", "2"])
    assert len(capfdbinary.readouterr().out.splitlines()) == 2
    main(["guard", "journal", "--state", str(state), "--since", "2026-11-16T19:46:13Z"])
    assert len(capfdbinary.readouterr().out.splitlines()) == 3


# ---- the status ------------------------------------------------------------------------------------------------------


def status(**more):
    now_us = time.time_ns() // 1000
    given = {
        "node": "worker-1",
        "pid": 77,
        "version": "0.1.0",
        "started_us": now_us - 3_600_000_000,
        "updated_us": now_us,
        "enforce": True,
        "held_back": "",
        "kubepods": "/kubepods",
        "cgroup": "v2",
        "signals": (SignalStatus(Signal.MEMORY, 100 * MIB, 500 * MIB, 2048 * MIB, hard=True),),
        "known": 110,
        "candidates": 92,
        "excluded": (ExcludedPod("kube-system/a", "critical priority"), ExcludedPod("x/b", "static pod")),
        "api": ApiStatus("", now_us - 2_000_000),
        "evictions": 3,
        "reactions_us": (4_000, 6_000, 30_000),
        "limit": RateLimit(3, 300_000_000, 1),
        "cpu_seconds": 3.6,
        "rss_bytes": 40 * MIB,
    }
    return GuardStatus(**given | more)


def said(folder, value):
    folder.mkdir(exist_ok=True)
    (folder / "status.json").write_bytes(msgspec.json.encode(value))
    return folder


def test_a_status_says_mode_limits_knowledge_and_speed(capsys, tmp_path):
    code, out, _ = printed(capsys, "status", "--run", said(tmp_path, status()))
    facts = dict(re.findall(r"^(guard|[a-zA-Z ]{4,11}?) {2,}(\S.*)$", out, re.MULTILINE))

    assert code == 0
    assert facts["mode"] == "enforces"
    assert facts["pods"] == "110 known; 92 may be evicted; 1 excluded: critical priority; 1 excluded: static pod"
    assert facts["rate limit"] == "1 of 3 evictions within 5 min 0 s"
    assert facts["evictions"].endswith("crossing to kill: median 6.0 ms, p99 30 ms")
    assert "0.10 % of a core" in facts["uses"]
    assert "memory.available  hard  100Mi      500Mi      400Mi     2Gi" in out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"held_back": "shadow", "enforce": False}, "shadow: it decides and logs"),
        ({"held_back": "stop file", "stop_file": True}, "on: the stop file"),
        ({"held_back": "node annotation", "node_annotation": True}, "the annotation podqos.dev/guard: off"),
        ({"held_back": "rate limit"}, "the rate limit is reached"),
        ({"held_back": "something new"}, "evicts nothing: something new"),
        ({"api": ApiStatus("connection refused", 1)}, "away: connection refused"),
        ({"api": ApiStatus()}, "no pods known yet"),
        ({"unprotected": ("oom_score_adj: not allowed",)}, "not protected: oom_score_adj"),
        ({"unknown_cgroups": 2}, "2 cgroups of pods unknown to the API server, left alone"),
        ({"signals": (SignalStatus(Signal.MEMORY, 100 * MIB, 60 * MIB, 2048 * MIB, hard=True),)}, "−40Mi"),
    ],
)
def test_a_status_says_what_is_unusual(capsys, tmp_path, more, words):
    _, out, _ = printed(capsys, "status", "--run", said(tmp_path, status(**more)))

    assert words in out


def test_a_guard_that_has_gone_quiet_is_not_taken_for_alive(capsys, tmp_path):
    old = status(updated_us=time.time_ns() // 1000 - 180_000_000)
    code, out, _ = printed(capsys, "status", "--run", said(tmp_path, old))

    assert code == 3
    assert out.startswith("This guard has stopped or is stuck: its last update was 3 min")


def test_a_status_as_json_is_what_the_guard_wrote(capsys, tmp_path):
    value = status()
    _, out, _ = printed(capsys, "status", "--run", said(tmp_path, value), "-o", "json")

    assert msgspec.json.decode(out, type=GuardStatus) == value


def test_where_no_guard_runs_that_is_said(capsys, tmp_path):
    code, out, err = printed(capsys, "status", "--run", tmp_path)

    assert (code, out) == (3, "")
    assert "no guard is running" in err


# ---- the metrics -----------------------------------------------------------------------------------------------------


def samples(metrics):
    answer = metrics.answer(KubeletRequest("GET", ("metrics",)))
    lines = answer.body.decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_metrics_count_decisions_reactions_and_what_others_did():
    metrics = GuardMetrics(status)
    for entry in (
        watching(enforce=True),
        SHORT,
        chose(1.0, "a/x", enforced=True),
        reported(1.1, "a/x", noticed=0.999, killed=1.005, faults=0),
        killed(1.2, "a/y"),
        cleared(2.0),
        met(50.0, Signal.MEMORY),
        chose(50.0, "a/z"),
        cleared(51.0),
        met(99.0, Signal.PID),
    ):
        metrics.heard(entry)
    found = samples(metrics)

    allocatable = 'eviction_signal="allocatableMemory.available"'
    assert found[f'podqos_guard_decisions_total{{{allocatable},held_back=""}}'] == "1"
    assert found[f'podqos_guard_decisions_total{{{allocatable},held_back="shadow"}}'] == "1"
    assert found['podqos_guard_evictions_total{outcome="Evicted"}'] == "1"
    assert found['podqos_guard_reaction_seconds_bucket{stage="killed",le="0.005"}'] == "0"
    assert found['podqos_guard_reaction_seconds_bucket{stage="killed",le="0.01"}'] == "1"
    assert found['podqos_guard_pod_terminations_total{by="kernel",verdict="Other"}'] == "1"
    assert found["podqos_guard_unneeded_decisions_total"] == "1"
    assert found["podqos_guard_major_faults_total"] == "0"
    assert found['podqos_guard_available{eviction_signal="memory.available",kind="hard"}'] == str(500 * MIB)


def test_every_family_has_one_head():
    heads = re.findall(r"^# TYPE (\S+) ", "\n".join(GuardMetrics(status).lines()), re.MULTILINE)

    assert len(heads) == len(set(heads))
    assert all(each.startswith(("podqos_guard_", "process_")) for each in heads)


def test_metrics_do_not_grow_while_no_one_asks():
    metrics = GuardMetrics(status)
    for number in range(5000):
        metrics.heard(chose(number, "a/x"))

    assert len(metrics._waiting) <= 500


def test_nothing_can_be_written_to_the_metrics():
    metrics = GuardMetrics(status)

    with pytest.raises(HttpRefusal):
        metrics.answer(KubeletRequest("POST", ("metrics",)))
    with pytest.raises(HttpRefusal):
        metrics.answer(KubeletRequest("GET", ("journal",)))
    assert metrics.answer(KubeletRequest("GET", ("healthz",))).body == b"ok\n"


# ---- the rest --------------------------------------------------------------------------------------------------------


def test_the_policy_allows_the_annotation_that_the_guard_writes():
    assert f"key == '{ANNOTATION}'" in Path(starter_policy()).parents[1].joinpath("guard/manifests.yaml").read_text()


@pytest.mark.parametrize("listen", ["0.0.0.0:9754", "10.0.0.1:9754"])
def test_metrics_are_for_this_machine_unless_more_is_asked_for(capsys, listen):
    code, _, err = printed(capsys, "run", "--listen", listen)

    assert code == 2
    assert "add --listen-anywhere" in err
