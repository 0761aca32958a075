// Words about a death that several parts of the blast radius share.

import { bytes, CAUSES } from "../../format";
import type { Blast, BlastDeath } from "../../schema";

/** What happens to a pod: `OOM-killed`, `evicted`. */
export function how(death: BlastDeath): string {
  return death.by === "kernel" ? "OOM-killed" : "evicted";
}

export function causeOf(death: BlastDeath): string {
  return CAUSES[death.cause] ?? `${death.cause} below its threshold`;
}

export function rate(leak: Blast): string {
  return `${bytes(leak.rateBytesPerSecond)}/s`;
}
