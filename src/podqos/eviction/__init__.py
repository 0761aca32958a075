"""Pure. Who must go: signals, thresholds, observation, conditions, ranking, reclaim, local storage, manager."""
