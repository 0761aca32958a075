"""Which part of a live cluster is read for an answer."""

from __future__ import annotations

from msgspec import Struct


class Part(Struct, frozen=True):
    """Which part of a cluster is read; by default all of it."""

    namespace: str = ""
    """Only pods and workloads of this namespace."""
    selector: str = ""
    """Only pods with these labels."""
    node: str = ""
    """Only this node and its pods."""
    pods: bool = True
    """The pods themselves."""
    policies: bool = True
    """Also what decides about pods before they run."""
    workloads: bool = True
    """Also what pods are made by."""
    usage: bool = True
    """Also what the kubelets measured, and their settings."""
    metrics: bool = False
    """Of usage only what metrics.k8s.io says about pods: no kubelet is asked, which takes more rights."""
    events: bool = False
    """Also what components told of pods and nodes, which an API server keeps for an hour."""


EVERYTHING = Part()
"""All that decisions rest on."""
POLICIES = Part(pods=False, workloads=False, usage=False)
"""The nodes, and what decides about pods."""
