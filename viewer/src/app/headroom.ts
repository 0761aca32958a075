// What is left on a node, by whichever of kubelet and kernel acts first while memory grows slowly.

import { about, bySignal } from "../format";
import type { NodePanel, WhatIfView } from "../schema";

export interface Left {
  bytes: number;
  by: "kernel" | "kubelet";
  /** Which threshold, where it is not that of memory.available. */
  signal: string;
}

export function leftOn(node: NodePanel): Left | null {
  return left(node.firstBy, node.kernelLeftBytes, node.headroomBytes, node.headroom?.signal);
}

/** What edits leave, and what was left by the same measure. */
export function leftAfter(view: WhatIfView): (Left & { was: number }) | null {
  const after = left(view.firstBy, view.kernelLeftAfterBytes, view.headroomAfterBytes, view.headroomSignal);
  const was = view.firstBy === "kernel" ? view.kernelLeftBeforeBytes : view.headroomBeforeBytes;
  return after && { ...after, was };
}

/** Until what: "eviction", "an OOM kill". */
export function until(of: Left | null): string {
  return of?.by === "kernel" ? "an OOM kill" : `eviction${of?.signal ?? ""}`;
}

/** As words: "4.7Gi headroom before eviction", or "1Gi past eviction". */
export function leftText(of: Left): string {
  return `${about(Math.abs(of.bytes))} ${of.bytes < 0 ? "past" : "headroom before"} ${until(of)}`;
}

type Amount = number | null;

function left(by: string | null, kernel: Amount, kubelet: Amount, signal?: string | null): Left | null {
  if (by === "kernel" && kernel !== null) return { bytes: kernel, by, signal: "" };
  return kubelet === null ? null : { bytes: kubelet, by: "kubelet", signal: bySignal(signal) };
}
