"""Real. What the node keeps on disk."""
