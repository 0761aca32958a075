// One leak over time: where its victims are on a line from its beginning to its end.

import type { Blast, BlastDeath } from "../../schema";

/** Deaths closer than this share of the line have one mark. */
const CLOSE = 0.035;
/** Where nothing stops a leak, the line goes on for this share of the time beyond the last death. */
const BEYOND = 0.1;

export interface Mark {
  /** From 0, where the leak begins, to 1. */
  at: number;
  /** The places of the victims in the order in which they die, from 1. */
  places: readonly number[];
  by: string;
}

export interface Timeline {
  marks: readonly Mark[];
  /** How long the line is, in seconds. */
  lasts: number;
  /** Where the leaking pod itself ends; null where nothing stops it. */
  end: number | null;
}

/** The first death of each victim, in order. */
export function victimsOf(leak: Blast): readonly BlastDeath[] {
  const seen = new Set<string>();
  return leak.others.filter(({ pod }) => !seen.has(pod) && seen.add(pod));
}

export function timelineOf(leak: Blast): Timeline {
  const victims = victimsOf(leak);
  const last = Math.max(0, ...victims.map((death) => death.afterSeconds));
  const lasts = Math.max(leak.end?.afterSeconds ?? last * (1 + BEYOND), last) || 1;
  const marks: { at: number; places: number[]; by: string }[] = [];
  victims.forEach((death, index) => {
    const at = death.afterSeconds / lasts;
    const near = marks.at(-1);
    if (near !== undefined && at - near.at < CLOSE) {
      near.places.push(index + 1);
      if (near.by !== death.by) near.by = "both";
    } else marks.push({ at, places: [index + 1], by: death.by });
  });
  return { marks, lasts, end: leak.end === null ? null : leak.end.afterSeconds / lasts };
}
