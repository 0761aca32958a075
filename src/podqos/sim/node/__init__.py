"""Simulated. One node: the agent's world over the model of Linux."""
