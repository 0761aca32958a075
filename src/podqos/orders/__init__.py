"""Pure. A node at a moment, both kill orders, what would save a pod, the race, drift: also for simulator and advice."""
