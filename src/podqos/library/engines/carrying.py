"""Errors on their way from a worker to the process that raises them."""

from __future__ import annotations


def carried(error: Exception) -> Exception:
    """Return an error that arrives in the parent, with a note of where it was raised, which is not pickled."""
    import pickle
    import traceback

    error.add_note("".join(traceback.format_tb(error.__traceback__)))
    try:
        pickle.loads(pickle.dumps(error, pickle.HIGHEST_PROTOCOL))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - whatever it is that such an error does
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
