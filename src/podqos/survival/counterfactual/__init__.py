"""Pure. What would have saved a pod: the decision that killed it, repeated with one change."""
