"""How a manifest says that its pods are created, updated and scaled.

Source: Kubernetes v1.36.4 pkg/apis/apps/v1/defaults.go (defaults) and pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podqos.controllers.sets import DaemonSetSpec, DeploymentSpec, IntOrPercent, StatefulSetSpec
from podqos.manifest.plain import FieldPath, Plain

RolloutSpec = StatefulSetSpec | DeploymentSpec | DaemonSetSpec

Finding = Callable[[FieldPath, str, str], None]
"""Called with the path of a field, what is wrong with it, and a fix."""

TELLING = (b"trategy", b"minReadySeconds", b"podManagementPolicy")
"""Parts of texts without which all defaults hold."""


def _unreported(path: FieldPath, what: str, fix: str) -> None:
    del path, what, fix


class RolloutReader:
    """Reads the spec of a Deployment, StatefulSet or DaemonSet."""

    def __init__(self, spec: Mapping[str, Plain], error: Finding = _unreported) -> None:
        self._spec = spec
        self._error = error

    def of_kind(self, kind: str) -> RolloutSpec | None:
        """Return what is stated, with defaults; None for other kinds."""
        match kind:
            case "Deployment":
                return self._deployment()
            case "StatefulSet":
                return self._stateful_set()
            case "DaemonSet":
                return self._daemon_set()
        return None

    def _deployment(self) -> DeploymentSpec:
        strategy = self._mapping("strategy")
        rolling = _mapping(strategy, "rollingUpdate")
        path = ("spec", "strategy", "rollingUpdate")
        surge = self._int_or_percent(rolling, "maxSurge", path, "25%")
        unavailable = self._int_or_percent(rolling, "maxUnavailable", path, "25%")
        if surge in {0, "0%"} and unavailable in {0, "0%"}:
            self._error((*path, "maxUnavailable"), "may not be 0 when maxSurge is 0", "raise one of the two")
        kind = self._one_of(strategy, "type", ("spec", "strategy"), ("RollingUpdate", "Recreate"))
        return DeploymentSpec(
            recreate=kind == "Recreate",
            max_surge=surge,
            max_unavailable=unavailable,
            min_ready_seconds=self._number("minReadySeconds", 0),
        )

    def _stateful_set(self) -> StatefulSetSpec:
        kind = self._one_of(
            self._mapping("updateStrategy"), "type", ("spec", "updateStrategy"), ("RollingUpdate", "OnDelete")
        )
        policy = self._one_of(self._spec, "podManagementPolicy", ("spec",), ("OrderedReady", "Parallel"))
        return StatefulSetSpec(
            parallel=policy == "Parallel",
            min_ready_seconds=self._number("minReadySeconds", 0),
            on_delete=kind == "OnDelete",
        )

    def _daemon_set(self) -> DaemonSetSpec:
        strategy = self._mapping("updateStrategy")
        path = ("spec", "updateStrategy", "rollingUpdate")
        rolling = _mapping(strategy, "rollingUpdate")
        unavailable = self._int_or_percent(rolling, "maxUnavailable", path, 1)
        if unavailable in {0, "0%"} and rolling.get("maxSurge", 0) in {0, "0%"}:
            self._error((*path, "maxUnavailable"), "may not be 0 when maxSurge is 0", "raise one of the two")
        kind = self._one_of(strategy, "type", path[:-1], ("RollingUpdate", "OnDelete"))
        return DaemonSetSpec(
            on_delete=kind == "OnDelete",
            max_unavailable=unavailable,
            min_ready_seconds=self._number("minReadySeconds", 0),
        )

    def _mapping(self, name: str) -> Mapping[str, Plain]:
        return _mapping(self._spec, name)

    def _number(self, name: str, default: int) -> int:
        value = self._spec.get(name, default)
        if value is None:
            return default
        if isinstance(value, int) and value >= 0:
            return value
        self._error(("spec", name), "must be a number that is not negative", f"such as {default}")
        return default

    def _int_or_percent(
        self, holder: Mapping[str, Plain], name: str, path: FieldPath, default: IntOrPercent
    ) -> IntOrPercent:
        value = holder.get(name, default)
        is_percent = isinstance(value, str) and value.endswith("%") and value[:-1].isascii() and value[:-1].isdigit()
        if is_percent:
            return str(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if value is not None:
            self._error((*path, name), "must be a number or a percentage", f"such as {default}")
        return default

    def _one_of(self, holder: Mapping[str, Plain], name: str, path: FieldPath, known: tuple[str, str]) -> str:
        value = holder.get(name) or known[0]
        if value not in known:
            self._error((*path, name), f'Unsupported value: "{value}"', f"write {known[0]} or {known[1]}")
        return str(value)


def _mapping(holder: Mapping[str, Plain], name: str) -> Mapping[str, Plain]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}
