"""Pure. Facts become sentences: the only place where a reason becomes English."""
