"""Pure. Who outlives whom: both kill orders side by side, the race in closed form, CPU when everyone bursts."""
