"""Pure. Values to text: tables, CSV, JSON, YAML."""
