// Long lists that are drawn only where the reader looks.

import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Windowed {
  /** Goes on the element that holds the rows; its height is `height`. */
  ref: { current: HTMLDivElement | null };
  from: number;
  to: number;
  height: number;
  top(index: number): number;
  /** Scroll so that a row is seen. */
  reveal(index: number): void;
}

/** How much there is beyond what is seen, in pixels: made after the frame that shows what is seen. */
const BEYOND = 400;

type Range = readonly [from: number, to: number];

/** Where on the page the last list began: the next one begins there, too, or is moved. */
let usualPlace = 0;

/** Return which rows of the page to draw; `tops` has where each begins, and at its end where all end. */
export function useWindow(tops: Float64Array): Windowed {
  const ref = useRef<HTMLDivElement | null>(null);
  const [range, setRange] = useState<Range>(() => seen(tops, scrollY - usualPlace, 0));
  const latest = useRef(tops);
  latest.current = tops;
  const frame = useRef(0);
  /** Show what is seen; whatever else there is stays until there is time. */
  const look = () => {
    const wanted = seen(latest.current, begin(ref.current), 0);
    setRange((before) => {
      if (before[0] <= wanted[0] && wanted[1] <= before[1]) return before;
      return before[1] < wanted[0] || wanted[1] < before[0] ? wanted : [Math.min(before[0], wanted[0]), Math.max(before[1], wanted[1])];
    });
    frame.current ||= requestAnimationFrame(() => setTimeout(lookBeyond));
  };
  const lookBeyond = () => {
    frame.current = 0;
    if (ref.current === null) return;
    const wanted = seen(latest.current, begin(ref.current), BEYOND);
    setRange((before) => (before[0] === wanted[0] && before[1] === wanted[1] ? before : wanted));
  };
  useLayoutEffect(look, [tops]);
  useLayoutEffect(() => {
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    // Something above was opened or closed.
    addEventListener("toggle", look, true);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
      removeEventListener("toggle", look, true);
    };
  }, []);
  const last = tops.length - 1;
  return {
    ref,
    from: Math.min(range[0], last),
    to: Math.min(range[1], last),
    height: tops[last] ?? 0,
    top: (index) => tops[index] ?? 0,
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

/** Return the rows that are on the screen, or so many pixels beyond. */
function seen(tops: Float64Array, from: number, beyond: number): Range {
  return [Math.max(0, search(tops, from - beyond) - 1), Math.min(tops.length - 1, search(tops, from + innerHeight + beyond))];
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
