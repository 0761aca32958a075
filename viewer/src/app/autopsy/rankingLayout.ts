// The bars of a ranking: what a candidate uses, what its adjustment adds or takes off, and the victim's score
// as a line.

import type { RankedRow } from "../../schema";

export interface ScoreBar {
  /** Shares of the longest bar: what counts as it is used, and what is added to it or taken off. */
  used: number;
  adjusted: number;
  isTakenOff: boolean;
}

export interface RankingLayout {
  /** Null for a candidate that is never chosen. */
  bars: readonly (ScoreBar | null)[];
  /** Where the victim's score ends; null where there is none. */
  line: number | null;
  hasAdjustments: boolean;
}

/** Others may have a mark, too: critical pods are spared. */
export function isVictim(row: RankedRow): boolean {
  return /^(killed|chosen|evicted)/.test(row.mark);
}

export function rankingLayout(rows: readonly RankedRow[]): RankingLayout {
  const reach = Math.max(1, ...rows.map((row) => (row.used ?? 0) + Math.max(0, row.added)));
  const bars = rows.map((row): ScoreBar | null => {
    if (row.used === null || (row.pid !== null && row.badness === null)) return null;
    const isTakenOff = row.added < 0;
    const left = isTakenOff ? Math.max(0, row.used + row.added) : row.used;
    return { used: left / reach, adjusted: (isTakenOff ? row.used - left : row.added) / reach, isTakenOff };
  });
  const victim = bars[rows.findIndex(isVictim)];
  return {
    bars,
    line: victim ? victim.used + (victim.isTakenOff ? 0 : victim.adjusted) : null,
    hasAdjustments: rows.some((row) => row.added !== 0),
  };
}
