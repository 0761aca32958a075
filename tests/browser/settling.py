"""When a page has drawn what it shows: pictures are drawn once it is known how wide they are, frames later."""

from __future__ import annotations

_SETTLED = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const drawn = () => {
    const charts = document.querySelector(".charts");
    if (charts === null) return "no picture";
    const picture = charts.querySelector("svg");
    return picture.childElementCount > 0 ? `${charts.clientWidth} ${picture.getAttribute("width")}` : "";
  };
  await document.fonts.ready;
  for (let before = "", now = drawn(); now === "" || now !== before;) {
    before = now;
    await frame();
    await frame();
    now = drawn();
  }
}"""


def settle(page):
    """Wait until a page is drawn, and drawn for its width."""
    page.evaluate(_SETTLED)
