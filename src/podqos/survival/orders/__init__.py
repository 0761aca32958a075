"""Pure. Who goes first: both kill orders, what is left until then, and how CPU is divided."""
