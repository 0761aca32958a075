"""Pure. The node agent that every world runs: its events, commands and journal."""
