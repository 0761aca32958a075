"""Standard streams that accept any text: in every encoding, closed or not, whatever the input contains."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO, cast

from podqos.controls import approximated, harmless, one_line

_ERRORS = "podqos.approximated"
_UTF_8 = "utf-8"


class GuardedStream(io.TextIOBase):
    """A text stream that makes control characters of the input visible."""

    def __init__(self, stream: TextIO, *, is_for_messages: bool = False) -> None:
        self._stream = stream
        self._is_for_messages = is_for_messages
        self._failure: OSError | None = None
        self.is_discarded = False
        """Whether output is discarded because the reader is gone."""
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != _UTF_8:
            stream.reconfigure(errors=_ERRORS)

    def write(self, text: str) -> int:
        """Write text with its control characters made visible."""
        if self._is_for_messages and not text.endswith("\n"):
            # ``print`` writes the end of the line after the message.
            text = one_line(text)
        try:
            self._stream.write(harmless(text))
        except OSError as error:
            self._failure = error
            raise
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        """Write lines with their control characters made visible."""
        self._stream.writelines(map(harmless, lines))

    def in_utf_8(self) -> None:
        """Write UTF-8 from now on, whatever the terminal uses, as formats for programs require."""
        if isinstance(self._stream, io.TextIOWrapper) and codecs.lookup(self._stream.encoding).name != _UTF_8:
            self._stream.reconfigure(encoding=_UTF_8)

    def flush(self) -> None:
        """Flush; also raises after a failed write, which argparse ignores."""
        if self._failure is not None:
            raise self._failure
        self._stream.flush()

    def close(self) -> None:
        """Leave the underlying stream alone: others own it and may have closed it already."""

    def discard(self) -> None:
        """Forget a failed write: nothing reads what comes after it either."""
        self._failure, self.is_discarded = None, True

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()

    @property
    def buffer(self) -> BinaryIO:
        """The underlying byte stream."""
        return self._stream.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the underlying stream."""
        return self._stream.encoding


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard standard output and error; output to a closed stream is lost."""
    codecs.register_error(_ERRORS, _approximate)
    before = sys.stdin, sys.stdout, sys.stderr
    if None in before:
        _open_closed()
    if not isinstance(sys.stdout, GuardedStream):
        sys.stdout = cast("TextIO", GuardedStream(sys.stdout))
    if not isinstance(sys.stderr, GuardedStream):
        sys.stderr = cast("TextIO", GuardedStream(sys.stderr, is_for_messages=True))
    try:
        yield
    finally:
        # The program ends after it; a caller in the same process has its own streams again.
        if None not in before:
            sys.stdin, sys.stdout, sys.stderr = before


def for_programs() -> None:
    """Write UTF-8 to standard output from now on."""
    if isinstance(sys.stdout, GuardedStream):
        sys.stdout.in_utf_8()


def discard_output() -> None:
    """Discard buffered and future output: nothing can read it."""
    if isinstance(sys.stdout, GuardedStream):
        sys.stdout.discard()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _open_closed() -> None:
    """Replace a closed standard stream with /dev/null, so that no file opened later takes its place."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, open(number, mode, encoding=_UTF_8, closefd=False))  # noqa: SIM115 - until the end


def _approximate(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return approximated(error.object[error.start : error.end]), error.end
