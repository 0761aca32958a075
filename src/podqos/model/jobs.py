"""Jobs and CronJobs: the fields of their specs that say which pods there are, and when.

Absent fields are None, as in a manifest. ``JobSpec.with_defaults`` gives those that the API server fills in.

Source: Kubernetes v1.36 staging/src/k8s.io/api/batch/v1/types.go, pkg/apis/batch/v1/defaults.go (SetDefaults_Job,
SetDefaults_CronJob).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

_DEFAULT_BACKOFF_LIMIT = 6


class CompletionMode(StrEnum):
    """Whether the completions of a Job have numbers."""

    NON_INDEXED = "NonIndexed"
    INDEXED = "Indexed"


class JobSpec(Struct, frozen=True, gc=False, rename="camel"):
    """The spec of a Job, without its template."""

    parallelism: int | None = None
    completions: int | None = None
    """With a parallelism alone any success counts as that of the whole Job."""
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    completion_mode: CompletionMode | None = None
    suspend: bool | None = None
    managed_by: str | None = None

    def with_defaults(self) -> JobSpec:
        """Return the spec as the API server stores it."""
        completions = 1 if self.completions is None and self.parallelism is None else self.completions
        return replace(
            self,
            completions=completions,
            parallelism=1 if self.parallelism is None else self.parallelism,
            backoff_limit=_DEFAULT_BACKOFF_LIMIT if self.backoff_limit is None else self.backoff_limit,
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
    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.ALLOW
    suspend: bool | None = None
