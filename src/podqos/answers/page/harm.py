"""What the growth of a container does, and the container whose growth does most of it."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct


class Harm(Struct, frozen=True, order=True):
    """What the growth of a container does; greater is worse."""

    is_open_ended: bool
    """No limit of its own ends it, so that others can be hit."""
    has_race: bool
    """Whether kubelet or kernel acts first depends on the rate."""
    of_others: Fraction
    """How likely it is that another pod is hit first."""
    by_kernel: Fraction
    """How likely the kernel acts before the kubelet."""
    hurry: Fraction
    """How soon: the negative number of seconds."""


class Riskiest(Struct, frozen=True):
    """The container whose growth is worst."""

    node: str
    growing: str
    """``namespace/name:container``."""
    harm: Harm

    @property
    def text(self) -> str:
        """Why it was chosen."""
        if not self.harm.is_open_ended:
            return "Every container here has a memory limit that stops its growth: none can use up the node alone."
        if self.harm.of_others:
            return "Selected because its growth does the most harm: another pod is evicted or killed first."
        return "Selected because its growth does the most harm: no memory limit stops it."
