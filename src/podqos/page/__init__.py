"""Pure. What the page shows."""
