"""Pure. What will hurt, why, and the patch that repairs it; what a workload and a node should ask for."""
