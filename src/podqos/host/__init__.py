"""Real. This Linux machine: procfs, cgroupfs, processes and runtimes behind the agent's port."""
