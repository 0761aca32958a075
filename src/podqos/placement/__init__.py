"""Pure. Where a pod may run: allocatable, fit, taints, affinity, spreading, scoring, preemption, overcommit."""
