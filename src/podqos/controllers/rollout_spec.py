"""How a manifest says that its pods are created, updated and scaled.

Source: Kubernetes v1.36.4 pkg/apis/apps/v1/defaults.go (defaults) and pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podqos.controllers.daemon_sets import DaemonSetSpec
from podqos.controllers.deployments import DeploymentSpec
from podqos.controllers.int_or_percent import IntOrPercent, is_int_or_percent
from podqos.controllers.stateful_sets import StatefulSetSpec
from podqos.manifest.plain import FieldPath, Plain

RolloutSpec = StatefulSetSpec | DeploymentSpec | DaemonSetSpec

Finding = Callable[[FieldPath, str, str], None]
"""Called with the path of a field, what is wrong with it, and a fix."""

TELLING = (
    b"trategy",
    b"minReadySeconds",
    b"progressDeadlineSeconds",
    b"podManagementPolicy",
    b"ordinals",
    b"paused",
)
"""Parts of texts without which all defaults hold."""
MAX_UNAVAILABLE_GATE = "MaxUnavailableStatefulSet"
GATES = (MAX_UNAVAILABLE_GATE,)
"""The feature gates that matter here, all of which are off by default."""


def _unreported(path: FieldPath, what: str, fix: str) -> None:
    del path, what, fix


class RolloutReader:
    """Reads the spec of a Deployment, StatefulSet or DaemonSet."""

    def __init__(
        self,
        spec: Mapping[str, Plain],
        error: Finding = _unreported,
        warn: Finding = _unreported,
        gates: Mapping[str, bool] | None = None,
    ) -> None:
        self._spec = spec
        self._gates = gates or {}
        self._error = error
        self._warn = warn

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
        if self._spec.get("paused") is True:
            self._warn(("spec", "paused"), "paused is ignored: rollouts happen as the events say", "remove it")
        deadline, ready = self._number("progressDeadlineSeconds", 600), self._number("minReadySeconds", 0)
        if deadline <= ready:
            what = "must be greater than minReadySeconds"
            self._error(("spec", "progressDeadlineSeconds"), what, f"such as {ready + 600}")
        return DeploymentSpec(
            recreate=kind == "Recreate",
            max_surge=surge,
            max_unavailable=unavailable,
            min_ready_seconds=ready,
            progress_deadline_seconds=deadline,
            states_deadline="progressDeadlineSeconds" in self._spec,
        )

    def _stateful_set(self) -> StatefulSetSpec:
        strategy = self._mapping("updateStrategy")
        rolling = _mapping(strategy, "rollingUpdate")
        path = ("spec", "updateStrategy", "rollingUpdate")
        policy = self._one_of(self._spec, "podManagementPolicy", ("spec",), ("OrderedReady", "Parallel"))
        kind = self._one_of(strategy, "type", path[:-1], ("RollingUpdate", "OnDelete"))
        unavailable: IntOrPercent | None = None
        if self._gates.get(MAX_UNAVAILABLE_GATE):
            unavailable = self._int_or_percent(rolling, "maxUnavailable", path, 1)
            if unavailable in {0, "0%"}:
                self._error((*path, "maxUnavailable"), "cannot be 0", "such as 1")
        elif "maxUnavailable" in rolling:
            what = f"is ignored: the feature gate {MAX_UNAVAILABLE_GATE} is off by default"
            self._warn((*path, "maxUnavailable"), what, f"set spec.featureGates.{MAX_UNAVAILABLE_GATE} in the scenario")
        partition = rolling.get("partition", 0)
        if not isinstance(partition, int) or partition < 0:
            self._error((*path, "partition"), "must be a number that is not negative", "such as 0")
            partition = 0
        return StatefulSetSpec(
            start=self._start(),
            parallel=policy == "Parallel",
            min_ready_seconds=self._number("minReadySeconds", 0),
            on_delete=kind == "OnDelete",
            # The API server adds a partition only where it adds the type, or finds rollingUpdate.
            partition=None if "type" in strategy and "rollingUpdate" not in strategy else partition,
            max_unavailable=unavailable,
        )

    def _daemon_set(self) -> DaemonSetSpec:
        strategy = self._mapping("updateStrategy")
        rolling = _mapping(strategy, "rollingUpdate")
        path = ("spec", "updateStrategy", "rollingUpdate")
        surge = self._int_or_percent(rolling, "maxSurge", path, 0)
        unavailable = self._int_or_percent(rolling, "maxUnavailable", path, 1)
        if surge not in {0, "0%"} and unavailable not in {0, "0%"}:
            self._error((*path, "maxSurge"), "may not be set when maxUnavailable is set", "write maxUnavailable: 0")
        if surge in {0, "0%"} and unavailable in {0, "0%"}:
            self._error((*path, "maxUnavailable"), "may not be 0 when maxSurge is 0", "raise one of the two")
        kind = self._one_of(strategy, "type", path[:-1], ("RollingUpdate", "OnDelete"))
        return DaemonSetSpec(
            on_delete=kind == "OnDelete",
            max_surge=surge,
            max_unavailable=unavailable,
            min_ready_seconds=self._number("minReadySeconds", 0),
        )

    def _start(self) -> int:
        start = self._mapping("ordinals").get("start", 0)
        if isinstance(start, int) and start >= 0:
            return start
        self._error(("spec", "ordinals", "start"), "must be a number that is not negative", "such as 0")
        return 0

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
        if isinstance(value, (int, str)) and is_int_or_percent(value):
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
