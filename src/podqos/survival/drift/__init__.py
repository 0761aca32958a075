"""Pure. What a change of manifests does to classes, scores and both kill orders."""
