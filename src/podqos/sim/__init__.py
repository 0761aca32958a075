"""Simulated. A node, or ten thousand, in virtual time: the agent over the model of Linux."""
