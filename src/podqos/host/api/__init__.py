"""Real. The node's local HTTP API."""
