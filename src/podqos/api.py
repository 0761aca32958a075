"""What programs call where a question alone is not enough: it opens the paths they give, and works on all cores.

All other public names are the questions' own functions and values (``podqos/__init__.pyi`` lists them). Nothing is
imported before it is asked: a program that explains a pod needs no simulator.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from podqos.model.profile import LATEST, Profile
from podqos.parallel import PER_CORE, carried_out, fan_out, over_cores, usable_cores

if TYPE_CHECKING:
    from podqos.advice.checks.bundle import CheckOptions
    from podqos.advice.checks.gate import Gate
    from podqos.advice.sizing.description import DescribedWorkload
    from podqos.advice.sizing.goals import Goal
    from podqos.advice.sizing.samples import ContainerSamples
    from podqos.eviction.ranking import Policy
    from podqos.logs.report import OOMReport
    from podqos.logs.said import Said, WhatWasRead
    from podqos.objects.cluster_snapshot import ClusterSnapshot
    from podqos.objects.kubelet_node import Kubelet
    from podqos.objects.objects import Objects
    from podqos.objects.spreading import Progress
    from podqos.questions.advice import AdviceReport
    from podqos.questions.autopsy import Autopsy
    from podqos.questions.findings import CheckReport
    from podqos.questions.node import NodeState
    from podqos.reading.logs import Log
    from podqos.reading.usage import Usage
    from podqos.runs.variations import Sweep
    from podqos.sim.blast import BlastRadius
    from podqos.sim.scenario.scenario import Scenario

T = TypeVar("T")


def check(
    objects: Objects,
    options: CheckOptions | None = None,
    gate: Gate | None = None,
    *,
    resized: Objects | None = None,
    usage: Usage | None = None,
) -> CheckReport:
    """Return what is found about objects, where, what follows from it, and what to write instead.

    ``gate`` says what is reported, known and ignored. ``resized`` are workloads of ``objects`` with other resources, as
    they are to be resized in place, ``usage`` what their pods use (a usage file, or its rows). What is wrong with the
    files is among the problems of both.
    """
    from podqos.advice.checks.gate import Gate
    from podqos.questions.check import Checked
    from podqos.reading.configuration import paths_below
    from podqos.reading.usage import read_usage

    gate = gate or Gate()
    sources = (*objects.sources, *(() if resized is None else resized.sources)) if gate.ignore else ()
    paths = paths_below(gate.folder, sources)
    rows = () if usage is None else read_usage(usage)
    return Checked(objects, options, gate, resized=resized, usage=rows, paths=paths, spread=over_cores()).report


def advise(
    objects: Objects,
    *,
    samples: str | os.PathLike[str] | Sequence[ContainerSamples] = (),
    descriptions: str | os.PathLike[str] | Sequence[DescribedWorkload] = (),
    goal: Goal | None = None,
    node_memory_bytes: int | None = None,
    kubelet: Kubelet | None = None,
    profile: Profile = LATEST,
) -> AdviceReport:
    """Advise class, priority and sizes of every workload that something is known about.

    A workload is described by its annotations or by ``descriptions``; one that is described but not among the objects
    is new. ``samples`` are what containers used. Both are a file or what was read from one.
    """
    from podqos.advice.sizing.description import read_descriptions
    from podqos.advice.sizing.samples import read_samples
    from podqos.questions import advise as question

    return question.advise(
        objects,
        samples=_read(samples, read_samples),
        descriptions=_read(descriptions, read_descriptions),
        goal=goal,
        node_memory_bytes=node_memory_bytes,
        kubelet=kubelet,
        profile=profile,
    )


def _read(given: str | os.PathLike[str] | Sequence[T], reader: Callable[[str, bytes], Sequence[T]]) -> Sequence[T]:
    """Return what a file holds, or what was read from one already."""
    if not isinstance(given, (str, os.PathLike)):
        return given
    from podqos.reading.files import read_bytes

    path = os.fspath(given)
    return reader(path, read_bytes(path))


def blast(
    source: Scenario | NodeState,
    slow_bytes_per_second: int = 4 << 20,
    fast_bytes_per_second: int = 1 << 30,
    *,
    policy: Policy | None = None,
    growing: str | None = None,
    progress: Progress | None = None,
    cores: int | None = None,
) -> BlastRadius:
    """Let each pod leak in turn, slowly and fast, and return which other pods die, how soon and what kills them.

    The nodes are those of a scenario at its beginning, or the one node of a state. ``policy`` overrides how the kubelet
    ranks. ``growing`` is the only pod to leak, or ``system``: what runs besides pods. ``progress`` gets how many leaks
    are done, and how many there are. ``cores``: by default all.
    """
    from podqos.questions import blast as question

    return question.blast(
        source,
        slow_bytes_per_second,
        fast_bytes_per_second,
        spread=fan_out,
        cores=cores or usable_cores(),
        policy=policy,
        growing=growing,
        progress=progress,
    )


def sweep(
    scenario: str,
    vary: Sequence[str] = (),
    *,
    seeds: int = 1,
    hold_placement: bool = False,
    engine: str = "processes",
    jobs: int = PER_CORE,
    progress: Callable[[int, int], None] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Sweep:
    """Run a scenario, by its file or name, under every combination of values, and return how each workload fares.

    ``vary`` holds texts such as ``phase=0s,5s`` (``podqos simulate --help`` lists the parameters). ``engine`` and
    ``jobs`` say where to run and how much in parallel.
    """
    from podqos.reading.scenario_files import load_scenario
    from podqos.runs import variations

    return variations.sweep(
        partial(load_scenario, scenario),
        vary,
        partial(carried_out, engine=engine, jobs=jobs),
        seeds=seeds,
        hold_placement=hold_placement,
        progress=progress,
        say=say,
    )


def autopsy(
    paths: Iterable[str | Log],
    *,
    objects: Objects | None = None,
    cluster: ClusterSnapshot | None = None,
    most_shown: int | None = None,
    kubelet: Kubelet | None = None,
    growth_bytes_per_second: int | None = None,
    profile: Profile = LATEST,
    namespace: str = "",
    pod: str = "",
    read: WhatWasRead | None = None,
) -> Autopsy:
    """Return every death in logs of the kernel, of kubelets and of podqos; ``-`` is standard input.

    ``objects`` hold the pods, nodes and events of the cluster, or ``cluster`` does. ``most_shown`` rows of each ranking
    are kept. ``kubelet`` says what the node reserves and when it evicts; ``growth_bytes_per_second``, how fast memory
    was used up, says which threshold would have saved a victim. Raises InputError for a log that cannot be read.
    """
    from podqos.logs.said import Said
    from podqos.objects.files import Inputs
    from podqos.questions import autopsy as question
    from podqos.questions.autopsy_oom import MOST_SHOWN
    from podqos.reading.autopsy_inputs import what_is_given

    logs = list(paths)
    said = Said(read=what_is_given(Inputs([]), logs) if read is None else read)
    return question.autopsy(
        _reports(logs, said),
        said,
        objects=objects,
        cluster=cluster,
        most_shown=MOST_SHOWN if most_shown is None else most_shown,
        kubelet=kubelet,
        growth_bytes_per_second=growth_bytes_per_second,
        profile=profile,
        namespace=namespace,
        pod=pod,
    )


def _reports(logs: Iterable[str | Log], said: Said) -> Iterator[tuple[int, OOMReport]]:
    from podqos.logs.search import LogReader
    from podqos.reading.logs import opened

    reader = LogReader(said)
    for number, log in enumerate(logs):
        with opened(log) as stream:
            yield from ((number, report) for report in reader.read(stream))


def live_autopsy(
    path: str | None,
    *,
    known: Callable[[], ClusterSnapshot | Objects | None] = lambda: None,
    say: Callable[[str], None] = lambda _: None,
    most_shown: int | None = None,
    kubelet: Kubelet | None = None,
    growth_bytes_per_second: int | None = None,
    profile: Profile = LATEST,
) -> Iterator[Autopsy]:
    """Yield OOMs as they happen, by the log of this machine or a file that grows.

    ``known`` returns what is known of the cluster at that moment. ``say`` is told what is followed, and what is lost.
    Raises HostError where there is no right to read the log.
    """
    from podqos.objects.cluster_snapshot import ClusterSnapshot
    from podqos.objects.objects import Objects
    from podqos.questions.autopsy import autopsy_of
    from podqos.questions.autopsy_oom import MOST_SHOWN, Examiner
    from podqos.reading.live_log import follow, growing

    examiner = Examiner(MOST_SHOWN if most_shown is None else most_shown)
    with growing(path, say) as log:
        say(f"following {path or 'the kernel log of this machine'}")
        for report in follow(log, say):
            now = known()
            yield autopsy_of(
                report,
                examiner,
                objects=now if isinstance(now, Objects) else None,
                cluster=now if isinstance(now, ClusterSnapshot) else None,
                kubelet=kubelet,
                growth_bytes_per_second=growth_bytes_per_second,
                profile=profile,
            )
