// What is left on a node, by whichever of kubelet and kernel acts first however slowly memory grows.

import { bySignal } from "../format";
import type { ClusterView, WhatIfView } from "../schema";

type Panel = ClusterView["nodes"][number];

export interface Left {
  bytes: number;
  /** Until what: "an OOM kill". */
  until: string;
}

export function leftOn(panel: Panel): Left | null {
  return left(panel.firstBy, panel.kernelLeftBytes, panel.headroomBytes, panel.headroom?.signal);
}

/** What edits leave, and what was left by the same measure. */
export function leftAfter(view: WhatIfView): (Left & { was: number }) | null {
  const after = left(view.firstBy, view.kernelLeftAfterBytes, view.headroomAfterBytes, view.headroomSignal);
  const was = view.firstBy === "kernel" ? view.kernelLeftBeforeBytes : view.headroomBeforeBytes;
  return after && { ...after, was };
}

type Amount = number | null;

function left(by: string | null, kernel: Amount, kubelet: Amount, signal: string | null | undefined) {
  if (by === "kernel" && kernel !== null) return { bytes: kernel, until: "an OOM kill" };
  return kubelet === null ? null : { bytes: kubelet, until: `eviction${bySignal(signal)}` };
}
