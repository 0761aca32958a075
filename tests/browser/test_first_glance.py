"""What a reader sees without scrolling is what `docs/internals/first-glance.md` says, source by source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from browser.fleet import fleet
from browser.settling import settle
from browser.test_ui_pasting import paste

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "scenarios/content-platform"
DESCRIPTION = """Name:             checkout-5d8c7b9f6-x2k4p
Namespace:        shop
Node:             worker-3/10.0.0.13
Status:           Running
Controlled By:    ReplicaSet/checkout-5d8c7b9f6
Containers:
  checkout:
    Image:          checkout:1.2
    State:          Running
      Started:      Mon, 05 Jan 2026 15:19:40 +0000
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Mon, 05 Jan 2026 14:01:10 +0000
      Finished:     Mon, 05 Jan 2026 15:19:27 +0000
    Ready:          True
    Restart Count:  3
    Limits:
      memory:  512Mi
    Requests:
      memory:  256Mi
QoS Class:        Burstable
"""
BROKEN = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n   namespace: shop\nspec: {}\n"
SIZES = {"1280": (1280, 900), "390": (390, 844)}
# The smallest element with the words. Names wrap, and a term stands beside its text: neither spaces nor colons count.
_BOTTOMS = """(texts) => {
  const plain = (text) => text.replace(/[\\s:●◆]+/g, "");
  const all = [...document.body.querySelectorAll("*")].filter((each) => each.checkVisibility());
  return texts.map((text) => {
    const found = all.filter((each) => plain(each.innerText ?? "").includes(plain(text)));
    return found.length === 0 ? null : Math.min(...found.map((each) => each.getBoundingClientRect().bottom));
  });
}"""


def told():
    """Return the sentences by source, with the widths at which they are above the fold."""
    page = (ROOT / "docs/internals/first-glance.md").read_text(encoding="utf-8")
    for section in page.split("\n## ")[1:]:
        rows = re.findall(r"^\| (?!the page says)(.+?) \| (✓|–) \| (✓|–) \|$", section, re.MULTILINE)
        assert rows
        yield section.partition("\n")[0], rows


SOURCES = dict(told())


@pytest.fixture(scope="module")
def openings(serve, tmp_path_factory):
    """Return the server of each source, and what is pasted there."""
    folder = tmp_path_factory.mktemp("glance")
    (folder / "fleet.json").write_text(fleet(2400, 120))
    (folder / "pods.yaml").write_text(BROKEN)
    started = {}

    def open_source(name):
        given = {
            "The demo": ("accidental-burstable",),
            "Manifests with a usage table": (PLATFORM / "platform", PLATFORM / "usage.csv"),
            "A single manifest": (ROOT / "scenarios/three-pods/pods.yaml",),
            "A large cluster": (folder / "fleet.json",),
            "A broken file": (folder / "pods.yaml",),
        }.get(name, ())
        if given not in started:
            started[given] = serve(*given)
        kernel_log = (PLATFORM / "incident/kern.log").read_text()
        pasted = {"A pasted kernel log": kernel_log, "A pasted description of a pod": DESCRIPTION}
        return started[given], pasted.get(name)

    return open_source


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("source", SOURCES)
def test_what_matters_is_above_the_fold(visit, openings, source, width):
    server, text = openings(source)
    across, down = SIZES[width]
    page = visit(server, width=across, height=down).open()
    if text is not None:
        paste(page, text, "body")
    page.wait_for_function("() => document.querySelector('.coming') === null")
    rows = SOURCES[source]
    expect(page.locator("h1")).to_have_text(re.compile("Autopsy" if text else "."))
    settle(page)
    bottoms = page.evaluate(_BOTTOMS, [sentence for sentence, *_ in rows])
    column = list(SIZES).index(width)
    seen = [
        (sentence, "–" if bottom is None or bottom > down else "✓")
        for (sentence, *_), bottom in zip(rows, bottoms, strict=True)
    ]
    assert seen == [(sentence, marks[column]) for sentence, *marks in rows]
