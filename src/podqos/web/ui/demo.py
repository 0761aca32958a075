"""The demo that an empty page offers: the incident of ``podqos demo``, from files that podqos carries."""

from __future__ import annotations

import os

from podqos.reading.files import read_bytes
from podqos.reading.gathering import gather
from podqos.reading.scenario_files import read_scenario, scenario_path

SCENARIO = "accidental-burstable"


def demo_files() -> dict[str, bytes]:
    """Return the scenario and its manifests as if they were uploaded, the scenario first."""
    path = scenario_path(SCENARIO)
    home = os.path.dirname(path)
    named = (path, *read_scenario(path).looked_at)
    files = dict.fromkeys(file for given in named for file in gather([given]).paths)
    return {os.path.relpath(file, home): read_bytes(file) for file in files}
