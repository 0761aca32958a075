"""Simulated. The autoscalers of a simulated cluster: they change workloads and nodes by what they measure."""
