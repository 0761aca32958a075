"""What the API server rejects in the specs of Jobs and CronJobs, in its words.

Source: Kubernetes v1.36.4 pkg/apis/batch/validation/validation.go (validateJobSpec, validatePodFailurePolicy,
validateSuccessPolicy, validateCronJobSpec, validateScheduleFormat).
"""

from __future__ import annotations

from collections.abc import Iterator

from podqos.controllers.cron_schedule import CronSchedule, parse_schedule
from podqos.errors import InputError
from podqos.manifest.plain import FieldPath
from podqos.manifest.problems import FieldProblem, Severity
from podqos.model.jobs import CronJobSpec, ExitCodeOperator, FailureAction, JobSpec, PodReplacementPolicy
from podqos.model.pod import PodSpec

_NEGATIVE = "must be greater than or equal to 0"
_LONGEST_CRON_JOB_NAME = 52
_2000 = 946_684_800


def job_problems(spec: JobSpec, pod: PodSpec, path: FieldPath) -> Iterator[FieldProblem]:
    """Yield what is wrong with the spec of a Job; ``path`` leads to it."""
    for name, value in (
        ("parallelism", spec.parallelism),
        ("completions", spec.completions),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index),
        ("maxFailedIndexes", spec.max_failed_indexes),
    ):
        if value is not None and value < 0:
            yield _invalid((*path, name), value, _NEGATIVE)
    if spec.max_failed_indexes is not None and spec.backoff_limit_per_index is None:
        yield _required((*path, "backoffLimitPerIndex"), "when maxFailedIndexes is specified")
    if spec.is_indexed:
        yield from _indexed_problems(spec, path)
    else:
        for name, given in (
            ("backoffLimitPerIndex", spec.backoff_limit_per_index),
            ("maxFailedIndexes", spec.max_failed_indexes),
        ):
            if given is not None:
                yield _invalid((*path, name), given, "requires indexed completion mode")
        if spec.success_policy is not None:
            yield FieldProblem((*path, "successPolicy"), "Invalid value: requires indexed completion mode")
    yield from _policy_problems(spec, pod, path)
    where = (*path, "template", "spec", "restartPolicy")
    if pod.restart_policy in {"", "Always"}:
        what = 'Required value: valid values: "OnFailure", "Never"'
        fix = "the API server rejects this Job; until then its containers restart for ever"
        yield FieldProblem(where, what, fix, Severity.WARNING)
    elif spec.pod_failure_policy is not None and pod.restart_policy != "Never":
        what = 'only "Never" is supported when podFailurePolicy is specified'
        yield _invalid(where, pod.restart_policy, what)


def _indexed_problems(spec: JobSpec, path: FieldPath) -> Iterator[FieldProblem]:
    if spec.completions is None:
        yield _required((*path, "completions"), "when completion mode is Indexed")
    elif spec.max_failed_indexes is not None and spec.max_failed_indexes > spec.completions:
        what = "must be less than or equal to completions"
        yield _invalid((*path, "maxFailedIndexes"), spec.max_failed_indexes, what)
    if spec.success_policy is not None and not spec.success_policy.rules:
        what = "at least one rules must be specified when the successPolicy is specified"
        yield _required((*path, "successPolicy", "rules"), what)


def _policy_problems(spec: JobSpec, pod: PodSpec, path: FieldPath) -> Iterator[FieldProblem]:
    if spec.pod_failure_policy is None:
        return
    if spec.pod_replacement_policy not in {None, PodReplacementPolicy.FAILED}:
        what = f'Unsupported value: "{spec.pod_replacement_policy}": supported values: "Failed"'
        yield FieldProblem((*path, "podReplacementPolicy"), what)
    names = {container.name for container in (*pod.containers, *pod.init_containers)}
    for index, rule in enumerate(spec.pod_failure_policy.rules):
        place = (*path, "podFailurePolicy", "rules", index)
        if rule.action is FailureAction.FAIL_INDEX and spec.backoff_limit_per_index is None:
            yield _invalid((*place, "action"), rule.action.value, "requires the backoffLimitPerIndex to be set")
        codes = rule.on_exit_codes
        if (codes is None) == (not rule.on_pod_conditions):
            what = "specifying one of OnExitCodes and OnPodConditions is required"
            if codes is not None:
                what = "specifying both OnExitCodes and OnPodConditions is not supported"
            yield FieldProblem(place, f"Invalid value: {what}")
        if codes is None:
            continue
        if codes.container_name is not None and codes.container_name not in names:
            what = "must be one of the container or initContainer names in the pod template"
            yield _invalid((*place, "onExitCodes", "containerName"), codes.container_name, what)
        if not codes.values:
            yield FieldProblem((*place, "onExitCodes", "values"), "Invalid value: at least one value is required")
        if codes.operator is ExitCodeOperator.IN and 0 in codes.values:
            values = (*place, "onExitCodes", "values", codes.values.index(0))
            yield _invalid(values, 0, "must not be 0 for the In operator")


def cron_job_problems(spec: CronJobSpec, name: str, *, zone_is_known: bool) -> Iterator[FieldProblem]:
    """Yield what is wrong with the spec of a CronJob, that of its Jobs left aside."""
    path = ("spec", "schedule")
    if len(name) > _LONGEST_CRON_JOB_NAME:
        yield _invalid(("metadata", "name"), name, f"must be no more than {_LONGEST_CRON_JOB_NAME} characters")
    if not spec.schedule:
        yield _required(path, "")
    else:
        try:
            schedule = parse_schedule(spec.schedule)
        except InputError as error:
            yield _invalid(path, spec.schedule, error.what)
        else:
            if isinstance(schedule, CronSchedule) and schedule.next_after(_2000) is None:
                what = f'"{spec.schedule}" never comes: there is no such date'
                yield FieldProblem(path, what, "check the day and the month", Severity.WARNING)
    if not zone_is_known:
        yield _invalid(("spec", "timeZone"), spec.time_zone, f"unknown time zone {spec.time_zone}")
    for field, value in (
        ("startingDeadlineSeconds", spec.starting_deadline_seconds),
        ("successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        ("failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ):
        if value is not None and value < 0:
            yield _invalid(("spec", field), value, _NEGATIVE)


def _invalid(path: FieldPath, value: object, what: str) -> FieldProblem:
    shown = f'"{value}"' if isinstance(value, str) else value
    return FieldProblem(path, f"Invalid value: {shown}: {what}")


def _required(path: FieldPath, what: str) -> FieldProblem:
    return FieldProblem(path, f"Required value: {what}" if what else "Required value")
