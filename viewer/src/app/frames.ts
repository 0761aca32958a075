// Work spread over frames: input is answered in the next frame, and no frame takes so long that another is dropped.

import { useLayoutEffect, useState } from "preact/hooks";

/** What is to be done yet, in the order of asking. */
const waiting = new Set<() => void>();
/** So much of a frame goes into it: to lay out and paint what it changed takes about as long again. */
const BUDGET_MS = 2;
let isAwaited = false;
/** What is drawn beside the page. */
export const drawing = new Set<unknown>();

/** Whether all is drawn: who takes pictures of the page asks. */
export const isDrawn = (): boolean => waiting.size === 0 && drawing.size === 0;
Object.assign(globalThis, { podqosIsDrawn: isDrawn });

/** Call it once the next frame is on its way to the screen, or with the ones after it where much is waiting; return what takes that back. */
export function afterFrame(call: () => void): () => void {
  waiting.add(call);
  awaitFrame();
  return () => waiting.delete(call);
}

/** A page that is not looked at has no frames: there it is done without, so that all is drawn when the reader comes. */
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
      await null; // what it changed is drawn in between
      if (performance.now() > until) break;
    }
  } finally {
    isAwaited = false;
    if (waiting.size > 0) awaitFrame();
  }
}

/** Return a value one frame late, or with the first of these events, before anyone else hears it: a control shows at once what
 * was chosen, and what follows from it comes after. */
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

/** Return how many parts of a page to draw: first one, and one more with each frame. */
export function useTurns(most: number): number {
  const [turns, setTurns] = useState(1);
  useLayoutEffect(() => (turns < most ? afterFrame(() => setTurns(turns + 1)) : undefined), [turns, most]);
  return turns;
}
