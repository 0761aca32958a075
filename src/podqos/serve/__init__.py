"""Edge. What podqos serves over HTTP: the admission webhook, the exporter's metrics, and the page (``ui``).

``http`` is the server and knows nothing about Kubernetes. ``serving`` runs it until shutdown. ``webhook`` answers
reviews; ``webhook_rules`` reads and watches the rules it applies. ``exporter`` serves a cluster's metrics.
``settings`` holds ports, paths and limits. ``reloading`` reloads files that change while in use. ``tls`` loads
certificates, ``certificate`` creates them. ``audit`` and ``metrics`` record what happened.
"""
