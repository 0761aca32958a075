"""What a node is assumed to be: the part that the requests of all questions about a node share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from msgspec import Struct

from podqos.model.profile import LATEST, Profile
from podqos.objects.kubelet_node import Kubelet
from podqos.survival.node.usage_file import UsageRow


class NodeOptions(Struct, frozen=True, kw_only=True):
    """A node without its pods. What is not stated is taken from the objects, or is an assumption of the answer."""

    node_memory_bytes: int | None = None
    """Else that of the Node of its name, of the smallest Node, or 64Gi."""
    kubelet: Kubelet | None = None
    """Else the node's own where that is known, or one with the defaults."""
    profile: Profile = LATEST
    """The rules of a Kubernetes version."""


class NodePodsOptions(NodeOptions, frozen=True, kw_only=True):
    """A node with its pods and what they use."""

    node: str | None = None
    """Its name, where the pods of several nodes are among the objects."""
    system_memory_bytes: int | None = None
    """Used outside all pods."""
    usage: Sequence[UsageRow] | None = None
    """None: pods use what they request."""
    refuse_impossible: bool = False
    """Whether usage above a limit is an error; otherwise it counts as the limit."""


class NodeKeywords(TypedDict, total=False):
    """``NodeOptions`` as keyword arguments."""

    node_memory_bytes: int | None
    kubelet: Kubelet | None
    profile: Profile


class NodePodsKeywords(NodeKeywords, total=False):
    """``NodePodsOptions`` as keyword arguments; usage, which may be a file, is an argument of its own."""

    node: str | None
    system_memory_bytes: int | None
    refuse_impossible: bool
