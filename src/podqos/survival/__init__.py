"""Pure. Which pods die first: both kill orders side by side, the race in closed form, CPU when all pods burst."""
