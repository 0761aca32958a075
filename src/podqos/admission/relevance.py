"""Which errors of validation matter for which question: the one place that says what keeps a pod out of an answer.

The API server rejects a pod for any error. But a missing image cannot change which pod is evicted first, so a command
that answers that question warns and goes on; only an error in a field that decides the answer leaves the pod out. Each
question includes the ones before it. What is not listed here decides nothing that podqos computes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.field_errors import FieldError
from podqos.manifest.kinds import POD_HOLDERS, is_served
from podqos.manifest.plain import Plain
from podqos.model.pod import Container, Pod, Workload


class Question(IntEnum):
    """Questions about pods, from the one that depends on the fewest fields to the one that depends on all."""

    CLASS = 1
    """What a pod is promised: its class, oom scores, cgroups."""
    SURVIVAL = 2
    """Who is slowed, evicted or killed on a node."""
    PLACEMENT = 3
    """Where pods run, and what happens to them over time."""
    ADMISSION = 4
    """Whether the API server accepts it."""


_CONTAINERS = r"(containers|initContainers|ephemeralContainers)"
_DECISIVE: dict[Question, tuple[str, ...]] = {
    Question.CLASS: (
        r"spec\.containers",
        rf"spec\.{_CONTAINERS}\.resources\b.*",
        r"spec\.resources\b.*",
        r"spec\.overhead\b.*",
        r"spec\.os\b.*",
        r"spec\.initContainers\.restartPolicy",
    ),
    Question.SURVIVAL: (
        r"spec\.(priority|priorityClassName|runtimeClassName)",
        r"spec\.(restartPolicy|activeDeadlineSeconds)",
        rf"spec\.{_CONTAINERS}\.restartPolicy(Rules\b.*)?",
        r"spec\.volumes\.emptyDir\b.*",
    ),
    Question.PLACEMENT: (
        r"metadata\.labels",
        r"spec\.(nodeSelector|affinity|tolerations|topologySpreadConstraints|schedulingGates)\b.*",
        r"spec\.(nodeName|preemptionPolicy)",
    ),
}
_INDEX = re.compile(r"\[\d+\]")
_PATTERNS = [(question, re.compile("|".join(patterns))) for question, patterns in _DECISIVE.items()]


def decides(path: str) -> Question:
    """Return the first question that a field of a pod decides."""
    return _decides(_INDEX.sub("", path))


@cache
def _decides(path: str) -> Question:
    return next((question for question, pattern in _PATTERNS if pattern.fullmatch(path)), Question.ADMISSION)


class Judged(Struct, frozen=True, gc=False):
    """Errors, sorted by what they mean for a question."""

    decisive: tuple[FieldError, ...] = ()
    """The answer depends on them: the pod is left out."""
    tolerated: tuple[FieldError, ...] = ()
    """The answer is the same without them."""


def judge(errors: Iterable[FieldError], question: Question) -> Judged:
    """Sort errors about a pod by whether they matter for a question."""
    errors = tuple(errors)
    if not errors or question is Question.ADMISSION:
        return Judged(errors)
    decisive = tuple(error for error in errors if decides(error.path) <= question)
    return Judged(decisive, tuple(error for error in errors if error not in decisive))


def tolerated(workload: Workload, question: Question, written: Callable[[], Plain]) -> tuple[FieldError, ...]:
    """Return the errors about a workload as written that the answer does not depend on.

    Paths are those of the object, which ``written`` reads.
    """
    inside = f"{workload.pod_path}." if workload.pod_path else ""
    return tuple(
        error
        for error in rejections(workload, written)
        if not error.path.startswith(inside) or decides(error.path.removeprefix(inside)) > question
    )


def rejections(workload: Workload, written: Callable[[], Plain]) -> tuple[FieldError, ...]:
    """Return every error about a workload as written: of the object around its pod, and of the pod."""
    if not _is_judged(workload):
        return ()
    from podqos.admission.pod_validation import validate_new_pod  # few need it

    if not workload.pod_path:
        return validate_new_pod(workload.pod)
    value = written()
    if not is_served(workload.kind, value):
        return tuple(replace(error, path=workload.at(error.path)) for error in validate_new_pod(workload.pod))
    from podqos.admission.workload_validation import workload_refusal

    refusal = workload_refusal(value, workload.kind)
    return () if refusal is None else refusal.errors


def rejected(workload: Workload, of_pod: Iterable[FieldError], written: Callable[[], Plain]) -> tuple[FieldError, ...]:
    """Return the errors about a workload as written, and those about its pod that were found elsewhere."""
    if not _is_judged(workload):
        return ()
    # What the pods of an object are called follows from its own name.
    named = {"metadata.name", "metadata.generateName"} if workload.pod_path else set()
    own = (replace(error, path=workload.at(error.path)) for error in of_pod if error.path not in named)
    return tuple({str(error): error for error in (*rejections(workload, written), *own)}.values())


def with_names(pod: Pod) -> Pod:
    """Return a pod whose containers all have a name: one without gets its position as a name."""
    spec = pod.spec
    if all(container.name for container in (*spec.containers, *spec.init_containers)):
        return pod
    return replace(
        pod,
        spec=replace(
            spec,
            containers=_named(spec.containers, "containers"),
            init_containers=_named(spec.init_containers, "initContainers"),
        ),
    )


def _named(containers: tuple[Container, ...], field: str) -> tuple[Container, ...]:
    return tuple(
        container if container.name else replace(container, name=f"{field}[{index}]")
        for index, container in enumerate(containers)
    )


def _is_judged(workload: Workload) -> bool:
    """Whether an API server will still validate the pod; a custom resource's pod is completed by its controller."""
    return not workload.is_live and workload.kind in POD_HOLDERS
