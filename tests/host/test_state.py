from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from podqos.agent.port import Remembered
from podqos.errors import HostError
from podqos.host.storage.pod_run import ContainerRunSpec, PodRun
from podqos.host.storage.state import PodState, StateDirectory
from podqos.host.storage.syncing import SyncQueue
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
    assert "will retry" in notes[0]
    (tmp_path / "away").rename(tmp_path / "pods")
    state.save_late()
    assert state.load() == [_STATE]


def test_two_nodes_cannot_share_a_directory(state, tmp_path):
    with pytest.raises(HostError, match="another node is using it"):
        StateDirectory(tmp_path, print)


def test_a_place_that_cannot_be_made_is_an_error_with_advice():
    with pytest.raises(HostError, match="choose another with state_dir"):
        StateDirectory(Path(os.devnull) / "x", print)


def test_a_pod_that_is_told_to_end_in_a_hurry_is_known_to_end_before_it_is_written_down(state, tmp_path):
    state.save(_STATE)
    ending = replace(_STATE, is_stopping=True, phase="Failed", reason="Evicted")
    state.save(ending, in_a_hurry=True)
    assert state.load() == [ending]
    state.save_late()
    assert state.load() == [ending]
    assert [file.name for file in (tmp_path / "pods").iterdir()] == ["u1.json"]


def test_a_hurried_end_that_was_cut_off_is_as_if_it_had_not_been(state, tmp_path):
    state.save(_STATE)
    state.save(replace(_STATE, phase="Failed"), in_a_hurry=True)
    file = tmp_path / "pods" / "u1.ending"
    file.write_bytes(file.read_bytes()[:-5])
    assert state.load() == [_STATE]


def test_the_end_of_a_pod_reaches_the_disk_with_the_next_round(tmp_path, notes):
    synced = []
    directory = StateDirectory(tmp_path, notes.append, synced.append)
    directory.save(replace(_STATE, phase="Failed"))
    assert synced == []
    directory.save_late()
    assert synced == [tmp_path / "pods" / "u1.json"]
    directory.close()


def test_files_on_their_way_to_the_disk_are_waited_for_at_the_end(tmp_path):
    syncing = SyncQueue()
    (tmp_path / "file").write_text("x")
    for name in ("file", "gone"):
        syncing.later(tmp_path / name)
    syncing.close()
