"""What the Job controller does when it looks at a Job: count, end, create, delete.

``sync`` is one look. It takes the Job's spec with defaults, what the controller remembers (``JobStatus``) and the pods
that it sees, and returns what to do and when to look again. The caller looks when a pod changes, a second later
(``SYNC_BATCH_US``), and when ``again_us`` says so; the earlier one counts.

Source: Kubernetes v1.36.4 pkg/controller/job/job_controller.go (syncJob, manageJob, trackJobStatusAndRemoveFinalizers,
pastBackoffLimitOnFailure, pastActiveDeadline, isPodFailed), indexed_job_utils.go (calculateFailedIndexes,
firstPendingIndexes, getPodsWithDelayedDeletionPerIndex).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.controllers.job_backoff import BackoffRecord, backoff_us, remaining_us
from podqos.controllers.job_indexes import matching_rule
from podqos.controllers.pod_failure_policy import ContainerExit, PolicyMatch, counts, match
from podqos.model.jobs import FailureAction, JobSpec, PodReplacementPolicy
from podqos.model.time_units import SECOND_US

SYNC_BATCH_US = 1 * SECOND_US
"""How long the controller collects changes of pods before it looks (SyncJobBatchPeriod)."""
MOST_AT_ONCE = 500
"""How many pods one look creates or deletes (MaxPodCreateDeletePerSync)."""


class JobReason(StrEnum):
    """Why a Job has ended."""

    COMPLETIONS_REACHED = "CompletionsReached"
    SUCCESS_POLICY = "SuccessPolicy"
    BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    POD_FAILURE_POLICY = "PodFailurePolicy"
    MAX_FAILED_INDEXES_EXCEEDED = "MaxFailedIndexesExceeded"
    FAILED_INDEXES = "FailedIndexes"

    @property
    def is_success(self) -> bool:
        """Whether the Job is Complete rather than Failed."""
        return self in {JobReason.COMPLETIONS_REACHED, JobReason.SUCCESS_POLICY}


class PodPhase(StrEnum):
    """The phase of a pod, as its status says it."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class JobPod(Struct, frozen=True, gc=False, kw_only=True):
    """A pod as the Job controller sees it."""

    uid: str
    index: int | None = None
    """Of an Indexed Job."""
    phase: PodPhase = PodPhase.PENDING
    is_deleted: bool = False
    """Whether it has been deleted, and may still be stopping."""
    is_counted: bool = False
    """Whether an earlier look has counted its end."""
    finished_us: int = 0
    """When the last of its containers ended; if it was deleted before that, when."""
    restarts: int = 0
    """Of all its containers."""
    exits: tuple[ContainerExit, ...] = ()
    """The containers that have ended."""
    conditions: tuple[str, ...] = ()
    """Those that are True."""
    failures: int = 0
    """How many pods of its index failed before it and count."""
    ignored_failures: int = 0
    """How many did and do not."""
    rank: tuple[int, ...] = ()
    """Which is deleted first if there are too many: the smallest."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.phase in {PodPhase.SUCCEEDED, PodPhase.FAILED}

    @property
    def is_active(self) -> bool:
        """Whether it runs, or is about to (``FilterActivePods``)."""
        return not self.is_over and not self.is_deleted

    @property
    def is_terminating(self) -> bool:
        """Whether it is being stopped (``IsPodTerminating``)."""
        return not self.is_over and self.is_deleted


class Ending(Struct, frozen=True, gc=False):
    """Why a Job ends: its FailureTarget or SuccessCriteriaMet condition."""

    reason: JobReason
    rule: int | None = None
    """The rule of the pod failure policy, or of the success policy, that decided."""
    pod: str = ""
    """The uid of the pod that matched that rule."""
    matched: PolicyMatch | None = None
    restarts: int = 0
    """The container restarts that exceeded the back-off limit, with ``restartPolicy: OnFailure``."""


class JobStatus(Struct, frozen=True, gc=False):
    """What the controller remembers of a Job."""

    started_us: int | None = None
    succeeded: int = 0
    failed: int = 0
    succeeded_indexes: frozenset[int] = frozenset()
    failed_indexes: frozenset[int] = frozenset()
    backoff: BackoffRecord = BackoffRecord()
    ending: Ending | None = None
    is_finished: bool = False
    """Whether it is Complete or Failed: all its pods have ended."""


class NewPod(Struct, frozen=True, gc=False):
    """A pod to create."""

    index: int | None = None
    failures: int = 0
    ignored_failures: int = 0
    backoff_us: int = 0
    """The whole back-off that it waited for, from the last failure on."""


class JobStep(Struct, frozen=True):
    """What one look at a Job leads to."""

    status: JobStatus
    counted: tuple[str, ...] = ()
    """The uids of the pods whose ends are counted now."""
    delete: tuple[str, ...] = ()
    """The uids of the pods to delete."""
    create: tuple[NewPod, ...] = ()
    again_us: int | None = None
    """When to look again without being asked."""


def sync(spec: JobSpec, restarts_containers: bool, status: JobStatus, pods: Sequence[JobPod], now_us: int) -> JobStep:
    """Look at a Job. ``restarts_containers`` is whether its pods have ``restartPolicy: OnFailure``."""
    if status.is_finished:
        return JobStep(status)
    return _Sync(spec, restarts_containers, status, pods, now_us).step()


class _Sync:
    """One look in the making."""

    def __init__(
        self, spec: JobSpec, restarts_containers: bool, status: JobStatus, pods: Sequence[JobPod], now_us: int
    ) -> None:
        self._spec = spec
        self._restarts_containers = restarts_containers
        self._now_us = now_us
        self._pods = pods
        self._active = [pod for pod in pods if pod.is_active]
        self._new_succeeded = [pod for pod in pods if not pod.is_counted and pod.phase is PodPhase.SUCCEEDED]
        self._new_failed = [pod for pod in pods if not pod.is_counted and self._is_failed(pod)]
        self._deferred: dict[int, JobPod] = {}
        """By index: the last failed pod, whose end is counted when its replacement is created."""
        started_us = status.started_us
        if started_us is None and not spec.suspend:
            started_us = now_us
        times = [[pod.finished_us for pod in some] for some in (self._new_succeeded, self._new_failed)]
        self._status = replace(status, started_us=started_us, backoff=status.backoff.after(*times))
        self._succeeded = status.succeeded + len(self._new_succeeded)
        self._failed = status.failed + sum(counts(self._matched(pod)) for pod in self._new_failed)

    def step(self) -> JobStep:
        """Return what to do."""
        ending, due_us = self._ending()
        ending = self._look_at_indexes(ending)
        if ending is not None:
            return self._end(ending, self._active)
        delete, create, again_us = self._manage()
        again_us = _earlier(again_us, due_us)
        if not create and not delete and self._is_complete():
            return self._end(Ending(JobReason.COMPLETIONS_REACHED), ())
        status = self._counted_status(())
        if self._spec.suspend:
            # What is resumed starts anew, deadline included (MutableSchedulingDirectivesForSuspendedJobs, since 1.36).
            status = replace(status, started_us=None)
        return JobStep(status, tuple(self._to_count()), tuple(delete), tuple(create), again_us)

    # ---- does it end? --------------------------------------------------------------------------------------------

    def _ending(self) -> tuple[Ending | None, int | None]:
        """Return why the Job ends, if it does; or when to look again for its deadline."""
        spec, status = self._spec, self._status
        if status.ending is not None:
            return status.ending, None
        for pod in self._pods:
            matched = self._matched(pod) if self._is_failed(pod) else None
            if matched is not None and matched.action is FailureAction.FAIL_JOB:
                return Ending(JobReason.POD_FAILURE_POLICY, matched.rule, pod.uid, matched), None
        assert spec.backoff_limit is not None
        if self._failed > spec.backoff_limit:
            return Ending(JobReason.BACKOFF_LIMIT_EXCEEDED), None
        restarts = sum(pod.restarts for pod in self._pods if not pod.is_over) if self._restarts_containers else 0
        if restarts and restarts >= spec.backoff_limit:
            return Ending(JobReason.BACKOFF_LIMIT_EXCEEDED, restarts=restarts), None
        if spec.active_deadline_seconds is None or status.started_us is None or spec.suspend:
            return None, None
        due_us = status.started_us + spec.active_deadline_seconds * SECOND_US
        if self._now_us >= due_us:
            return Ending(JobReason.DEADLINE_EXCEEDED), None
        return None, due_us

    def _look_at_indexes(self, ending: Ending | None) -> Ending | None:
        """Find out which indexes succeeded and failed, and whether that ends the Job."""
        spec = self._spec
        if not spec.is_indexed:
            return ending
        assert spec.completions is not None
        succeeded = self._status.succeeded_indexes | _indexes(self._new_succeeded)
        failed = self._status.failed_indexes
        self._succeeded = len(succeeded)
        if spec.backoff_limit_per_index is not None:
            failed |= _indexes(pod for pod in self._new_failed if self._fails_index(pod))
            if ending is None:
                if spec.max_failed_indexes is not None and len(failed) > spec.max_failed_indexes:
                    ending = Ending(JobReason.MAX_FAILED_INDEXES_EXCEEDED)
                elif failed and len(failed) + len(succeeded) >= spec.completions:
                    ending = Ending(JobReason.FAILED_INDEXES)
        self._status = replace(self._status, succeeded_indexes=succeeded, failed_indexes=failed)
        if spec.backoff_limit_per_index is not None:
            self._defer(succeeded | failed | _indexes(self._active))
        if ending is None:
            rule = matching_rule(spec.success_policy, spec.completions, succeeded)
            if rule is not None:
                ending = Ending(JobReason.SUCCESS_POLICY, rule)
        return ending

    def _defer(self, settled: frozenset[int]) -> None:
        """Keep the last failed pod of each index that waits for a replacement."""
        for pod in self._new_failed:
            if pod.index is None or pod.index in settled:
                continue
            last = self._deferred.get(pod.index)
            if last is None or (_all_failures(last) <= _all_failures(pod) and pod.finished_us >= last.finished_us):
                self._deferred[pod.index] = pod

    def _fails_index(self, pod: JobPod) -> bool:
        """Whether a failed pod is the last that its index may have (``isIndexFailed``)."""
        matched = self._matched(pod)
        if matched is not None and matched.action is FailureAction.FAIL_INDEX:
            return True
        assert self._spec.backoff_limit_per_index is not None
        return counts(matched) and pod.failures >= self._spec.backoff_limit_per_index

    def _is_failed(self, pod: JobPod) -> bool:
        """Whether a pod counts as failed: a deleted one at once, unless only failed ones are replaced."""
        if pod.phase is PodPhase.FAILED:
            return True
        return pod.is_deleted and pod.phase is not PodPhase.SUCCEEDED and not self._replaces_failed_only

    @property
    def _replaces_failed_only(self) -> bool:
        spec = self._spec
        return spec.pod_replacement_policy is PodReplacementPolicy.FAILED or spec.pod_failure_policy is not None

    def _matched(self, pod: JobPod) -> PolicyMatch | None:
        if self._spec.pod_failure_policy is None:
            return None
        return match(self._spec.pod_failure_policy, pod.exits, pod.conditions)

    def _end(self, ending: Ending, delete: Sequence[JobPod]) -> JobStep:
        """End the Job: delete what runs; it is Complete or Failed when nothing terminates any more."""
        self._deferred = {}
        is_waiting = bool(delete) or any(pod.is_terminating for pod in self._pods)
        # Pods that have to stop because the Job fails count as failed.
        stopped = () if ending.reason.is_success else [pod for pod in self._pods if not pod.is_over]
        status = self._counted_status([pod for pod in stopped if not self._is_failed(pod) and not pod.is_counted])
        status = replace(status, ending=ending, is_finished=not is_waiting)
        counted = dict.fromkeys((*self._to_count(), *(pod.uid for pod in self._pods if not pod.is_counted)))
        return JobStep(status, tuple(counted), tuple(pod.uid for pod in delete))

    def _is_complete(self) -> bool:
        if self._active:
            return False
        completions = self._spec.completions
        return self._succeeded > 0 if completions is None else self._succeeded >= completions

    # ---- which pods are created and deleted? ---------------------------------------------------------------------

    def _manage(self) -> tuple[list[str], list[NewPod], int | None]:
        """Return the pods to delete, those to create, and when to try again (``manageJob``)."""
        spec, active = self._spec, self._active
        assert spec.parallelism is not None
        if spec.suspend:
            return [pod.uid for pod in active], [], None
        if spec.completions is None:
            wanted = len(active) if self._succeeded > 0 else spec.parallelism
        else:
            wanted = max(0, min(spec.completions - self._succeeded, spec.parallelism))
        if len(active) > wanted:
            extra = sorted(active, key=lambda pod: pod.rank)[: min(len(active) - wanted, MOST_AT_ONCE)]
            return [pod.uid for pod in extra], [], None
        terminating = sum(pod.is_terminating for pod in self._pods) if self._replaces_failed_only else 0
        missing = wanted - terminating - len(active)
        if missing <= 0:
            return [], [], None
        if spec.backoff_limit_per_index is not None:
            return [], *self._pending_indexes(missing)
        left_us = self._status.backoff.remaining_us(self._now_us)
        if left_us > 0:
            return [], [], self._now_us + max(left_us, SYNC_BATCH_US)
        count = min(missing, MOST_AT_ONCE)
        wait_us = self._status.backoff.wait_us()
        if not spec.is_indexed:
            return [], [NewPod(backoff_us=wait_us)] * count, None
        return [], [NewPod(index, backoff_us=wait_us) for index in self._first_pending(count)], None

    def _first_pending(self, count: int) -> list[int]:
        """Return the lowest indexes that still need a pod (``firstPendingIndexes``)."""
        status = self._status
        taken = status.succeeded_indexes | status.failed_indexes | _indexes(self._active)
        if self._replaces_failed_only:
            taken |= _indexes(pod for pod in self._pods if pod.is_terminating)
        assert self._spec.completions is not None
        pending: list[int] = []
        for index in range(self._spec.completions):
            if len(pending) == count:
                break
            if index not in taken:
                pending.append(index)
        return pending

    def _pending_indexes(self, missing: int) -> tuple[list[NewPod], int | None]:
        """Return the pods of indexes whose own back-off is over, or when the first of them is."""
        now: list[NewPod] = []
        left: list[int] = []
        for index in self._first_pending(min(missing, MOST_AT_ONCE)):
            last = self._deferred.get(index)
            if last is None:
                now.append(NewPod(index))
                continue
            failures = _all_failures(last) + 1
            left_us = remaining_us(failures, last.finished_us, self._now_us)
            if left_us > 0:
                left.append(left_us)
                continue
            counted = counts(self._matched(last))
            own, ignored = last.failures + counted, last.ignored_failures + (not counted)
            now.append(NewPod(index, own, ignored, backoff_us(failures)))
        for pod in now:
            assert pod.index is not None
            self._deferred.pop(pod.index, None)
        if now or not left:
            return now, None
        return [], self._now_us + max(min(left), SYNC_BATCH_US)

    # ---- counting ------------------------------------------------------------------------------------------------

    def _to_count(self) -> Iterable[str]:
        deferred = {pod.uid for pod in self._deferred.values()}
        return (pod.uid for pod in (*self._new_succeeded, *self._new_failed) if pod.uid not in deferred)

    def _counted_status(self, stopped: Sequence[JobPod]) -> JobStatus:
        """Return the status after what is counted now; pods that are stopped with their Job count as failed."""
        deferred = {pod.uid for pod in self._deferred.values()}
        waiting = sum(counts(self._matched(pod)) for pod in self._new_failed if pod.uid in deferred)
        more = sum(counts(self._matched(pod)) for pod in stopped)
        return replace(self._status, succeeded=self._succeeded, failed=self._failed - waiting + more)


def _indexes(pods: Iterable[JobPod]) -> frozenset[int]:
    return frozenset(pod.index for pod in pods if pod.index is not None)


def _all_failures(pod: JobPod) -> int:
    return pod.failures + pod.ignored_failures


def _earlier(one: int | None, other: int | None) -> int | None:
    return min((time_us for time_us in (one, other) if time_us is not None), default=None)
