"""Read the scenario of a command, and print what is wrong with it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from podqos.cli.spelling import spelled
from podqos.errors import InputError, InvalidOption
from podqos.manifest.problems import Severity
from podqos.reading.scenario_files import InvalidScenario, read_scenario

if TYPE_CHECKING:
    from podqos.sim.scenario.scenario import Scenario
    from podqos.sim.variation import Variation


def scenario_argument(path: str | None, verb: str, variation: Variation | None = None) -> Scenario:
    """Return the scenario of a file or name; print everything wrong with it, and raise if it cannot be run."""
    if path is None:
        raise InvalidOption(f"nothing to {verb}", fix="give a scenario; `podqos scenario list` shows the built-in ones")
    reading = read_scenario(path, variation)
    if len(reading.problems) == 1:
        (only,) = reading.problems
        if only.severity is Severity.ERROR and only.source == path and not only.line:  # it could not be opened
            raise InputError(only.what, where=only.source, fix=only.fix)
    for problem in reading.problems:
        print(problem.worded(spelled), file=sys.stderr)
    try:
        return reading.loaded()
    except InvalidScenario as error:
        raise InputError(error.what, where=error.where, fix="see above") from error
