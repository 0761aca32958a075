// Where on the page the reader was, by the entries of the history: the way back leads there, any other to the top.

const places = new Map<string, number>();

// The page does it itself: a browser would do it before the view is there. What is loaded again is the browser's to find.
history.scrollRestoration = "manual";
addEventListener("beforeunload", () => void (history.scrollRestoration = "auto"));

/** The entry of the history that is looked at; empty where a browser does not tell. */
export function entry(): string {
  return (globalThis as { navigation?: { currentEntry: { key: string } | null } }).navigation?.currentEntry?.key ?? "";
}

/** Remember where the reader was when an entry is left. */
export function leave(left: string): void {
  if (left !== "") places.set(left, scrollY);
}

/** Scroll to where the reader was, as soon as the page is that long, unless something is done before; return what ends that. */
export function comeBack(): () => void {
  const top = places.get(entry()) ?? 0;
  scrollTo(0, top);
  const ended = new AbortController();
  const end = () => ended.abort();
  if (top === 0) return end;
  const observer = new ResizeObserver(() => {
    if (document.documentElement.scrollHeight - innerHeight < top) return;
    scrollTo(0, top);
    end();
  });
  observer.observe(document.body);
  ended.signal.addEventListener("abort", () => observer.disconnect());
  for (const event of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(event, end, { signal: ended.signal });
  return end;
}
