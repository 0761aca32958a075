from __future__ import annotations

import os
from pathlib import Path

import pytest

from podqos.agent.events import Remembered
from podqos.errors import HostError
from podqos.host.pod_run import ContainerRunSpec, PodRun
from podqos.host.state import PodState, StateDirectory
from podqos.manifest.decode import convert
from podqos.model.pod import Pod

_POD = convert(
    {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}}}]},
    },
    Pod,
)
_STATE = PodState(
    _POD,
    PodRun(containers=(ContainerRunSpec("main", command=("sleep", "1")),)),
    "web.yaml",
    {"main": Remembered("running", restarts=2, back_off_seconds=20)},
    phase="Running",
    started_us=5,
)


@pytest.fixture
def notes():
    return []


@pytest.fixture
def state(tmp_path, notes):
    directory = StateDirectory(tmp_path, notes.append)
    yield directory
    directory.close()


def test_what_is_saved_is_loaded(state):
    state.save(_STATE)
    assert state.load() == [_STATE]
    state.forget("u1")
    assert state.load() == []


def test_a_file_that_makes_no_sense_is_put_aside_and_named(state, tmp_path, notes):
    state.save(_STATE)
    (tmp_path / "pods" / "u2.json").write_text('{"pod": 1}')
    assert state.load() == [_STATE]
    assert "u2.json" in notes[0]
    assert (tmp_path / "pods" / "u2.bad").exists()


def test_a_write_that_was_cut_off_leaves_the_old_state(state, tmp_path):
    state.save(_STATE)
    (tmp_path / "pods" / "u1.new").write_text('{"pod"')
    assert state.load() == [_STATE]


def test_a_directory_that_cannot_be_written_is_survived_and_tried_again(state, tmp_path, notes):
    (tmp_path / "pods").rename(tmp_path / "away")
    state.save(_STATE)
    state.save_late()
    assert len(notes) == 1
    assert "it is tried again" in notes[0]
    (tmp_path / "away").rename(tmp_path / "pods")
    state.save_late()
    assert state.load() == [_STATE]


def test_two_nodes_cannot_share_a_directory(state, tmp_path):
    with pytest.raises(HostError, match="another node is using it"):
        StateDirectory(tmp_path, print)


def test_a_place_that_cannot_be_made_is_an_error_with_advice():
    with pytest.raises(HostError, match="choose another with --state-dir"):
        StateDirectory(Path(os.devnull) / "x", print)
