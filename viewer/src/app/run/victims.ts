// The victims above the charts, in groups, and the names that there is room for. Those too close to tell
// apart share a sign; what happens again to the same workload for the same reason has a number only.

import type { Kill, Victim } from "../../schema";
import type { Plot } from "./plot";
import { fitted, NAME, SMALL, textWidth } from "./text";

export interface Group {
  x: number;
  kills: readonly Kill[];
}

export interface Name {
  x: number;
  left: number;
  width: number;
  lane: number;
  name: string;
  cause: string;
  by: string;
}

export interface Rail {
  height: number;
  groups: readonly Group[];
  names: readonly Name[];
}

/** The height above the charts if there are no victims. */
const EMPTY = 8;

export function railOf(plot: Plot): Rail {
  const { signs, lane } = plot.picture.measures;
  const groups = grouped(plot);
  const names = named(plot, groups);
  const lanes = Math.max(0, ...names.map((name) => name.lane + 1));
  return { height: groups.length === 0 ? EMPTY : lanes * lane + signs, groups, names };
}

/** Whose sign it is. */
export function signOf(kills: readonly Kill[]): string {
  const signs = new Set(kills.map((kill) => (kill.by === "kernel" ? "kernel" : "kubelet")));
  return signs.size === 1 ? ([...signs][0] as string) : "both";
}

function grouped({ kills, fromUs, toUs, x, picture }: Plot): Group[] {
  const groups: { x: number; kills: Kill[] }[] = [];
  for (const kill of kills) {
    if (kill.timeUs < fromUs || kill.timeUs > toUs) continue;
    const last = groups.at(-1);
    if (last !== undefined && x(kill.timeUs) - last.x < picture.measures.signGap) last.kills.push(kill);
    else groups.push({ x: x(kill.timeUs), kills: [kill] });
  }
  return groups;
}

/** Earlier names are higher, so that the lines down to the signs stay free. */
function named(plot: Plot, groups: readonly Group[]): Name[] {
  const { kills, picture, left, right } = plot;
  const victims = new Map(kills.map((kill, index) => [kill, picture.victims[index] as Victim]));
  const alike = (kill: Kill) => victims.get(kill)?.alike ?? -1;
  const times = new Map<number, number>();
  for (const kill of kills) times.set(alike(kill), (times.get(alike(kill)) ?? 0) + 1);
  const seen = new Set<number>();
  const ends: number[] = [];
  const names: Name[] = [];
  for (const group of groups) {
    const fresh = group.kills.filter((kill) => !seen.has(alike(kill)) && seen.add(alike(kill)));
    const [first] = fresh;
    if (first === undefined) continue;
    const often = times.get(alike(first)) ?? 1;
    const others = fresh.length > 1 ? ` and ${fresh.length - 1} more` : often > 1 ? ` ×${often}` : "";
    const room = right - left;
    const name = `${fitted(victims.get(first)?.name ?? "", room - textWidth(others, NAME), NAME)}${others}`;
    const cause = fitted(first.cause, room);
    const width = Math.max(textWidth(name, NAME), textWidth(cause, SMALL));
    const begin = Math.max(left, Math.min(plot.x(first.timeUs) - 6, right - width));
    const free = ends.findIndex((end) => end + 12 < begin);
    const lane = free < 0 ? ends.length : free;
    if (lane >= picture.measures.lanes) continue;
    ends[lane] = begin + width;
    names.push({ x: plot.x(first.timeUs), left: begin, width, lane, name, cause, by: signOf(group.kills) });
  }
  return names;
}
