from __future__ import annotations

import pytest

from podqos.admission.injectors import INJECTORS, CustomInjector
from podqos.errors import InputError
from podqos.reading.injecting import read_injectors


def test_names_and_files_are_told_apart(tmp_path):
    """A file is what ends like one, holds a slash, or is there."""
    file = tmp_path / "ours.yaml"
    file.write_text("containers:\n- name: agent\n")
    known, described = read_injectors(["istio", str(file)])
    assert known is INJECTORS["istio"]
    assert isinstance(described, CustomInjector)
    assert (described.name, [each.name for each in described.containers]) == ("ours", ["agent"])


def test_an_error_in_a_description_has_line_and_column(tmp_path):
    """Like any other input."""
    file = tmp_path / "ours.yaml"
    file.write_text("containers:\n- name: agent\n  resources:\n    request: {}\n")
    with pytest.raises(InputError, match=r"ours.yaml:4:\d+: containers\[0\].resources.request"):
        read_injectors([str(file)])


def test_a_file_that_is_not_there_is_said_to_be_missing():
    """And not taken for a name."""
    with pytest.raises(InputError, match="No such file"):
        read_injectors(["./none.yaml"])
