"""Where upstream the rules can be read that several modules of checks refer to."""

from __future__ import annotations

QOS = "Kubernetes: pkg/apis/core/v1/helper/qos/qos.go"
OOM = "Kubernetes: pkg/kubelet/qos/policy.go"
RANKING = "Kubernetes: pkg/kubelet/eviction/helpers.go"
VALIDATION = "Kubernetes: pkg/apis/core/validation/validation.go"
DAEMON_TOLERATIONS = "Kubernetes: pkg/controller/daemon/util/daemonset_util.go (AddOrUpdateDaemonPodTolerations)"
DAEMON_BACKOFF = "Kubernetes: pkg/controller/daemon/daemon_controller.go (failedPodsBackoff)"
