"""Pure. What is said about a whole cluster."""
