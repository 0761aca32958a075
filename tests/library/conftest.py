"""A served cluster as the current context."""

from __future__ import annotations

import pytest
import yaml

from cluster.serving import Server


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Yield a function that serves a cluster and makes it the current context."""
    from library.test_live_cluster import api_server

    servers = []

    def serve(answer=api_server) -> Server:
        server = Server(answer).__enter__()
        servers.append(server)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server.url}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "me", "namespace": "shop"}}],
            "users": [{"name": "me", "user": {}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        monkeypatch.setenv("KUBECONFIG", str(path))
        monkeypatch.chdir(tmp_path)
        return server

    yield serve
    for each in servers:
        each.__exit__()
