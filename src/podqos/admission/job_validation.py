"""What the API server rejects about Jobs and CronJobs, field by field, in its order.

Source: Kubernetes v1.36 pkg/apis/batch/validation/validation.go (ValidateJob, validateJobSpec, ValidateCronJobCreate),
pkg/registry/batch/job/strategy.go (generateSelector); defaults from pkg/apis/batch/v1/defaults.go.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from podqos.admission.as_written import Errors, Fields, fields_of, number_of, text_of
from podqos.admission.constraints import selector_errors
from podqos.admission.controller_validation import object_errors
from podqos.admission.field_errors import invalid, not_supported, required, too_long
from podqos.admission.holders import Holder, negative_errors, owner_errors, selector_in, template_errors
from podqos.admission.job_policies import failure_policy_errors, success_policy_errors
from podqos.admission.names import given_name, label_complaints, subdomain_complaints
from podqos.admission.pod_validation import metadata_errors
from podqos.admission.selectors import in_order, mismatch, printed
from podqos.model.cron_schedule import schedule_complaints
from podqos.model.selector import LabelSelector
from podqos.model.time_zone_names import zone_complaint

_NUMBERS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_MODES = (_NON_INDEXED, _INDEXED) = ("NonIndexed", "Indexed")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_CONCURRENCIES = ("Allow", "Forbid", "Replace")
_MANY, _FEWER = 100_000, 10_000
_LONGEST_MANAGER = 63
_LONGEST_CRON_JOB_NAME = 52
_PATH = r"[A-Za-z0-9/\-._~%!$&'()" + "*+,;=:]+"
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")

UID = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
"""Stands for the uid that the API server gives a Job, in selectors and labels that it makes of it."""
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")


def job_errors(holder: Holder) -> Errors:
    """Check a Job."""
    spec, metadata, name = holder.spec, holder.metadata, given_name(holder.metadata)
    labels, selector = holder.labels, selector_in(spec)
    is_manual = spec.get("manualSelector") is True
    own = metadata.labels or labels or {}
    if not is_manual:
        given, labels = labels, dict.fromkeys(_NAME_LABELS, name) | dict.fromkeys(_UID_LABELS, UID) | (labels or {})
        selector = _with_uid(selector)
        if metadata.name and not metadata.labels and given is not None:
            # A Job without labels has those of its template: upstream the same map, unless a name was generated.
            own = labels
    yield from metadata_errors(replace(metadata, labels=own))
    yield from owner_errors(fields_of(holder.value.get("metadata")))
    if not is_manual:
        yield from _generated_errors(name, labels or {}, selector)
    pod = replace(holder.pod, metadata=replace(holder.pod.metadata, labels=labels or {}))
    yield from job_spec_errors(replace(holder, pod=pod), spec, "spec")
    if selector is None:
        yield required("spec.selector")
    errors = tuple(selector_errors(selector, "spec.selector"))
    yield from errors
    if not errors and (selector is None or not selector.matches(labels or {})):
        yield mismatch(labels)
    yield from _host_name_errors(spec, name)


def _with_uid(selector: LabelSelector | None) -> LabelSelector:
    """Return the selector of a Job with the label that the API server adds to it."""
    given = selector or LabelSelector()
    return replace(given, match_labels={_UID_LABELS[1]: UID} | given.match_labels)


def _generated_errors(name: str, labels: dict[str, str], selector: LabelSelector | None) -> Errors:
    """Check that nobody but the API server sets what it selects the pods of a Job by."""
    expected = dict.fromkeys(_UID_LABELS, UID) | dict.fromkeys(_NAME_LABELS, name)
    for key in (_UID_LABELS[0], _NAME_LABELS[0], _UID_LABELS[1], _NAME_LABELS[1]):
        if labels[key] != expected[key]:
            path = f"spec.template.metadata.labels[{key}]"
            yield invalid(path, in_order(labels), f"must be '{expected[key]}'")
    is_readable = next(selector_errors(selector, ""), None) is None
    if selector is not None and is_readable and not selector.matches(expected):
        yield invalid("spec.selector", printed(selector), "`selector` not auto-generated")


def _host_name_errors(spec: Fields, name: str) -> Errors:
    completions = _completions(spec)
    if text_of(spec, "completionMode") != _INDEXED or not completions or completions < 0:
        return
    longest = f"{name}-{completions - 1}"
    if label_complaints(longest):
        yield invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {longest}")


def _completions(spec: Fields) -> int | None:
    """Return how often a Job must succeed; once by default, unless its parallelism is stated."""
    given = spec.get("completions")
    if isinstance(given, int):
        return given
    return None if spec.get("parallelism") is not None else 1


def job_spec_errors(holder: Holder, spec: Fields, path: str) -> Errors:
    """Check the specification of a Job, or of the Jobs of a CronJob, which is not defaulted."""
    per_index, most_failed = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    yield from negative_errors(spec, _NUMBERS, path)
    if most_failed is not None and per_index is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("managedBy") is not None:
        yield from _manager_errors(text_of(spec, "managedBy"), f"{path}.managedBy")
    mode, is_cron = spec.get("completionMode"), holder.kind != "Job"
    if isinstance(mode, str) and mode not in _MODES:
        yield not_supported(f"{path}.completionMode", mode, _MODES)
    if mode == _INDEXED:
        completions = number_of(spec, "completions") if spec.get("completions") is not None else None
        yield from _indexed_errors(spec, completions if is_cron else _completions(spec), path)
    elif mode in {None, _NON_INDEXED}:
        for field, number in (("backoffLimitPerIndex", per_index), ("maxFailedIndexes", most_failed)):
            if number is not None:
                yield invalid(f"{path}.{field}", number, "requires indexed completion mode")
    yield from failure_policy_errors(spec, holder.pod.spec, f"{path}.podFailurePolicy")
    yield from success_policy_errors(
        spec, None if is_cron and spec.get("completions") is None else _completions(spec), f"{path}.successPolicy"
    )
    yield from _replacement_errors(spec, f"{path}.podReplacementPolicy")
    yield from template_errors(holder)
    yield from _restart_errors(holder, spec)


def _indexed_errors(spec: Fields, completions: int | None, path: str) -> Errors:
    """Check a Job whose completions have numbers."""
    parallelism, most_failed = number_of(spec, "parallelism"), number_of(spec, "maxFailedIndexes")
    if completions is None:
        yield required(f"{path}.completions", f"when completion mode is {_INDEXED}")
    if parallelism > _MANY:
        words = f"must be less than or equal to {_MANY} when completion mode is {_INDEXED}"
        yield invalid(f"{path}.parallelism", parallelism, words)
    has_most = spec.get("maxFailedIndexes") is not None
    if has_most and completions is not None and most_failed > completions:
        yield invalid(f"{path}.maxFailedIndexes", most_failed, "must be less than or equal to completions")
    if most_failed > _MANY:
        yield invalid(f"{path}.maxFailedIndexes", most_failed, f"must be less than or equal to {_MANY}")
    if completions is None or completions <= _MANY or spec.get("backoffLimitPerIndex") is None:
        return
    words = f"when completions are above {_MANY} and used with backoff limit per index"
    if not has_most:
        yield required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {_MANY}")
    for field, number in (("parallelism", parallelism), ("maxFailedIndexes", most_failed)):
        if number > _FEWER:
            yield invalid(f"{path}.{field}", number, f"must be less than or equal to {_FEWER} {words}")


def _manager_errors(manager: str, path: str) -> Errors:
    domain, slash, rest = manager.partition("/")
    if not manager:
        yield required(path)
    elif not (domain and slash and rest):
        yield invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        for complaint in subdomain_complaints(domain):
            yield invalid(path, domain, complaint)
        if not re.fullmatch(_PATH, rest):
            yield invalid(path, rest, f"Invalid path (regex used for validation is '{_PATH}')")
    if len(manager.encode()) > _LONGEST_MANAGER:
        yield too_long(path, _LONGEST_MANAGER)


def _replacement_errors(spec: Fields, path: str) -> Errors:
    given = spec.get("podReplacementPolicy")
    supported = _REPLACEMENTS if spec.get("podFailurePolicy") is None else _REPLACEMENTS[:1]
    if isinstance(given, str) and given not in supported:
        yield not_supported(path, given, supported)


def _restart_errors(holder: Holder, spec: Fields) -> Errors:
    """Check that the pods of a Job can end."""
    policy, path = holder.pod.spec.restart_policy, f"{holder.path}.spec.restartPolicy"
    if policy in {"", "Always"}:
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in {"OnFailure", "Never"}:
        yield not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


# ---- CronJobs --------------------------------------------------------------------------------------------------------


def cron_job_errors(holder: Holder) -> Errors:
    """Check a CronJob."""
    spec, name = holder.spec, given_name(holder.metadata)
    yield from object_errors(holder)
    schedule = text_of(spec, "schedule")
    if not schedule:
        yield required("spec.schedule")
    for complaint in schedule_complaints(schedule) if schedule else ():
        yield invalid("spec.schedule", schedule, complaint)
    yield from negative_errors(spec, ("startingDeadlineSeconds",), "spec")
    if spec.get("timeZone") is not None:
        yield from _zone_errors(text_of(spec, "timeZone"), "spec.timeZone")
    concurrency = text_of(spec, "concurrencyPolicy")
    if concurrency and concurrency not in _CONCURRENCIES:
        yield not_supported("spec.concurrencyPolicy", concurrency, _CONCURRENCIES)
    job, path = fields_of(fields_of(spec.get("jobTemplate")).get("spec")), "spec.jobTemplate.spec"
    yield from job_spec_errors(holder, job, path)
    if job.get("selector") is not None:
        words = "`selector` will be auto-generated"
        yield invalid(f"{path}.selector", printed(selector_in(job)), words)
    if job.get("manualSelector") is True:
        yield not_supported(f"{path}.manualSelector", True, ("nil", "false"))
    yield from negative_errors(spec, ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"), "spec")
    if len(name.encode()) > _LONGEST_CRON_JOB_NAME:
        yield invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_JOB_NAME} characters")


def _zone_errors(zone: str, path: str) -> Errors:
    if not zone:
        yield invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in {".", ".."} or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            yield invalid(path, zone, f"unknown time zone {zone}")
            return
    if zone.lower() == "local":
        words = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(path, zone, words)
    complaint = zone_complaint(zone)
    if complaint:
        yield invalid(path, zone, complaint)
