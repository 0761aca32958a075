"""Edge. Beside a kubelet: the same agent takes the kubelet's own decision with fresh figures, and acts in milliseconds.

``running`` is the loop; ``world`` the third world of the agent, over the cgroups that the kubelet made (``tree``) and
the pods that the API server knows (``known_pods``). ``eviction`` (pure) is what is done to one pod, step by step, so
that Kubernetes understands it; ``acting`` does it, ``intents`` remembers it over a ``kill -9``.
"""
