"""Simulated. The autoscalers of a simulated cluster: they change workloads by what they measure."""
