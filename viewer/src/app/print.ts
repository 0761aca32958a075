// Printing: light paper whatever the theme, and everything that a window shows only after scrolling.
//
// Before it prints, the page is laid out for paper and drawn again, which takes a few frames. A browser's own
// command to print does not wait for that, so pictures are at least made light.

import { isDrawn } from "./frames";
import "./print.css";
import { renderAll } from "./windowed";

const DARK = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
/** The theme to return to; null while nothing is printed. */
let before: { theme: string | undefined } | null = null;

function isDark(): boolean {
  return (root.dataset["theme"] ?? (DARK.matches ? "dark" : "light")) === "dark";
}

function begin(): void {
  if (before !== null) return;
  before = { theme: root.dataset["theme"] };
  root.dataset["theme"] = "light";
}

function end(): void {
  if (before === null) return;
  const { theme } = before;
  before = null;
  if (theme === undefined) delete root.dataset["theme"];
  else root.dataset["theme"] = theme;
  delete root.dataset["print"];
  delete root.dataset["inverted"];
  renderAll(false);
}

const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
const MOST_FRAMES = 300;

/** Lay the page out for paper, and wait until it is drawn. */
export async function preparePrint(): Promise<void> {
  begin();
  root.dataset["print"] = "";
  renderAll(true);
  let still = 0;
  for (let count = 0; count < MOST_FRAMES && still < 3; count++) {
    await frame();
    still = isDrawn() ? still + 1 : 0;
  }
}

/** Print what is shown. */
export async function printPage(): Promise<void> {
  await preparePrint();
  print();
  // Where nothing can be printed, nothing ends.
  setTimeout(end, 1000);
}

addEventListener("beforeprint", () => {
  if (before === null && isDark()) root.dataset["inverted"] = "";
  begin();
});
addEventListener("afterprint", end);
document.addEventListener("keydown", (event) => {
  if (event.key !== "p" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  void printPage();
});
