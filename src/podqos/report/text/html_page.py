"""Pages without scripts: self-contained, readable offline, light or dark as the reader has it.

Nothing of the input is quoted unescaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape as escape_markup

# What HTML cannot hold, not even escaped.
_NOT_HTML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_STYLE = """\
:root { color-scheme: light dark; --ink: #1c2128; --faint: #59636e; --page: #ffffff; --card: #f6f8fa; --line: #d1d9e0;
  --error: #c21c2c; --warning: #8a5a00; --info: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #9198a1; --page: #0d1117; --card: #161b22;
  --line: #3d444d; --error: #ff7b72; --warning: #e3b341; --info: #79c0ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1rem 4rem; max-width: 62rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .75rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
code, pre { font: .875em/1.45 ui-monospace, monospace; } a { color: var(--info); }
pre { background: var(--page); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; margin: .5rem 0;
  overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.faint { color: var(--faint); } .numbers { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0; padding: 0;
  list-style: none; } .numbers li { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .5rem 1rem; min-width: 7rem; } .numbers b { display: block; font-size: 1.5rem; line-height: 1.2; }
"""


def page(title: str, style: str, header: Iterable[str], main: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a page; ``title`` is escaped already, ``style`` comes on top of what all pages have."""
    yield from (
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>\n{_STYLE}{style}</style></head>",
        "<body>",
    )
    yield "<header>"
    yield from header
    yield from ("</header>", "<main>")
    yield from main
    yield "</main></body></html>"


def escape(text: str) -> str:
    """Escape a text of the input for the page."""
    return escape_markup(_NOT_HTML.sub("\N{REPLACEMENT CHARACTER}", text))
