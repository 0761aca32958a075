"""The house: public names, package docstrings, and the contracts between packages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import grimp
import pytest

import podqos
import ratchets

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(path.parent for path in (ROOT / "src" / "podqos").glob("*/**/__init__.py"))


@pytest.mark.parametrize("name", podqos.__all__)
def test_public_names_exist_and_say_what_they_are(name):
    value = getattr(podqos, name)
    assert isinstance(value, str) or value.__doc__


def test_the_public_names_are_those_that_type_checkers_see_and_no_others():
    stub = ast.parse((ROOT / "src/podqos/__init__.pyi").read_text())
    names = [alias.asname for line in stub.body if isinstance(line, ast.ImportFrom) for alias in line.names]
    assert podqos.__all__ == sorted(names)
    assert dir(podqos) == podqos.__all__
    everything: dict[str, object] = {}
    exec("from podqos import *", everything)  # noqa: S102 - what a reader would write
    assert everything.keys() - {"__builtins__"} == set(names)
    with pytest.raises(AttributeError, match="no attribute 'pod'"):
        podqos.pod  # noqa: B018 - asking is the test


def test_importing_podqos_imports_nothing_of_it():
    script = "import sys, podqos; print([name for name in sys.modules if name.startswith('podqos.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT / "src/podqos")))
def test_a_package_says_what_kind_it_is_and_re_exports_nothing(package):
    tree = ast.parse((package / "__init__.py").read_text())
    docstring = ast.get_docstring(tree)
    assert docstring is not None
    assert docstring.split()[0] in {"Pure.", "Simulated.", "Real.", "Edge."}
    assert len(tree.body) == 1


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT / "src/podqos")))
def test_every_module_says_why_it_exists(package):
    for module in package.glob("*.py"):
        assert ast.get_docstring(ast.parse(module.read_text())), module


def test_the_contracts_between_packages_hold():
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports"))], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


PURE = [
    path
    for package in ("objects", "questions", "text", "runs", "page")
    for path in (ROOT / "src/podqos" / package).rglob("*.py")
]
_REACHING = {"open", "print", "input", "datetime.now", "datetime.today", "date.today"}


def _reaches_out(path: Path) -> bool:
    """Whether a module opens, prints or asks for the time with what is built in."""
    text = path.read_text()
    return any(f"{each}(" in text for each in _REACHING) and any(
        isinstance(node, ast.Call) and ast.unparse(node.func) in _REACHING for node in ast.walk(ast.parse(text))
    )


def test_questions_objects_and_words_do_nothing_that_needs_no_import():
    """What .importlinter cannot see."""
    assert [str(path.relative_to(ROOT)) for path in PURE if _reaches_out(path)] == []


def test_what_opens_a_file_is_seen(tmp_path):
    module = tmp_path / "module.py"
    module.write_text("def read(path):\n    return open(path)\n")
    assert _reaches_out(module)


def test_no_package_grows_and_no_file_is_too_long():
    advice = "delete something, or run `python tests/ratchets.py` and say in the commit why it has to be more"
    assert ratchets.grown(ratchets.held(), ratchets.counted()) == [], advice


def test_what_grows_is_named():
    held = ratchets.written({"lines": {"a": 120, "b": 7}, "statements": {}, "long-files": {"a/x.py": 801}})
    now = {"lines": {"a": 151, "b": 50}, "statements": {}, "long-files": {"a/x.py": 801, "b/y.py": 900}}
    assert ratchets.grown(tomllib.loads(held), now) == ["lines of a: 150 -> 151", "long-files of b/y.py: 0 -> 900"]


def _circles(graph: grimp.ImportGraph, package: str) -> set[str]:
    """Return the children of a package that import each other in a circle, themselves or through what they contain.

    Modules in a circle always meet as children of the innermost package that holds them all.
    """
    inside = {child: {child, *graph.find_descendants(child)} for child in graph.find_children(package)}
    arrows = {
        child: {
            other
            for other in inside
            if other != child
            and any(inside[other] & graph.find_modules_directly_imported_by(module) for module in inside[child])
        }
        for child in inside
    }
    below = {child: set(others) for child, others in arrows.items()}
    for through in arrows:
        for others in below.values():
            if through in others:
                others.update(below[through])
    circles = {frozenset(other for other in below[child] if child in below[other]) for child in arrows}
    return {" ".join(sorted(each.removeprefix("podqos.") for each in circle)) for circle in circles if circle}


def test_modules_and_rooms_import_each_other_downwards_only():
    graph = grimp.build_graph("podqos", cache_dir=None)  # imports for type checking only, and in functions, count
    assert graph.direct_import_exists(importer="podqos.manifest.objects", imported="podqos.manifest.examine")

    circles = {circle for package in graph.modules for circle in _circles(graph, package)}
    assert circles == set()


def test_circles_are_found_between_modules_and_between_rooms():
    graph = grimp.ImportGraph()
    for package in ("podqos", "podqos.a", "podqos.b"):
        graph.add_module(package)
    for arrow in ("a.x b.y", "b.z c", "c a.w", "d a.x", "b.y e", "b.p b.q", "b.q b.r", "b.r b.p", "b.s b.p"):
        importer, imported = arrow.split()
        graph.add_import(importer=f"podqos.{importer}", imported=f"podqos.{imported}")

    assert _circles(graph, "podqos") == {"a b c"}
    assert _circles(graph, "podqos.a") == set()
    assert _circles(graph, "podqos.b") == {"b.p b.q b.r"}


def _files_of_the_page(folder: Path) -> dict[str, set[str]]:
    """Return what every file of the page imports of its own, imports of types included; names as in Python."""
    files = {path.with_suffix("").resolve(): path for path in folder.rglob("*.ts*")}
    names = {path: ".".join(path.relative_to(folder.parent).parts) for path in files}
    return {
        names[path]: {
            names[imported]
            for at in re.findall(r"""(?:from|import)\s*\(?\s*["'](\.[^"']*)["']""", file.read_text("utf-8"))
            if (imported := (path.parent / at).resolve()) in names
        }
        for path, file in files.items()
    }


def test_files_of_the_page_import_each_other_downwards_only():
    graph = grimp.ImportGraph()
    for importer, imported in _files_of_the_page((ROOT / "viewer" / "src").resolve()).items():
        parts = importer.split(".")
        for depth in range(1, len(parts) + 1):
            graph.add_module(".".join(parts[:depth]))
        for each in imported:
            graph.add_import(importer=importer, imported=each)
    assert graph.direct_import_exists(importer="src.app.shell", imported="src.app.views")

    assert {circle for folder in graph.modules for circle in _circles(graph, folder)} == set()


def test_rules_ask_the_profile_for_a_behaviour_and_never_compare_versions():
    """A version compared elsewhere is a rule that ``model/profile.py``, the one list of differences, does not have."""
    versions = {"version", "kubernetes_version"}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "src").rglob("*.py")
        if path.name != "profile.py"
        for text in [path.read_text("utf-8")]
        if any(f".{name}" in text for name in versions)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Compare)
        and any(isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for operator in node.ops)
        and any(isinstance(each, ast.Attribute) and each.attr in versions for each in (node.left, *node.comparators))
    ]
    assert found == []


MODULES_WITH_PATTERNS = [
    path
    for path in (ROOT / "src").rglob("*.py")
    if any(made in path.read_text() for made in ("re.compile(", "LazyPattern("))
]


@pytest.mark.parametrize("path", MODULES_WITH_PATTERNS, ids=lambda path: path.stem)
def test_no_pattern_has_a_possessive_group_which_python_before_3_11_5_mishandles(path):
    """Whether it is made at once, in a function, or when it is needed."""
    constants = [node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)]
    texts = [value.decode("latin-1") if isinstance(value, bytes) else value for value in constants]
    patterns = [text for text in texts if isinstance(text, str) and ("\\" in text or "(?" in text or text[:1] == ")")]

    assert [text for text in patterns if re.search(r"\)(?:[*+?]|\{[\d,]+\})\+|\(\?>", text)] == []


def test_every_command_has_options_and_a_run():
    from podqos.cli.main import COMMANDS

    for module, summary in COMMANDS.values():
        command = import_module(f"podqos.cli.commands.{module}")
        assert callable(command.add_arguments)
        assert callable(command.run)
        assert summary
