// A fix that was tried, as the address of What if with its edits filled in.

import type { PodEdit } from "../schema";
import { href } from "./router";

/** Return the address; `workload` is what changes, or empty for a pod of its own. */
export function tryAddress(tries: readonly PodEdit[], workload: string): string {
  const pod = tries[0]?.pod ?? "";
  const written: Record<string, string> = {};
  for (const each of tries) {
    for (const side of ["requests", "limits"] as const) {
      for (const [name, amount] of Object.entries(each[side])) {
        written[`${each.container}.${side}.${name}`] = amount ?? "";
      }
    }
    if (each.priority !== null) written["priority"] = String(each.priority);
  }
  return href("what-if", [], { pod, write: JSON.stringify({ [workload || pod]: written }) });
}
