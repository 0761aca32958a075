"""Edge. What podqos serves over HTTP: the admission webhook, the exporter's metrics, and in ``ui`` the page.

``http`` is the server, which knows nothing of Kubernetes; ``serving`` runs it until it is told to stop; ``webhook``
answers reviews, and ``webhook_rules`` reads and watches what it decides by; ``exporter`` serves metrics of a cluster;
``settings`` has the ports, paths and limits in one place; ``reloading`` looks after files that are replaced while they
are used; ``tls`` loads certificates and ``certificate`` makes them; ``audit`` and ``metrics`` say what happened.
"""
