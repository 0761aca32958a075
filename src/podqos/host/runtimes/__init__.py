"""Real. Container runtimes behind ``host.runtime.Runtime``."""
