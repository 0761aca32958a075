"""Simulated. Scenario files: their format, and reading them into values."""
