"""The kubelet settings that podqos ignores, in one line."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.model.kubelet_ignored import Ignored
from podqos.model.profile import version_text

_GATES_SHOWN = 4


def ignored_words(ignored: Ignored) -> str:
    """Return what is ignored and why; empty if nothing is."""
    return "; ".join(_parts(ignored))


def _parts(ignored: Ignored) -> Iterator[str]:
    gates = [f"featureGates.{gate.name}" for gate in ignored.gates if not gate.meant]
    more = [f"{len(gates) - _GATES_SHOWN} more feature gates"] if len(gates) > _GATES_SHOWN + 1 else []
    shown = gates[:_GATES_SHOWN] if more else gates
    if ignored.fields or gates:
        yield f"ignored (not modelled): {', '.join((*ignored.fields, *shown, *more))}"
    if ignored.flags:
        yield f"ignored (no effect on pods): {', '.join(ignored.flags)}"
    for gate in ignored.gates:
        if gate.meant:
            yield f"featureGates.{gate.name} is unknown: did you mean {gate.meant}?"
    for gated in ignored.without_gate:
        when = f" (up to {version_text(gated.until)})" if gated.until else ""
        when = f" (since {version_text(gated.since)})" if gated.since else when
        yield f"{gated.field} has no effect without featureGates.{gated.gate}: true{when}"
