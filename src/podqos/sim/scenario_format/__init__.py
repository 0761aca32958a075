"""Simulated. Scenario files: their shape, and from text to values."""
