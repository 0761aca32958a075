// Scroll positions by history entry: Back restores the position.

import { isDrawn } from "./frames";

// The page restores positions itself: a browser would do it before the view is rendered. After a reload, the
// browser does it.
history.scrollRestoration = "manual";
addEventListener("beforeunload", () => void (history.scrollRestoration = "auto"));

const places = new Map<string, number>();
let current = entry();
// Where the reader was when the address changed: a view of another height may move the page before it is
// left.
let reached = 0;
addEventListener("hashchange", () => void (reached = scrollY));

/** The key of the current history entry; constant if the browser does not provide it. */
function entry(): string {
  return (
    (globalThis as { navigation?: { currentEntry: { key: string } | null } }).navigation?.currentEntry?.key ??
    ""
  );
}

/** Store the scroll position if the history entry has changed; return whether it has. */
export function leave(): boolean {
  const left = current;
  current = entry();
  if (left !== current) places.set(left, reached);
  return left !== current;
}

/** Scroll to where the reader was when this entry was left, as soon as the page is that long and until it is
 * drawn, unless something is done before; return what ends that. */
export function comeBack(): () => void {
  const ended = new AbortController();
  const end = () => ended.abort();
  const top = places.get(current) ?? 0;
  const observer = new ResizeObserver(() => {
    if (document.documentElement.scrollHeight - innerHeight < top) return;
    scrollTo(0, top);
    if (isDrawn()) end();
  });
  if (places.has(current)) observer.observe(document.body);
  ended.signal.addEventListener("abort", () => observer.disconnect());
  for (const event of ["wheel", "touchmove", "pointerdown", "keydown"])
    addEventListener(event, end, { signal: ended.signal });
  return end;
}
