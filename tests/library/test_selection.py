"""A selection on objects: answers of the library are about some workloads, and the others still count."""

from __future__ import annotations

from pathlib import Path

import pytest

import podqos
from podqos.objects.selection import Selection

POD = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: app, image: app}]}}"


def test_answers_are_about_the_selected_and_the_others_count(tmp_path: Path):
    (tmp_path / "pods.yaml").write_text("\n---\n".join(POD % name for name in ("a", "b")))
    objects = podqos.load(tmp_path, selection=Selection(objects=(("pod", "b"),)))

    assert [item.name for item in podqos.explain(objects).items] == ["b"]
    assert podqos.explain(objects).node.pods == 2
    assert {item.name for item in podqos.check(objects).items} == {"b"}
    assert [item.name for item in podqos.admit(objects).items] == ["b"]
    assert [place.pod for place in podqos.rank(objects).eviction_order] == ["default/b"]
    assert [pod.pod for pod in podqos.cpu(objects, cores=2).pods] == ["default/b"]
    assert podqos.cpu(objects, cores=2).granted_milli == 2000


def test_a_selection_is_chosen_for_other_objects_and_leaves_these_as_they_are(tmp_path: Path):
    (tmp_path / "pods.yaml").write_text("\n---\n".join(POD % name for name in ("a", "b")))
    objects = podqos.load(tmp_path)
    chosen = objects.with_selection(Selection(objects=(("pod", "b"),)))
    assert (len(podqos.explain(objects)), len(podqos.explain(chosen))) == (2, 1)
    assert (objects.selection, chosen.selection) == (None, Selection(objects=(("pod", "b"),)))


def test_a_selection_that_is_set_still_counts_and_is_warned_of(tmp_path: Path):
    (tmp_path / "pods.yaml").write_text("\n---\n".join(POD % name for name in ("a", "b")))
    objects = podqos.load(tmp_path)
    with pytest.warns(DeprecationWarning, match="with_selection"):
        objects.selection = Selection(objects=(("pod", "b"),))
    assert [item.name for item in podqos.explain(objects)] == ["b"]
