"""When pods are deleted that no kubelet confirms to be gone.

The collector looks every 20 s. Pods of a node that does not exist are deleted after a quarantine of 40 s; pods that are
terminating on a node that is not ready and is marked out of service, when it next looks. A model: it looks at multiples
of 20 s of the scenario.

Source: Kubernetes v1.36.4 pkg/controller/podgc/gc_controller.go (gcOrphaned, gcTerminating),
cmd/kube-controller-manager/app/core.go (20 s), pkg/controller/podgc (quarantineTime 40 s).
"""

from __future__ import annotations

from podqos.model.time_units import SECOND_US

_PERIOD_US = 20 * SECOND_US
_QUARANTINE_US = 40 * SECOND_US


def next_look_us(now_us: int) -> int:
    """Return when the collector looks next, perhaps now."""
    return -(-now_us // _PERIOD_US) * _PERIOD_US


def orphans_deleted_us(node_deleted_us: int) -> int:
    """Return when the pods of a node are deleted whose object is deleted at a time."""
    return next_look_us(node_deleted_us) + _QUARANTINE_US


def out_of_service_us(marked_us: int, noticed_us: int) -> int:
    """Return when terminating pods are deleted on a node that is marked out of service and noticed to be lost."""
    return next_look_us(max(marked_us, noticed_us))
