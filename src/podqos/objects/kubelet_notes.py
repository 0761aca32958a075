"""Warns about kubelet settings that have no effect, and says which are ignored."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.manifest.kubelet import KubeletSettings
from podqos.manifest.plain import format_path
from podqos.manifest.problems import Problem, Severity
from podqos.model.kubelet_ignored import Ignored, Reader
from podqos.model.profile import version_text


def ignored_problems(
    settings: KubeletSettings,
    source: str,
    place: tuple[int, int] = (0, 0),
    reader: Reader = "plan",
    version: tuple[int, int] | None = None,
) -> Iterator[Problem]:
    """Yield the one warning about settings that have no effect in a version, if there are any."""
    words = ignored_words(settings.ignored_by(reader, version))
    if words:
        yield Problem(source, *place, Severity.WARNING, format_path(settings.notation.path), words)


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
