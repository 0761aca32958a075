from __future__ import annotations

from podqos.survival.autopsy import OOMAutopsy
from podqos.survival.autopsy_causes import AutopsyCause
from podqos.survival.autopsy_savings import Saving
from podqos.wording import mebibytes


def cause_words(cause: AutopsyCause, kill: OOMAutopsy) -> str:
    return str(cause.cause)


def saving_words(saving: Saving, kill: OOMAutopsy) -> str:
    return str(saving.change)


def shortage_words(kill: OOMAutopsy) -> str:
    s = kill.shortage
    return "" if s is None else f"{s.counter} {mebibytes(s.usage_bytes)} of {mebibytes(s.limit_bytes)}"
