"""Real. The node: the agent over this machine."""
