"""The documentation as a site: ``make docs``. Decision 15 says why Sphinx builds it.

The pages are plain Markdown, the same files that a code host shows. What Sphinx needs beyond that is derived here: the
navigation from the links of each README.md, in their order.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]

project = "podqos"
version = re.findall(r'^__version__ = "(.+)"', (ROOT / "src/podqos/version.py").read_text(), re.MULTILINE)[0]
extensions = ["myst_parser"]

# The source directory is the repository, so that links between its files hold in the site as well.
root_doc = "docs/README"
include_patterns = ["*.md", "bench/RESULTS.md"]
include_patterns += ["docs/**.md", "scenarios/**.md"]
exclude_patterns = [".*", "build", "dist", "src", "tests", "tools", "viewer", "**/node_modules"]

myst_heading_anchors = 6
highlight_language = "text"

# Options and quotations stay as they are written.
smartquotes = False

html_theme = "furo"
html_title = f"podqos {version}"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_js_files = ["offline.js"]
html_use_index = False
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
html_extra_path = ["extra"]


def setup(app: Sphinx) -> None:
    """Add the navigation to pages as they are read."""
    app.connect("source-read", _add_navigation)
    app.connect("build-finished", _copy_pictures)


def _copy_pictures(app: Sphinx, problem: Exception | None) -> None:
    """Put the pictures where the HTML in README.md, which Sphinx passes through unread, expects them."""
    if problem is None:
        shutil.copytree(ROOT / "docs/pictures", Path(app.outdir) / "docs/pictures", dirs_exist_ok=True)


def _add_navigation(_: Sphinx, page: str, content: list[str]) -> None:
    path = PurePosixPath(page)
    if path.parts[0] in {"bench", "scenarios"}:
        # Reached by links alone.
        content[0] = f"---\norphan: true\n---\n{content[0]}"
    elif path.name == "README" and path.parts[0] == "docs":
        listed = ("```{toctree}", ":hidden:", ":titlesonly:", "", *_pages_below(page, content[0]), "```")
        content[0] += "\n".join(("", *listed, ""))


def _pages_below(page: str, text: str) -> list[str]:
    """Return the pages that an index links to, in their order: those below it, and from the first also those above."""
    links = dict.fromkeys(re.findall(r"\]\(([\w./-]+)\.md\)", text))
    return [link for link in links if page == root_doc or not link.startswith("../")]
