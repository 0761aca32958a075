"""Pure. A running node."""
