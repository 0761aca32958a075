"""Simulated. Everything above a node: arrivals, controllers, the scheduler, the fleet."""
