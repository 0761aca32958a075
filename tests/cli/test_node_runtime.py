from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from podqos.cli.node.runtime_options import add_runtime_options, runtime_choice
from podqos.errors import InvalidOption
from podqos.host.runtimes.choice import RuntimeChoice, RuntimeName


def chosen(*words: str) -> RuntimeChoice:
    parser = argparse.ArgumentParser()
    add_runtime_options(parser)
    return runtime_choice(parser.parse_args(words))


def test_containers_are_processes_unless_told_otherwise():
    assert chosen() == RuntimeChoice()


def test_each_runtime_has_its_options(tmp_path):
    assert chosen("--runtime=runc", f"--images={tmp_path}").images == tmp_path
    assert chosen("--runtime=containerd", "--runtime-socket=/s").socket == Path("/s")
    podman = chosen("--runtime=podman", "--podman-option=--root=/r", "--podman-option=--tmpdir=/t")
    assert (podman.name, podman.options) == (RuntimeName.PODMAN, ("--root=/r", "--tmpdir=/t"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--images", "."], "--images does not apply to --runtime process"),
        (["--runtime", "podman", "--runtime-socket", "/s"], "--runtime-socket does not apply to --runtime podman"),
        (["--runtime", "runc", "--podman-option=x"], "--podman-option does not apply to --runtime runc"),
        (["--runtime", "runc", "--images", "/no/such"], "/no/such is not a directory"),
    ],
)
def test_an_option_of_another_runtime_is_a_mistake(words, message):
    with pytest.raises(InvalidOption, match=message):
        chosen(*words)
