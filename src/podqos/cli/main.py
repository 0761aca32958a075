"""The command ``podqos``: finds the subcommand and runs it.

Exit codes: 0 success; 1 the command has findings; 2 bad input (files, options); 3 the host or the cluster does not
allow something, or does not answer; 70 an internal error; 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from errno import EINVAL
from typing import NoReturn

from podqos.cli import lean_msgspec  # noqa: F401 - before anything else loads msgspec
from podqos.cli.bugs import ASK, reported_bugs, wants_traceback
from podqos.cli.command_list import COMMANDS, parser_of
from podqos.cli.parser import did_you_mean
from podqos.cli.spelling import runs, spelled
from podqos.cli.streams import discard_output, guarded_streams
from podqos.controls import one_line
from podqos.errors import (
    ClusterError,
    Forbidden,
    HostError,
    InputError,
    InvalidConfiguration,
    InvalidOption,
    bug_in_words,
)

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_BAD_INPUT = 2
EXIT_HOST = 3
EXIT_INTERNAL = 70  # EX_SOFTWARE of sysexits.h
EXIT_INTERRUPTED = 130
# What other tools call it.
_OTHER_TOOLS = {
    **dict.fromkeys(("get", "describe", "why", "show"), "explain"),
    **dict.fromkeys(("lint", "validate", "scan", "audit", "test", "analyze"), "check"),
    **dict.fromkeys(("diff", "compare"), "drift"),
    **dict.fromkeys(("recommend", "size", "rightsize", "optimize"), "advise"),
    **dict.fromkeys(("schedule", "fit"), "place"),
    **dict.fromkeys(("evict", "order"), "rank"),
    **dict.fromkeys(("serve", "dashboard", "web"), "ui"),
    **dict.fromkeys(("run", "sim"), "simulate"),
    **dict.fromkeys(("oom", "postmortem", "dmesg"), "autopsy"),
    **dict.fromkeys(("top", "status"), "overview"),
    "init": "scenario new",
    "sweep": "simulate --vary",
}


def command_line() -> NoReturn:
    """Run as the program and exit at once: the kernel frees memory faster than Python does."""
    code = main()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def main(argv: list[str] | None = None) -> int:
    """Run podqos and return its exit code."""
    # A command lives for a moment and its values have no cycles: collecting garbage would only cost time.
    gc.disable()
    arguments = sys.argv[1:] if argv is None else argv
    if sys.platform == "win32":
        from podqos.cli.systems import let_console_understand_colours

        let_console_understand_colours()
    with guarded_streams():
        return _answer(program_name(), arguments)


def program_name() -> str:
    """Return how the program is called: by its name, or as a plug-in of kubectl."""
    return "kubectl podqos" if sys.argv[0].removesuffix(".exe").endswith("kubectl-podqos") else "podqos"


def _answer(program: str, arguments: list[str]) -> int:
    try:
        try:
            return _run(program, arguments)
        finally:
            # Also after --help, which exits by itself: what cannot be written is told below.
            sys.stdout.flush()
    except InputError as error:
        errors = error.all if isinstance(error, InvalidConfiguration) else (error,)
        for each in errors:
            _failed(program, f"error: {each.worded(spelled)}", EXIT_BAD_INPUT)
        return EXIT_BAD_INPUT
    except (HostError, ClusterError) as error:
        code = _failed(program, f"error: {error.worded(spelled)}", EXIT_HOST)
        if isinstance(error, Forbidden) and error.role:
            with suppress(OSError):
                print(error.role, end="", file=sys.stderr)
        return code
    except KeyboardInterrupt:
        return _failed(program, "interrupted", EXIT_INTERRUPTED)
    except OSError as error:
        # Files are opened where their names are known; what is left is the output.
        discard_output()
        if _is_reader_gone(error):
            return EXIT_OK
        return _failed(program, f"error: {error.filename or 'standard output'}: {error.strerror or error}", EXIT_HOST)
    except MemoryError:
        return _failed(program, "error: out of memory", EXIT_HOST)
    except Exception as error:  # noqa: BLE001 - a bug of ours must not look like findings
        return _internal_error(program, error)


def _is_reader_gone(error: OSError) -> bool:
    """Whether nobody reads the output any more (`podqos explain … | head`): on Windows that is an invalid argument."""
    is_windows = sys.platform == "win32" and error.errno == EINVAL and error.filename is None
    return isinstance(error, BrokenPipeError) or is_windows


def _failed(program: str, what: str, code: int) -> int:
    """Print in one line why the command failed."""
    with suppress(OSError):
        print(f"{program}: {one_line(what)}", file=sys.stderr)
    return code


def _internal_error(program: str, error: Exception) -> int:
    """Ask for a report, in one line unless the traceback is wanted."""
    import traceback

    if wants_traceback():
        with suppress(OSError):
            sys.stderr.writelines(traceback.format_exception(error))
    return _failed(program, f"internal error: {bug_in_words(error)}. {ASK}", EXIT_INTERNAL)


def _run(program: str, argv: list[str]) -> int:
    name = argv[0] if argv and argv[0] in COMMANDS else None
    if name is None:
        return _without_command(program, argv)
    parser, command = parser_of(name, program)
    runs(parser, argv[1:])
    arguments = parser.parse_args(argv[1:])
    reported_bugs.clear()
    code = command.run(arguments)
    sys.stdout.flush()
    if reported_bugs:
        return _failed(program, f"internal error: {reported_bugs[0]}. {ASK}", EXIT_INTERNAL)
    return code


def _without_command(program: str, argv: list[str]) -> int:
    word = argv[0] if argv else "--help"
    if word in {"-h", "--help"}:
        from podqos.cli.overview import overview

        print(overview(program))
        return EXIT_OK
    if word in {"--version", "-V", "version"}:
        from podqos.cli.about import about

        print("\n".join(about()))
        return EXIT_OK
    known = ["--help", "--version"] if word.startswith("-") else COMMANDS
    what = f"unknown option {word}" if word.startswith("-") else f"unknown command {word!r}"
    if word in _OTHER_TOOLS:
        raise InvalidOption(what, fix=f"did you mean `{program} {_OTHER_TOOLS[word]}`?")
    raise InvalidOption(what, fix=did_you_mean(word, known, f"`{program} help` lists the commands"))
