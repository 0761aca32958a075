"""Jobs and CronJobs in words: how they ended, why one was not started, why pods were deleted with them."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.agent import reasons as r
from podqos.sim.summary import JobOutcomes
from podqos.wording import counted, listed

JobReasons = r.JobEnded | r.DeletedWithJob | r.CronJobDue | r.CronJobSkipped | r.SuspendedWorkload

_DELETED = {
    "SuccessPolicy": "Job {job} is complete (SuccessPolicy)",
    "Suspended": "Job {job} is suspended",
    "Surplus": "Job {job} needs fewer pods",
    "TTLExpired": "ttlSecondsAfterFinished of Job {job} has passed",
    "HistoryLimit": "the CronJob's history limit is reached",
    "Replaced": "Job {job} makes way for the next one (concurrencyPolicy: Replace)",
}


def job_words(because: JobReasons) -> str:
    """Return a reason as a clause."""
    match because:
        case r.JobEnded():
            return f"{because.reason}{''.join(f', {fact}' for fact in _facts(because))}"
        case r.DeletedWithJob(job=job, reason=reason):
            return _DELETED.get(reason, f"Job {{job}} has failed ({reason})").format(job=_name(job))
        case r.CronJobDue(job=job, scheduled=scheduled, late_seconds=late, many_missed=many):
            late_words = f", {late} s late" if late else ""
            missed = ", more than 100 runs missed" if many else ""
            return f"{_name(job)} for {scheduled}{late_words}{missed}"
        case r.SuspendedWorkload(workload=workload, kind=kind):
            return f"{kind} {_name(workload)}"
        case r.CronJobSkipped(scheduled=scheduled, reason="JobAlreadyActive", active=active):
            jobs = listed([_name(job) for job in active])
            return f"the run of {scheduled}: {jobs} still active (concurrencyPolicy: Forbid)"
        case r.CronJobSkipped(scheduled=scheduled, starting_deadline_seconds=seconds):
            return f"the run of {scheduled}: its startingDeadlineSeconds ({seconds} s) have passed"


def jobs_headline(jobs: JobOutcomes | None) -> str:
    """Return how Jobs ended, in one sentence; empty if none did."""
    if jobs is None:
        return ""
    parts = [f"{counted(jobs.complete, 'Job')} complete"] if jobs.complete else []
    parts += [f"{counted(count, 'Job')} failed ({reason})" for reason, count in jobs.failed.items()]
    parts += [f"{counted(jobs.skipped, 'scheduled run')} skipped"] if jobs.skipped else []
    return f"{', '.join(parts)}."


def job_line(because: JobReasons, verb: str) -> str:
    """Return an entry about a Job or CronJob in one line."""
    match because:
        case r.CronJobDue(cron_job=cron_job) | r.CronJobSkipped(cron_job=cron_job):
            return f"CronJob {_name(cron_job)} {verb} {job_words(because)}"
        case r.DeletedWithJob(job=job):
            return f"Job {_name(job)} {verb}: {job_words(because)}"
        case r.SuspendedWorkload():
            return f"{job_words(because)} {verb}"
        case r.JobEnded(job=job):
            return f"Job {_name(job)} {verb}: {job_words(because)}"


def _facts(ended: r.JobEnded) -> Iterator[str]:
    """Yield the numbers that led to the end of a Job, the decisive one first."""
    match ended.reason:
        case "BackoffLimitExceeded" if ended.restarts:
            yield f"{counted(ended.restarts, 'container restart')} (backoffLimit {ended.backoff_limit})"
        case "BackoffLimitExceeded":
            yield f"{counted(ended.failed, 'failed pod')} (backoffLimit {ended.backoff_limit})"
        case "DeadlineExceeded":
            yield f"active for {ended.active_deadline_seconds} s"
        case "PodFailurePolicy" if ended.condition:
            yield f"{_name(ended.pod)} has condition {ended.condition} (rule {ended.rule})"
        case "PodFailurePolicy":
            exited = f"{ended.container} of {_name(ended.pod)} exited with {ended.exit_code}"
            yield f"{exited} (rule {ended.rule})"
        case "SuccessPolicy":
            yield f"rule {ended.rule} is met"
    if ended.failed_indexes:
        yield f"failed indexes {ended.failed_indexes}"
    if ended.completions is not None:
        yield f"{ended.succeeded} of {ended.completions} completions"
    else:
        yield f"{ended.succeeded} succeeded"


def _name(key: str) -> str:
    return key.partition("/")[2]
