"""Simulated. The controllers of a simulated cluster: each keeps the pods of one workload."""
