// The data of a page: what `podqos simulate -o json` prints. Its types are made from the schema (types.js).

import type { RunView } from "./schema";

/** Read the data written into the page; null where the page was opened bare. */
export function readRun(): RunView | null {
  const text = document.getElementById("run")?.textContent ?? "null";
  return JSON.parse(text) as RunView | null;
}
