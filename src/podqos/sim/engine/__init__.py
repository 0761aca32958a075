"""Simulated. Time and amounts: the queue of events, curves, gauges, and what containers are allotted."""
