"""Change one operator at a time in the packages that decide, and see whether the fast tests notice.

    .venv/bin/python tools/mutate.py [--each 40] [--seed 1] [PACKAGE …] > survivors.txt

Draws so many changes per package (``<`` for ``<=``, ``and`` for ``or``, ``min`` for ``max``, ``n + 1`` for ``n`` …) and
runs the tests that call the changed function, cheapest first, until one fails. A change that none of them notices is
printed; the last lines are the rates. Not part of ``make test``: it takes a second or two a change. A survivor is a
missing test, or a change that means the same.

Which test calls which function is recorded once for each test file, in ``.cache/mutate`` (the first time that takes as
long as the fast tests on one core, twice over), and again when the file changes. Changes that nobody could notice are
not drawn: in assertions, error texts, ``__repr__``, the size of a cache, a bound on hostile input (``_MOST_…``).
Programs that tests start run unchanged.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import gc
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import re
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import NamedTuple

import hypothesis  # noqa: F401 - each run starts as a fork that has it already
import msgspec  # noqa: F401 - as above
import pytest
import yaml  # noqa: F401 - as above

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
RECORD = ROOT / ".cache" / "mutate"
PACKAGES = ("qos", "eviction", "kernel", "agent", "placement", "admission", "survival", "policy", "advice", "sim")
# A browser, a virtual machine, a fresh environment: none of them runs the changed code in this process.
LEFT_OUT = ("tests/browser/", "tests/vm/", "tests/typing/", "tests/test_fresh_machine.py", "tests/test_packaging.py")
RECORDING_SECONDS = 300
BROKEN = 70  # a fork's exit code where this program fails, and not a test
# What is asked first: the package's own tests, the cheapest ones; then all others, as far as they fit into this time.
FIRST_SECONDS = 8.0
MOST_SECONDS = 30.0
MOST_ROWS = 40
# Most changes show in few drawn examples; those that do not are tried with all, of the tests that draw.
FEW_EXAMPLES = 20
DRAWING_SECONDS = 5.0
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.FloorDiv: ast.Mult,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


# Changes.


class Change(NamedTuple):
    """One node of a module that becomes another."""

    path: Path
    function: str  # the outermost function or method around it; "" at the module's level
    number: int  # which of the module's nodes, as `ast.walk` finds them
    was: ast.AST
    becomes: ast.AST

    def __str__(self) -> str:
        """Return the place, the change and the line it is on."""
        line = self.path.read_text().splitlines()[self.was.lineno - 1].strip()  # type: ignore[attr-defined]
        place = f"{self.path.relative_to(ROOT)}:{self.was.lineno}"  # type: ignore[attr-defined]
        return f"{place}: {ast.unparse(self.was)}  →  {ast.unparse(self.becomes)}\n    {line}"


def becomes(node: ast.AST) -> ast.AST | None:
    """Return what a node is changed into, if it can be changed."""
    match node:
        case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]) if is_bound(node):
            return None
        case ast.Compare(ops=[op]) if type(op) in OPERATORS:
            return ast.Compare(node.left, [OPERATORS[type(op)]()], node.comparators)  # type: ignore[list-item]
        case ast.BoolOp(op=op):
            return ast.BoolOp(OPERATORS[type(op)](), node.values)  # type: ignore[arg-type]
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            return ast.BinOp(node.left, OPERATORS[type(op)](), node.right)  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            return operand
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            return ast.Call(ast.Name(NAMES[name], ast.Load()), node.args, node.keywords)
        case ast.Break():
            return ast.Continue()
        case ast.Continue():
            return ast.Break()
        case ast.Constant(value=int(value)) if type(value) is int:
            return ast.Constant(value + 1)
    return None


def is_bound(node: ast.Compare) -> bool:
    """Whether something is held against a bound on hostile input, where one more or less is all the same."""
    names = (each.id for each in (node.left, *node.comparators) if isinstance(each, ast.Name))
    return any(name.startswith(("MOST_", "_MOST_")) for name in names)


def is_unnoticeable(node: ast.AST) -> bool:
    """Whether no change inside a node could or should be noticed."""
    match node:
        case ast.Assert() | ast.Raise():
            return True
        case ast.FunctionDef(name="__repr__" | "__str__"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Name(id="lru_cache" | "cast") | ast.Attribute(attr="lru_cache")):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith(("MOST_", "_MOST_"))
    return False


def without(tree: ast.AST) -> set[int]:
    """Return the identities of nodes that are not changed: in what nobody notices, and in annotations."""
    found: set[int] = set()
    for node in ast.walk(tree):
        inside: list[ast.AST | None] = [node] if is_unnoticeable(node) else []
        inside += [getattr(node, "annotation", None), getattr(node, "returns", None)]
        found.update(id(inner) for outer in inside if outer is not None for inner in ast.walk(outer))
    return found


def functions(tree: ast.Module) -> dict[int, str]:
    """Return the outermost function or method around each node, by the node's identity."""
    found: dict[int, str] = {}

    def enter(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    found.update((id(inner), prefix + child.name) for inner in ast.walk(child))
                case ast.ClassDef():
                    enter(child, f"{prefix}{child.name}.")
                case _:
                    enter(child, prefix)

    enter(tree, "")
    return found


def changes(path: Path) -> Iterator[Change]:
    """Yield all changes of a module."""
    tree = ast.parse(path.read_text())
    skipped, around = without(tree), functions(tree)
    for number, node in enumerate(ast.walk(tree)):
        if id(node) not in skipped and (other := becomes(node)) is not None:
            yield Change(path, around.get(id(node), ""), number, node, other)


def drawn(package: str, count: int, seed: int) -> list[Change]:
    """Draw changes from all modules of a package."""
    found = [change for path in sorted((SOURCE / "podqos" / package).rglob("*.py")) for change in changes(path)]
    return random.Random(seed).sample(found, min(count, len(found)))  # noqa: S311 - no secret


def changed(change: Change) -> ast.Module:
    """Return a module with a change in it."""
    tree = ast.parse(change.path.read_text())
    target = list(ast.walk(tree))[change.number]

    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if node is target:
                return ast.fix_missing_locations(ast.copy_location(copy.deepcopy(change.becomes), node))
            return self.generic_visit(node)

    Replacing().visit(tree)
    return tree


class Changed(importlib.abc.MetaPathFinder):
    """Finds the changed module instead of the one on disk; all others as usual."""

    def __init__(self, change: Change) -> None:
        self._name = dotted(change.path)
        self._path = str(change.path)
        self._code = compile(changed(change), self._path, "exec", dont_inherit=True)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the changed module's specification."""
        del path, target
        if fullname != self._name:
            return None
        code = self._code

        class Loader(importlib.machinery.SourceFileLoader):
            def get_code(self, fullname: str) -> CodeType:
                del fullname
                return code

        return importlib.util.spec_from_file_location(fullname, self._path, loader=Loader(fullname, self._path))


def dotted(path: Path) -> str:
    """Return a module's name."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Which test calls what.


class Test(NamedTuple):
    """A test that passes, how long it takes, and the functions it calls."""

    name: str
    seconds: float
    calls: frozenset[str]


def called(code: CodeType) -> str | None:
    """Return the name under which a call of ours is recorded: path::outermost function."""
    if not code.co_filename.startswith(f"{SOURCE}/"):
        return None
    function = code.co_qualname.partition(".<locals>")[0]
    return f"{code.co_filename[len(str(SOURCE)) + 1 :]}::{'' if '<' in function else function}"


class Recorder:
    """A pytest plugin that records which functions each test calls."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, set[CodeType]]] = {}
        self.imported: set[CodeType] = set()
        self._calls = self.imported
        self._failed: set[str] = set()

    def trace(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call; lines do not interest."""
        del event, argument
        self._calls.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Give a test its own set, fixtures included."""
        self._calls = set()
        begin = time.perf_counter()
        sys.settrace(self.trace)
        result: object = yield
        self.tests[item.nodeid] = time.perf_counter() - begin, self._calls
        return result  # type: ignore[return-value]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out what fails or is skipped: it tells nothing."""
        if report.outcome != "passed":
            self._failed.add(report.nodeid)

    def found(self) -> dict[str, object]:
        """Return what was recorded."""

        def names(codes: set[CodeType]) -> list[str]:
            return sorted({name for code in codes if (name := called(code))})

        passed = {name: test for name, test in self.tests.items() if name not in self._failed}
        every = sorted({name for _, codes in passed.values() for name in names(codes)})
        index = {name: number for number, name in enumerate(every)}
        return {
            "functions": every,
            "imported": names(self.imported),
            "tests": {name: [spent, [index[each] for each in names(codes)]] for name, (spent, codes) in passed.items()},
        }


def run(arguments: Sequence[str], plugin: object, most_examples: int | None = FEW_EXAMPLES) -> int:
    """Run pytest in this process, quietly."""
    os.chdir(ROOT)
    if most_examples is not None:
        os.environ["PODQOS_EXAMPLES"] = str(most_examples)
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--tb=no", "-m", "not slow"]
    if isinstance(plugin, Recorder):
        quiet.remove("-x")
    return int(pytest.main([*quiet, *arguments], plugins=[plugin]))


def forked(work: Callable[[], int], seconds: float) -> int | None:
    """Do something in a fork, and return its exit code; none where it takes too long."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        code = BROKEN
        with contextlib.suppress(BaseException):
            code = work()
        os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            _end_group(pid)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    _end_group(pid)
    os.waitpid(pid, 0)
    return None


def _end_group(pid: int) -> None:
    """End a fork and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def record(file: Path, kept: Path) -> None:
    """Run the tests of one file, and keep what they call."""

    def work() -> int:
        recorder = Recorder()
        threading.settrace(recorder.trace)
        sys.settrace(recorder.trace)
        begin = time.perf_counter()
        code = run([str(file)], recorder)
        sys.settrace(None)
        found = recorder.found()
        spent = sum(seconds for seconds, _ in recorder.tests.values())
        found["seconds"] = time.perf_counter() - begin - spent
        kept.write_text(json.dumps(found))
        return code

    kept.parent.mkdir(parents=True, exist_ok=True)
    if forked(work, RECORDING_SECONDS) is None or not kept.exists():
        kept.write_text(json.dumps({"functions": [], "imported": [], "tests": {}, "seconds": 0}))
        print(f"{file.relative_to(ROOT)}: could not be recorded, and is not asked", file=sys.stderr, flush=True)


def files_in(root: Path) -> list[Path]:
    """Return the test files that are asked."""
    files = sorted(root.rglob("test_*.py"))
    return [file for file in files if not str(file.relative_to(ROOT)).startswith(LEFT_OUT)]


def kept_for(file: Path) -> Path:
    """Return where the record of a test file is: another place when the file changes."""
    name = str(file.relative_to(ROOT))
    return RECORD / f"{name.replace('/', '.')}.{hashlib.sha256(file.read_bytes()).hexdigest()[:16]}.json"


class Tests:
    """All recorded tests, by what they call."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.start: dict[str, float] = {}
        self._by_function: dict[str, list[Test]] = defaultdict(list)
        self._by_module: dict[str, list[Test]] = defaultdict(list)
        self._texts: dict[str, str] = {}
        self._of_file: dict[str, list[Test]] = {}
        for file in files:
            if kept_for(file).exists():
                self._add(str(file.relative_to(ROOT)), file)

    def _add(self, name: str, file: Path) -> None:
        kept = json.loads(kept_for(file).read_text())
        self.start[name] = kept["seconds"]
        self._texts[name] = file.read_text()
        tests = [
            Test(test, seconds, frozenset(kept["functions"][number] for number in numbers))
            for test, (seconds, numbers) in kept["tests"].items()
        ]
        self._of_file[name] = tests
        for test in tests:
            for function in test.calls:
                self._by_function[function].append(test)
            for module in {function.partition("::")[0] for function in test.calls}:
                self._by_module[module].append(test)
        for function in kept["imported"]:  # parameters of tests, or tables made when a module is imported
            self._by_function[function].extend(tests)

    def of(self, change: Change) -> list[Test]:
        """Return the tests that could notice a change."""
        module = str(change.path.relative_to(SOURCE))
        if change.function:
            found = self._by_function[f"{module}::{change.function}"]
        else:
            found = [test for function in users(change) for test in self._by_function[function]]
        if not found and not change.function:
            texts = [name for name, text in self._texts.items() if dotted(change.path) in text]
            found = [*self._by_module[module], *(test for name in texts for test in self._of_file[name])]
        return list({test.name: test for test in found}.values())


def users(change: Change) -> Iterator[str]:
    """Yield the functions that use what a statement outside of functions names, directly or by way of another."""
    outer = next(
        statement
        for statement in ast.parse(change.path.read_text()).body
        if statement.lineno <= change.was.lineno <= (statement.end_lineno or 0)  # type: ignore[attr-defined]
    )
    names = set(named(outer))
    modules = {path: path.read_text() for path in sorted((SOURCE / "podqos").rglob("*.py"))}
    if not names:
        return
    for path, text in modules.items():
        if path != change.path and dotted(change.path) not in text:
            continue
        tree, lines = ast.parse(text), text.splitlines()
        around, known = functions(tree), set(names)
        for statement in tree.body:
            word = re.compile(rf"\b(?:{'|'.join(sorted(known))})\b")
            if word.search(said(statement, lines)) and not isinstance(statement, ast.ClassDef):
                known.update(named(statement))
        word = re.compile(rf"\b(?:{'|'.join(sorted(known))})\b")
        for node in ast.walk(tree):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and word.search(said(node, lines)):
                yield f"{path.relative_to(SOURCE)}::{around[id(node)]}"


def named(statement: ast.stmt) -> Iterator[str]:
    """Yield what a statement of a module gives a name to, functions aside."""
    match statement:
        case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def said(node: ast.AST, lines: Sequence[str]) -> str:
    """Return the text of a statement."""
    return "\n".join(lines[node.lineno - 1 : node.end_lineno])  # type: ignore[attr-defined]


def file_of(test: Test) -> str:
    """Return the file a test is in."""
    return test.name.partition("::")[0]


def spread(tests: Iterable[Test]) -> list[Test]:
    """Return the cheapest rows of each test: rows of one table notice the same."""
    rows: dict[str, list[Test]] = defaultdict(list)
    for test in tests:
        rows[test.name.partition("[")[0]].append(test)
    return [test for own in rows.values() for test in sorted(own, key=lambda each: each.seconds)[:MOST_ROWS]]


def fitting(tests: Sequence[Test], start: dict[str, float], most: float) -> list[Test]:
    """Return the cheapest tests that fit into a time, the start of their files included."""
    chosen: list[Test] = []
    files: set[str] = set()
    spent = 0.0
    for test in sorted(tests, key=lambda each: (each.seconds + start[file_of(each)] / 4, each.name)):
        cost = test.seconds + (0 if file_of(test) in files else start[file_of(test)])
        if spent + cost <= most or not chosen:
            chosen.append(test)
            files.add(file_of(test))
            spent += cost
    return chosen


class Ordered:
    """A pytest plugin that runs some tests only, those of the cheapest file first; or of those the ones that draw."""

    def __init__(self, tests: Sequence[Test], *, drawing: bool) -> None:
        self._drawing = drawing
        self._seconds = {test.name: test.seconds for test in tests}
        self._files: dict[str, float] = defaultdict(float)
        for test in tests:
            self._files[file_of(test)] += test.seconds
        self.files = sorted(self._files, key=lambda file: self._files[file])

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select and sort; a module's tests stay together, for their fixtures' sake."""
        wanted = [item for item in items if item.nodeid in self._seconds]
        if self._drawing:
            functions = ((item, getattr(item, "function", None)) for item in wanted)
            wanted = [item for item, function in functions if getattr(function, "is_hypothesis_test", False)]

        def key(item: pytest.Item) -> tuple[float, str, float]:
            file = item.nodeid.partition("::")[0]
            return self._files[file], file, self._seconds[item.nodeid]

        items[:] = sorted(wanted, key=key)


def is_noticed(change: Change, package: str, tests: Tests) -> bool | None:
    """Whether a test fails with a change; none where it takes for ever."""
    finder = Changed(change)
    every = tests.of(change)
    own = f"tests/{package}/"
    like = f"{own}test_{change.path.stem}.py"  # the module's own tests notice most
    first = fitting(spread(test for test in every if file_of(test) == like), tests.start, FIRST_SECONDS)
    asked = {test.name for test in first}
    others = [test for test in every if test.name.startswith(own) and test.name not in asked]
    first += fitting(others, tests.start, FIRST_SECONDS)
    asked = {test.name for test in first}
    rest = fitting(spread(test for test in every if test.name not in asked), tests.start, MOST_SECONDS)
    drawing = fitting(spread(test for test in every if test.name.startswith(own)), tests.start, DRAWING_SECONDS)
    for group, most_examples in ((first, FEW_EXAMPLES), (rest, FEW_EXAMPLES), (drawing, None)):
        if not group:
            continue
        ordered = Ordered(group, drawing=most_examples is None)
        expected = sum(test.seconds for test in group) + sum(tests.start[file] for file in ordered.files)

        def work(ordered: Ordered = ordered, most_examples: int | None = most_examples) -> int:
            sys.meta_path.insert(0, finder)
            return run(ordered.files, ordered, most_examples)

        code = forked(work, 20 + (4 if most_examples else 40) * expected)
        if code is None:
            return None
        if code == BROKEN:
            raise SystemExit(f"{change}\ncould not be tried")
        if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            return True
    return False


# The program.


def note(text: str) -> None:
    """Say how far it is."""
    print(text, file=sys.stderr, flush=True)


def bring_up_to_date(files: Sequence[Path]) -> None:
    """Record all test files that changed."""
    missing = [file for file in dict.fromkeys(files) if not kept_for(file).exists()]
    for number, file in enumerate(missing, 1):
        note(f"recording {number} of {len(missing)}: {file.relative_to(ROOT)}")
        for old in RECORD.glob(f"{str(file.relative_to(ROOT)).replace('/', '.')}.*"):
            old.unlink()
        record(file, kept_for(file))


def main() -> None:
    """Try changes, and print those that survive."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", default=PACKAGES)
    parser.add_argument("--each", type=int, default=40, metavar="N", help="changes per package (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", nargs="+", metavar="PATH", help="only record these tests, and try nothing")
    parser.add_argument("--as-recorded", action="store_true", help="ask only tests that are recorded already")
    options = parser.parse_args()
    if options.record:
        paths = [Path(path).resolve() for path in options.record]
        bring_up_to_date([file for path in paths for file in (files_in(path) if path.is_dir() else [path])])
        return
    files = files_in(ROOT / "tests")
    if not options.as_recorded:
        bring_up_to_date(files)
    tests = Tests(files)
    gc.freeze()
    rates = []
    for package in options.packages:
        survived = endless = 0
        chosen = drawn(package, options.each, options.seed)
        for number, change in enumerate(chosen, 1):
            noticed = is_noticed(change, package, tests)
            endless += noticed is None
            if noticed is False:
                survived += 1
                reason = "" if tests.of(change) else "    no fast test calls it\n"
                print(f"{change}\n{reason}", flush=True)
            note(f"{package}: {survived} of {number} survived")
        rate = f"{survived} of {len(chosen)} changes survived ({survived / max(1, len(chosen)):.0%})"
        rates.append(f"{package}: {rate}, {endless} took for ever")
        note(rates[-1])
    print("\n".join(rates))


if __name__ == "__main__":
    main()
