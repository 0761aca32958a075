"""A selection on objects: answers of the library are about some workloads, and the others still count."""

from __future__ import annotations

from pathlib import Path

import podqos
from podqos.objects.selection import Selection

POD = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: app, image: app}]}}"


def test_answers_are_about_the_selected_and_the_others_count(tmp_path: Path):
    (tmp_path / "pods.yaml").write_text("\n---\n".join(POD % name for name in ("a", "b")))
    objects = podqos.load(tmp_path)
    objects.selection = Selection(names=("b",))

    assert [item.name for item in podqos.explain(objects).items] == ["b"]
    assert podqos.explain(objects).node.pods == 2
    assert {item.name for item in podqos.check(objects).items} == {"b"}
    assert [item.name for item in podqos.admit(objects).items] == ["b"]
    assert [place.pod for place in podqos.rank(objects).eviction_order] == ["default/b"]
    assert [pod.pod for pod in podqos.cpu(objects, cores=2).pods] == ["default/b"]
    assert podqos.cpu(objects, cores=2).granted_milli == 2000
