// Long lists of which only the visible part is rendered.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { afterFrame } from "./frames";

export interface Windowed {
  /** Goes on the element that holds the rows; its height is `height`. */
  ref: { current: HTMLDivElement | null };
  from: number;
  to: number;
  height: number;
  top(index: number): number;
  /** Return the rows that are on the screen. */
  seen(): Range;
  /** Scroll so that a row is seen. */
  reveal(index: number): void;
}

/** How much there is above and below what is seen, in pixels. */
const BEYOND = 400;
/** How much is drawn with one frame, where that is not to be seen at once: what is left comes with the frames after it. */
const STEP = 250;

export type Range = readonly [from: number, to: number];

/** Where on the page the last list began: the next one begins there, too, or is moved. */
let usualPlace = 0;

/** Return which rows of the page to draw; `tops` has where each begins, and at its end where all end. */
export function useWindow(tops: Float64Array): Windowed {
  const ref = useRef<HTMLDivElement | null>(null);
  const [, draw] = useState<Range | null>(null);
  const latest = useRef(tops);
  latest.current = tops;
  const range = useRef<Range | null>(null);
  const far = useRef(STEP);
  const awaited = useRef<(() => void) | null>(null);
  /** Draw what is seen, and so many pixels of all. */
  const reach = (pixels: number): Range => {
    const top = ref.current === null ? scrollY - usualPlace : begin(ref.current);
    far.current = pixels;
    const below = Math.min(innerHeight + BEYOND + Math.min(0, top), pixels);
    return rowsIn(latest.current, top - Math.min(BEYOND, pixels - below), Math.max(0, top) + below);
  };
  const show = ([from, to]: Range, isAll = false) => {
    const now = range.current ?? [from, from];
    // Whatever else there is stays until there is time, where it is near.
    const next: Range = isAll || now[1] < from || to < now[0] ? [from, to] : [Math.min(now[0], from), Math.max(now[1], to)];
    if (next[0] !== now[0] || next[1] !== now[1]) draw((range.current = next));
  };
  /** Draw what is seen, or so many pixels of it. */
  const look = (most = Infinity) => {
    show(reach(Math.min(innerHeight, innerHeight + begin(ref.current), most)));
    soon();
  };
  /** Of a list with other rows only some may be new at once. */
  const lookAgain = () => {
    const [from, to] = range.current ?? [0, 0];
    look((tops[Math.min(to, tops.length - 1)] ?? 0) - (tops[Math.min(from, tops.length - 1)] ?? 0) + STEP);
  };
  const lookAtAll = () => look();
  const soon = () => {
    awaited.current ??= afterFrame(lookBeyond);
  };
  /** What is below first: readers read on. */
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
    return () => {
      removeEventListener("scroll", lookAtAll);
      removeEventListener("resize", lookAtAll);
      removeEventListener("toggle", lookAtAll, true);
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
      // Above may be the bar, and the head of a table.
      if (begin < 140) scrollBy({ top: begin - 140 });
      else if (end > innerHeight - 20) scrollBy({ top: end - innerHeight + 20 });
    },
  };
}

/** How far the reader is into the list. */
function begin(list: HTMLElement | null): number {
  const top = list?.getBoundingClientRect().top ?? 0;
  usualPlace = top + scrollY;
  return -top;
}

/** Return the rows between two heights. */
export function rowsIn(tops: Float64Array, from: number, to: number): Range {
  return [Math.max(0, search(tops, from) - 1), Math.min(tops.length - 1, search(tops, to))];
}

/** Return how many begin before `y`. */
function search(tops: Float64Array, y: number): number {
  let [low, high] = [0, tops.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tops[middle] as number) < y) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Return where rows begin that are all of one height. */
export function even(count: number, height: number): Float64Array {
  return Float64Array.from({ length: count + 1 }, (_, index) => index * height);
}

/** How wide elements were when they were last there, by what they are. */
const usualWidths = new Map<string, number>();

/** The width of an element, as long as it is there; `what` it is tells how wide it will be until it can be measured. */
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
