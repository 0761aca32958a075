"""Edge. One adapter per vector family: JSON in, the decision's JSON out."""
