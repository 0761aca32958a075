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

/** How much is drawn beyond what is seen, in pixels. */
const BEYOND = 250;

/** Return which rows of the page to draw; `tops` has where each begins, and at its end where all end. */
export function useWindow(tops: Float64Array): Windowed {
  const ref = useRef<HTMLDivElement | null>(null);
  const [range, setRange] = useState<readonly [number, number]>([0, 1]);
  const latest = useRef(tops);
  latest.current = tops;
  const look = () => {
    const element = ref.current;
    if (element === null) return;
    const begin = -element.getBoundingClientRect().top;
    const rows = latest.current;
    const from = Math.max(0, search(rows, begin - BEYOND) - 1);
    const to = Math.min(rows.length - 1, search(rows, begin + innerHeight + BEYOND));
    setRange((before) => (before[0] === from && before[1] === to ? before : [from, to]));
  };
  useLayoutEffect(look);
  useLayoutEffect(() => {
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
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

/** The width of an element, as long as it is there. */
export function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const ref = useRef<HTMLDivElement | null>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
