"""The example scenarios are found from the source tree and from an installed wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from podqos.errors import InvalidArgument
from podqos.reading.shipped_scenarios import scenario_dir

ROOT = Path(__file__).resolve().parents[2]


def _files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_the_source_tree_has_the_content_platform():
    assert scenario_dir("content-platform") == ROOT / "scenarios" / "content-platform"


@pytest.mark.parametrize("name", ["content-platfrom", "", ".", "..", "content-platform/accidental"])
def test_an_unknown_scenario_is_refused_with_the_known_ones(name):
    with pytest.raises(InvalidArgument, match=r"one of: .*content-platform"):
        scenario_dir(name)


def test_the_wheel_carries_the_scenarios_and_finds_them_without_the_repository(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, env={**os.environ, "HATCH_BUILD_NO_HOOKS": "true"}, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "site-packages"
    zipfile.ZipFile(wheel).extractall(installed)

    ask = "from podqos.reading.shipped_scenarios import scenario_dir; print(scenario_dir('content-platform'))"
    found = subprocess.run(
        [sys.executable, "-c", ask],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed)},
        check=True,
        capture_output=True,
        text=True,
    )
    directory = Path(found.stdout.strip())

    assert directory.is_relative_to(installed)
    assert _files(directory) == _files(ROOT / "scenarios" / "content-platform")
