// What of the matrix is rendered: what is near, spread over frames.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { afterFrame } from "../frames";
import type { Range } from "../windowed";
import { NOTHING, advance, isSame, near } from "./layout";
import type { Box, Drawn, Matrix, MatrixLayout, Near } from "./layout";

interface Rendering {
  /** What is near, within the matrix as it is now. */
  seen: Near;
  drawn: Drawn;
  /** Look again at what is near. */
  look(): void;
  /** Return where the box is, after it moved if it did: to ask the browser would lay the page out. */
  isAt(now?: Box): Box;
}

const NOWHERE: Near = { rows: [0, 0], columns: [0, 0] };

export function useDrawn(matrix: Matrix, layout: MatrixLayout): Rendering {
  const at = useRef<Box>({ left: 0, top: 0, width: 0, height: 0 });
  const latest = useRef({ matrix, layout });
  latest.current = { matrix, layout };
  const state = useRef<{ seen: Near; drawn: Drawn }>({ seen: NOWHERE, drawn: NOTHING });
  const [, render] = useState(0);
  const later = useRef<(() => void) | null>(null);
  const draw = () => {
    later.current = null;
    if (at.current.width === 0) return;
    const { seen, drawn } = state.current;
    const now = near(latest.current.layout, at.current);
    const isStill = isSame(seen.rows, now.rows) && isSame(seen.columns, now.columns);
    const next = advance(drawn, latest.current.matrix, now);
    if (!next.isDone) later.current = afterFrame(draw);
    state.current = { seen: isStill ? seen : now, drawn: next };
    if (!isStill || !isEqual(drawn.slots, next.slots)) render((times) => times + 1);
  };
  // Once with a frame: what is awaited already sees where the box is by then.
  const look = () => {
    if (later.current === null) draw();
  };
  // What is new is drawn after the frame that answers the input.
  useLayoutEffect(() => {
    later.current ??= afterFrame(draw);
  }, [matrix, layout]);
  useLayoutEffect(() => () => later.current?.(), []);
  const seen = useWithin(state.current.seen, layout.tops.length - 1, layout.lefts.length - 1);
  return { seen, drawn: state.current.drawn, look, isAt: (now) => (at.current = now ?? at.current) };
}

/** Return the same rows and columns, without those that there no longer are. */
function useWithin({ rows, columns }: Near, rowCount: number, columnCount: number): Near {
  const within = ([from, to]: Range, most: number): Range => [Math.min(from, most), Math.min(to, most)];
  return useMemo(
    () => ({ rows: within(rows, rowCount), columns: within(columns, columnCount) }),
    [rows, columns, rowCount, columnCount],
  );
}

function isEqual(one: ReadonlyMap<number, unknown>, other: ReadonlyMap<number, unknown>): boolean {
  return one.size === other.size && [...one].every(([number, slot]) => other.get(number) === slot);
}
