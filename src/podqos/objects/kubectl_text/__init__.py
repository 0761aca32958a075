"""What kubectl prints for people, as it is pasted: descriptions and tables, read back into pods, nodes and events."""
