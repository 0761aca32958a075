"""Pure. What kubectl prints for people, as it is pasted, read back into pods, nodes and events."""
