// Work spread over frames: input is answered in the next frame, and no frame takes so long that another is
// dropped.

import { useLayoutEffect, useState } from "preact/hooks";

/** The queue of work. */
const waiting = new Set<() => void>();
/** The budget per frame: layout and painting of the changes take about as long again. */
const BUDGET_MS = 2;
let isAwaited = false;
/** Pending drawings of the worker. */
export const drawing = new Set<unknown>();

/** Whether everything is rendered: for those who take screenshots. */
export const isDrawn = (): boolean => waiting.size === 0 && drawing.size === 0;
Object.assign(globalThis, { podqosIsDrawn: isDrawn });

/** Call a function after the next frame, or in later frames if the queue is long; return the function that
 * cancels it. */
export function afterFrame(call: () => void): () => void {
  waiting.add(call);
  awaitFrame();
  return () => waiting.delete(call);
}

/** A hidden page has no frames: work continues without them, so that everything is ready when the reader
 * returns. */
function awaitFrame(): void {
  if (isAwaited) return;
  isAwaited = true;
  if (document.hidden) setTimeout(work);
  else requestAnimationFrame(() => setTimeout(work));
}

async function work(): Promise<void> {
  const until = performance.now() + BUDGET_MS;
  try {
    for (const call of [...waiting]) {
      if (!waiting.delete(call)) continue;
      call();
      await null; // renders the change in between
      if (performance.now() > until) break;
    }
  } finally {
    isAwaited = false;
    if (waiting.size > 0) awaitFrame();
  }
}

/** Return a value one frame late, or with the first of these events, before anyone else hears it: a control
 * shows at once what was chosen, and what follows from it comes after. */
export function useLater<T>(value: T, events: readonly string[] = []): T {
  const [later, setLater] = useState(value);
  useLayoutEffect(() => {
    if (Object.is(later, value)) return;
    const take = () => setLater(value);
    const takeBack = afterFrame(take);
    for (const event of events) addEventListener(event, take, true);
    return () => {
      takeBack();
      for (const event of events) removeEventListener(event, take, true);
    };
  }, [value, later]);
  return later;
}

/** Return how many parts of a page to render: one at first, and one more with each frame. */
export function useTurns(most: number): number {
  const [turns, setTurns] = useState(1);
  useLayoutEffect(() => (turns < most ? afterFrame(() => setTurns(turns + 1)) : undefined), [turns, most]);
  return turns;
}
