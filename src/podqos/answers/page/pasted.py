"""What the page shows of a text that was pasted into it."""

from __future__ import annotations

from msgspec import Struct

from podqos.answers.page.session import ProblemInfo
from podqos.words.autopsy_story import AutopsyPage


class PastedAutopsy(Struct, frozen=True, rename="camel"):
    """The autopsy of a pasted text; the text itself is not kept."""

    page: AutopsyPage
    command: str
    """What gives the same answer in a terminal, with the text as its standard input."""
    problems: tuple[ProblemInfo, ...] = ()
    """Of objects in the text."""
