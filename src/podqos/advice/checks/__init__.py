"""Pure. What a check finds, and why."""
