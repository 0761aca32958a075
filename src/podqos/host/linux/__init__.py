"""Real. What the kernel offers: procfs, cgroupfs, PSI, the kernel log, descriptors."""
