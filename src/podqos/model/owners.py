"""Which workload a pod belongs to, as far as the pod itself shows.

A pod names its controller alone: the ReplicaSet of a Deployment, the Job of a CronJob. What made that shows in names.
Sources: Kubernetes v1.36 pkg/controller/deployment/sync.go (a ReplicaSet ends with the pod template's hash),
pkg/controller/cronjob/utils.go: getJobName (a Job ends with the minute it is due).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from podqos.model.pod import ObjectMeta

_TEMPLATE_HASH = "pod-template-hash"
_JOB_OF_CRON_JOB = re.compile(r"(.+)-[0-9]{8}")


def controllers(metadata: ObjectMeta) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of an object's controller, and then of the controller's owner."""
    owner = next((reference for reference in metadata.owner_references if reference.controller), None)
    if owner is None:
        return
    yield owner.kind, owner.name
    template = metadata.labels.get(_TEMPLATE_HASH)
    if owner.kind == "ReplicaSet" and template and owner.name.endswith(f"-{template}"):
        yield "Deployment", owner.name.removesuffix(f"-{template}")
    due = _JOB_OF_CRON_JOB.fullmatch(owner.name) if owner.kind == "Job" else None
    if due is not None:
        yield "CronJob", due[1]
