"""Pure. What ``podqos policy`` prints."""
