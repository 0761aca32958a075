"""Where the built-in scenarios are: in the source tree while developing, inside the package once installed.

The wheel carries ``scenarios/`` as ``podqos/scenarios/`` (``force-include`` in pyproject.toml), because ``podqos demo``
must work without the repository.
"""

from __future__ import annotations

from pathlib import Path

from podqos.amounts import nearest
from podqos.errors import HostError, InvalidArgument

_PACKAGE = Path(__file__).resolve().parents[1]
_SOURCE_TREE = _PACKAGE.parents[1]


def scenario_dir(name: str) -> Path:
    """Return the directory of the scenario ``name``, such as ``content-platform``."""
    home = _home()
    known = sorted(entry.name for entry in home.iterdir() if entry.is_dir())
    if name not in known:
        raise InvalidArgument(f"no such scenario: {name!r}", fix=f"one of: {', '.join(known)}")
    return home / name


def shipped_scenarios() -> list[str]:
    """Return the names of the scenarios that can be run, such as ``race``."""
    return sorted(path.stem for path in _home().glob("*.yaml"))


def shipped_scenario(name: str) -> str | None:
    """Return the file of the scenario ``name``, or None."""
    return str(_home() / f"{name}.yaml") if name in shipped_scenarios() else None


def closest_scenario(name: str) -> str | None:
    """Return the name of the scenario that was probably meant."""
    return nearest(name, shipped_scenarios())


def starter_files(name: str) -> dict[str, str]:
    """Return what ``podqos scenario new`` writes, by path: a commented scenario that runs, and its manifests."""
    paths = {f"{name}.yaml": "scenario.yaml", f"{name}/manifests.yaml": "manifests.yaml"}
    starter = scenario_dir("starter")
    return {path: _named((starter / file).read_text(encoding="utf-8"), name) for path, file in paths.items()}


def _named(text: str, name: str) -> str:
    """Return a file to start from with its name, in quotes where YAML would not read it as a text."""
    from podqos.manifest.edits.writing import scalar  # only this command writes files to start from

    text = text.replace(": NAME\n", f": {scalar(name)}\n").replace("- NAME/\n", f"- {scalar(f'{name}/')}\n")
    return text.replace("NAME", name)


def _home() -> Path:
    # Installed comes first: next to an installed package, `../../scenarios` would be another package's directory.
    for home in (_PACKAGE / "scenarios", _SOURCE_TREE / "scenarios"):
        if home.is_dir():
            return home
    raise HostError(f"the example scenarios are missing from {_PACKAGE}; install podqos again")
