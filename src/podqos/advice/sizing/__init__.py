"""Pure. What a workload or a kubelet should ask for."""
