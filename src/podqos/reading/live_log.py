"""The kernel log as it grows, and the OOM kills in it as they happen.

Reading ``/dev/kmsg`` needs permission; journald keeps the same lines and may allow what the device does not. A pipe or
a file can be followed, too. A report ends when the next one begins or the log goes quiet.
"""

from __future__ import annotations

import os
import select
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import IO, Protocol

from podqos.errors import HostError, InputError
from podqos.logs.carriers import MOST_CHARACTERS, Carrier
from podqos.logs.kernel_lines import ReportReader
from podqos.logs.report import OOMReport
from podqos.naming import stated_with
from podqos.objects.files import STDIN

SILENCE_SECONDS = 1.0
"""After this long without a line, a report has ended, complete or not."""
_AFTER_KILL_SECONDS = 0.5
"""The OOM reaper reports within this time."""
_WAITING_SECONDS = 0.2
"""A carrier is learned from the lines of this time: a report is written at once."""
_PATIENCE_SECONDS = 10.0
"""A report without a kill waits this long while other lines keep coming."""
_POLL_SECONDS = 0.1
_OWN = ("oom", "illed process", "ut of memory", "[  pid  ]")
"""What lines of an OOM report hold."""
_PIECE_BYTES = 1 << 16
_JOURNAL = ("journalctl", "--dmesg", "--follow", "--lines=0", "--output=json", "--no-pager")

_RIGHTS = (
    "run as root or with CAP_SYSLOG, join the group systemd-journal, or pipe a log in: "
    f"podqos autopsy {stated_with('live', '-')}"
)

_LIVE_FILE = stated_with("live", "FILE")


class GrowingLog(Protocol):
    """A log that grows."""

    def wait(self, seconds: float) -> None:
        """Return when there may be more lines, or after a timeout."""

    def lines(self) -> Iterator[str | int]:
        """Yield the lines that arrived, and the number of lost lines."""

    @property
    def is_over(self) -> bool:
        """Whether the log has ended."""

    def dated(self, at: str) -> str:
        """Return when something happened, as a date even if the log only has seconds since boot."""


def follow(log: GrowingLog, say: Callable[[str], None]) -> Iterator[OOMReport]:
    """Yield OOM reports as they end; ``say`` gets a line about what was lost. Ctrl-C ends the log."""
    carrier, reader, waiting = Carrier(), ReportReader(), list[str]()
    with suppress(KeyboardInterrupt):
        yield from _until_over(log, (carrier, reader, waiting), say)
    for report in [*reader.feed(carrier.lines("\n".join(waiting).encode())), *reader.end()]:
        yield _dated(report, log)


def _until_over(
    log: GrowingLog, reading: tuple[Carrier, ReportReader, list[str]], say: Callable[[str], None]
) -> Iterator[OOMReport]:
    carrier, reader, waiting = reading
    heard = own = begun = time.monotonic()
    while not log.is_over or waiting:
        if not log.is_over:
            log.wait(_POLL_SECONDS if reader.is_open or waiting else SILENCE_SECONDS)
        for line in log.lines():
            heard = time.monotonic()
            begun = begun if waiting else heard
            if isinstance(line, int):
                say(f"lost {line} lines of the kernel log: they came faster than they could be read")
            waiting.append(f"** {line} printk messages dropped **" if isinstance(line, int) else line)
        now = time.monotonic()
        if waiting and (now - begun >= _WAITING_SECONDS or log.is_over):
            text = "\n".join(waiting)
            waiting.clear()
            own = begun if any(word in text for word in _OWN) else own
            for report in reader.feed(carrier.lines(text.encode())):
                yield _dated(report, log)
        patience = _AFTER_KILL_SECONDS if reader.is_settled else _PATIENCE_SECONDS
        if reader.is_open and not waiting and (now - own >= patience or now - heard >= SILENCE_SECONDS):
            for report in reader.end():
                yield _dated(report, log)


def _dated(report: OOMReport, log: GrowingLog) -> OOMReport:
    report.at = log.dated(report.at)
    return report


@contextmanager
def growing(path: str | None, say: Callable[[str], None]) -> Iterator[GrowingLog]:
    """Open a growing log: this machine's by default, or a file, a pipe, standard input."""
    if path is None:
        if sys.platform != "linux":
            raise HostError(f"only Linux has a kernel log of OOM kills; give a file: podqos autopsy {_LIVE_FILE}")
        with _own_log(say) as log:
            yield log
    elif path == STDIN:
        if sys.platform == "win32":
            raise HostError(f"Windows cannot follow a pipe; follow a file: podqos autopsy {_LIVE_FILE}")
        yield _Pipe(sys.stdin.fileno())
    else:
        try:
            mode = os.stat(path).st_mode
            log = _Kernel(path) if stat.S_ISCHR(mode) else _File(path) if stat.S_ISREG(mode) else _Pipe.opened(path)
        except OSError as error:
            raise InputError(error.strerror or str(error), where=path, fix="give a log that can be read") from error
        try:
            yield log
        finally:
            log.close()


@contextmanager
def _own_log(say: Callable[[str], None]) -> Iterator[GrowingLog]:
    try:
        log = _Kernel()
    except OSError as error:
        why_not = f"{error.filename}: {error.strerror}"
        with _journal(why_not) as journal:
            say(f"{why_not}; following journald instead")
            yield journal
        return
    try:
        yield log
    finally:
        log.close()


@contextmanager
def _journal(why_not: str) -> Iterator[GrowingLog]:
    """Follow journald's copy of the kernel log."""
    try:
        child = subprocess.Popen(  # noqa: S603 - nothing of the input
            _JOURNAL, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise HostError(f"cannot read the kernel log: {why_not}; journalctl: {error.strerror} ({_RIGHTS})") from error
    assert child.stdout is not None
    assert child.stderr is not None
    log = _Pipe(child.stdout.fileno())
    try:
        yield log
        if not log.is_over:
            return
        # It follows until it is ended: that it ended by itself means that it could not.
        said = child.stderr.read(_PIECE_BYTES).decode(errors="replace").strip().rpartition("\n")[2]
        what = said or f"ended with {child.wait()}"
        raise HostError(f"cannot read the kernel log: {why_not}; journalctl: {what} ({_RIGHTS})")
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        child.stderr.close()


class _Kernel:
    """``/dev/kmsg`` from now on."""

    is_over = False

    def __init__(self, path: str | None = None) -> None:
        from podqos.host.linux.kmsg import KMSG, KernelRecords

        self._records = KernelRecords(path or KMSG)
        self._started = 0.0

    def wait(self, seconds: float) -> None:
        select.select([self._records], [], [], seconds)

    def lines(self) -> Iterator[str | int]:
        known = self._records.lost
        while record := self._records.read():
            head, _, rest = record.decode(errors="replace").partition(";")
            _, _, microseconds, *_ = (*head.split(","), "", "", "")
            if microseconds.isdecimal():
                self._started = time.time() - int(microseconds) / 1e6
            if self._records.lost > known:
                yield self._records.lost - known
                known = self._records.lost
            # The lines after the first say which device it is about.
            yield f"{head};{rest.partition(chr(10))[0]}"

    def dated(self, at: str) -> str:
        # The kernel's clock drifts; the last record that came shows by how much.
        try:
            date = datetime.fromtimestamp(self._started + float(at), UTC)
        except (ValueError, OverflowError, OSError):
            return at
        return date.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def close(self) -> None:
        self._records.close()


class _Lines:
    """Splits bytes into lines as they arrive; an endless line is cut."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_skipping = False

    def feed(self, piece: bytes) -> Iterator[str]:
        whole, newline, rest = piece.rpartition(b"\n")
        if newline:
            first, *others = whole.split(b"\n")
            if not self._is_skipping:
                yield _text(self._rest + first)
            yield from map(_text, others)
            self._rest, self._is_skipping = b"", False
        if not self._is_skipping:
            self._rest += rest
        if len(self._rest) > _PIECE_BYTES:
            yield _text(self._rest)
            self._rest, self._is_skipping = b"", True

    def end(self) -> Iterator[str]:
        rest, self._rest = self._rest, b""
        if rest:
            yield _text(rest)


def _text(line: bytes) -> str:
    return line[: MOST_CHARACTERS * 4].decode(errors="replace")


class _Pipe:
    """A pipe, until its writer ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines = _Lines()
        self.is_over = False

    @classmethod
    def opened(cls, path: str) -> _Pipe:
        return cls(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def wait(self, seconds: float) -> None:
        select.select([self._descriptor], [], [], seconds)

    def lines(self) -> Iterator[str | int]:
        if select.select([self._descriptor], [], [], 0)[0]:
            piece = os.read(self._descriptor, _PIECE_BYTES)
            self.is_over = not piece
            yield from self._lines.feed(piece) if piece else self._lines.end()

    def dated(self, at: str) -> str:
        return at

    def close(self) -> None:
        os.close(self._descriptor)


class _File:
    """Follows a file from its end; a file that replaces it, or was truncated, is read from the beginning."""

    is_over = False

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: IO[bytes] = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close
        self._file.seek(0, os.SEEK_END)
        self._lines = _Lines()

    def wait(self, seconds: float) -> None:
        time.sleep(min(seconds, _POLL_SECONDS))

    def lines(self) -> Iterator[str | int]:
        # Looked at before reading: what was written before the file was renamed is read first.
        successor = self._successor()
        while piece := self._file.read(_PIECE_BYTES):
            yield from self._lines.feed(piece)
        if successor is not None:
            yield from self._lines.end()
            self._file.close()
            self._file = successor
        elif os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)

    def _successor(self) -> IO[bytes] | None:
        try:
            there, mine = os.stat(self._path), os.fstat(self._file.fileno())
            is_other = (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)
            return open(self._path, "rb", buffering=0) if is_other else None
        except OSError:
            return None

    def dated(self, at: str) -> str:
        return at

    def close(self) -> None:
        self._file.close()
