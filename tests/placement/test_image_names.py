"""Images of real nodes."""

from __future__ import annotations

from podqos.manifest.decode import model_decoder
from podqos.model.node import Node
from podqos.placement.node_rules import image_states


def test_an_image_without_names_counts_for_nobody():
    """A kubelet lists an image that lost its last tag with ``names: null``."""
    data = b'{"status":{"images":[{"names":null,"sizeBytes":43493531},{"names":["a:1"],"sizeBytes":7}]}}'
    assert list(image_states([model_decoder(Node).decode(data)])) == ["a:1"]
