"""Edge. Reads a live cluster, its usage and Prometheus. Nothing but GET; ``writing`` is the guard's alone.

    from podqos.cluster.cluster import connect
    from podqos.cluster.resources import NODES, PODS

    with connect(context="prod") as cluster:         # KUBECONFIG, ~/.kube/config, or the pod's service account
        nodes = cluster.read(NODES)                  # all of them, as podqos.model values
        for page in cluster.pages(PODS, namespace="shop", selector="app=web"):
            if page.is_first:                        # also if the list expired: it begins again, drop what came
                pods = []
            pods += page.items                       # or page.data, the bytes as the server sent them
        for event in cluster.watch(PODS):            # never ends; reconnects and resumes by itself
            ...                                      # RESET, ADDED, MODIFIED, DELETED, SYNCED: see watching.EventType

``cluster.namespace`` is the context's, ``cluster.get(path)`` anything else. ``metrics``, ``kubelets`` and
``prometheus`` have what is used; a source that is missing is an assumption of their answer, not an error. Whatever
fails raises ``InputError`` (the kubeconfig) or ``ClusterError`` (the rest), in one line.

Pure: ``kubeconfig`` (text to access), ``resources``, ``proxies``, ``certificates``, ``patience`` (when to ask again),
``refusals`` (what a status means, and the RBAC that would help), ``pages`` and ``events`` (bytes to values),
``sources``. With I/O, each over the one before: ``access``, ``tls``, ``exec_plugin``, ``credentials``, ``tunnels``,
``transport`` (one GET), ``asking`` (with retries), ``watching``, ``cluster``, ``following`` (objects kept up to date by
threads that watch).
"""
