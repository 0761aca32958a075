"""The files that ``podqos scenario new`` writes: a commented scenario that runs, and its manifests."""

from __future__ import annotations

_SCENARIO = """\
# A simulation: what runs where, and what it uses over time. Check it with
#   podqos scenario validate NAME.yaml
# and run it with
#   podqos simulate NAME.yaml
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata:
  name: NAME
spec:
  description: A web service and a batch job on one node; the batch job leaks.
  duration: 10m
  # Decides random demands; the same seed gives the same run.
  seed: 1

  # Ordinary manifests: files or directories, relative to this file. They go through admission (defaults, LimitRanges,
  # PriorityClasses, quotas) as in a cluster.
  manifests:
    - NAME/

  nodes:
    - name: worker
      count: 1 # of several, the first is called worker-0
      capacity: { cpu: 4, memory: 8Gi }
      filesystems:
        nodefs: { capacity: 64Gi }
      # What runs besides pods: kubelet, container runtime, daemons, the kernel itself.
      system:
        memory: 1Gi
        cpu: 200m
        nodefs: 16Gi
      # A KubeletConfiguration, here or in a file (kubelet: path/to/config.yaml).
      kubelet:
        kubeReserved: { memory: 512Mi, cpu: 100m }
        systemReserved: { memory: 512Mi, cpu: 100m }
        evictionHard: { memory.available: 256Mi, nodefs.available: 10% }

  # What the pods do. Whatever the manifests have and is not mentioned here runs, and uses nothing.
  workloads:
    - workload: web
      demand:
        memory: 512Mi
        # As a mapping where one line does not do: wave, steps, points, random, samples.
        cpu:
          wave: { low: 100m, high: 1500m, period: 5m }
    - workload: batch
      demand:
        # Amounts as in manifests. Also: "8Gi over 2s", "1Gi + 2Gi at 30s", "64Mi per minute up to 2Gi".
        memory: 256Mi + 1Gi per minute
        processes: 2
        cpu: 500m
        logs: 1Mi per second

  # Machines can be lost:
  # events:
  #   - at: 5m
  #     nodeLost: worker
"""

_MANIFESTS = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector:
    matchLabels: { app: web }
  template:
    metadata:
      labels: { app: web }
    spec:
      containers:
        - name: web
          image: registry.example.com/web:1.0
          resources:
            requests: { cpu: "1", memory: 1Gi }
            limits: { cpu: "1", memory: 1Gi }
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: batch
spec:
  replicas: 1
  selector:
    matchLabels: { app: batch }
  template:
    metadata:
      labels: { app: batch }
    spec:
      containers:
        - name: batch
          image: registry.example.com/batch:1.0
          resources:
            requests: { cpu: 500m, memory: 512Mi }
"""


def starter_files(name: str) -> dict[str, str]:
    """Return what to write, by path."""
    return {f"{name}.yaml": _SCENARIO.replace("NAME", name), f"{name}/manifests.yaml": _MANIFESTS}
