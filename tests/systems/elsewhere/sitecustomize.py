"""Makes a Python on Linux look like one elsewhere, as far as podqos can tell: ``PODQOS_TEST_SYSTEM`` names the system.

What only Unix has is gone: modules, functions, signals, flags; on a Mac, what only Linux has, and ``fork``. The
standard library and the library of the servers are loaded first: their own use of them is their own affair. A few
names stay without which it would not work here: ``SIGKILL``, ``os.waitpid``, ``AF_UNIX``.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401
import ctypes  # noqa: F401
import gzip  # noqa: F401
import http.client  # noqa: F401
import importlib
import importlib.resources
import multiprocessing.connection
import multiprocessing.resource_tracker
import multiprocessing.spawn
import os
import pathlib  # noqa: F401
import select
import selectors  # noqa: F401
import shutil  # noqa: F401
import signal
import socket
import ssl  # noqa: F401
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
import types
import urllib.request  # noqa: F401

import click  # noqa: F401
import uvicorn  # noqa: F401

EXTRAS = ["uvloop", "inotify_simple", "jeepney", "numpy", "distributed", "cryptography"]
OF_UNIX = ["fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline", "curses"]
NAMES_OF_LINUX = {
    os: """sched_getaffinity memfd_create eventfd posix_fadvise posix_fallocate splice copy_file_range setxattr getxattr
    O_PATH EFD_CLOEXEC""",
    select: "epoll",
    socket: "TCP_USER_TIMEOUT TCP_KEEPIDLE",
}
NAMES_OF_UNIX = {
    os: """fork forkpty geteuid getuid getegid getgid mkfifo mknod uname killpg getpgid setpgid setsid pread pwrite
    preadv fchown fchmod chown lchown chroot nice sysconf statvfs fstatvfs getloadavg sendfile sync openpty ttyname
    ctermid wait3 wait4 O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK O_NOCTTY""",
    signal: """SIGHUP SIGUSR1 SIGUSR2 SIGALRM SIGCHLD SIGPIPE SIGWINCH SIGQUIT SIGSTOP SIGCONT SIG_BLOCK SIG_SETMASK
    pthread_sigmask setitimer ITIMER_REAL alarm pause sigwait""",
    select: "poll",
    socket: "SCM_RIGHTS CMSG_LEN",
}


def _no_signal_handlers(*_: object) -> None:
    raise NotImplementedError


def _no_fork() -> int:
    raise AssertionError("a process is not forked on a Mac: its libraries do not survive that")


class _UnixSys:
    """``sys`` as it is, for the library that starts processes: it asks for the system when it does."""

    platform = sys.platform

    def __getattr__(self, name: str) -> object:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(sys, name, value)


def pretend(system: str) -> None:
    """Be on that system from now on."""
    importlib.import_module("asyncio.unix_events")
    multiprocessing.spawn.sys = _UnixSys()  # type: ignore[attr-defined]
    multiprocessing.resource_tracker.signal = types.SimpleNamespace(**vars(signal))  # type: ignore[attr-defined]
    is_windows = system == "win32"
    for name in (*EXTRAS, *(OF_UNIX if is_windows else ())):
        sys.modules[name] = None  # type: ignore[assignment]
    for gone in (NAMES_OF_LINUX, NAMES_OF_UNIX) if is_windows else (NAMES_OF_LINUX,):
        for module, names in gone.items():
            for name in names.split():
                if hasattr(module, name):
                    delattr(module, name)
    if is_windows:
        asyncio.SelectorEventLoop.add_signal_handler = _no_signal_handlers  # type: ignore[method-assign, assignment]
    else:
        os.fork = _no_fork
    sys.platform = system


if os.environ.get("PODQOS_TEST_SYSTEM"):
    pretend(os.environ["PODQOS_TEST_SYSTEM"])
