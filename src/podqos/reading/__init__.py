"""Real. Files, snapshots, logs and live clusters become values here, and values become files."""
