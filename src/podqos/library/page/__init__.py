"""Edge. What the page of ``podqos ui`` shows: where it comes from, and the value of each view."""
