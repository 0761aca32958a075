"""Explain every pod in manifests: its QoS class, why, and what follows from it.

That is the smallest edit that would make it Guaranteed, the oom_score_adj of its containers, its cgroups, and the same
as flags of `docker run` and `podman run`.

Reads Pods, everything that holds a pod template, Lists and kubectl output, as YAML or JSON. What cannot be read is
reported on standard error as file:line:column, and the rest is explained all the same.
"""

from __future__ import annotations

OUTPUTS = ("text", "table", "wide", "csv", "json", "yaml")
