// Long lists of which only the visible part is rendered.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { afterFrame } from "./frames";

export interface Windowed {
  /** For the element that holds the rows; its height is `height`. */
  ref: { current: HTMLDivElement | null };
  from: number;
  to: number;
  height: number;
  top(index: number): number;
  /** Return the visible rows. */
  seen(): Range;
  /** Scroll a row into view. */
  reveal(index: number): void;
}

/** Margin above and below the visible part, in pixels. */
const BEYOND = 400;
/** Pixels of invisible rows rendered per frame; the rest follows in later frames. */
const STEP = 250;

export type Range = readonly [from: number, to: number];

/** On paper there is no scrolling: so many rows are rendered. */
const MOST_PRINTED = 500;
const WHOLE = "podqos-whole";
let isWhole = false;

/** Render whole lists, or only what is visible again. */
export function renderAll(isOn: boolean): void {
  isWhole = isOn;
  dispatchEvent(new Event(WHOLE));
}

/** Where the last list started on the page: the next one is assumed to start there, too. */
let usualPlace = 0;

/** Return which rows to render; `tops` has the start of each row and, at its end, the end of all. */
export function useWindow(tops: Float64Array): Windowed {
  const ref = useRef<HTMLDivElement | null>(null);
  const [, draw] = useState<Range | null>(null);
  const latest = useRef(tops);
  latest.current = tops;
  const range = useRef<Range | null>(null);
  const far = useRef(STEP);
  const awaited = useRef<(() => void) | null>(null);
  /** Render the visible part, and this many pixels in total. */
  const reach = (pixels: number): Range => {
    if (isWhole) return [0, Math.min(latest.current.length - 1, MOST_PRINTED)];
    const top = ref.current === null ? scrollY - usualPlace : begin(ref.current);
    far.current = pixels;
    const below = Math.min(innerHeight + BEYOND + Math.min(0, top), pixels);
    return rowsIn(latest.current, top - Math.min(BEYOND, pixels - below), Math.max(0, top) + below);
  };
  const show = ([from, to]: Range, isAll = false) => {
    const now = range.current ?? [from, from];
    // Nearby rows stay until there is time.
    const next: Range =
      isAll || now[1] < from || to < now[0] ? [from, to] : [Math.min(now[0], from), Math.max(now[1], to)];
    if (next[0] !== now[0] || next[1] !== now[1]) draw((range.current = next));
  };
  /** Render the visible part, or this many pixels of it. */
  const look = (most = Infinity) => {
    show(reach(Math.min(innerHeight, innerHeight + begin(ref.current), most)));
    soon();
  };
  /** In a changed list, only some rows may be new at once. */
  const lookAgain = () => {
    const [from, to] = range.current ?? [0, 0];
    look((tops[Math.min(to, tops.length - 1)] ?? 0) - (tops[Math.min(from, tops.length - 1)] ?? 0) + STEP);
  };
  const lookAtAll = () => look();
  const soon = () => {
    awaited.current ??= afterFrame(lookBeyond);
  };
  /** Rows below come first: readers read on. */
  const lookBeyond = () => {
    awaited.current = null;
    if (ref.current === null) return;
    const wanted = reach(far.current + STEP);
    const isAll = far.current >= innerHeight + 2 * BEYOND;
    show(wanted, isAll);
    if (!isAll) soon();
  };
  const isNew = range.current === null || range.current[1] === 0;
  if (range.current === null || isNew) range.current = reach(STEP);
  useLayoutEffect(() => (isNew ? soon() : lookAgain()), [tops]);
  useLayoutEffect(() => {
    addEventListener("scroll", lookAtAll, { passive: true });
    addEventListener("resize", lookAtAll);
    // Something above was opened or closed.
    addEventListener("toggle", lookAtAll, true);
    addEventListener(WHOLE, lookAtAll);
    return () => {
      removeEventListener("scroll", lookAtAll);
      removeEventListener("resize", lookAtAll);
      removeEventListener("toggle", lookAtAll, true);
      removeEventListener(WHOLE, lookAtAll);
    };
  }, []);
  const last = tops.length - 1;
  return {
    ref,
    from: Math.min(range.current[0], last),
    to: Math.min(range.current[1], last),
    height: tops[last] ?? 0,
    top: (index) => tops[index] ?? 0,
    seen: () => {
      const top = begin(ref.current);
      return rowsIn(tops, top, top + innerHeight);
    },
    reveal: (index) => {
      const element = ref.current;
      if (element === null) return;
      const begin = element.getBoundingClientRect().top + (tops[index] ?? 0);
      const end = element.getBoundingClientRect().top + (tops[index + 1] ?? 0);
      // The bar and the table head may cover the top.
      if (begin < 140) scrollBy({ top: begin - 140 });
      else if (end > innerHeight - 20) scrollBy({ top: end - innerHeight + 20 });
    },
  };
}

/** The scroll position within the list. */
function begin(list: HTMLElement | null): number {
  const top = list?.getBoundingClientRect().top ?? 0;
  usualPlace = top + scrollY;
  return -top;
}

/** Return the rows between two heights. */
export function rowsIn(tops: Float64Array, from: number, to: number): Range {
  return [Math.max(0, search(tops, from) - 1), Math.min(tops.length - 1, search(tops, to))];
}

/** Return how many rows start before `y`. */
function search(tops: Float64Array, y: number): number {
  let [low, high] = [0, tops.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tops[middle] as number) < y) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Return the starts of rows of equal height. */
export function even(count: number, height: number): Float64Array {
  return Float64Array.from({ length: count + 1 }, (_, index) => index * height);
}

/** The last known widths of elements, by kind. */
const usualWidths = new Map<string, number>();

/** The width of a mounted element; `what` names its kind, whose last width is used until it can be measured.
 * */
export function useWidth(what: string): [{ current: HTMLDivElement | null }, number] {
  const ref = useRef<HTMLDivElement | null>(null);
  const [width, setWidth] = useState(usualWidths.get(what) ?? 0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const measure = () => {
      usualWidths.set(what, element.clientWidth);
      setWidth(element.clientWidth);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
