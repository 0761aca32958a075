"""Edge. Runs next to a kubelet: makes the kubelet's eviction decision with fresh statistics, within milliseconds.

``running`` is the loop. ``world`` is the agent's third world, built from the kubelet's cgroups (``tree``) and the API
server's pods (``known_pods``). ``eviction`` (pure) evicts one pod step by step, in a way that Kubernetes understands;
``acting`` carries the steps out, ``intents`` preserves them across a ``kill -9``.
"""
