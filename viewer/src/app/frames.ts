// Work spread over frames: what the reader does is answered with the next one, and none takes so long that another is missed.

import { useLayoutEffect, useState } from "preact/hooks";

/** Call it once the next frame is on its way to the screen; return what takes that back. */
export function afterFrame(call: () => void): () => void {
  let timer = 0;
  const frame = requestAnimationFrame(() => {
    timer = window.setTimeout(call);
  });
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}

/** Return a value one frame late: a control shows at once what was chosen, and what follows from it comes after. */
export function useLater<T>(value: T): T {
  const [later, setLater] = useState(value);
  useLayoutEffect(() => (Object.is(later, value) ? undefined : afterFrame(() => setLater(value))), [value]);
  return later;
}

/** Return how many parts of a page to draw: first one, and one more with each frame. */
export function useTurns(most: number): number {
  const [turns, setTurns] = useState(1);
  useLayoutEffect(() => (turns < most ? afterFrame(() => setTurns(turns + 1)) : undefined), [turns, most]);
  return turns;
}
