"""How much processor time a piece of work takes, on a machine that does other things too."""

import gc
import time
from collections.abc import Callable

TRIES = 3


def takes_less_than(seconds: float, work: Callable[[], object]) -> bool:
    """Whether the work takes less processor time than that in one of three tries: a busy machine only adds to it.

    Garbage is not collected meanwhile: that takes as long as all that other tests have left in memory.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return any(_seconds(work) < seconds for _ in range(TRIES))
    finally:
        if collects:
            gc.enable()


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
