"""Pure. Text to model: YAML and JSON in two speeds, positions, strictness."""
