"""Pure. From a finding to an edited manifest."""
