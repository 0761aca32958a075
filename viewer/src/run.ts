// The data of a page: what `podqos simulate -o json` or `podqos blast -o json` prints. Its types are made from the
// schemas (types.js).

import type { BlastRadius, RunView } from "./schema";

/** Read the data written into the page; null where the page was opened bare. */
export function readData(): RunView | BlastRadius | null {
  const text = document.getElementById("run")?.textContent ?? "null";
  return JSON.parse(text) as RunView | BlastRadius | null;
}

export function isBlast(data: RunView | BlastRadius): data is BlastRadius {
  return data.kind === "BlastRadius";
}
