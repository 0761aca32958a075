"""Simulated. What is to be run, as values."""
