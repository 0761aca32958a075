"""Real. Around every agent on a real machine: its thread, journal, events and protection, for a node and a guard."""
