"""Axes with round numbers, and labels that do not lie on one another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor, log2, log10

from msgspec.structs import replace

from podqos.answers.run_picture import Axis, Label, Measures, Tick

Words = Callable[[int], str]
_MEASURES = Measures()
# Labels stand this far above their line.
_ABOVE = 5


def linear_axis(high: float, words: Words, *, wanted: int, is_binary: bool = False) -> Axis:
    """Return an axis from zero with about so many ticks; those of bytes are powers of two apart."""
    high = max(high, 1)
    rough = high / max(1, wanted)
    step = 2 ** ceil(log2(rough)) if is_binary else round_step(rough)
    return axis_with(high, (step * place for place in range(floor(high / step + 1e-9) + 1)), words)


def axis_with(high: float, values: Iterable[float], words: Words) -> Axis:
    """Return an axis from zero with these ticks."""
    return Axis(0, high, is_logarithmic=False, ticks=tuple(Tick(value, words(round(value))) for value in values))


def logarithmic_axis(low: float, high: float, words: Words) -> Axis:
    """Return an axis with powers of two, about five of them."""
    first, last = ceil(log2(low)), floor(log2(high))
    step = max(1, round_step((last - first) / 5)) if last > first else 1
    powers = range(ceil(first / step) * step, last + 1, step)
    return Axis(low, high, is_logarithmic=True, ticks=tuple(Tick(2**power, words(2**power)) for power in powers))


def round_step(rough: float) -> int:
    """Return a step of 1, 2 or 5, or a multiple of ten of them, that is not smaller."""
    if rough <= 1:
        return 1
    power: int = 10 ** floor(log10(rough))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough or digit == 10)


def height_of(axis: Axis, height: float, value: float) -> float:
    """Return where a value lies, from the top of a panel."""
    if not axis.is_logarithmic:
        return height * (1 - (value - axis.low) / (axis.high - axis.low))
    power = log2(min(axis.high, max(axis.low, value)))
    return height * (1 - (power - log2(axis.low)) / (log2(axis.high) - log2(axis.low)))


def apart(labels: Sequence[Label], height: float) -> tuple[Label, ...]:
    """Return a place for each label: above its line where there is room, and never two on one another."""
    placed: list[Label] = []
    least = _MEASURES.line - 3
    for label in sorted(labels, key=lambda label: label.y):
        placed.append(replace(label, y=max(label.y - _ABOVE, least)))
        least = placed[-1].y + _MEASURES.line
    most = height - 3
    for index in reversed(range(len(placed))):
        placed[index] = replace(placed[index], y=round(min(placed[index].y, most), 2))
        most = placed[index].y - _MEASURES.line
    return tuple(placed)
