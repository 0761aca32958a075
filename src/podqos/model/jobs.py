"""Jobs and CronJobs: the fields of their specs that say which pods there are, and when.

Absent fields are None, as in a manifest. ``JobSpec.with_defaults`` gives those that the API server fills in.

Source: Kubernetes v1.36 staging/src/k8s.io/api/batch/v1/types.go, pkg/apis/batch/v1/defaults.go (SetDefaults_Job,
SetDefaults_CronJob, SetDefaults_PodFailurePolicyOnPodConditionsPattern).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

MOST_FAILURES = (1 << 31) - 1
_DEFAULT_BACKOFF_LIMIT = 6


class CompletionMode(StrEnum):
    """Whether the completions of a Job have numbers."""

    NON_INDEXED = "NonIndexed"
    INDEXED = "Indexed"


class PodReplacementPolicy(StrEnum):
    """When a Job replaces a pod."""

    TERMINATING_OR_FAILED = "TerminatingOrFailed"
    FAILED = "Failed"


class FailureAction(StrEnum):
    """What a Job does about a failed pod."""

    FAIL_JOB = "FailJob"
    FAIL_INDEX = "FailIndex"
    IGNORE = "Ignore"
    COUNT = "Count"


class ExitCodeOperator(StrEnum):
    """How the exit code of a container is compared with the values of a rule."""

    IN = "In"
    NOT_IN = "NotIn"


class OnExitCodes(Struct, frozen=True, gc=False, rename="camel"):
    """The exit codes that a rule of a pod failure policy is about."""

    container_name: str | None = None
    """None is any container."""
    operator: ExitCodeOperator = ExitCodeOperator.IN
    values: tuple[int, ...] = ()


class OnPodCondition(Struct, frozen=True, gc=False, rename="camel"):
    """A pod condition that a rule of a pod failure policy is about."""

    type: str = ""
    status: str = "True"


class PodFailureRule(Struct, frozen=True, gc=False, rename="camel"):
    """One rule of a pod failure policy."""

    action: FailureAction = FailureAction.COUNT
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] = ()


class PodFailurePolicy(Struct, frozen=True, gc=False, rename="camel"):
    """What failed pods mean for their Job; the first rule that matches counts."""

    rules: tuple[PodFailureRule, ...] = ()


class SuccessRule(Struct, frozen=True, gc=False, rename="camel"):
    """When an Indexed Job has succeeded before all of its indexes have."""

    succeeded_indexes: str | None = None
    """As in "0,2-4"."""
    succeeded_count: int | None = None


class SuccessPolicy(Struct, frozen=True, gc=False, rename="camel"):
    """When an Indexed Job has succeeded; one rule is enough."""

    rules: tuple[SuccessRule, ...] = ()


class JobSpec(Struct, frozen=True, gc=False, rename="camel"):
    """The spec of a Job, without its template."""

    parallelism: int | None = None
    completions: int | None = None
    """With a parallelism alone any success counts as that of the whole Job."""
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    completion_mode: CompletionMode | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    pod_replacement_policy: PodReplacementPolicy | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool | None = None
    managed_by: str | None = None

    def with_defaults(self) -> JobSpec:
        """Return the spec as the API server stores it."""
        completions = 1 if self.completions is None and self.parallelism is None else self.completions
        limit = _DEFAULT_BACKOFF_LIMIT if self.backoff_limit_per_index is None else MOST_FAILURES
        policy = PodReplacementPolicy.TERMINATING_OR_FAILED
        if self.pod_failure_policy is not None:
            policy = PodReplacementPolicy.FAILED
        return replace(
            self,
            completions=completions,
            parallelism=1 if self.parallelism is None else self.parallelism,
            backoff_limit=limit if self.backoff_limit is None else self.backoff_limit,
            completion_mode=self.completion_mode or CompletionMode.NON_INDEXED,
            pod_replacement_policy=self.pod_replacement_policy or policy,
            suspend=bool(self.suspend),
        )

    @property
    def is_indexed(self) -> bool:
        """Whether its completions have numbers."""
        return self.completion_mode is CompletionMode.INDEXED

    @property
    def pods(self) -> int:
        """How many pods it has at first: none while it is suspended."""
        if self.suspend:
            return 0
        parallelism = 1 if self.parallelism is None else self.parallelism
        if self.completions is None:
            return parallelism
        return min(parallelism, self.completions)


class ConcurrencyPolicy(StrEnum):
    """What a CronJob does while an earlier Job of it is still active."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"


class CronJobSpec(Struct, frozen=True, gc=False, rename="camel"):
    """The spec of a CronJob, with that of its Jobs."""

    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW
    suspend: bool | None = None
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1
