"""Write down again what the shipped scenarios do: golden journals, the timelines of their pages, their pictures.

Run it as ``make golden`` after a change of the simulator or of a scenario, and read the difference before you commit.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from podqos.agent.journal import encode
from podqos.cli.main import main
from scenarios.pages import timeline, with_timeline
from scenarios.runs import GOLDEN, NAMES, PAGES, run_of


def record(name: str) -> None:
    """Write the journal, the timeline and the picture of one scenario."""
    entries = run_of(name).entries
    (GOLDEN / f"{name}.jsonl.gz").write_bytes(gzip.compress(encode(entries), 9, mtime=0))
    page = PAGES / f"{name}.md"
    page.write_text(with_timeline(page.read_text(), timeline(entries)))
    draw(name, PAGES / "pictures" / f"{name}.svg")


def draw(name: str, path: Path) -> int:
    """Write the picture of one scenario."""
    return main(["simulate", name, "--svg", str(path), "--color", "never"])


if __name__ == "__main__":
    for each in NAMES:
        record(each)
