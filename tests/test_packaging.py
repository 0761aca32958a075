"""What is shipped: a wheel, an sdist whose tests pass, release notes; and workflows that run make."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGE = "src/podqos/page/viewer.html"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEMPLATES = sorted(path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")


def run(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )


# ---- the wheel and the sdist -------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout in which the page is not built, with as much of it as a wheel needs."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    for name in ("__init__.py", "version.py", "page/__init__.py", "cli/main.py"):
        (tmp_path / "src/podqos" / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(ROOT / "src/podqos" / name, tmp_path / "src/podqos" / name)
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "deploy/chart/manifests").mkdir(parents=True)
    return tmp_path


def build(checkout: Path, function: str, path: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
    """Build as pip does, through the backend that pyproject.toml names, with the programs of one directory."""
    backend = PROJECT["build-system"]["build-backend"]
    script = f"import {backend}; {backend}.{function}('dist', {settings!r})"
    (checkout / "dist").mkdir()
    return run(sys.executable, "-c", script, cwd=checkout, PATH=path or os.defpath)


def wheel_names(checkout: Path) -> list[str]:
    (wheel,) = checkout.glob("dist/*.whl")
    return zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize(
    "settings", [{}, {"page": "absent"}], ids=["as everyone does", "as it had to be asked for before 0.1.0"]
)
def test_a_wheel_is_built_without_the_page(checkout, settings):
    done = build(checkout, "build_wheel", **settings)
    assert done.returncode == 0, done.stderr
    names = wheel_names(checkout)
    assert "podqos/cli/main.py" in names
    assert "podqos/page/viewer.html" not in names


# ---- the page is built where there is npm ------------------------------------------------------------------------

NPM = """#!/bin/sh
echo "$1" >> {calls}
case "$1" in
  ci) mkdir -p node_modules ;;
  run) mkdir -p dist && echo '<!doctype html>built' > dist/index.html ;;
esac
"""


class Npm:
    """A machine with an npm that notes what it is asked for, or with none."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.calls = directory / "calls"
        directory.mkdir()
        for program in ("sh", "mkdir"):
            (directory / program).symlink_to(shutil.which(program))

    def add(self, npm: str = NPM, node: str = "v22.12.0") -> None:
        for name, text in (("npm", npm.format(calls=self.calls)), ("node", f"#!/bin/sh\necho {node}\n")):
            (self.directory / name).write_text(text)
            (self.directory / name).chmod(0o755)

    @property
    def called(self) -> list[str]:
        return self.calls.read_text().split() if self.calls.exists() else []


@pytest.fixture
def npm(tmp_path_factory) -> Npm:
    return Npm(tmp_path_factory.mktemp("machine") / "bin")


@pytest.fixture
def with_viewer(checkout) -> Path:
    """Return a checkout with as much of the page's sources as the hook looks at."""
    (checkout / "viewer/src").mkdir(parents=True)
    (checkout / "viewer/package.json").write_text("{}")
    shutil.copytree(ROOT / "docs/schema", checkout / "docs/schema")
    return checkout


def tree(checkout: Path) -> set[str]:
    return {str(path.relative_to(checkout)) for path in checkout.rglob("*") if "__pycache__" not in path.parts}


def test_npm_builds_the_page_into_the_wheel_and_leaves_nothing_but_the_page(with_viewer, npm):
    npm.add()
    before = tree(with_viewer)
    assert build(with_viewer, "build_wheel", path=str(npm.directory)).returncode == 0
    assert "podqos/page/viewer.html" in wheel_names(with_viewer)
    assert npm.called == ["ci", "run"]
    assert {name for name in tree(with_viewer) - before if not name.startswith("dist")} == {PAGE}


def test_the_page_is_left_out_on_request(with_viewer, npm, monkeypatch):
    npm.add()
    monkeypatch.setenv("HATCH_BUILD_NO_HOOKS", "true")
    assert build(with_viewer, "build_wheel", path=str(npm.directory)).returncode == 0
    assert npm.called == []


def test_a_page_that_is_newer_than_its_sources_is_not_built_again(with_viewer, npm):
    npm.add()
    (with_viewer / PAGE).write_text("<!doctype html>")
    assert build(with_viewer, "build_wheel", path=str(npm.directory)).returncode == 0
    assert npm.called == []


def test_a_page_that_is_older_than_its_sources_is_built_again(with_viewer, npm):
    npm.add()
    (with_viewer / PAGE).write_text("<!doctype html>")
    os.utime(with_viewer / PAGE, (1, 1))
    assert build(with_viewer, "build_wheel", path=str(npm.directory)).returncode == 0
    assert (with_viewer / PAGE).read_text() == "<!doctype html>built\n"


@pytest.mark.parametrize("function", ["build_editable", "build_sdist"])
def test_only_a_wheel_has_the_page_built(with_viewer, npm, function):
    npm.add()
    assert build(with_viewer, function, path=str(npm.directory)).returncode == 0
    assert npm.called == []


@pytest.mark.parametrize(
    ("npm_text", "node", "said"),
    [
        pytest.param(None, "", "npm is not installed", id="no npm"),
        pytest.param(NPM, "v18.19.0", "it needs Node.js 20.19, 22.12 or newer, and node is v18.19.0", id="an old one"),
        pytest.param(NPM, "v22.1.0", "it needs Node.js 20.19, 22.12 or newer, and node is v22.1.0", id="a bit old"),
        pytest.param("#!/bin/sh\necho npm error code ENOTFOUND >&2; exit 1\n", "v24.0.0", "ENOTFOUND", id="no network"),
    ],
)
def test_without_npm_the_wheel_lacks_the_page_and_one_line_says_why(with_viewer, npm, npm_text, node, said):
    if npm_text is not None:
        npm.add(npm_text, node)
    done = build(with_viewer, "build_wheel", path=str(npm.directory))
    assert done.returncode == 0
    assert "podqos/page/viewer.html" not in wheel_names(with_viewer)
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if "not built" in line]
    assert said in line


def test_a_source_tree_that_cannot_be_written_to_gives_a_wheel_with_the_page(with_viewer, npm):
    npm.add()
    (with_viewer / PAGE).mkdir()  # root, too, cannot put a file there
    os.utime(with_viewer / PAGE, (1, 1))
    done = build(with_viewer, "build_wheel", path=str(npm.directory))
    assert done.returncode == 0, done.stderr
    assert "podqos/page/viewer.html" in wheel_names(with_viewer)


# ---- the environments of make ------------------------------------------------------------------------------------


def pins(lock: str) -> dict[str, str]:
    """Return the entries of a lock file, with their hashes, by name."""
    entries = re.split(r"\n(?=\S)", (ROOT / lock).read_text().strip())
    return {entry.partition("==")[0]: entry for entry in entries}


def test_what_runs_is_pinned_as_it_is_tested():
    running, testing = pins("requirements-run.lock"), pins("requirements.lock")
    assert {name: entry for name, entry in running.items() if testing.get(name) != entry} == {}


def needed(names: list[str]) -> set[str]:
    """Return packages with all that they need here, by their normal names."""
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    oldest = {"python_version": "3.11", "python_full_version": "3.11.0", "extra": ""}
    normal: set[str] = set()
    while names:
        name = re.match(r"[\w.-]+", names.pop())[0]
        if (known := re.sub(r"[-_.]+", "-", name).lower()) not in normal:
            normal.add(known)
            found = [Requirement(each) for each in requires(name) or ()]
            names += [each.name for each in found if each.marker is None or each.marker.evaluate(oldest)]
    return normal


def test_the_demo_installs_podqos_without_extras_and_what_installs_it():
    base = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"], "editables"]
    assert pins("requirements-run.lock").keys() == needed(base)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("is_empty", [False, True], ids=["missing", "empty"])
def test_a_release_without_the_page_is_refused_and_one_line_says_how_to_get_it(checkout, tmp_path, is_empty):
    shutil.copy(ROOT / "Makefile", checkout)
    if is_empty:
        (checkout / PAGE).touch()
    venv = Path(sys.executable).parents[1]
    # Without npm: `viewer` says that nothing is built and does not fail.
    done = run("make", "--silent", "-o", "viewer", "-o", f"{venv}/.installed", f"VENV={venv}", "dist", cwd=checkout)
    assert done.returncode != 0
    assert f"no release without the page: {PAGE} is not built (`make viewer`, needs npm)\n" in done.stderr
    assert list(checkout.glob("dist/*")) == []


def test_a_wheel_carries_the_page(checkout):
    (checkout / PAGE).write_text("<!doctype html>")
    assert build(checkout, "build_wheel").returncode == 0
    assert "podqos/page/viewer.html" in wheel_names(checkout)


def test_an_sdist_carries_the_page(checkout):
    (checkout / PAGE).write_text("<!doctype html>")
    assert build(checkout, "build_sdist").returncode == 0
    (archive,) = checkout.glob("dist/*.tar.gz")
    with tarfile.open(archive) as packed:
        assert any(name.endswith(PAGE) for name in packed.getnames())


def test_an_editable_installation_needs_no_page(checkout):
    assert build(checkout, "build_editable").returncode == 0
    assert len(wheel_names(checkout)) > 1


def test_nothing_asks_pip_for_more_than_to_install():
    for name in ("README.md", "docs/how-to/ci-gate.md", "action.yml", ".pre-commit-hooks.yaml"):
        assert "--config-settings" not in (ROOT / name).read_text(), name


@pytest.mark.slow
def test_the_tests_of_an_unpacked_sdist_pass(tmp_path):
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    assert run("tar", "xzf", archive.name, cwd=tmp_path).returncode == 0
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")

    chosen = ("tests/conformance", "tests/questions/test_explain.py")
    arguments = ("-m", "not slow", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain")
    roots = sorted(str(path.relative_to(unpacked)) for path in unpacked.glob("tests/test_*.py"))
    few = {"PYTHONPATH": "src", "PODQOS_EXAMPLES": "5"}
    done = run(sys.executable, "-m", "pytest", *arguments, *chosen, *roots, cwd=unpacked, **few)
    assert done.returncode == 0, done.stdout
    assert str(ROOT) not in done.stdout


# ---- releases ----------------------------------------------------------------------------------------------------


@pytest.fixture
def release(tmp_path):
    """Return what is said about a release of a project of version 1.2.3 with a given changelog."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/release_notes.py", tmp_path / "tools")
    (tmp_path / "src/podqos").mkdir(parents=True)
    (tmp_path / "src/podqos/version.py").write_text('__version__ = "1.2.3"\n')

    def notes(changelog: str, *names: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "CHANGELOG.md").write_text(changelog)
        return run(sys.executable, "tools/release_notes.py", *names, cwd=tmp_path)

    return notes


CHANGES = """\
# Changelog

## [Unreleased]

- later

## [1.2.3] – 2026-01-02

### Added

- new

## [1.2.2] – 2026-01-01

- old
"""


@pytest.mark.parametrize(
    ("names", "notes"),
    [
        pytest.param(("v1.2.3",), "### Added\n\n- new\n", id="a tag"),
        pytest.param(("1.2.3",), "### Added\n\n- new\n", id="a version"),
        pytest.param((), "- later\n", id="what comes next"),
    ],
)
def test_the_notes_of_a_release_are_its_section_of_the_changelog(release, names, notes):
    done = release(CHANGES, *names)
    assert (done.returncode, done.stdout) == (0, notes)


@pytest.mark.parametrize(
    ("changelog", "name", "complaint"),
    [
        pytest.param(CHANGES, "v1.2.2", "the package is 1.2.3, not 1.2.2", id="another version than the package's"),
        pytest.param(CHANGES.replace("[1.2.3]", "[1.2.30]"), "v1.2.3", "says nothing under [1.2.3]", id="no section"),
        pytest.param("## [1.2.3]\n\n## [1.2.2]\n", "v1.2.3", "says nothing under [1.2.3]", id="an empty section"),
    ],
)
def test_a_release_without_notes_is_refused(release, changelog, name, complaint):
    done = release(changelog, name)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert complaint in done.stderr


def test_the_changelog_has_something_to_say_about_the_next_release_or_this_one():
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/podqos/version.py").read_text())[1]
    done = [run(sys.executable, "tools/release_notes.py", name, cwd=ROOT) for name in ("unreleased", f"v{version}")]
    assert any(each.returncode == 0 and each.stdout for each in done)


def test_a_version_that_is_not_released_is_marked_and_is_the_one_the_changelog_expects():
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/podqos/version.py").read_text())[1]
    expected = re.search(r"^## \[Unreleased\](?: – (\S+))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = run(sys.executable, "tools/release_notes.py", f"v{version}", cwd=ROOT).returncode == 0
    assert released is not version.endswith(".dev0")
    if not released:
        assert expected[1] == version.removesuffix(".dev0")


# ---- workflows and templates -------------------------------------------------------------------------------------


def commands(workflow: Path) -> list[str]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step["run"] for job in jobs for step in job.get("steps", ()) if "run" in step]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_the_makefile_has(workflow):
    if workflow.stem == "systems":
        pytest.skip("where make is not usual")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = [target for each in commands(workflow) for target in re.findall(r"\bmake (?:--\w+ )*([a-z-]+)", each)]
    assert called
    assert set(called) <= targets


def test_the_tests_run_with_every_python_that_the_package_claims():
    (workflow,) = [path for path in WORKFLOWS if path.stem == "test"]
    matrix = yaml.safe_load(workflow.read_text())["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix == re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert commands(workflow) == ["make test PYTHON=python${{ matrix.python }}"]


def test_systems_that_the_package_claims_install_it_as_readme_says():
    (workflow,) = [path for path in WORKFLOWS if path.stem == "systems"]
    matrix = yaml.safe_load(workflow.read_text())["jobs"]["install"]["strategy"]["matrix"]["system"]
    claimed = re.findall(r"Operating System :: .*?(\w+)$", "\n".join(PROJECT["project"]["classifiers"]), re.MULTILINE)
    assert {name.partition("-")[0] for name in matrix} | {"linux"} == {name.lower() for name in claimed}
    assert commands(workflow)[0] == "pip install ."


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_no_script_of_a_workflow_has_text_from_outside_in_it(workflow):
    assert {name for each in commands(workflow) for name in re.findall(r"\$\{\{ *(\S+)", each)} <= {"matrix.python"}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_issue_templates_are_forms_with_something_to_fill_in(template):
    form = yaml.safe_load(template.read_text())
    assert {"name", "description", "body"} <= form.keys()
    assert [field["id"] for field in form["body"] if not field["attributes"]["label"]] == []
    assert any(field.get("validations", {}).get("required") for field in form["body"])


# ---- extras ------------------------------------------------------------------------------------------------------


def test_every_extra_that_a_message_names_exists():
    named = {
        extra
        for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *(ROOT / "src").rglob("*.py")]
        if path.name != "CHANGELOG.md"  # names what there was
        for extras in re.findall(r"(?:podqos|'\.)\[([a-z,]+)\]", path.read_text())
        for extra in extras.split(",")
    }
    assert named
    assert named <= PROJECT["project"]["optional-dependencies"].keys()


# ---- krew --------------------------------------------------------------------------------------------------------


def test_the_krew_manifest_names_an_archive_with_a_launcher_and_the_wheel(tmp_path):
    wheel = tmp_path / "podqos-1.2.3-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    done = run(sys.executable, str(ROOT / "tools/krew.py"), str(tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plugin = yaml.safe_load((tmp_path / "podqos.yaml").read_text())
    (platform,) = plugin["spec"]["platforms"]
    data = (tmp_path / "kubectl-podqos.tar.gz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        modes = {each.name: each.mode for each in archive}

    assert plugin["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert (plugin["kind"], plugin["metadata"]["name"]) == ("Plugin", "podqos")
    assert plugin["spec"]["version"] == "v1.2.3"
    assert 0 < len(plugin["spec"]["shortDescription"]) < 80
    assert platform["uri"].endswith("/v1.2.3/kubectl-podqos.tar.gz")
    assert platform["sha256"] == hashlib.sha256(data).hexdigest()
    assert platform["selector"]["matchExpressions"]
    assert modes == {"kubectl-podqos": 0o755, "LICENSE": 0o644, wheel.name: 0o644}
    assert platform["bin"] in modes


def unpack(archive: Path, directory: Path) -> None:
    """Unpack as krew does; Python's own way is another in every patch release."""
    directory.mkdir()
    subprocess.run(["tar", "--extract", "--gzip", "--file", str(archive)], cwd=directory, check=True)


def test_the_launcher_runs_the_wheel_beside_it_or_says_what_is_missing(tmp_path):
    (tmp_path / "podqos-1.2.3-py3-none-any.whl").write_bytes(b"wheel")
    assert run(sys.executable, str(ROOT / "tools/krew.py"), str(tmp_path), cwd=tmp_path).returncode == 0
    unpack(tmp_path / "kubectl-podqos.tar.gz", tmp_path / "store")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "dirname", "readlink"):
        (programs / name).symlink_to(str(shutil.which(name)))
    plugin = programs / "kubectl-podqos"
    plugin.symlink_to(tmp_path / "store/kubectl-podqos")
    missing = run(str(plugin), "explain", cwd=tmp_path, PATH=str(programs))
    (programs / "uv").write_text('#!/bin/sh\necho "$@"\n')
    (programs / "uv").chmod(0o755)
    ran = run(str(plugin), "explain", "-A", cwd=tmp_path, PATH=str(programs))

    assert missing.returncode == 3
    assert "uv" in missing.stderr
    assert ran.stdout.split()[-3:] == ["kubectl-podqos", "explain", "-A"]
    assert str(tmp_path / "store/podqos-1.2.3-py3-none-any.whl") in ran.stdout


def test_an_archive_for_krew_needs_a_wheel(tmp_path):
    done = run(sys.executable, str(ROOT / "tools/krew.py"), str(tmp_path), cwd=tmp_path)

    assert done.returncode == 1
    assert "make dist" in done.stderr


def test_the_program_that_kubectl_looks_for_is_installed():
    assert "kubectl-podqos" in PROJECT["project"]["scripts"]
