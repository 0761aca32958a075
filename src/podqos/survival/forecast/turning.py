"""How fast memory has to grow for the kernel to act before the kubelet.

The slower a growth, the more passes of the kubelet fall between its threshold and the end of the memory. So up to some
rate the kubelet is always first, from another on the kernel is, and in between it depends on when the kubelet looks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction

from msgspec import Struct

from podqos.survival.forecast.growing import GrowingNode

_SLOWEST, _FASTEST = 10, 40
"""Growths from 1Ki to 1Ti per second, each twice as fast as the one before, are tried; the rates are between them."""
_HALF = Fraction(1, 2)


class TurningRates(Struct, frozen=True, gc=False, rename="camel"):
    """Two growths, in bytes per second, between which it is a matter of chance who is first."""

    kubelet_up_to: int | None
    """Up to this growth the kubelet acts first at every phase of its loop; null where it never is certain to."""
    kernel_from: int | None
    """From this growth on the kernel acts first at every phase; null where the kubelet can be first at any growth."""
    kernel_likely_from: int | None = None
    """From this growth on the kernel is more likely to be first; null where it is at no growth."""
    is_always_kubelet: bool = False
    """Whether the kubelet is first however fast it grows: then ``kubeletUpTo`` is the fastest growth that was tried."""


def turning_rates(node: GrowingNode) -> TurningRates:
    """Return from which growth to which it is a matter of chance who acts first."""
    tried = [1 << exponent for exponent in range(_SLOWEST, _FASTEST + 1)]
    first = [node.kubelet_first(rate) for rate in tried]

    def slowest(is_so: Callable[[Fraction], bool], before: int | None) -> int | None:
        """Return the slowest growth from which on something is so; ``before`` is the place of the last that is not."""
        if before == len(tried) - 1:
            return None
        low, high = (0, tried[0]) if before is None else (tried[before], tried[before + 1])
        return low + 1 + bisect_left(range(low + 1, high), True, key=lambda rate: is_so(node.kubelet_first(rate)))

    unsure = next((at for at, share in enumerate(first) if share < 1), len(tried))
    doubted = slowest(lambda share: share < 1, unsure - 1 if unsure else None)
    return TurningRates(
        kubelet_up_to=tried[-1] if doubted is None else doubted - 1 or None,
        kernel_from=slowest(lambda share: share == 0, _last(first, lambda share: share > 0)),
        kernel_likely_from=slowest(lambda share: share < _HALF, _last(first, lambda share: share >= _HALF)),
        is_always_kubelet=doubted is None,
    )


def _last(shares: Sequence[Fraction], is_so: Callable[[Fraction], bool]) -> int | None:
    """Return the place of the last share of which something is so; None where it is of none."""
    return next((at for at in reversed(range(len(shares))) if is_so(shares[at])), None)
