from __future__ import annotations

import pytest
from msgspec.structs import replace

from podqos.amounts import two_units
from podqos.cli.node_client import NextVictims, status_lines
from podqos.eviction.ranking import Ranking, rank
from podqos.eviction.signals import Signal
from podqos.host.api.status_document import (
    ConditionRow,
    ContainerRow,
    FastPath,
    NodeStatus,
    NoteRow,
    PodRow,
    RefusedRow,
    ResourceRow,
    ThresholdRow,
)
from podqos.host.linux.psi import Pressure, PressureFile
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec, QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from podqos.model.stats import MemoryStats, PodReference, PodStats
from podqos.model.time_units import SECOND_US
from podqos.text.style import Style, fitted, visible_length

MI = 1 << 20
PLAIN = Style()


def _pod(name, qos_class=QOSClass.BURSTABLE, **fields):
    row = PodRow(
        namespace="default", name=name, uid=name, qos_class=qos_class, priority=0, phase="Running", reason="",
        is_stopping=False, restarts=0, started_us=SECOND_US, memory_bytes=40 * MI, memory_request_bytes=64 * MI,
        memory_limit_bytes=128 * MI, cpu_usage_ns=0, containers=(ContainerRow("main", 900, 900),), source="a.yaml",
    )  # fmt: skip
    return replace(row, **fields)


def _status(*pods, **fields):
    still = Pressure(0.0, 0.0, 0.0, 0)
    status = NodeStatus(
        version="1", node="n", pid=1, start_time="", now_us=91 * SECOND_US, start_us=SECOND_US, state_dir="/s",
        manifests="/m", runtime="process", shadow=False, is_ending=False, cgroup="/podqos", cgroup_version="v1",
        is_confined=True, memory=MemoryStats(None, 384 * MI, 128 * MI, 128 * MI), pods_memory_limit_bytes=None,
        conditions=(ConditionRow("Ready", True, ""), ConditionRow("MemoryPressure", False, "")),
        resources=(ResourceRow("cpu", 2000, 1500, 150), ResourceRow("memory", 512 * MI, 412 * MI, 103 * MI)),
        thresholds=(ThresholdRow(Signal.MEMORY, True, 0, 100 * MI, 384 * MI, 512 * MI, False),),
        pressure={"memory": PressureFile(Pressure(12.5, 0.0, 0.0, 1), still)},
        fast_path=FastPath(True, {"/podqos": 412 * MI}, 1, 0.0012),
        degraded=("something is missing",), notes=(), refused=(), pods=pods,
    )  # fmt: skip
    return replace(status, **fields)


def _ranked(used_bytes, request):
    requests = ResourceRequirements(requests={"memory": Quantity.parse(request)} if request else {})
    pod = Pod(ObjectMeta("big", "default", "u"), PodSpec((Container("main", resources=requests),)))
    stats = {"u": PodStats(PodReference("big", "default", "u"), (), MemoryStats(working_set_bytes=used_bytes))}
    return rank([pod], stats, Ranking(Signal.MEMORY))[0]


def test_a_status_names_every_figure_that_matters():
    text = "\n".join(status_lines(_status(_pod("a")), NextVictims(_ranked(80 * MI, "64Mi")), PLAIN))
    for line in (
        "node          n, podqos 1, up 1 min 30 s",
        "memory        128Mi of 512Mi in use, 384Mi available, a share of this machine",
        "pressure      memory 12.5 % (all: 0.0 %) of the last 10 s stalled, machine-wide",
        "fast path     on: the kernel watches /podqos at 412Mi; the last victim was frozen after 1.2 ms",
        "next evicted  default/big: uses 80Mi, 16Mi above its request, priority 0",
        "next killed   no pod",
        "memory    512Mi     412Mi        103Mi (25 %)",
        "memory.available  hard  100Mi      384Mi      284Mi",
        "  something is missing",
    ):
        assert f"\n{line}\n" in f"\n{text}\n"


@pytest.mark.parametrize(
    ("used", "asked", "words"),
    [(10 * MI, "64Mi", "54Mi below its request"), (10 * MI, "", "without a request"), (64 * MI, "64Mi", "0 below")],
)
def test_the_next_to_be_evicted_is_measured_against_its_request(used, asked, words):
    assert any(words in line for line in status_lines(_status(), NextVictims(_ranked(used, asked)), PLAIN))


def test_what_presses_is_not_overlooked():
    row = ThresholdRow(Signal.MEMORY, False, 90, 100 * MI, 50 * MI, 512 * MI, True)
    status = _status(
        conditions=(ConditionRow("Ready", True, ""), ConditionRow("MemoryPressure", True, "then")), thresholds=(row,)
    )
    text = "\n".join(status_lines(status, NextVictims(), PLAIN))
    assert "Ready, MemoryPressure since then" in text
    assert "memory.available  soft, 90 s  100Mi      50Mi       met" in text


def test_a_threshold_that_is_not_observed_says_so():
    row = ThresholdRow(Signal.CONTAINERFS, True, 0, None, None, None, False)
    lines = status_lines(_status(thresholds=(row,)), NextVictims(), PLAIN)
    assert any(line.endswith("–          –          not observed") for line in lines)


def test_a_note_is_said_once_even_if_it_is_a_refusal():
    refused = RefusedRow("default/x", "x.yaml", "no good")
    notes = (NoteRow("x.yaml: default/x: no good", 3), NoteRow("something is missing", 1), NoteRow("odd", 2))
    text = "\n".join(status_lines(_status(refused=(refused,), notes=notes), NextVictims(), PLAIN))
    assert text.count("no good") == 1
    assert text.count("something is missing") == 1
    assert "odd (2 times)" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_on_a_terminal_every_word_of_the_status_is_there_and_no_line_is_too_long(width):
    refused = RefusedRow("a.yaml", "default/a", "the API server would reject it: " + "a long reason, " * 9)
    status = _status(_pod("a-rather-long-name"), refused=(refused,))
    victims = NextVictims(_ranked(MI, ""))
    lines = list(fitted(status_lines(status, victims, Style(width=width)), width))
    assert all(visible_length(line) <= width for line in lines)
    words = {word.strip(";").lower() for line in lines for word in line.split()}
    plain = status_lines(status, victims, PLAIN)
    assert {word.strip(";").lower() for line in plain for word in line.split()} - words <= {"–"}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59, "59 s"), (90, "1 min 30 s"), (7260, "2 h 1 min"), (90000, "1 d 1 h")]
)
def test_a_duration_has_its_two_largest_units(seconds, text):
    assert two_units(seconds * SECOND_US) == text
