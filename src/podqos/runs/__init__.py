"""Pure. A run: its view, timeline and picture, variations of it, and the comparison of two."""
