"""Pure. What carries the kernel's messages: prefixes, quoting, wrapping, records."""
