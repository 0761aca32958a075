"""Which part of a live cluster an answer needs."""

from __future__ import annotations

from msgspec import Struct


class Part(Struct, frozen=True):
    """Which part of a cluster to read; by default, all of it."""

    namespace: str = ""
    """Only pods and workloads of this namespace."""
    selector: str = ""
    """Only pods with these labels."""
    node: str = ""
    """Only this node and its pods."""
    pods: bool = True
    """The pods themselves."""
    policies: bool = True
    """Also policies and other objects that affect pods before they run."""
    workloads: bool = True
    """Also the workloads that create pods."""
    usage: bool = True
    """Also usage measured by the kubelets, and their settings."""
    metrics: bool = False
    """Only usage from metrics.k8s.io: querying kubelets needs more permissions."""
    events: bool = False
    """Also the events of pods and nodes, which an API server keeps for an hour."""
    named_kinds: tuple[str, ...] = ()
    """Kinds of objects that were asked for by name, in lower case: without their lists there is no answer."""


EVERYTHING = Part()
"""Everything that decisions depend on."""
POLICIES = Part(pods=False, workloads=False, usage=False)
"""The nodes, and the objects that affect pods."""
