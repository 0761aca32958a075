"""What kubectl prints for people, read back into pods, nodes and events: descriptions and tables, as they are pasted."""
