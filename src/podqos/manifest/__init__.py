"""Pure. Text to model: YAML and JSON at two speeds, with positions, strictly."""
