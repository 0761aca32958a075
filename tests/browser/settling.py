"""When a page has drawn what it shows: answers come later, and pictures once it is known how wide they are."""

from __future__ import annotations

PATIENCE_MS = 120_000
"""How long a test waits for what must come: longer than any slow machine takes."""

_SETTLED = """async (patience) => {
  // What is put off until a frame is shown is done then, too.
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const drawn = () => {
    if (globalThis.podqosIsDrawn?.() === false) return "";
    if (document.querySelector(".state.loading, .state.job, [aria-busy=true]") !== null) return "";
    const charts = [...document.querySelectorAll(".charts")];
    if (charts.some((each) => !each.querySelector("svg")?.childElementCount)) return "";
    const { scrollWidth, scrollHeight } = document.documentElement;
    const pictures = [...document.querySelectorAll("svg, canvas")].map((each) => each.getBoundingClientRect().width);
    return [innerWidth, scrollWidth, scrollHeight, document.all.length, ...pictures].join(" ");
  };
  await document.fonts.ready;
  const until = performance.now() + patience;
  for (let before = "", now = drawn(); now === "" || now !== before;) {
    if (performance.now() > until) throw new Error(`the page is never drawn: ${before} ${now}`);
    before = now;
    await frame();
    await frame();
    now = drawn();
  }
}"""


def settle(page):
    """Wait until nothing is awaited, and the page is drawn for its width."""
    page.evaluate(_SETTLED, PATIENCE_MS)


def resize(page, width, height=900):
    """Make the window as wide, and wait until the page is drawn for that."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function("(width) => innerWidth === width", arg=width)
    settle(page)
