"""Print what CHANGELOG.md says about a release: ``tools/release_notes.py v1.2.3``, or ``unreleased``.

A release has a section of its own and is the version that the package has; anything else is an error, so that a tag on
the wrong commit releases nothing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def section(changelog: str, name: str) -> str:
    """Return the text below a version's heading, or nothing."""
    found = re.search(rf"^## \[{re.escape(name)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def main(release: str = "unreleased") -> str:
    """Print the notes of a release; return an error message, or nothing."""
    name = "Unreleased" if release.lower() == "unreleased" else release.removeprefix("v")
    (version,) = re.findall(r'^__version__ = "(.+)"$', (ROOT / "src/podqos/version.py").read_text(), re.MULTILINE)
    if name not in {"Unreleased", version}:
        return f"the package is {version}, not {name}: change __version__ in src/podqos/version.py"
    notes = section((ROOT / "CHANGELOG.md").read_text(), name)
    if not notes:
        return f"CHANGELOG.md says nothing under [{name}]: head what is released with `## [{name}] – YYYY-MM-DD`"
    print(notes)
    return ""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]) or 0)
