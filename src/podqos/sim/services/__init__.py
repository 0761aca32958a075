"""Simulated. Services: requests, the queues in which they wait, and the services that they call. A model."""
