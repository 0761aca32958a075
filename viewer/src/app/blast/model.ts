// The blast radius as a matrix: which leaking pod takes which others down, in which order. No drawing here.

import type { Blast, BlastRadius, BlastDeath } from "../../schema";

/** A leaking pod and its victims: the first death of each, and its position. */
export interface Leaking {
  pod: string;
  qosClass: string;
  deaths: ReadonlyMap<string, { death: BlastDeath; place: number }>;
}

/** Deaths of the same pod for the same reason, one after the other. */
export interface Deaths {
  first: BlastDeath;
  times: number;
}

/** Leaks that take others down, the most dangerous first. */
export function harmful(radius: BlastRadius): readonly Blast[] {
  return radius.leaks.filter((leak) => leak.others.length > 0);
}

/** How many other pods a leak takes down. */
export function taken(leak: Blast): number {
  return new Set(leak.others.map((death) => death.pod)).size;
}

/** Put deaths of the same pod for the same reason together. */
export function together(deaths: readonly BlastDeath[]): Deaths[] {
  const groups: Deaths[] = [];
  for (const death of deaths) {
    const last = groups.at(-1);
    const { pod, by, cause } = last?.first ?? {};
    if (last !== undefined && pod === death.pod && by === death.by && cause === death.cause) last.times++;
    else groups.push({ first: death, times: 1 });
  }
  return groups;
}

/** Leak rates, slowest first. */
export function ratesOf(radius: BlastRadius): readonly number[] {
  return [...new Set(radius.leaks.map((leak) => leak.rateBytesPerSecond))].sort((one, other) => one - other);
}

/** What each pod takes down at a rate, and its victims in the order of the impact matrix. */
export function leaksOf(
  radius: BlastRadius,
  rate: number,
): { leaks: readonly Leaking[]; victims: readonly string[] } {
  const lost = new Set<string>();
  const leaks = radius.leaks
    .filter((leak) => leak.rateBytesPerSecond === rate)
    .map(({ pod, qosClass, others }) => {
      const deaths = new Map<string, { death: BlastDeath; place: number }>();
      for (const death of others) {
        if (!deaths.has(death.pod)) deaths.set(death.pod, { death, place: deaths.size + 1 });
      }
      for (const victim of deaths.keys()) lost.add(victim);
      return { pod, qosClass: qosClass ?? "", deaths };
    });
  return { leaks, victims: radius.victims.filter((victim) => lost.has(victim)) };
}

/** Sort by the name of a column or a victim, with a minus if descending; those without a value come last. */
export function sorted(leaks: readonly Leaking[], sort: string): readonly Leaking[] {
  const name = sort.replace(/^-/, "");
  const way = sort.startsWith("-") ? -1 : 1;
  const worth = ({ pod, deaths }: Leaking): number | string => {
    if (name === "pod") return pod;
    if (name === "taken") return deaths.size;
    if (name === "soonest") return deaths.values().next().value?.death.afterSeconds ?? Infinity;
    return deaths.get(name)?.place ?? Infinity;
  };
  return leaks.toSorted((one, other) => {
    const [first, second] = [worth(one), worth(other)];
    if (first === second) return one.pod < other.pod ? -1 : 1;
    if (first === Infinity || second === Infinity) return first === Infinity ? 1 : -1;
    return (first < second ? -1 : 1) * way;
  });
}
