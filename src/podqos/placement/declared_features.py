"""Features that a pod needs and nodes declare (KEP-5328): since 1.36 a pod runs only on nodes that declare them.

The only one that a pod can need while it is scheduled, with feature gates as by default, is that of starting all its
containers again; the others are about resizing (``admission.resize_node``).

Source: Kubernetes v1.37.0-rc.1 staging/src/k8s.io/component-helpers/nodedeclaredfeatures,
pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go.
"""

from __future__ import annotations

from podqos.admission.resize_node import INIT_CONTAINER_RESIZE_FEATURE, POD_LEVEL_RESIZE_FEATURE
from podqos.model.pod import RESTART_ALL_CONTAINERS, PodSpec
from podqos.model.profile import Profile

RESTART_ALL_FEATURE = "RestartAllContainersOnContainerExits"

# Those of the feature gates that are on by default, the same in 1.36 and 1.37.
_DECLARED = (
    "ExtendWebSocketsToKubelet",
    POD_LEVEL_RESIZE_FEATURE,
    INIT_CONTAINER_RESIZE_FEATURE,
    RESTART_ALL_FEATURE,
)


def required_features(spec: PodSpec, profile: Profile) -> frozenset[str]:
    """Return the features without which a node cannot run a pod."""
    if not profile.declared_features:
        return frozenset()
    needs_restart = any(
        rule.action == RESTART_ALL_CONTAINERS
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    )
    return frozenset({RESTART_ALL_FEATURE}) if needs_restart else frozenset()


def declared_by_default(profile: Profile) -> tuple[str, ...]:
    """Return the features that a node of this version declares, by name."""
    return _DECLARED if profile.declared_features else ()
