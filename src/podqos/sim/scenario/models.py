"""What of a scenario follows a model of podqos and not a rule of Kubernetes or Linux, for its ``assumed:`` lines."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.model.assumption import Assumption, of_version
from podqos.model.time_units import SECOND_US
from podqos.sim.scenario.scenario import Scenario


def assumptions_of(scenario: Scenario) -> tuple[Assumption, ...]:
    """Return what was assumed in a run of a scenario."""
    return (*of_version(scenario.profile), *_of_actors(scenario))


def _of_actors(scenario: Scenario) -> Iterator[Assumption]:
    options = scenario.options
    if scenario.autoscalers:
        every, delay = (f"{us / SECOND_US:g} s" for us in (options.metrics_resolution_us, options.metrics_delay_us))
        value = f"measured every {every}, visible after {delay}"
        yield Assumption("metrics of autoscalers", value, "spec.timing.metricsResolution and metricsDelay")
    autoscaler = scenario.cluster_autoscaler
    if autoscaler is not None:
        times = ", ".join(f"{group.name} after {group.provision_us / SECOND_US:g} s" for group in autoscaler.groups)
        yield Assumption("new nodes", f"join: {times}", "spec.clusterAutoscaler.nodeGroups[].provision")
        if len(autoscaler.groups) > 1:
            yield Assumption("equally good node groups", "the first listed", "the expander priority")
